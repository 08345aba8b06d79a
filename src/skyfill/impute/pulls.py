"""Choose how far posteriors of a column are moved towards its forest, on held-out cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skyfill.impute.refinement import ratio, trust
from skyfill.network.mixture.calibration import STEPS, blend
from skyfill.network.mixture.margin import Margin

Array = NDArray[np.float64]
# What is tried: weights; spreads at which half of the weight counts, the least one or quantiles
# of those of the cells; and scales.
WEIGHTS = (0.15, 0.3, 0.5, 0.75, 1.0)
DOUBTS = (0.25, 0.5, 0.75)
SCALES = (0.4, 0.55, 0.7, 0.85, 1.0, 1.15)
# In units of the column; where mixtures are certain nothing moves.
LEAST_DOUBT = 0.01
# Standard deviations below this count as this.
LEAST_SPREAD = 1e-6
NONE = (0.0, 0.0, 1.0)
Numbers = tuple[float, float, float]


class Rule(NamedTuple):
    """When to follow a forest: the score must fall by a share, and by some standard errors."""

    gain: float
    sure: float

    def holds(self, before: Array, after: Array) -> bool:
        """Whether scores of the same cells fell by enough."""
        gain = before - after
        least = max(self.gain * before.mean(), self.sure * gain.std() / np.sqrt(len(gain)))
        return bool(gain.mean() > least)


class Held(NamedTuple):
    """Cells of one column that neither its forest nor the mixtures saw, in units of the column."""

    truth: Array  # (n,)
    mean: Array  # (n,)
    spread: Array  # (n,)
    forest: Array  # (n,)

    def pull_mean(self, rule: Rule) -> Numbers:
        """Weight and doubt of the least squared error; scale of the best standard deviations."""
        error, way = self.truth - self.mean, self.forest - self.mean
        left, pull = error, NONE
        for doubt in self.doubts():
            step = trust(self.spread, doubt) * way
            size = float(step @ step)
            weight = float(np.clip(step @ error / size, 0.0, 1.0)) if size > 0 else 0.0
            after = error - weight * step
            if after @ after < left @ left:
                left, pull = after, (weight, doubt, 1.0)
        if not rule.holds(error**2, left**2):
            return NONE
        tries = ((*pull[:2], scale) for scale in SCALES)
        return min(tries, key=lambda pull: self._surprise(left, pull))

    def _surprise(self, left: Array, pull: Numbers) -> float:
        """Negative log-likelihood of errors under normal distributions, up to a constant."""
        sd = np.maximum(self.spread * ratio(self.spread, pull), LEAST_SPREAD)
        return float(np.mean(np.log(sd) + (left / sd) ** 2 / 2))

    def doubts(self) -> list[float]:
        """Spreads at which half of a weight may count."""
        others = np.maximum(np.quantile(self.spread, DOUBTS), LEAST_DOUBT)
        return [LEAST_DOUBT, *others.tolist()]


class HeldShapes(NamedTuple):
    """Quantiles of the same cells, as normal scores: there posteriors of long tails are moved."""

    held: Held
    margin: Margin
    unit: float
    truth: Array  # (n,), as they are
    move: Array  # (n,): from the mean to what the forest says
    quantiles: Array  # (levels, n)
    at: Array  # (levels,)

    def pull(self, rule: Rule) -> Numbers:
        """Weight, doubt and scale of the lowest score (CRPS)."""
        first = [(weight, doubt, 1.0) for weight in WEIGHTS for doubt in self.held.doubts()]
        best = min(first, key=self._mean_crps)
        best = min(((*best[:2], scale) for scale in SCALES), key=self._mean_crps)
        return best if rule.holds(self.crps(NONE), self.crps(best)) else NONE

    def moved(self, pull: Numbers) -> Array:
        """Quantiles of the moved posteriors."""
        spread = self.held.spread
        middle = self.quantiles[len(self.at) // 2]
        to = middle + pull[0] * trust(spread, pull[1]) * self.move
        return self.margin.from_normal(to + ratio(spread, pull) * (self.quantiles - middle))

    def crps(self, pull: Numbers) -> Array:
        """Score the moved posteriors of the cells."""
        miss = (self.truth - self.moved(pull)) / self.unit
        return np.asarray(2.0 * (miss * (self.at[:, None] - (miss < 0))).mean(axis=0))

    def _mean_crps(self, pull: Numbers) -> float:
        return float(self.crps(pull).mean())

    def levels(self, pull: Numbers, rng: Generator) -> Array:
        """Levels of the moved posteriors at which the truth lies with probability 0 to 1.

        All levels between two quantiles are as probable, as are those of an atom. Where nothing is
        moved, levels stay.
        """
        if pull == NONE:
            return STEPS
        moved = self.moved(pull)
        low, high = (moved < self.truth).sum(axis=0), (moved <= self.truth).sum(axis=0)
        place = low + rng.random(len(low)) * (high - low + 1)
        return blend(place / (len(self.at) + 1), STEPS)
