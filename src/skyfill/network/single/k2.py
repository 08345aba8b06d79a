"""Structure by K2: greedy parents along an order (Cooper & Herskovits 1992).

A family's score depends on the data only through its contingency counts, which are sums over rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from skyfill.errors import DataError
from skyfill.network._array import Array
from skyfill.network.single.graph import Parents
from skyfill.threads import map_threads

Counts = NDArray[np.int64]
# Families with more cells than this would fill the memory with empty counts.
MAX_CELLS = 2**26


class Codes(NamedTuple):
    """Discrete columns, column by column, and the number of levels of each."""

    columns: NDArray[np.integer]  # (p, n)
    levels: NDArray[np.int64]  # (p,)


class Structure(NamedTuple):
    """A graph and its log score."""

    parents: Parents
    score: float


def as_codes(codes: ArrayLike, levels: Sequence[int] | None = None) -> Codes:
    """Check a table of codes (n, p), integers from 0, and lay it out by column."""
    table = np.asarray(codes)
    if table.ndim != 2 or not np.issubdtype(table.dtype, np.integer):
        raise DataError("codes must be a table of integers; cut continuous columns into bins first")
    if table.size == 0 or table.min() < 0:
        raise DataError("codes must be integers from 0 upwards, in at least one row")
    found = table.max(axis=0).astype(np.int64) + 1
    n_levels = found if levels is None else np.asarray(levels, dtype=np.int64)
    if (n_levels < found).any():
        raise DataError("a column has codes beyond its declared number of levels")
    kind = np.uint8 if n_levels.max() <= 256 else np.int32
    return Codes(np.ascontiguousarray(table.T, dtype=kind), n_levels)


@njit(cache=True, nogil=True)
def _add_parent(base, column, stride):  # type: ignore[no-untyped-def]
    """Extend each row's cell number by one more column."""
    for r in range(base.size):
        base[r] += np.int64(column[r]) * stride


@njit(cache=True, nogil=True)
def _count(base, columns, candidates, stride, counts):  # type: ignore[no-untyped-def]
    """Count, for each candidate, the cells of the family extended by it."""
    for c in range(candidates.size):
        column = columns[candidates[c]]
        for r in range(base.size):
            counts[c, base[r] + np.int64(column[r]) * stride] += 1


@njit(cache=True, nogil=True)
def score_counts(counts, r, log_factorial):  # type: ignore[no-untyped-def]
    """Log Cooper-Herskovits score of each row of `family_counts`, for a child of `r` levels."""
    scores = np.zeros(counts.shape[0])
    for c in range(counts.shape[0]):
        for m in range(0, counts.shape[1], r):
            total = 0
            value = 0.0
            for k in range(m, m + r):
                total += counts[c, k]
                value += log_factorial[counts[c, k]]
            if total:
                scores[c] += value + log_factorial[r - 1] - log_factorial[total + r - 1]
    return scores


def family_counts(
    codes: Codes, child: int, parents: Sequence[int], candidates: Sequence[int]
) -> Counts:
    """Contingency counts of a child with its parents and, in turn, each candidate parent.

    Returns
    -------
    array of shape (candidates, cells)
        The child's code runs fastest, then the parents', then the candidate's. Without candidates
        one row: the family as it is. Counts of parts of a table add up.
    """
    columns, levels = codes
    base = columns[child].astype(np.int64)
    stride = int(levels[child])
    for parent in parents:
        _add_parent(base, columns[parent], stride)
        stride *= int(levels[parent])
    if not len(candidates):
        return np.bincount(base, minlength=stride)[None]
    cells = stride * int(levels[list(candidates)].max())
    if cells * len(candidates) > MAX_CELLS:
        raise DataError(f"a family of {cells} cells is too large: use fewer bins or fewer parents")
    counts = np.zeros((len(candidates), cells), np.int64)
    _count(base, columns, np.array(candidates, dtype=np.int64), stride, counts)
    return counts


