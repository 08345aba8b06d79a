"""How unlike the training set a field is, and whether other shares of the classes explain it.

A field differs because its classes have other shares, or because objects of a class look different
there: fainter, less well measured, seen by another survey. Only in the first case do estimated
shares make probabilities better. Then the values of each column are distributed as a mixture of
those of the labelled objects of each class, and the shares that were found say which one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
# Objects below which nothing is said of how they differ: chance alone may be a fifth.
LEAST_OBJECTS = 100
# From this share of unlike objects on, the purity of a list is not stated: it is as large as the
# impurity of a good list.
NOTABLE_UNLIKE = 0.1
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


class Likeness(NamedTuple):
    """How many of the objects of a field are unlike the training set, at least.

    Attributes
    ----------
    rows : int
        Objects that were looked at.
    unlike : float
        Share of them that would need another value in some column, for all of them to look like
        a mixture of the labelled objects with the class shares that the probabilities rest on. None
        where it cannot be told.
    feature : str, optional
        The column that shows it most.
    classes : mapping of str to float
        The same for each class, of objects weighted by their probability of it. None where there
        are too few.
    """

    rows: int = 0
    unlike: float | None = None
    feature: str | None = None
    classes: Mapping[str, float | None] = {}


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
    counts = _count(X, edges, np.eye(n_classes)[y])
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
    there = _count(X, looks.edges, np.ones((len(X), 1)))[0]

    def differ(shares: Array) -> float:
        return float(_differences(there, looks, shares).sum())

    before = differ(old)
    return 1.0 if not before else max(1.0 - differ(new) / before, 0.0)


def measure_likeness(
    P: Array,
    shares: Array,
    X: Array,
    looks: Looks | None,
    *,
    classes: Sequence[str],
    names: Sequence[str],
) -> Likeness:
    """Measure how many objects of a field are unlike the training set, all and class by class.

    A lower bound, since columns are compared one by one: the largest total variation beyond chance.
    Where probabilities hold, objects weighted by that of a class look like its labelled objects.

    Parameters
    ----------
    P : array of shape (n, classes)
        Probabilities.
    shares : array of shape (classes,)
        Shares of the classes that they rest on.
    X : array of shape (n, p)
    looks : Looks, optional
        Without them (older models) nothing can be told.
    classes, names : sequences of str
        Of the classes and of the columns.

    Examples
    --------
    >>> y = np.arange(1000) // 500
    >>> looks = learn_looks(np.where(y == 0, 15.0, 19.0)[:, None], y, 2)
    >>> faint = np.where(y == 0, 15.0, 23.0)[:, None]
    >>> half, names = np.array([0.5, 0.5]), {"classes": ["RRL", "QSO"], "names": ["V"]}
    >>> found = measure_likeness(np.eye(2)[y], half, faint, looks, **names)
    >>> found.feature, round(found.unlike, 1), round(found.classes["QSO"], 1)
    ('V', 0.4, 0.9)
    """
    each: dict[str, float | None] = dict.fromkeys(classes)
    unknown = Likeness(len(X), classes=each)
    if looks is None or len(X) < LEAST_OBJECTS:
        return unknown
    there = _count(X, looks.edges, np.ones((len(X), 1)))[0]
    if not (there.any(axis=1) & looks.counts.any(axis=(0, 2))).any():
        return unknown
    every = _differences(there, looks, shares)
    # Weighted objects scatter as this number of whole ones (Kish 1965).
    total, n_whole = P.sum(axis=0), P.sum(axis=0) ** 2 / np.maximum((P**2).sum(axis=0), 1e-300)
    for c, counts in enumerate(_count(X, looks.edges, P)):
        if n_whole[c] >= LEAST_OBJECTS:
            known = looks._replace(counts=looks.counts * (looks.counts[c].sum(axis=1) > 0)[:, None])
            own = _differences(counts, known, np.eye(len(each))[c], n_whole[c] / total[c])
            each[classes[c]] = float(own.max())
    return Likeness(len(X), float(every.max()), names[int(every.argmax())], each)


def _differences(there: Array, looks: Looks, shares: Array, n_each: float = 1.0) -> Array:
    """Compare each column of a field with the labelled objects; 0 where one of both has no value.

    `n_each` is the number of objects that one counted in the field is worth.
    """
    found = np.zeros(len(there))
    for j in np.flatnonzero((there.sum(axis=1) > 0) & (looks.counts.sum(axis=(0, 2)) > 0)):
        found[j] = _difference(there[j], looks.counts[:, j], shares / looks.totals, n_each)
    return found


def _difference(there: Array, each: Array, weights: Array, n_each: float) -> float:
    """Compare counts in bins with those of classes, of which each object has a weight."""
    n = weights @ each.sum(axis=1)
    if not n:
        return 1.0
    seen, expected = there / there.sum(), weights @ each / n
    # Counts have their own value for a variance; that of both together, lest empty bins have none.
    n_seen, n_known = there.sum() * n_each, n**2 / (weights**2 @ each.sum(axis=1))
    common = (n_seen * seen + n_known * expected) / (n_seen + n_known)
    beyond_chance = np.abs(seen - expected) - CHANCE * np.sqrt(common / n_seen + common / n_known)
    return max(float(beyond_chance.sum()), 0.0) / 2


def _count(X: Array, edges: Array, weights: Array) -> Array:
    """Count values in the bins of each column, with each of some weights of the objects."""
    counts = np.zeros((weights.shape[1], X.shape[1], N_BINS))
    for j, (column, each) in enumerate(zip(X.T, edges, strict=True)):
        seen = ~np.isnan(column) & ~np.isnan(each[0])
        place = np.searchsorted(each, column[seen])
        for k, own in enumerate(weights[seen].T):
            counts[k, j] = np.bincount(place, own, minlength=N_BINS)
    return counts


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
