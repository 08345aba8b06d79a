"""From weights to probabilities: prior odds, and what is best."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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


class SparseEvidence(NamedTuple):
    """Log likelihood ratio of some associations, 0 for all others."""

    associations: Rows  # ascending
    log_ratio: Floats

    def inside(self, part: slice) -> tuple[Rows, Floats]:
        """Return those in a part of the associations, counted from its start."""
        first, last = np.searchsorted(self.associations, [part.start, part.stop])
        return self.associations[first:last] - part.start, self.log_ratio[first:last]


def log_weights(
    found: Associations, log_ratio: Floats | None, rivals: SparseEvidence | None
) -> Iterator[tuple[slice, slice, Associations, Floats]]:
    """Add all evidence to the weights of associations, portion by portion."""
    for objects, inside, part in found.portions():
        weight = part.log_weight.copy()
        if log_ratio is not None:
            weight += log_ratio[inside]
        if rivals is not None:
            which, log_free = rivals.inside(inside)
            weight[which] += log_free
        yield objects, inside, part, weight


def probabilities(
    found: Associations,
    shares: Floats,
    log_ratio: Floats | None = None,
    rivals: SparseEvidence | None = None,
) -> Floats:
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
    rivals : SparseEvidence, optional
        Log probability that other objects leave the sources free.

    Examples
    --------
    >>> found = Associations(np.array([0, 2]), np.array([[-1], [0]]), np.log([1.0, 4.0]))
    >>> probabilities(found, np.array([0.5]))
    array([0.2, 0.8])
    """
    patterns = pattern_shares(shares) if shares.shape == found.rows.shape[1:] else shares
    log_prior = np.broadcast_to(np.log(patterns), (found.n_base, patterns.shape[-1]))
    out = np.empty(len(found))
    for objects, inside, part, log_weight in log_weights(found, log_ratio, rivals):
        base = part.base
        log_p = log_weight + log_prior[objects][base, patterns_of(part.rows)]
        weight = np.exp(log_p - part.highest(log_p)[base])
        out[inside] = weight / part.sums(weight)[base]
    return out


def patterns_of(rows: np.ndarray) -> Rows:
    """Set of surveys in which each association has a source, as bits.

    Examples
    --------
    >>> patterns_of(np.array([[-1, -1], [3, -1], [0, 2]]))
    array([0, 1, 3])
    """
    return np.asarray((rows >= 0) @ (1 << np.arange(rows.shape[1])))


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
    picked = take_best(found, p) if chosen is None else chosen
    parts = [
        _summarize(part, p[inside], picked[objects] - inside.start)
        for objects, inside, part in found.portions()
    ]
    p_any, p_i, p_survey, n_rivals = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Counterparts(p_any, picked, p_i, p_survey, n_rivals)


def _summarize(found: Associations, p: Floats, picked: Rows) -> tuple[Floats, Floats, Floats, Rows]:
    base, firsts = found.base, found.starts[:-1]
    with_any = p.copy()
    with_any[firsts] = 0.0
    p_any = found.sums(with_any)
    has = (picked > firsts) & (p_any > 0)
    p_i = np.divide(p[picked], p_any, out=np.zeros(found.n_base), where=has)
    same = found.rows == found.rows[picked][base]
    p_survey = np.stack([found.sums(np.where(one, p, 0.0)) for one in same.T], axis=1)
    rival = p >= np.where(picked > firsts, RIVAL_SHARE * p[picked], np.inf)[base]
    rival[firsts] = rival[picked] = False
    return p_any, p_i, p_survey, found.sums(rival).astype(np.int64)


def take_best(found: Associations, p: Floats) -> Rows:
    """Choose the likeliest association of each object, "none" only where it has no other.

    Examples
    --------
    >>> found = Associations(np.array([0, 3, 4]), np.array([[-1], [7], [9], [-1]]), np.zeros(4))
    >>> take_best(found, np.array([0.6, 0.1, 0.3, 1.0]))
    array([2, 3])
    """
    out = np.empty(found.n_base, dtype=np.int64)
    for objects, inside, part in found.portions():
        mine = p[inside].copy()
        mine[part.starts[:-1]] = -1.0
        best = np.flatnonzero(mine == part.highest(mine)[part.base])
        # The first of several that are as likely.
        out[objects] = inside.start + best[np.searchsorted(best, part.starts[:-1])]
    return out
