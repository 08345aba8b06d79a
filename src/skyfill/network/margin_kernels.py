"""Compiled map of whole tables to normal scores: `Margin.to_normal` for many columns at once."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.network._array import Array, IntArray
from skyfill.network.margin import GRID_REACH, Margin


class Knots(NamedTuple):
    """Knots and atoms of some columns, one column's after the other's."""

    columns: IntArray  # (m,): which columns of the table
    starts: IntArray  # (m + 1,): where the knots of each column begin
    x: Array
    z: Array
    slopes: Array  # (m, 2)
    atom_starts: IntArray  # (m + 1,)
    atoms: Array
    atom_scores: Array


def lay_out(margins: Sequence[Margin]) -> Knots:
    """Collect the knots of those margins that are maps of ranks."""
    columns = [j for j, margin in enumerate(margins) if type(margin) is Margin]
    mine = [margins[j] for j in columns]
    nothing = np.empty(0)
    return Knots(
        np.array(columns, dtype=np.int64),
        np.cumsum([0, *(margin.x.size for margin in mine)], dtype=np.int64),
        np.concatenate([nothing, *(margin.x for margin in mine)]),
        np.concatenate([nothing, *(margin.z for margin in mine)]),
        np.array([margin._slopes for margin in mine]).reshape(-1, 2),
        np.cumsum([0, *(margin._atoms[0].size for margin in mine)], dtype=np.int64),
        np.concatenate([nothing, *(margin._atoms[0] for margin in mine)]),
        np.concatenate([nothing, *(margin._atoms[1] for margin in mine)]),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def find_last(values, first, last, wanted, count, found):  # type: ignore[no-untyped-def]
    """Find, for some numbers, the last of rising values that is not above; the first, if all are.

    All searches go on step by step together: one of them alone would wait for every value.
    """
    found[:count] = first
    size = last - first
    while size > 1:
        half = size // 2
        for i in range(count):
            found[i] += half * np.int64(values[found[i] + half] <= wanted[i])
        size -= half


@njit(cache=True, nogil=True, error_model="numpy")
def score_columns(X, knots, out):  # type: ignore[no-untyped-def]
    """Write the normal scores of the columns that have knots."""
    columns, starts, x, z, slopes, atom_starts, atoms, atom_scores = knots
    n = X.shape[0]
    values, at, atom_at = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for m in range(columns.size):
        j, first, end = columns[m], starts[m], starts[m + 1] - 1
        for i in range(n):
            values[i] = X[i, j]
        find_last(x, first, end + 1, values, n, at)
        find_last(atoms, atom_starts[m], atom_starts[m + 1], values, n, atom_at)
        for i in range(n):
            value = values[i]
            if value < x[first]:
                score = z[first] + (value - x[first]) / slopes[m, 0]
            elif value > x[end]:
                score = z[end] + (value - x[end]) / slopes[m, 1]
            else:
                k, a = min(at[i], end - 1), atom_at[i]
                slope = (z[k + 1] - z[k]) / (x[k + 1] - x[k])
                score = slope * (value - x[k]) + z[k] if value < x[k + 1] else z[k + 1]
                if a < atom_starts[m + 1] and atoms[a] == value:
                    score = atom_scores[a]
            score = min(max(score, -GRID_REACH), GRID_REACH)
            # Gaps go all the way: to turn off for each of them would take longer.
            out[i, j] = value if np.isnan(value) else score
