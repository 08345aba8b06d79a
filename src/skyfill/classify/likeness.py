"""Whether other shares of the classes explain why a field differs from the training set.

A field differs because its classes have other shares, or because objects of a class look different
there: fainter, less well measured, seen by another survey. Only in the first case do estimated
shares make probabilities better. Then the values of each column are distributed as a mixture of
those of the labelled objects of each class, and the shares that were found say which one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Parts of a column that hold equally many labelled objects, and bins with what lies beyond them.
N_PARTS = 8
N_BINS = N_PARTS + 2
# Standard errors of the count in each bin that may be chance: all bins of a column together hardly
# ever exceed it.
CHANCE = 1.5
# Names of its arrays start with this.
LOOKS = "looks."


class Looks(NamedTuple):
    """The values of labelled objects of each class, counted column by column.

    Attributes
    ----------
    edges : array of shape (p, bins - 1)
        Values beyond the outermost are no class's. NaN for a column without values.
    counts : array of shape (classes, p, bins)
        Objects of each class with a value in each bin.
    totals : array of shape (classes,)
        Objects of each class.
    """

    edges: Array
    counts: Array
    totals: Array


def learn_looks(X: Array, y: NDArray[np.intp], n_classes: int) -> Looks:
    """Count the values of labelled objects.

    Examples
    --------
    >>> found = learn_looks(np.arange(16.0)[:, None], np.arange(16) // 8, 2)
    >>> found.counts[:, 0, 1:-1].tolist()
    [[2.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0]]
    """
    seen = [column[~np.isnan(column)] for column in X.T]
    edges = np.array([_edges(each) for each in seen])
    counts = np.stack([_count(X[y == c], edges) for c in range(n_classes)])
    return Looks(edges, counts, np.bincount(y, minlength=n_classes).astype(np.float64))


def _edges(values: Array) -> Array:
    if not values.size:
        return np.full(N_BINS - 1, np.nan)
    edges = np.quantile(values, np.arange(N_PARTS + 1) / N_PARTS)
    # A value on an edge is counted below it, but the least one is not below all.
    edges[0] = np.nextafter(edges[0], -np.inf)
    return np.asarray(edges)


def explained_by(new: Array, old: Array, X: Array, looks: Looks) -> float:
    """Return which part of the difference between a field and a training set is one of shares.

    The difference in a column is the share of the objects with a value that would have to have
    another one for both to look alike (total variation), less what may be chance; the columns add
    up. Gaps do not count, for a field may have more of them in all classes. 1 where there is no
    difference.

    Parameters
    ----------
    new, old : array of shape (classes,)
        Shares of the classes in the field and in the training set.
    X : array of shape (n, p)
        The field. Columns without any value are left out.
    looks : Looks

    Examples
    --------
    >>> looks = learn_looks(np.repeat([[15.0], [19.0]], 500, axis=0), np.arange(1000) // 500, 2)
    >>> few = np.repeat([[15.0], [19.0]], [900, 100], axis=0)
    >>> explained_by(np.array([0.9, 0.1]), np.array([0.5, 0.5]), few, looks)
    1.0
    """
    there = _count(X, looks.edges)
    both = (there.sum(axis=1) > 0) & (looks.counts.sum(axis=(0, 2)) > 0)
    there, counts = there[both], looks.counts[:, both]

    def differ(shares: Array) -> float:
        return sum(
            _difference(field, each, shares / looks.totals)
            for field, each in zip(there, counts.swapaxes(0, 1), strict=True)
        )

    before = differ(old)
    return 1.0 if not before else max(1.0 - differ(new) / before, 0.0)


def _difference(there: Array, each: Array, weights: Array) -> float:
    """Compare counts in bins with those of classes, of which each object has a weight."""
    seen, n = there / there.sum(), weights @ each.sum(axis=1)
    if not n:
        return 1.0
    expected = weights @ each / n
    # Counts have their own value for a variance.
    variance = seen / there.sum() + (weights / n) ** 2 @ each
    beyond_chance = np.abs(seen - expected) - CHANCE * np.sqrt(variance)
    return max(float(beyond_chance.sum()), 0.0) / 2


def _count(X: Array, edges: Array) -> Array:
    """Count values in the bins of each column."""
    rows = []
    for column, each in zip(X.T, edges, strict=True):
        seen = column[~np.isnan(column) & ~np.isnan(each[0])]
        rows.append(np.bincount(np.searchsorted(each, seen), minlength=N_BINS))
    return np.array(rows, dtype=np.float64).reshape(-1, N_BINS)


def looks_arrays(looks: Looks | None) -> dict[str, NDArray[Any]]:
    """Return the arrays for a model file."""
    return {} if looks is None else {LOOKS + k: array for k, array in looks._asdict().items()}


def read_looks(arrays: Mapping[str, NDArray[Any]]) -> Looks | None:
    """Build from `looks_arrays`; None for older model files."""
    if f"{LOOKS}edges" not in arrays:
        return None
    return Looks(*(arrays[LOOKS + name] for name in Looks._fields))


def check_looks(looks: Looks | None, n_classes: int, p: int) -> None:
    """Raise ValueError where the counts are not those of a classifier."""
    if looks is None:
        return
    if looks.edges.shape != (p, N_BINS - 1) or looks.totals.shape != (n_classes,):
        raise ValueError("the counts of labelled objects have the wrong shape")
    if looks.counts.shape != (n_classes, p, N_BINS):
        raise ValueError("the counts of labelled objects have the wrong shape")
    if not ((looks.counts >= 0).all() and (looks.totals > 0).all()):
        raise ValueError("the counts of labelled objects must not be negative")
