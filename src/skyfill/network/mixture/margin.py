"""Monotone maps between a column's own scale and a standard normal, estimated from seen values.

Real columns are skewed, clumped and have atoms (many rows with exactly one value). A margin maps
ranks to normal quantiles; an atom takes up the interval of its ranks. Between and beyond its knots
the map is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from skyfill.network._array import Array, IntArray
from skyfill.network.cells import Cells

MAX_KNOTS = 160
# Values that make up this share of a column, and at least this many rows, are an atom.
ATOM_SHARE, ATOM_ROWS = 0.005, 4
# The map from normal scores back is tabulated here: to both sides, in steps fine enough for atoms.
GRID_REACH, GRID_SIZE = 5.0, 1001
# Beyond the outermost knot the map goes on with the slope of this much of its outer part.
TAIL = 0.5
# Steps in which the shares of values between limits settle.
CENSORED_STEPS = 100


@dataclass(frozen=True, eq=False)
class Margin:
    """Knots of a monotone map: ``x[i]`` has the normal score ``z[i]``; both never fall."""

    x: Array
    z: Array

    def to_normal(self, values: Array) -> Array:
        """Give values' normal scores; an atom gets the mean of its interval; NaN stays NaN."""
        scores = np.interp(values, self.x, self.z)
        atoms, means = self._atoms
        if atoms.size:
            at = np.minimum(np.searchsorted(atoms, values), atoms.size - 1)
            scores = np.where(atoms[at] == values, means[at], scores)
        low, high = values < self.x[0], values > self.x[-1]
        scores[low] = self.z[0] + (values[low] - self.x[0]) / self._slopes[0]
        scores[high] = self.z[-1] + (values[high] - self.x[-1]) / self._slopes[1]
        return np.clip(scores, -GRID_REACH, GRID_REACH)

    @cached_property
    def _atoms(self) -> tuple[Array, Array]:
        """Values that have an interval of scores, and the mean of each."""
        x, first, count = np.unique(self.x, return_index=True, return_counts=True)
        tie = count > 1
        first, last = first[tie], (first + count - 1)[tie]
        return x[tie], _mean_score(self.z[first], self.z[last])

    @cached_property
    def _slopes(self) -> tuple[float, float]:
        return self._slope(0), self._slope(1)

    def score_interval(self, values: Array) -> tuple[Array, Array]:
        """Lowest and highest scores that give a value: they differ for an atom only."""
        first = np.searchsorted(self.x, values, side="left")
        last = np.searchsorted(self.x, values, side="right") - 1
        score = self.to_normal(values)
        tie = last > first
        low, high = score.copy(), score.copy()
        low[tie], high[tie] = self.z[first[tie]], self.z[last[tie]]
        return low, high

    def from_normal(self, scores: Array) -> Array:
        """Values with these normal scores."""
        out = np.interp(scores, self.z, self.x)
        low, high = scores < self.z[0], scores > self.z[-1]
        out[low] = self.x[0] + (scores[low] - self.z[0]) * self._slopes[0]
        out[high] = self.x[-1] + (scores[high] - self.z[-1]) * self._slopes[1]
        return out

    def grid(self) -> Array:
        """`from_normal` at GRID_SIZE scores from -GRID_REACH to GRID_REACH."""
        return self.from_normal(np.linspace(-GRID_REACH, GRID_REACH, GRID_SIZE))

    def _slope(self, end: int) -> float:
        """Rise of x per unit of z in the outer part; never 0, so that new extremes differ."""
        edge = self.z[0] if end == 0 else self.z[-1]
        outer = self.x[np.abs(self.z - edge) <= TAIL]
        width = float(np.ptp(self.x)) / float(np.ptp(self.z))
        return max(float(np.ptp(outer)) / TAIL, 1e-3 * width)


def _mean_score(low: Array, high: Array) -> Array:
    """Mean of a standard normal between two of its quantiles."""
    density = np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)
    mass = (ndtr(high) - ndtr(low)) * np.sqrt(2 * np.pi)
    middle = (low + high) / 2
    return np.where(mass > 1e-9, density / np.maximum(mass, 1e-9), middle)


def fit_margin(seen: Array) -> Margin:
    """Estimate the map of a column from its seen values."""
    values, counts = np.unique(seen, return_counts=True)
    return _map_ranks(values, counts, counts.astype(np.float64), (0.0, 0.0))


