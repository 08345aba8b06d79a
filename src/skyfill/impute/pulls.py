"""Choose how far posteriors of a column are moved towards its forest, on held-out cells.

What is chosen on some cells looks better on them than it is, so a choice is judged by cells that it
did not see: those of one part of the rows by what the other parts would choose.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr

from skyfill.impute.refinement import ratio, trust
from skyfill.network.mixture.calibration import STEPS, blend
from skyfill.network.mixture.margin import Margin

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
# What is tried: weights; spreads at which half of the weight counts, the least one or quantiles
# of those of the cells; and scales.
WEIGHTS = (0.15, 0.3, 0.5, 0.75, 1.0)
DOUBTS = (0.25, 0.5, 0.75)
SCALES = (0.4, 0.55, 0.7, 0.85, 1.0, 1.15)
# In units of the column; where mixtures are certain nothing moves.
LEAST_DOUBT = 0.01
# Standard deviations below this count as this.
LEAST_SPREAD = 1e-6
# Sums of squares that differ by less than this share are the same.
TIE = 1e-9
# Parts of the rows, each of which judges the choice of all others.
PARTS = 4
NONE = (0.0, 0.0, 1.0)
Numbers = tuple[float, float, float]


class Choice(NamedTuple):
    """How far posteriors are best moved, and what that gains on cells that did not choose it."""

    pull: Numbers
    gain: float  # share of the score


NO_CHOICE = Choice(NONE, 0.0)


class Rule(NamedTuple):
    """When to follow forests: where they know something, and a score falls by more than a share.

    Among many columns some forests seem to know something by chance. Of those that are believed, a
    share of `risk` at most may be expected to be such (the procedure of Benjamini and Hochberg,
    with Storey's estimate of how many know nothing): where many gain, one more is believed sooner.
    """

    gain: float
    risk: float

    def believes(self, chances: Array) -> Mask:
        """Tell which forests of a table to believe, by their `chance_of`."""
        from scipy.stats import false_discovery_control  # takes long to import

        # Half of the forests that know nothing have a chance above a half.
        n_idle = min(2 * (1 + int((chances > 0.5).sum())), len(chances))
        wrong = false_discovery_control(chances) * n_idle / max(len(chances), 1)
        return np.asarray(wrong <= self.risk)


def chance_of(truth: Array, mean: Array, forest: Array) -> float:
    """Probability that a forest which knows nothing would agree so well with the truth.

    Only what the means of the mixtures do not tell counts: mixtures of few rows see order in noise,
    and any step away from their means, as from one guess towards another, would seem to gain.

    Parameters
    ----------
    truth, mean, forest : arrays of shape (n,)
        Normal scores of the true values, the means of the mixtures, and what the forest says.

    Examples
    --------
    >>> truth, mean, noise = np.random.default_rng(0).normal(size=(3, 200))
    >>> chance_of(truth, mean, noise) > 0.1 > 1e-6 > chance_of(truth, mean, truth + noise)
    True
    """
    known = np.column_stack([np.ones_like(mean), mean])
    left = np.column_stack([truth, forest])
    left -= known @ np.linalg.lstsq(known, left, rcond=None)[0]
    agree = left[:, 0] * left[:, 1]
    # Of two cells each teaches the forest of the other, so what they share by chance counts twice.
    size = float(np.sqrt(2.0 * (agree @ agree)))
    return float(ndtr(-agree.sum() / size)) if size > 0 else 1.0


def judge(pull: Numbers, before: Array, after: Array) -> Choice:
    """Compare scores of the same cells."""
    if not (pull[0] > 0 and after.mean() < before.mean()):
        return NO_CHOICE
    return Choice(pull, float(1.0 - after.mean() / before.mean()))


class Held(NamedTuple):
    """Cells of one column that neither its forest nor the mixtures saw, in units of the column."""

    truth: Array  # (n,)
    mean: Array  # (n,)
    spread: Array  # (n,)
    forest: Array  # (n,)
    part: NDArray[np.int64]  # (n,), of the rows

    def parts(self) -> Iterator[tuple[Mask, Mask]]:
        """Give the cells of each part, and all others."""
        for part in np.unique(self.part):
            yield self.part == part, self.part != part

    def choose(self) -> tuple[Choice, Array]:
        """Weight and doubt of the least squared error; scale of the best standard deviations.

        Also the error of each cell, moved as the cells of the other parts would choose.
        """
        left = np.empty_like(self.truth)
        for mine, others in self.parts():
            left[mine] = self._left(self._closest(others))[mine]
        pull = self._closest(np.ones(len(left), bool))
        tries = ((*pull[:2], scale) for scale in SCALES)
        best = min(tries, key=lambda pull: self._surprise(self._left(pull), pull))
        return judge(best, self._left(NONE) ** 2, left**2), left

    def _closest(self, among: Mask) -> Numbers:
        """Weight and doubt of the least squared error of some cells."""
        error, way = self._left(NONE), self.forest - self.mean
        least, pull = np.inf, NONE
        for doubt in self.doubts():
            step = (trust(self.spread, doubt) * way)[among]
            size = float(step @ step)
            weight = float(np.clip(step @ error[among] / size, 0.0, 1.0)) if size > 0 else 0.0
            after = error[among] - weight * step
            # Where spreads are equal all doubts can do the same: rounding must not choose.
            if after @ after < least * (1 - TIE):
                least, pull = float(after @ after), (weight, doubt, 1.0)
        return pull

    def _left(self, pull: Numbers) -> Array:
        """Errors of the moved means."""
        way = self.forest - self.mean
        return self.truth - self.mean - pull[0] * trust(self.spread, pull[1]) * way

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

    def choose(self) -> tuple[Choice, list[tuple[Mask, Mask, Numbers]]]:
        """Weight, doubt and scale of the lowest score (CRPS).

        Also the cells of each part, all others, and what these would choose.
        """
        scores = cache(self.crps)
        first = [(weight, doubt, 1.0) for weight in WEIGHTS for doubt in self.held.doubts()]

        def best(among: Mask) -> Numbers:
            def mean(pull: Numbers) -> float:
                return float(scores(pull)[among].mean())

            pull = min(first, key=mean)
            return min(((*pull[:2], scale) for scale in SCALES), key=mean)

        after = np.empty_like(self.truth)
        parts = [(mine, others, best(others)) for mine, others in self.held.parts()]
        for mine, _, pull in parts:
            after[mine] = scores(pull)[mine]
        return judge(best(np.ones(len(after), bool)), scores(NONE), after), parts

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

    def levels(self, pull: Numbers, rng: Generator) -> Array:
        """Levels of the moved posteriors at which the truth lies with probability 0 to 1.

        All levels between two quantiles are as probable, as are those of an atom. Where nothing is
        moved, levels stay.
        """
        return STEPS if pull == NONE else blend(self._places(pull, rng), STEPS)

    def inside(self, parts: list[tuple[Mask, Mask, Numbers]], rng: Generator) -> Mask:
        """Whether the truth lies in a 90 % interval that the cells of the other parts made.

        `parts` are those of `choose`.
        """
        found = np.empty(len(self.truth), bool)
        for mine, others, pull in parts:
            place = self._places(pull, rng)
            levels = STEPS if pull == NONE else blend(place[others], STEPS)
            low, high = np.interp([0.05, 0.95], STEPS, levels)
            found[mine] = (place[mine] >= low) & (place[mine] <= high)
        return found

    def _places(self, pull: Numbers, rng: Generator) -> Array:
        """Levels of the truth in the moved posteriors, drawn where several are possible."""
        moved = self.moved(pull)
        low, high = (moved < self.truth).sum(axis=0), (moved <= self.truth).sum(axis=0)
        return np.asarray(low + rng.random(len(low)) * (high - low + 1)) / (len(self.at) + 1)