def log_factorials(codes: Codes) -> Array:
    """Table of log k! as far as the scores of these codes need it."""
    return gammaln(np.arange(codes.columns.shape[1] + int(codes.levels.max()) + 1) + 1.0)


def k2_score(
    codes: ArrayLike, child: int, parents: Sequence[int], levels: Sequence[int] | None = None
) -> float:
    """Log Cooper-Herskovits score of one family of discrete columns.

    The logarithm of ``prod_m (r-1)! / (N_m + r - 1)! prod_k N_mk!``, where m runs over the parents'
    configurations and k over the r levels of the child.

    Parameters
    ----------
    codes : integer array of shape (n, p)
        Codes from 0.
    child, parents : int, sequence of int
        Columns of the family.
    levels : sequence of int, optional
        Number of levels of every column; by default the largest code + 1.

    Examples
    --------
    Two rows with child 0 and one with child 1: 1! / 4! * 2! 1! = 1/12.

    >>> import math
    >>> print(round(math.exp(k2_score([[0], [0], [1]], 0, [])) * 12, 9))
    1.0
    """
    table = as_codes(codes, levels)
    counts = family_counts(table, child, parents, [])
    return float(score_counts(counts, int(table.levels[child]), log_factorials(table))[0])


def k2_search(codes: ArrayLike, order: Sequence[int], max_parents: int | None = 3) -> Parents:
    """Find the parents of every column among those before it in an order, greedily.

    Parameters
    ----------
    codes : integer array of shape (n, p)
        Codes from 0.
    order : sequence of int
        All columns; a column's parents come before it.
    max_parents : int or None
        Most parents of a column; None for no limit.

    Returns
    -------
    tuple of tuples of int
        The parents of each column.

    Examples
    --------
    >>> k2_search([[0, 0], [0, 0], [1, 1], [1, 1], [0, 0], [1, 1]], order=[1, 0])
    ((1,), ())
    """
    table = as_codes(codes)
    if sorted(order) != list(range(len(table.levels))):
        raise DataError(f"the order must name each of the {len(table.levels)} columns once")
    return search(table, order, max_parents).parents


def search(codes: Codes, order: Sequence[int], max_parents: int | None) -> Structure:
    """K2 along one order; the columns are searched side by side on all cores."""
    log_factorial = log_factorials(codes)
    most = len(order) if max_parents is None else max_parents

    def parents_of(at: int) -> tuple[tuple[int, ...], float]:
        return grow(codes, order[at], order[:at], most, log_factorial)

    found = dict(zip(order, map_threads(parents_of, list(range(len(order)))), strict=True))
    graph = [found[child] for child in range(len(order))]
    return Structure(tuple(parents for parents, _ in graph), sum(score for _, score in graph))


def grow(
    codes: Codes, child: int, before: Sequence[int], most: int, log_factorial: Array
) -> tuple[tuple[int, ...], float]:
    """Add the parent that raises the score most, until none does."""
    left = list(before)

    def scores(parents: list[int], candidates: list[int]) -> Array:
        counts = family_counts(codes, child, parents, candidates)
        return score_counts(counts, int(codes.levels[child]), log_factorial)

    parents: list[int] = []
    best = float(scores([], [])[0])
    while left and len(parents) < most:
        values = scores(parents, left)
        top = int(np.argmax(values))
        if values[top] <= best:
            break
        best = float(values[top])
        parents.append(left.pop(top))
    return tuple(sorted(parents)), best


def quantile_edges(X: Array, n_bins: int) -> list[Array]:
    """Inner edges of `n_bins` bins with equal numbers of seen cells; ties merge bins."""
    inner = np.arange(1, n_bins) / n_bins
    return [np.unique(np.nanquantile(column, inner)) for column in X.T]


def cut(X: Array, edges: list[Array]) -> Codes:
    """Codes of a complete table."""
    columns: list[NDArray[np.int64]] = [
        np.searchsorted(edge, column, side="left") for column, edge in zip(X.T, edges, strict=True)
    ]
    return as_codes(np.stack(columns, axis=1), [len(edge) + 1 for edge in edges])
