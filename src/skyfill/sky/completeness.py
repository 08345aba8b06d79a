"""Which share of the objects has a counterpart in each set of surveys: stated, or by EM."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from skyfill.sky.associations import Associations
from skyfill.sky.posterior import (
    LEAST_COMPLETE,
    MOST_COMPLETE,
    SparseEvidence,
    log_weights,
    pattern_members,
    pattern_shares,
    patterns_of,
)
from skyfill.sky.sphere import Floats

MOST_ROUNDS, SETTLED, FITTING_ROUNDS = 500, 1e-6, 20
# However many counterparts a survey has, some of its sources are of the field.
MOST_TAKEN = 0.9
# Objects that are enough to see how completeness depends on position errors, and how much it
# usually does: e-foldings of the odds per standard deviation, with Student's distribution of so
# many degrees of freedom. Steeper slopes are found where the evidence for them is clear.
TREND_OBJECTS, TREND_SLOPE, TREND_DF, LEAST_SPREAD = 20_000, 0.1, 4, 1e-3


@dataclass(frozen=True)
class Trend:
    """How the shares change with the position error of the object.

    Objects with large errors are faint, and so are their counterparts: a survey has fewer of them.

    Attributes
    ----------
    middle, width : float
        Mean and standard deviation of the log errors.
    logits : array of shape (2, 2**k)
        Log share of each set of surveys at the middle, and its change over a width.
    """

    middle: float
    width: float
    logits: Floats

    def shares(self, log_error: Floats) -> Floats:
        """Shares of shape (n, 2**k) for objects of these errors."""
        return _shares(self.logits, (log_error - self.middle) / self.width)


@dataclass(frozen=True)
class Completeness:
    """Share of the base objects with a counterpart, as EM found it.

    Attributes
    ----------
    shares : array of shape (k,)
        In each survey.
    patterns : array of shape (2**k,)
        In each set of surveys: an object that one survey has is more often in another.
    trend : Trend or None
        How they depend on the position error, if that was asked for.
    boost : array of shape (2**k,)
        How much likelier each set of surveys is than positions alone make it, because the density
        of a survey counts the counterparts of base objects with the field.
    """

    shares: Floats
    patterns: Floats
    n_iter: int
    converged: bool
    trend: Trend | None = None
    boost: Floats = field(default_factory=lambda: np.ones(1))

    def of(self, variance: Floats) -> Floats:
        """Prior odds of the sets of surveys for objects of these position errors: (n, 2**k)."""
        if self.trend is None:
            return np.broadcast_to(self.patterns * self.boost, (len(variance), len(self.patterns)))
        return self.trend.shares(np.log(variance) / 2) * self.boost


def fit_completeness(
    found: Associations,
    log_ratio: Floats | None = None,
    *,
    covered: np.ndarray | None = None,
    stated: Floats | None = None,
    variance: Floats | None = None,
    rivals: SparseEvidence | None = None,
    crowding: Floats | None = None,
) -> Completeness:
    """Estimate by EM which share of the base objects has a counterpart in each set of surveys.

    Parameters
    ----------
    covered : boolean array of shape (n, k), optional
        Which base objects each survey covers; only those that all of them cover count.
    stated : array of shape (k,), optional
        Shares that are known; NaN where they are not. The sets of surveys are scaled to them.
    variance : array of shape (n,), optional
        Squared position errors of the base objects, on which shares that nobody states may depend.
    rivals : SparseEvidence, optional
        Log probability that other objects leave the sources free.
    crowding : array of shape (k,), optional
        Base objects for each source of a survey: with completeness, the share of its sources that
        are no field sources.

    Examples
    --------
    >>> rows, weight = np.array([[-1], [0], [-1]]), np.array([0, 50, 0.0])
    >>> sure = Associations(np.array([0, 2, 3]), rows, weight)
    >>> fit_completeness(sure).shares.round(3)
    array([0.5])
    """
    n_surveys = found.rows.shape[1]
    known = np.full(n_surveys, np.nan) if stated is None else stated
    counted = np.ones(found.n_base, bool) if covered is None else covered.all(axis=1)
    patterns = pattern_shares(np.where(np.isnan(known), 0.5, known))
    # All that EM needs to know of an object's associations, however many it has.
    weights = log_weights(found, log_ratio, rivals)
    evidence = _sum_by_pattern(weights, (found.n_base, len(patterns)))
    evidence = evidence[counted]
    n_iter, converged = 0, bool(np.isfinite(known).all())
    while not converged and n_iter < MOST_ROUNDS:
        n_iter += 1
        odds = patterns * _boost(patterns, crowding)
        sums = odds * (1 / (evidence @ odds) @ evidence) + LEAST_COMPLETE
        last, patterns = patterns, _scaled(sums / sums.sum(), known)
        converged = bool(np.max(np.abs(patterns - last)) < SETTLED)
    trend, boost = None, _boost(patterns, crowding)
    if variance is not None and not np.isfinite(known).any():
        trend = _fit_trend(evidence * boost, np.log(variance[counted]) / 2, patterns)
    if trend is not None:
        patterns = trend.shares(np.log(variance[counted]) / 2).mean(axis=0)  # type: ignore[index]
    shares = np.asarray(patterns @ pattern_members(len(patterns), n_surveys))
    return Completeness(shares, patterns, n_iter, converged, trend, boost)


def _boost(patterns: Floats, crowding: Floats | None) -> Floats:
    """One over the share of field sources in the sparsest survey of each set, which others see."""
    if crowding is None:
        return np.ones(len(patterns))
    members = pattern_members(len(patterns), len(crowding))
    sparsest = np.argmax(np.where(members, crowding, -1.0), axis=1)
    taken = np.minimum((patterns @ members) * crowding, MOST_TAKEN)
    return np.where(members.any(axis=1), 1 / (1 - taken[sparsest]), 1.0)


def _sum_by_pattern(
    weights: Iterator[tuple[slice, slice, Associations, Floats]], shape: tuple[int, int]
) -> Floats:
    """Add the weights of each object's associations by set of surveys, relative to the largest."""
    out, n_patterns = np.empty(shape), shape[1]
    for objects, _, part, log_weight in weights:
        base = part.base
        weight = np.exp(log_weight - part.highest(log_weight)[base])
        cells = base * n_patterns + patterns_of(part.rows)
        sums = np.bincount(cells, weight, minlength=part.n_base * n_patterns)
        out[objects] = sums.reshape(part.n_base, n_patterns)
    return out


