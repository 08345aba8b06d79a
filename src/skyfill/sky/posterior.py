"""From weights to probabilities: prior odds, completeness by EM, and what is best."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from skyfill.sky.associations import Associations
from skyfill.sky.sphere import Floats, Rows

# Between no counterpart at all and one for every object, EM may end at the edge but not beyond.
MOST_COMPLETE, LEAST_COMPLETE = 0.9999, 1e-4
MOST_ROUNDS, SETTLED, FITTING_ROUNDS = 500, 1e-6, 20
# A rival has at least this share of the probability of the best association.
RIVAL_SHARE = 0.5


def pattern_shares(completeness: Floats) -> Floats:
    """Share of the base objects with counterparts in each set of surveys, if those are independent.

    Parameters
    ----------
    completeness : array of shape (k,)

    Returns
    -------
    array of shape (2**k,)
        Bit k of the index is set if survey k is in the set.

    Examples
    --------
    >>> pattern_shares(np.array([0.9, 0.5])).round(2)
    array([0.05, 0.45, 0.05, 0.45])
    """
    c = np.clip(completeness, LEAST_COMPLETE, MOST_COMPLETE)
    return np.asarray(np.prod(np.where(_members(1 << len(c), len(c)), c, 1 - c), axis=1))


def probabilities(found: Associations, shares: Floats, log_ratio: Floats | None = None) -> Floats:
    """Posterior probability of each association; those of one base object sum to one.

    With one survey of completeness c the prior odds of a counterpart are ``c / (1 - c)``. (The
    priors of Salvato et al. 2018 leave out the 1 - c: their c is ``c / (1 + c)`` here.)

    Parameters
    ----------
    shares : array of shape (k,) or (2**k,)
        Share of the base objects that have a counterpart in each survey, or in each set of surveys
        (see `pattern_shares`).
    log_ratio : array of shape (m,), optional
        Log likelihood ratio from other evidence, photometry for instance; 0 for "none".

    Examples
    --------
    >>> found = Associations(np.array([0, 2]), np.array([[-1], [0]]), np.log([1.0, 4.0]))
    >>> probabilities(found, np.array([0.5]))
    array([0.2, 0.8])
    """
    patterns = pattern_shares(shares) if len(shares) == found.rows.shape[1] else shares
    weight = found.log_weight if log_ratio is None else found.log_weight + log_ratio
    out = np.empty(len(found))
    _normalize(found.starts, found.rows, weight, np.log(patterns), out)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _normalize(starts, rows, log_weight, log_prior, out):  # type: ignore[no-untyped-def]
    """Write probabilities, from weights and the priors of sets of surveys."""
    for i in range(starts.size - 1):
        highest = -np.inf
        for a in range(starts[i], starts[i + 1]):
            out[a] = log_weight[a] + log_prior[_pattern(rows, a)]
            highest = max(highest, out[a])
        total = 0.0
        for a in range(starts[i], starts[i + 1]):
            out[a] = np.exp(out[a] - highest)
            total += out[a]
        for a in range(starts[i], starts[i + 1]):
            out[a] /= total


@njit(cache=True, nogil=True, error_model="numpy")
def _sum_by_pattern(starts, rows, log_weight, out):  # type: ignore[no-untyped-def]
    """Add the weights of each object's associations by set of surveys, relative to the largest."""
    for i in range(starts.size - 1):
        highest = -np.inf
        for a in range(starts[i], starts[i + 1]):
            highest = max(highest, log_weight[a])
        for a in range(starts[i], starts[i + 1]):
            out[i, _pattern(rows, a)] += np.exp(log_weight[a] - highest)


@njit(cache=True, nogil=True, error_model="numpy")
def _pattern(rows, a):  # type: ignore[no-untyped-def]
    code = 0
    for k in range(rows.shape[1]):
        code |= (rows[a, k] >= 0) << k
    return code


@dataclass(frozen=True)
class Completeness:
    """Share of the base objects with a counterpart, as EM found it.

    Attributes
    ----------
    shares : array of shape (k,)
        In each survey.
    patterns : array of shape (2**k,)
        In each set of surveys: an object that one survey has is more often in another.
    """

    shares: Floats
    patterns: Floats
    n_iter: int
    converged: bool


