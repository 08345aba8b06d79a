"""Monotone maps between a column's own scale and a standard normal.

An atom (many rows with exactly one value) takes up an interval of scores. Between and beyond its
knots a map is linear. How maps are estimated is in maps.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from skyfill.network._array import Array

# The map from normal scores back is tabulated here: to both sides, in steps fine enough for atoms.
GRID_REACH, GRID_SIZE = 5.0, 1001
# Beyond the outermost knot the map goes on with the slope of this much of its outer part.
TAIL = 0.5
# With an error of so many times its value, or more, a value may lie anywhere.
MOST_LOG = 50.0

# How moments are taken, the latest way first; see margin_moments.py.
BY_SEGMENTS, BY_CELLS, BY_TABLE = "segments", "cells", "table"


@dataclass(frozen=True, eq=False)
class Margin:
    """Knots of a monotone map: ``x[i]`` has the normal score ``z[i]``; both never fall.

    Models of earlier versions took moments in other ways, the first also went back from scores by a
    table of values. They still do, so that a model file gives the numbers that it gave when new.
    """

    x: Array
    z: Array
    moments: str = BY_SEGMENTS

    @property
    def tabulated(self) -> bool:
        """Whether a table of values leads back from scores."""
        return self.moments == BY_TABLE

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
    def _rises(self) -> tuple[float, float]:
        """How the map back goes on beyond its knots."""
        return self._rise(0), self._rise(1)

    @cached_property
    def _slopes(self) -> tuple[float, float]:
        """The same for new extremes: never 0, so that their scores differ."""
        least = 1e-3 * float(np.ptp(self.x)) / float(np.ptp(self.z))
        return max(self._rises[0], least), max(self._rises[1], least)

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
        out[low] = self.x[0] + (scores[low] - self.z[0]) * self._rises[0]
        out[high] = self.x[-1] + (scores[high] - self.z[-1]) * self._rises[1]
        return out

    @property
    def is_line(self) -> bool:
        """Whether two numbers say all."""
        return False

    def grid(self) -> Array:
        """`from_normal` at GRID_SIZE scores from -GRID_REACH to GRID_REACH."""
        return self.from_normal(np.linspace(-GRID_REACH, GRID_REACH, GRID_SIZE))

    def _rise(self, end: int) -> float:
        """Rise of x per unit of z in the outer part."""
        if self.tabulated:
            outer = self.x[np.abs(self.z - (self.z[0], self.z[-1])[end]) <= TAIL]
            least = 1e-3 * float(np.ptp(self.x)) / float(np.ptp(self.z))
            return max(float(np.ptp(outer)) / TAIL, least)
        inner = (self.z[0] + TAIL, self.z[-1] - TAIL)[end]
        edge = (self.x[0], self.x[-1])[end]
        return float(abs(edge - np.interp(inner, self.z, self.x))) / TAIL


def _mean_score(low: Array, high: Array) -> Array:
    """Mean of a standard normal between two of its quantiles."""
    density = np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)
    mass = (ndtr(high) - ndtr(low)) * np.sqrt(2 * np.pi)
    middle = (low + high) / 2
    return np.where(mass > 1e-9, density / np.maximum(mass, 1e-9), middle)


class Constant(Margin):
    """The margin of a column with one value: gaps are filled with it, and it predicts nothing."""

    def to_normal(self, values: Array) -> Array:
        """Score 0 for any value."""
        return np.where(np.isnan(values), np.nan, 0.0)

    def from_normal(self, scores: Array) -> Array:
        """Give the one value."""
        return np.full(np.shape(scores), self.x[0])

    @property
    def is_line(self) -> bool:
        """Whether two numbers say all."""
        return True

    def _rise(self, end: int) -> float:
        return 0.0


class Identity(Margin):
    """The margin that changes nothing but the scale: a column as it is."""

    def to_normal(self, values: Array) -> Array:
        """Scores on the line through the two knots."""
        return (values - self.x[0]) / (self.x[1] - self.x[0])

    def from_normal(self, scores: Array) -> Array:
        """Values on the line through the two knots."""
        return self.x[0] + scores * (self.x[1] - self.x[0])

    @property
    def is_line(self) -> bool:
        """Whether two numbers say all."""
        return True

    def _rise(self, end: int) -> float:
        return float(self.x[1] - self.x[0])


class Logarithm(Margin):
    """The margin of a positive quantity: its logarithm, by lines between many knots.

    All values that it returns are positive; values at or below zero have the lowest score.
    """

    def score_errors(self, values: Array, errors: Array) -> Array:
        """Errors in normal scores: relative ones, half of what they span around the values."""
        # Nothing is known relative to zero: there the error reaches up from the lowest score.
        is_above = values > 0
        factor = np.exp(np.minimum(errors / np.where(is_above, values, np.inf), MOST_LOG))
        low = np.where(is_above, values / factor, values - errors)
        high = np.where(is_above, values * factor, values + errors)
        return (self.to_normal(high) - self.to_normal(low)) / 2

    def _rise(self, end: int) -> float:
        return super()._rise(end) if end else 0.0
