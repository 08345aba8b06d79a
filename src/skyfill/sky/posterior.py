"""From weights to probabilities: prior odds, completeness by EM, and what is best."""

from dataclasses import dataclass

import numpy as np
from numba import njit

from skyfill.sky.associations import Associations
from skyfill.sky.sphere import Floats, Rows

__all__ = ["Completeness", "Counterparts", "fit_completeness", "probabilities", "summarize"]

# Between no counterpart at all and one for every object, EM may end at the edge but not beyond.
MOST_COMPLETE, LEAST_COMPLETE = 0.9999, 1e-4
MOST_ROUNDS, SETTLED = 500, 1e-6
# A rival has at least this share of the probability of the best association.
RIVAL_SHARE = 0.5


def probabilities(
    found: Associations, completeness: Floats, log_ratio: Floats | None = None
) -> Floats:
    """Posterior probability of each association; those of one base object sum to one.

    An association has the prior odds ``c / (1 - c)`` for each survey in it. (The priors of Salvato
    et al. 2018 leave out the 1 - c: their completeness c is ``c / (1 + c)`` here.)

    Parameters
    ----------
    completeness : array of shape (k,)
        Share of the base objects that have a counterpart in each survey.
    log_ratio : array of shape (m,), optional
        Log likelihood ratio from other evidence, photometry for instance; 0 for "none".

    Examples
    --------
    >>> found = Associations(np.array([0, 2]), np.array([[-1], [0]]), np.log([1.0, 4.0]))
    >>> probabilities(found, np.array([0.5]))
    array([0.2, 0.8])
    """
    c = np.clip(completeness, LEAST_COMPLETE, MOST_COMPLETE)
    weight = found.log_weight if log_ratio is None else found.log_weight + log_ratio
    out = np.empty(len(found))
    _normalize(found.starts, found.rows, weight, np.log(c / (1 - c)), out)
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _normalize(starts, rows, log_weight, log_odds, out):  # type: ignore[no-untyped-def]
    for i in range(starts.size - 1):
        highest = -np.inf
        for a in range(starts[i], starts[i + 1]):
            out[a] = log_weight[a]
            for k in range(log_odds.size):
                if rows[a, k] >= 0:
                    out[a] += log_odds[k]
            highest = max(highest, out[a])
        total = 0.0
        for a in range(starts[i], starts[i + 1]):
            out[a] = np.exp(out[a] - highest)
            total += out[a]
        for a in range(starts[i], starts[i + 1]):
            out[a] /= total


@dataclass(frozen=True)
class Completeness:
    """Share of the base objects with a counterpart in each survey, as EM found it."""

    shares: Floats
    n_iter: int
    converged: bool


def fit_completeness(
    found: Associations,
    log_ratio: Floats | None = None,
    *,
    covered: np.ndarray | None = None,
    start: float = 0.5,
) -> Completeness:
    """Estimate by EM which share of the base objects has a counterpart in each survey.

    Parameters
    ----------
    covered : boolean array of shape (n, k), optional
        Which base objects each survey covers; the others do not count.

    Examples
    --------
    >>> rows, weight = np.array([[-1], [0], [-1]]), np.array([0, 50, 0.0])
    >>> sure = Associations(np.array([0, 2, 3]), rows, weight)
    >>> fit_completeness(sure).shares.round(3)
    array([0.5])
    """
    n_surveys = found.rows.shape[1]
    seen = np.ones((found.n_base, n_surveys), bool) if covered is None else covered
    n_covered = np.maximum(seen.sum(axis=0), 1)
    member = [
        np.flatnonzero((found.rows[:, k] >= 0) & seen[found.base, k]) for k in range(n_surveys)
    ]
    shares = np.full(n_surveys, start)
    for n_iter in range(1, MOST_ROUNDS + 1):
        p = probabilities(found, shares, log_ratio)
        last, shares = shares, np.array([p[rows].sum() for rows in member]) / n_covered
        shares = np.clip(shares, LEAST_COMPLETE, MOST_COMPLETE)
        if np.max(np.abs(shares - last), initial=0.0) < SETTLED:
            return Completeness(shares, n_iter, converged=True)
    return Completeness(shares, MOST_ROUNDS, converged=False)


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
