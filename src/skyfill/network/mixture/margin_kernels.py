"""Compiled kernels for whole tables: to normal scores, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.network._array import Array, IntArray
from skyfill.network.mixture.margin import GRID_REACH, GRID_SIZE, Margin


class Maps(NamedTuple):
    """Maps from normal scores back of all columns, one column's knots after the other's."""

    starts: IntArray  # (p + 1,): where the knots of each column begin
    x: Array
    z: Array
    rises: Array  # (p, 2): rise beyond the knots


def lay_back(margins: Sequence[Margin]) -> Maps:
    """Collect what leads from normal scores back to values."""
    return Maps(
        np.cumsum([0, *(margin.x.size for margin in margins)], dtype=np.int64),
        np.concatenate([margin.x for margin in margins]),
        np.concatenate([margin.z for margin in margins]),
        np.array([margin._rises for margin in margins]),
    )


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
    """Collect the knots of those margins that are no straight lines."""
    columns = [j for j, margin in enumerate(margins) if not margin.is_line]
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
    columns, starts, x, _, _, atom_starts, atoms, _ = knots
    n = X.shape[0]
    values, at, atom_at = np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64)
    for m in range(columns.size):
        j, first, end = columns[m], starts[m], starts[m + 1] - 1
        for i in range(n):
            values[i] = X[i, j]
        find_last(x, first, end + 1, values, n, at)
        find_last(atoms, atom_starts[m], atom_starts[m + 1], values, n, atom_at)
        for i in range(n):
            score = score_between(values[i], m, at[i], atom_at[i], knots)
            # Gaps go all the way: to turn off for each of them would take longer.
            out[i, j] = values[i] if np.isnan(values[i]) else score


@njit(cache=True, nogil=True, error_model="numpy")
def score_between(value, m, at, atom, knots):  # type: ignore[no-untyped-def]
    """Give the normal score of a value in column m, from the last knot and atom below it."""
    _, starts, x, z, slopes, atom_starts, atoms, atom_scores = knots
    first, end = starts[m], starts[m + 1] - 1
    if value < x[first]:
        score = z[first] + (value - x[first]) / slopes[m, 0]
    elif value > x[end]:
        score = z[end] + (value - x[end]) / slopes[m, 1]
    else:
        k = min(at, end - 1)
        slope = (z[k + 1] - z[k]) / (x[k + 1] - x[k])
        score = slope * (value - x[k]) + z[k] if value < x[k + 1] else z[k + 1]
        if atom < atom_starts[m + 1] and atoms[atom] == value:
            score = atom_scores[atom]
    return min(max(score, -GRID_REACH), GRID_REACH)


@njit(cache=True, nogil=True, error_model="numpy")
def last_below(values, first, last, wanted):  # type: ignore[no-untyped-def]
    """Find the last of rising values that is not above a number; the first, if all are."""
    found, size = first, last - first
    while size > 1:
        half = size // 2
        if values[found + half] <= wanted:
            found += half
        size -= half
    return found


@njit(cache=True, nogil=True, error_model="numpy")
def look_up(table, score):  # type: ignore[no-untyped-def]
    """Value of a tabulated map at a normal score; linear between and beyond the entries."""
    # The bound stands first in max: a NaN, which is never larger, is then no index.
    at = (score + GRID_REACH) * ((GRID_SIZE - 1) / (2 * GRID_REACH))
    i = int(min(max(0.0, at), GRID_SIZE - 2.0))
    return table[i] + (at - i) * (table[i + 1] - table[i])


@njit(cache=True, nogil=True, error_model="numpy")
def value_at(maps, j, score):  # type: ignore[no-untyped-def]
    """Value of column j at a normal score; `maps` of earlier versions are tables alone."""
    if len(maps) == 1:  # known when this is compiled
        return look_up(maps[0][j], score)
    starts, x, z, rises = maps
    first, end = starts[j], starts[j + 1] - 1
    at = last_below(z, first, end + 1, score)
    if score < z[first]:
        return x[first] + (score - z[first]) * rises[j, 0]
    if at == end:
        return x[end] + (score - z[end]) * rises[j, 1]
    return x[at] + (score - z[at]) * ((x[at + 1] - x[at]) / (z[at + 1] - z[at]))
