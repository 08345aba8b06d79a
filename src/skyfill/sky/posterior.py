"""From weights to probabilities: prior odds, and what is best."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from skyfill.sky.associations import Associations
from skyfill.sky.sphere import Floats, Rows

# Between no counterpart at all and one for every object, EM may end at the edge but not beyond.
MOST_COMPLETE, LEAST_COMPLETE = 0.9999, 1e-4
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
    return np.asarray(np.prod(np.where(pattern_members(1 << len(c), len(c)), c, 1 - c), axis=1))


def probabilities(found: Associations, shares: Floats, log_ratio: Floats | None = None) -> Floats:
    """Posterior probability of each association; those of one base object sum to one.

    With one survey of completeness c the prior odds of a counterpart are ``c / (1 - c)``. (The
    priors of Salvato et al. 2018 leave out the 1 - c: their c is ``c / (1 + c)`` here.)

    Parameters
    ----------
    shares : array of shape (k,), (2**k,) or (n, 2**k)
        Share of the base objects that have a counterpart in each survey, or in each set of surveys
        (see `pattern_shares`), for all or for each of them.
    log_ratio : array of shape (m,), optional
        Log likelihood ratio from other evidence, photometry for instance; 0 for "none".

    Examples
    --------
    >>> found = Associations(np.array([0, 2]), np.array([[-1], [0]]), np.log([1.0, 4.0]))
    >>> probabilities(found, np.array([0.5]))
    array([0.2, 0.8])
    """
    patterns = pattern_shares(shares) if shares.shape == found.rows.shape[1:] else shares
    log_prior = np.broadcast_to(np.log(patterns), (found.n_base, patterns.shape[-1]))
    weight = found.log_weight if log_ratio is None else found.log_weight + log_ratio
    out = np.empty(len(found))
    _normalize(found.starts, found.rows, weight, log_prior, out)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _normalize(starts, rows, log_weight, log_prior, out):  # type: ignore[no-untyped-def]
    """Write probabilities, from weights and the priors of sets of surveys."""
    for i in range(starts.size - 1):
        highest = -np.inf
        for a in range(starts[i], starts[i + 1]):
            out[a] = log_weight[a] + log_prior[i, pattern_of(rows, a)]
            highest = max(highest, out[a])
        total = 0.0
        for a in range(starts[i], starts[i + 1]):
            out[a] = np.exp(out[a] - highest)
            total += out[a]
        for a in range(starts[i], starts[i + 1]):
            out[a] /= total


@njit(cache=True, nogil=True, error_model="numpy")
def pattern_of(rows, a):  # type: ignore[no-untyped-def]
    """Set of surveys in which an association has a source, as bits."""
    code = 0
    for k in range(rows.shape[1]):
        code |= (rows[a, k] >= 0) << k
    return code


def pattern_members(n_patterns: int, n_surveys: int) -> np.ndarray:
    """Which surveys are in each set, shape (2**k, k).

    Examples
    --------
    >>> pattern_members(4, 2).astype(int).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    return ((np.arange(n_patterns)[:, None] >> np.arange(n_surveys)) & 1).astype(bool)


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