def fit_censored_margin(seen: Array, lower: Array, upper: Array) -> Margin:
    """Estimate the map of a column in the light of its limits.

    Parameters
    ----------
    seen : array of shape (n,)
    lower, upper : arrays of shape (m,)
        Limits of values that were not seen; NaN: none on that side.

    The share of values between those seen is the self-consistent one (Turnbull 1976), of which that
    of Kaplan & Meier is the case of limits on one side. Beyond the outermost value seen there is
    only a share: there the map goes on as it does just before.
    """
    values, counts = np.unique(seen, return_counts=True)
    # Places 0 and last are beyond all values; a limit leaves those above or below it.
    first = np.where(np.isnan(lower), 0, 1 + np.searchsorted(values, lower, side="right"))
    last = np.where(np.isnan(upper), values.size + 2, 1 + np.searchsorted(values, upper))
    last = np.maximum(last, first + 1)
    own = np.concatenate([[0.0], counts, [0.0]])
    mass = np.full(values.size + 2, 1.0)
    for _ in range(CENSORED_STEPS):
        below = np.concatenate([[0.0], np.cumsum(mass)])
        per_mass = 1.0 / np.maximum(below[last] - below[first], 1e-300)
        added = np.zeros(mass.size + 1)
        np.add.at(added, first, per_mass)
        np.add.at(added, last, -per_mass)
        mass = own + mass * np.cumsum(added)[:-1]
    return _map_ranks(values, counts, mass[1:-1], (mass[0], mass[-1]))


def _map_ranks(values: Array, counts: IntArray, mass: Array, beyond: tuple[float, float]) -> Margin:
    """Map values to normal quantiles of their ranks; `mass` counts rows, unseen ones included."""
    if values.size == 1:
        return Constant(values, np.zeros(1))
    n = float(mass.sum()) + sum(beyond)
    above = beyond[0] + np.cumsum(mass)
    atom = counts >= max(ATOM_ROWS, ATOM_SHARE * counts.sum())
    # An atom has two knots, at its first and last rank; any other value one, in the middle.
    half = 0.5 * mass / counts
    low, high = above - mass + half, above - half
    ranks = np.concatenate([np.where(atom, low, (low + high) / 2), high[atom]])
    x = np.concatenate([values, values[atom]])
    order = np.lexsort((ranks, x))
    x, z = x[order], ndtri(ranks[order] / n)
    keep = _thin(z, np.concatenate([atom, np.ones(atom.sum(), bool)])[order])
    return Margin(x[keep], z[keep])


def _thin(z: Array, needed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Keep the ends, the atoms, what is next to them, and at most MAX_KNOTS even knots.

    Without its neighbors an atom would have values between it and them that no row has.
    """
    if z.size <= MAX_KNOTS:
        return np.ones(z.size, bool)
    keep = needed.copy()
    keep[1:] |= needed[:-1]
    keep[:-1] |= needed[1:]
    keep[[0, -1]] = True
    keep[np.searchsorted(z, np.linspace(z[0], z[-1], MAX_KNOTS))] = True
    return keep


class Constant(Margin):
    """The margin of a column with one value: gaps are filled with it, and it predicts nothing."""

    def to_normal(self, values: Array) -> Array:
        """Score 0 for any value."""
        return np.where(np.isnan(values), np.nan, 0.0)

    def from_normal(self, scores: Array) -> Array:
        """Give the one value."""
        return np.full(np.shape(scores), self.x[0])


class Identity(Margin):
    """The margin that changes nothing but the scale: a column as it is."""

    def to_normal(self, values: Array) -> Array:
        """Scores on the line through the two knots."""
        return (values - self.x[0]) / (self.x[1] - self.x[0])

    def from_normal(self, scores: Array) -> Array:
        """Values on the line through the two knots."""
        return self.x[0] + scores * (self.x[1] - self.x[0])


def identity_margin(seen: Array) -> Margin:
    """Plain standardisation: mean 0 and standard deviation 1."""
    if np.ptp(seen) == 0:
        return Constant(seen[:1], np.zeros(1))
    # By the reach of the column: squares of huge values would overflow.
    reach = float(np.abs(seen).max())
    center, spread = reach * (seen / reach).mean(), reach * (seen / reach).std()
    return Identity(np.array([center, center + spread]), np.array([0.0, 1.0]))


def map_columns(cells: Cells, kind: str) -> tuple[Margin, ...]:
    """Map every column: by "ranks", in a "linear" way, or "mixed" (linear those with limits)."""
    limited = cells.is_limited
    return tuple(
        _map_column(cells, j, linear=kind == "linear" or (kind == "mixed" and limited[:, j].any()))
        for j in range(cells.values.shape[1])
    )


def _map_column(cells: Cells, j: int, *, linear: bool | np.bool_) -> Margin:
    seen = cells.values[~np.isnan(cells.values[:, j]), j]
    if not seen.size:  # as in a sample of a table
        return Constant(np.zeros(1), np.zeros(1))
    if linear:
        return identity_margin(seen)
    limited = cells.is_limited[:, j]
    if not limited.any():
        return fit_margin(seen)
    nothing = np.full(len(cells), np.nan)
    sides = (nothing if side is None else side[:, j] for side in (cells.lower, cells.upper))
    return fit_censored_margin(seen, *(side[limited] for side in sides))


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
