"""Calibrate ratios of two learned densities by sources that took no part in the learning.

The ratio of two mixtures orders sources well, but where one of them is a tail its size is wrong. As
a single number its densities can be counted: those of field sources directly, those of counterparts
by EM from what positions say of the objects (Dempster, Laird & Rubin 1977).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import isotonic_regression

from skyfill.sky.associations import Associations
from skyfill.sky.posterior import patterns_of

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
# Counterparts that a step of the curve is measured by, most steps, and the least of all.
PER_STEP, MOST_STEPS, LEAST_COUNTERPARTS = 40, 25, 200
MOST_ROUNDS, SETTLED = 200, 1e-4
# A step without a single source may have had one by chance.
FEW = 0.5
# Raw log ratios beyond this are all alike.
MOST_LOG = 50.0


@dataclass(frozen=True)
class Curve:
    """Calibrated log ratio as a function of the raw one: straight between steps, then constant."""

    raw: Array
    calibrated: Array

    def __call__(self, raw: Array) -> Array:
        """Calibrate log ratios."""
        return np.asarray(np.interp(raw, self.raw, self.calibrated))


def fit_curves(
    found: Associations, p: Array, raw: Array, field: tuple[Array, Rows]
) -> tuple[Curve | None, ...]:
    """Fit a curve for each set of surveys; None where there are too few counterparts or sources.

    Parameters
    ----------
    p : array of shape (m,)
        Probabilities by position.
    raw : array of shape (m,)
        Raw log ratios of the associations.
    field : two arrays of shape (f,)
        Raw log ratios of field sources, and the set of surveys that sees each of them.
    """
    sets, n_sets = patterns_of(found.rows), 1 << found.rows.shape[1]
    cells, share = np.zeros(len(found), np.int64), np.ones(1)
    ladders: dict[int, tuple[Array, slice]] = {}
    for k in range(1, n_sets):
        mine, theirs = sets == k, field[0][field[1] == k]
        expected = float(p[mine].sum())
        if min(expected, len(theirs)) < LEAST_COUNTERPARTS:
            continue
        both = _Both.of(raw[mine], p[mine], theirs)
        edges = both.edges(int(min(expected / PER_STEP, MOST_STEPS)))
        counts = np.bincount(np.searchsorted(edges, theirs), minlength=len(edges) + 1) + FEW
        cells[mine] = len(share) + np.searchsorted(edges, raw[mine])
        ladders[k] = both.middles(edges), slice(len(share), len(share) + len(counts))
        share = np.concatenate([share, expected * counts / counts.sum()])
    ratio = _fit_ratio(found, p, cells, share)
    curves = {k: _curve(at, ratio[own], share[own]) for k, (at, own) in ladders.items()}
    return tuple(curves.get(k) for k in range(n_sets))


class _Both(NamedTuple):
    """Raw log ratios of likely counterparts and of field sources, each kind counted alike."""

    values: Array
    weight: Array

    @classmethod
    def of(cls, raw: Array, p: Array, field: Array) -> _Both:
        weight = np.concatenate([p / p.sum(), np.full(len(field), 1 / len(field))])
        return cls(np.concatenate([raw, field]), weight)

    def edges(self, n_steps: int) -> Array:
        """Edges between steps of equal weight."""
        order = np.argsort(self.values)
        above = np.cumsum(self.weight[order]) / 2
        cuts = np.searchsorted(above, np.arange(1, n_steps) / n_steps)
        return np.unique(self.values[order][np.minimum(cuts, len(order) - 1)])

    def middles(self, edges: Array) -> Array:
        """Mean of each step."""
        step = np.searchsorted(edges, self.values)
        inside = np.clip(self.values, -MOST_LOG, MOST_LOG)
        whole = np.bincount(step, self.weight, minlength=len(edges) + 1)
        sums = np.bincount(step, self.weight * inside, minlength=len(edges) + 1)
        # The last step may be empty.
        return np.asarray(np.where(whole > 0, sums / np.maximum(whole, 1e-300), MOST_LOG))


def _fit_ratio(found: Associations, p: Array, cells: Rows, field_share: Array) -> Array:
    """Ratio of each step by EM: counterparts that it has over those that the field would give."""
    ratio, base = np.ones(len(field_share)), found.base
    free = cells > 0
    for _ in range(MOST_ROUNDS):
        q = p * ratio[cells]
        q /= found.sums(q)[base]
        counts = np.bincount(cells[free], q[free], minlength=len(ratio)) + FEW
        last, ratio = ratio, counts / field_share
        ratio[0] = 1.0
        if np.max(np.abs(ratio - last) / (last + 0.1)) < SETTLED:
            break
    return ratio


def _curve(raw: Array, ratio: Array, weight: Array) -> Curve:
    """Make the ratios rise with the raw ones, and their mean over the field one.

    Steps count by the field sources that they should have: most of the mean may come from ratios
    so large that none of those sampled has them.
    """
    rising = np.asarray(isotonic_regression(ratio, sample_weight=weight))
    return Curve(raw, np.log(rising * weight.sum() / (rising * weight).sum()))