def fit_completeness(
    found: Associations,
    log_ratio: Floats | None = None,
    *,
    covered: np.ndarray | None = None,
    stated: Floats | None = None,
) -> Completeness:
    """Estimate by EM which share of the base objects has a counterpart in each set of surveys.

    Parameters
    ----------
    covered : boolean array of shape (n, k), optional
        Which base objects each survey covers; only those that all of them cover count.
    stated : array of shape (k,), optional
        Shares that are known; NaN where they are not. The sets of surveys are scaled to them.

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
    weight = found.log_weight if log_ratio is None else found.log_weight + log_ratio
    patterns = pattern_shares(np.where(np.isnan(known), 0.5, known))
    # All that EM needs to know of an object's associations, however many it has.
    evidence = np.zeros((found.n_base, len(patterns)))
    _sum_by_pattern(found.starts, found.rows, weight, evidence)
    evidence = evidence[counted]
    n_iter, converged = 0, bool(np.isfinite(known).all())
    while not converged and n_iter < MOST_ROUNDS:
        n_iter += 1
        sums = patterns * (1 / (evidence @ patterns) @ evidence) + LEAST_COMPLETE
        last, patterns = patterns, _scaled(sums / sums.sum(), known)
        converged = bool(np.max(np.abs(patterns - last)) < SETTLED)
    shares = np.asarray(patterns @ _members(len(patterns), n_surveys))
    return Completeness(shares, patterns, n_iter, converged)


def _members(n_patterns: int, n_surveys: int) -> np.ndarray:
    return ((np.arange(n_patterns)[:, None] >> np.arange(n_surveys)) & 1).astype(bool)


def _scaled(patterns: Floats, known: Floats) -> Floats:
    """Scale the shares of sets of surveys until those of single surveys are the stated ones."""
    members = _members(len(patterns), len(known))
    stated = np.flatnonzero(np.isfinite(known))
    for _ in range(FITTING_ROUNDS if stated.size else 0):
        for k in stated:
            wanted = np.clip(known[k], LEAST_COMPLETE, MOST_COMPLETE)
            inside = patterns[members[:, k]].sum()
            factor = np.where(members[:, k], wanted / inside, (1 - wanted) / (1 - inside))
            patterns = patterns * factor
    return patterns


@dataclass(frozen=True)
class Counterparts:
    """The best association of each base object, and how sure it is.

    Attributes
    ----------
    p_any : array of shape (n,)
        Probability that there is a counterpart at all.
    chosen : integer array of shape (n,)
        Association chosen, among all; the "none" of the object where it has no candidate.
    p_i : array of shape (n,)
        Probability of the chosen association, given that there is a counterpart; 0 without one.
    p_survey : array of shape (n, k)
        Probability of the chosen row of each survey, summed over the associations that have it;
        where the chosen association has no row, that of having none.
    n_rivals : integer array of shape (n,)
        Other associations, "none" left out, with at least half the probability of the chosen one.
    """

    p_any: Floats
    chosen: Rows
    p_i: Floats
    p_survey: Floats
    n_rivals: Rows


def summarize(found: Associations, p: Floats, chosen: Rows | None = None) -> Counterparts:
    """Find the best association with a counterpart for each base object.

    Parameters
    ----------
    p : array of shape (m,)
        From `probabilities`.
    chosen : integer array of shape (n,), optional
        Choice made otherwise, one to one for instance.

    Examples
    --------
    >>> found = Associations(np.array([0, 3]), np.array([[-1], [7], [9]]), np.zeros(3))
    >>> best = summarize(found, np.array([0.2, 0.6, 0.2]))
    >>> best.chosen, best.p_any, best.p_i.round(2), best.n_rivals
    (array([1]), array([0.8]), array([0.75]), array([0]))
    """
    picked = np.full(found.n_base, -1, dtype=np.int64) if chosen is None else chosen.copy()
    p_any, p_i = np.zeros(found.n_base), np.zeros(found.n_base)
    p_survey = np.zeros((found.n_base, found.rows.shape[1]))
    n_rivals = np.zeros(found.n_base, dtype=np.int64)
    _summarize(found.starts, found.rows, p, picked, p_any, p_i, p_survey, n_rivals)
    return Counterparts(p_any, picked, p_i, p_survey, n_rivals)


@njit(cache=True, nogil=True, error_model="numpy")
def _summarize(starts, rows, p, picked, p_any, p_i, p_survey, n_rivals):  # type: ignore[no-untyped-def] # noqa: PLR0913, PLR0917
    for i in range(starts.size - 1):
        first, last = starts[i], starts[i + 1]
        best = first
        for a in range(first + 1, last):
            p_any[i] += p[a]
            if best == first or p[a] > p[best]:
                best = a
        if picked[i] < 0:
            picked[i] = best
        best = picked[i]
        if best > first and p_any[i] > 0:
            p_i[i] = p[best] / p_any[i]
        for a in range(first, last):
            if a not in (first, best) and best > first and p[a] >= RIVAL_SHARE * p[best]:
                n_rivals[i] += 1
            for k in range(rows.shape[1]):
                if rows[a, k] == rows[best, k]:
                    p_survey[i, k] += p[a]
