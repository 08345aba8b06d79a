"""How far a gap lies beyond what its column was learned from, and how uncertain that makes it.

A column is learned from the rows that have it. A row without it may be unlike all of these: fainter
than any object of the training set, or than any that a survey detected. There relations between
columns are continued, and nobody knows whether they go on. So posteriors of such gaps are widened,
in proportion to the distance; how much is found by rehearsals in which known values lie beyond.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.network._array import Array, BoolArray
from skyfill.network.mixture.margin import Margin

# Of the rows that have a column, this share at either end of another column does not count: a
# single odd value must not stand for a range.
EDGE = 0.002
# Scores that maps are asked for.
BOUNDS = (-30.0, 30.0)
# Fewest rows that have two columns, to say how these are related.
LEAST_TOGETHER = 20
# Doubt where no rehearsal is possible, its bounds, and cells to judge it by: their least distance,
# and how many there must be.
USUAL_DOUBT, LEAST_DOUBT, MOST_DOUBT = 0.25, 0.1, 1.0
FAR, ENOUGH = 0.2, 30
# The share of the rehearsed values that intervals must hold, and its quantile of the normal.
HELD, WIDTH = 0.9, 1.6449


class Support(NamedTuple):
    """Ranges of the columns in the rows that each column was learned from.

    Attributes
    ----------
    low, high : arrays of shape (p, p)
        Normal scores of the k-th column in rows that have the j-th: entry (j, k).
    related : array of shape (p, p)
        How much of a step in the k-th column the j-th follows: their correlation, without sign.
    ends : array of shape (2, p)
        Smallest and largest value of each column, as they are.
    doubt : float
        Standard deviation that a gap gains for each step beyond, in normal scores.
    beyond : array of shape (p,), optional
        Share of each column's gaps, in the table learned from, that lie beyond; 0 unless many do.
    is_shared : bool
        Whether components share their regressions, so that relations carry over (`pooling.py`).
    """

    low: Array
    high: Array
    related: Array
    ends: Array
    doubt: float = USUAL_DOUBT
    beyond: Array | None = None
    is_shared: bool = False

    def distance(self, scores: Array) -> Array:
        """Distance of each gap from what its column was learned from, in scores; 0 within.

        Examples
        --------
        >>> one = find_support(np.repeat(np.linspace(-2, 2, 101)[:, None], 2, axis=1))
        >>> one.ends.tolist()
        [[-2.0, -2.0], [2.0, 2.0]]
        >>> one.distance(np.array([[3.0, np.nan], [0.0, np.nan]]))[:, 1].round(1).tolist()
        [1.0, 0.0]
        """
        out = np.zeros(scores.shape)
        _measure(np.ascontiguousarray(scores), self.low, self.high, self.related, out)
        return out

    def on(self, new: Sequence[Margin], old: Sequence[Margin]) -> Support:
        """Give the same ranges of values in the scores of other maps."""
        ends = []
        for side in (self.low, self.high):
            pairs = zip(new, old, side.T, strict=True)
            scores = [to.to_normal(go.from_normal(np.clip(z, *BOUNDS))) for to, go, z in pairs]
            ends.append(np.where(np.isfinite(side), np.array(scores).T, side))
        return self._replace(low=np.minimum(*ends), high=np.maximum(*ends))


@njit(cache=True, nogil=True, error_model="numpy")
def _measure(Z, low, high, related, out):  # type: ignore[no-untyped-def]
    """Write the largest step beyond the range of a seen column, by how related it is."""
    n, p = Z.shape
    for i in range(n):
        for j in range(p):
            if not np.isnan(Z[i, j]):
                continue
            most = 0.0
            for k in range(p):
                # A NaN is never larger.
                step = max(Z[i, k] - high[j, k], low[j, k] - Z[i, k])
                most = max(most, step * related[j, k]) if step > 0 else most
            out[i, j] = most


def find_support(scores: Array) -> Support:
    """Learn the ranges from normal scores of a table, NaN where values are missing.

    `ends` are those of the scores; see `beyond.with_support`.
    """
    p, seen = scores.shape[1], ~np.isnan(scores)
    low, high = np.full((p, p), -np.inf), np.full((p, p), np.inf)
    for j in range(p):
        rows = scores[seen[:, j]]
        for k in np.flatnonzero(seen[seen[:, j]].sum(axis=0) >= LEAST_TOGETHER).tolist():
            values = rows[seen[seen[:, j], k], k]
            low[j, k], high[j, k] = np.quantile(values, [EDGE, 1 - EDGE])
    ends = np.array([_outermost(column[~np.isnan(column)]) for column in scores.T]).T
    return Support(low, high, _related(scores, seen), ends)


def _outermost(seen: Array) -> tuple[float, float]:
    return (float(seen.min()), float(seen.max())) if seen.size else (0.0, 0.0)


def _related(scores: Array, seen: BoolArray) -> Array:
    """Correlations without sign, from the rows that have both columns; 0 of a column itself."""
    Z, here = np.where(seen, scores, 0.0), seen.astype(np.float64)
    n = here.T @ here
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = Z.T @ here / n  # of the first column, in rows that have the second
        var = (Z**2).T @ here / n - mean**2
        cov = Z.T @ Z / n - mean * mean.T
        found = np.abs(cov) / np.sqrt(var * var.T)
    found = np.where((n >= LEAST_TOGETHER) & np.isfinite(found), np.minimum(found, 1.0), 0.0)
    np.fill_diagonal(found, 0.0)
    return found


def find_doubt(away: Array, spread: Array, distance: Array) -> float:
    """Find how uncertain a step beyond makes a gap, so that intervals hold what they promise.

    Parameters
    ----------
    away, spread, distance : arrays of shape (n,)
        Of rehearsed gaps, in normal scores: how far the true value is from the median, the spread
        of the posterior, and its distance from what the column was learned from.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=4000)
    >>> round(find_doubt(x * np.hypot(0.1, 0.5), np.full(4000, 0.1), np.ones(4000)), 1)
    0.5
    """
    far = (distance > FAR) & np.isfinite(away) & np.isfinite(spread)
    if far.sum() < ENOUGH:
        return USUAL_DOUBT
    lacking = (np.abs(away[far]) / WIDTH) ** 2 - spread[far] ** 2
    needed = np.sqrt(np.maximum(lacking, 0.0)) / distance[far]
    return float(np.clip(np.quantile(needed, HELD), LEAST_DOUBT, MOST_DOUBT))