def _scaled(patterns: Floats, known: Floats) -> Floats:
    """Scale the shares of sets of surveys until those of single surveys are the stated ones."""
    members = pattern_members(len(patterns), len(known))
    stated = np.flatnonzero(np.isfinite(known))
    for _ in range(FITTING_ROUNDS if stated.size else 0):
        for k in stated:
            wanted = np.clip(known[k], LEAST_COMPLETE, MOST_COMPLETE)
            inside = patterns[members[:, k]].sum()
            factor = np.where(members[:, k], wanted / inside, (1 - wanted) / (1 - inside))
            patterns = patterns * factor
    return patterns


def _fit_trend(evidence: Floats, log_error: Floats, patterns: Floats) -> Trend | None:
    """Fit shares that change with the position error, starting from the same for all.

    EM in which each step of the logistic regression maximizes a quadratic bound (Boehning 1992),
    so that the likelihood, with Student's prior of the slopes, never falls.
    """
    some = slice(None, None, 1 + len(evidence) // TREND_OBJECTS)
    E, x = evidence[some], log_error[some]
    if len(x) < 2 or np.std(x) < LEAST_SPREAD:
        return None
    middle, width = float(np.mean(x)), float(np.std(x))
    z = (x - middle) / width
    design = np.stack([np.ones(len(z)), z], axis=1)
    logits = np.stack([np.log(patterns), np.zeros(len(patterns))])
    for _ in range(MOST_ROUNDS):
        share = _shares(logits, z)
        both = share * E
        both /= both.sum(axis=1, keepdims=True)
        # Columns of the design are orthogonal, and each has the length of all objects.
        narrow = (TREND_DF + 1) / (TREND_DF * TREND_SLOPE**2 + logits[1] ** 2)
        prior = np.stack([np.zeros(len(patterns)), narrow])
        last = logits
        logits = logits + (design.T @ (both - share) - prior * logits) / (len(z) / 2 + prior)
        if np.max(np.abs(_shares(logits, z) - _shares(last, z))) < SETTLED:
            break
    return Trend(middle, width, logits)


def _shares(logits: Floats, z: Floats) -> Floats:
    free = np.maximum(logits[0] + z[:, None] * logits[1], np.log(LEAST_COMPLETE) * 2)
    raised = np.exp(free - free.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
