"""Probabilities for a field where the shares of the classes differ from the training set's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.held_out import HeldOut
from skyfill.classify.likeness import Looks, explained_by
from skyfill.errors import DataError

Array = NDArray[np.float64]
MAX_STEPS, TOLERANCE = 1000, 1e-7
# Chains behind an interval, their steps, and its levels.
N_CHAINS, N_STEPS, LEVELS = 200, 2000, (0.05, 0.95)
# The least standard error of a mean: profiles of few objects are less certain than they look.
LEAST_ERROR = 1e-4
# How often shares are estimated anew with probabilities under the shares found last: they settle.
N_REFINEMENTS = 3
# Shares have settled if none of them changed by more than this factor (log) in the end.
SETTLED = 0.05
# The least share of a class, for the same purpose.
LEAST_SHARE = 1e-6
# Rows with gaps like those of the training set, below which the shares come from all rows.
LEAST_KNOWN = 100
# From this many standard errors on, the rows are no mixture of the training set's classes.
NOTABLE_MISFIT = 3.0
# Estimated shares count if they explain at least this part of what differs (docs/benchmarks.md).
LEAST_EXPLAINED = 0.9


class Profiles(NamedTuple):
    """Mean probabilities of the held-out objects of each class, with standard errors.

    Both have shape (classes, classes): a row belongs to a class, a column to the probability of
    one.
    """

    mean: Array
    error: Array


class FieldShares(NamedTuple):
    """Estimated shares of the classes, the 5 % and 95 % limits, the misfit, and the rows used.

    The misfit, in standard errors, says how far the mean probabilities are from those of any
    mixture of the training set's classes: above 3, objects of a class do not look alike in both.
    `used` is the share of the rows that the estimate rests on, `taught` the code of the class whose
    density the rows have taught, if any. `explained` is the part of the difference between the rows
    and the training set that other shares explain, and `agree` whether the shares of the training
    set lie within the limits; see `judge_shares`.
    """

    shares: Array
    low: Array
    high: Array
    misfit: float
    used: float = 1.0
    taught: int | None = None
    explained: float = np.nan
    agree: bool = False

    @property
    def is_trusted(self) -> bool:
        """Whether the estimated shares count; they do where that cannot be judged (NaN)."""
        return not self.explained < LEAST_EXPLAINED


def shift_prior(P: Array, old: Array, new: Array) -> Array:
    """Convert probabilities from class shares `old` to class shares `new`.

    Examples
    --------
    >>> shift_prior(np.array([[0.5, 0.5]]), np.array([0.5, 0.5]), np.array([0.9, 0.1]))
    array([[0.9, 0.1]])
    """
    odds = P * (new / old)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def estimate_prior(P: Array, old: Array) -> Array:
    """Estimate the shares of the classes among new rows by EM (Saerens et al. 2002).

    Parameters
    ----------
    P : array of shape (n, classes)
        Probabilities for the new rows, under the shares `old`.
    old : array of shape (classes,)
        Shares that the classifier was trained with.

    Examples
    --------
    >>> P = np.repeat([[0.95, 0.05], [0.05, 0.95]], [900, 100], axis=0)
    >>> estimate_prior(P, np.array([0.5, 0.5])).round(2)
    array([0.94, 0.06])
    """
    if not len(P):
        return old
    shares = old
    for _ in range(MAX_STEPS):
        last, shares = shares, shift_prior(P, old, shares).mean(axis=0)
        # A class that the rows rule out keeps a tiny share, to avoid a division by zero.
        shares = np.maximum(shares, 1e-12) / np.maximum(shares, 1e-12).sum()
        if np.abs(shares - last).max() < TOLERANCE:
            break
    return np.asarray(shares)


def find_profiles(P: Array, y: NDArray[np.intp]) -> Profiles | None:
    """Average held-out probabilities by class; None where a class has fewer than two objects.

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8], [0.2, 0.8]])
    >>> find_profiles(P, np.array([0, 0, 1, 1])).mean
    array([[0.8, 0.2],
           [0.2, 0.8]])
    """
    counts = np.bincount(y, minlength=P.shape[1])
    if not len(P) or counts.min() < 2:
        return None
    mean = np.array([P[y == c].mean(axis=0) for c in range(len(counts))])
    error = np.array([P[y == c].std(axis=0, ddof=1) / np.sqrt(n) for c, n in enumerate(counts)])
    return Profiles(mean, np.maximum(error, LEAST_ERROR))


def match_profiles(P: Array, profiles: Profiles, rng: int = 0) -> FieldShares:
    """Find the shares for which the mean probabilities of new rows are those of known objects.

    The mean over the rows is the mixture of the classes' profiles, each with its share. Unlike the
    most probable shares (`estimate_prior`), these do not take every unfamiliar object for a sign
    of some rare class. All shares are equally probable beforehand; the errors are those of means
    and profiles, enlarged where they do not explain the misfit.

    Parameters
    ----------
    P : array of shape (n, classes)
        Probabilities for the new rows, under the training set's shares.
    profiles : Profiles
    rng : int

    Examples
    --------
    >>> profiles = Profiles(np.array([[0.9, 0.1], [0.2, 0.8]]), np.full((2, 2), 0.01))
    >>> P = np.repeat([[0.95, 0.05], [0.15, 0.85]], [900, 100], axis=0)   # 0.87 on average
    >>> match_profiles(P, profiles).shares.round(2)
    array([0.96, 0.04])
    """
    from scipy.optimize import nnls

    mean, error = P.mean(axis=0), np.maximum(P.std(axis=0) / np.sqrt(len(P)), LEAST_ERROR)
    best = _normal(nnls(profiles.mean.T, mean)[0])
    doubt = np.sqrt(error**2 + best**2 @ profiles.error**2)
    misfit = float(np.sqrt(np.mean(((mean - best @ profiles.mean) / doubt) ** 2)))
    # Errors that do not explain the misfit are too small by that factor (Birge 1932).
    factor = max(misfit, 1.0)
    known = (mean, factor * error, profiles.mean, factor * profiles.error)
    drawn = _walk(best, known, np.random.default_rng(rng))
    low, high = np.quantile(drawn, LEVELS, axis=0)
    return FieldShares(_normal(drawn.mean(axis=0)), low, high, misfit)


def refine_shares(P: Array, old: Array, held_out: HeldOut) -> FieldShares:
    """Match profiles of probabilities under the field's own shares, found by doing so repeatedly.

    Where a class is a thousand times rarer than another, the small probabilities that it has for
    objects of the other add up to more than its own objects, and their noise hides these. Under
    the shares of the field they are as small as they should be. Where objects of a class do not
    look alike in both, this makes shares worse: the first estimate stands if its errors do not
    explain its misfit, or if the shares still change in the end.

    Parameters
    ----------
    P : array of shape (n, classes)
        Probabilities for the new rows, under the shares `old`.
    old : array of shape (classes,)
    held_out : HeldOut
        At least two objects of each class.
    """
    first = found = match_profiles(P, shifted_profiles(held_out, old, old))
    for _ in range(N_REFINEMENTS):
        now = _normal(np.maximum(found.shares, LEAST_SHARE))
        found = match_profiles(shift_prior(P, old, now), shifted_profiles(held_out, old, now))
    # What the first and the last differ by is as uncertain as what each of them allows for.
    low, high = np.minimum(first.low, found.low), np.maximum(first.high, found.high)
    moved = np.abs(np.log(np.maximum(found.shares, LEAST_SHARE) / now)).max()
    is_sound = first.misfit <= 1 and moved < SETTLED
    shares = found.shares if is_sound else first.shares
    return FieldShares(shares, low, high, max(first.misfit, found.misfit))


def shifted_profiles(held_out: HeldOut, old: Array, new: Array) -> Profiles:
    """Average probabilities under other shares by class.

    Few objects of one class look much like another, and a sample may lack them altogether. So the
    errors are not smaller than the probabilities of all held-out objects imply.
    """
    P, counts = shift_prior(held_out.P, old, new), np.bincount(held_out.y)[:, None]
    own = np.eye(len(old))[held_out.y].T / counts
    implied = held_out.P.T / held_out.P.sum(axis=0)[:, None]
    mean = own @ P
    spreads = [np.maximum(each @ P**2 - (each @ P) ** 2, 0.0) for each in (own, implied)]
    error = np.sqrt(np.maximum(*spreads) / (counts - 1))
    return Profiles(mean, np.maximum(error, LEAST_ERROR))


def _walk(start: Array, known: tuple[Array, ...], rng: np.random.Generator) -> Array:
    """Draw shares by chains that move some share from one class to another (Metropolis)."""
    mean, error, centers, spreads = known

    def log_density(W: Array) -> Array:
        variance = error**2 + W**2 @ spreads**2
        return np.asarray(-0.5 * ((mean - W @ centers) ** 2 / variance + np.log(variance)).sum(1))

    chain, n_classes = np.arange(N_CHAINS), len(start)
    W = np.tile(_normal(start + 1e-6), (N_CHAINS, 1))
    now, kept = log_density(W), []
    for step in range(N_STEPS):
        giver = rng.integers(n_classes, size=N_CHAINS)
        taker = (giver + rng.integers(1, n_classes, size=N_CHAINS)) % n_classes
        # Steps of all sizes: shares may be known to 1e-5 or not at all.
        moved = 10.0 ** rng.uniform(-5, 0, N_CHAINS)
        tried = W.copy()
        tried[chain, giver] -= moved
        tried[chain, taker] += moved
        inside = tried[chain, giver] > 0
        new = np.where(inside, log_density(np.maximum(tried, 0.0)), -np.inf)
        accept = np.log(rng.random(N_CHAINS)) < new - now
        W[accept], now[accept] = tried[accept], new[accept]
        if 2 * step >= N_STEPS and step % 20 == 0:
            kept.append(W.copy())
    return np.concatenate(kept)


def _normal(weights: Array) -> Array:
    return np.asarray(weights / np.maximum(weights.sum(axis=-1, keepdims=True), 1e-300))


def estimate_shares(
    P: Array,
    old: Array,
    reference: HeldOut | Profiles | None,
    known: NDArray[np.bool_] | None = None,
) -> FieldShares:
    """Estimate shares by the best way that a classifier allows.

    Parameters
    ----------
    P : array of shape (n, classes)
        Probabilities for the new rows, under the shares `old` and without draws of the gaps.
    old : array of shape (classes,)
    reference : HeldOut or Profiles, optional
        Held-out objects (`refine_shares`), or only their profiles (`match_profiles`). Without
        them shares come by EM (`estimate_prior`).
    known : bool array of shape (n,), optional
        Rows with gaps as training objects have them. The shares among these are taken for all:
        of the others no profile is known, and their probabilities may be off by any amount. With
        fewer than 100 such rows all are used.
    """
    if known is not None and not (rows := rows_behind(known)).all():
        found = estimate_shares(P[rows], old, reference)
        return found._replace(used=float(rows.mean()))
    if len(P) and isinstance(reference, HeldOut):
        return refine_shares(P, old, reference)
    if len(P) and isinstance(reference, Profiles):
        return match_profiles(P, reference)
    shares, unknown = estimate_prior(P, old), np.full(len(old), np.nan)
    return FieldShares(shares, unknown, unknown, np.nan)


def rows_behind(known: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the rows that shares are estimated from: those with known gaps, or all if too few."""
    return known if known.sum() >= LEAST_KNOWN else np.ones_like(known)


def judge_shares(found: FieldShares, old: Array, X: Array, looks: Looks | None) -> FieldShares:
    """Go back to the shares of the training set where nothing speaks for others.

    That is where the estimated ones explain little of what differs: then objects of a class look
    different in both, and probabilities as trained are nearer to the truth. Or where all shares of
    the training set lie within the limits of the estimate, which scatters.

    Parameters
    ----------
    found : FieldShares
    old : array of shape (classes,)
        Shares of the training set.
    X : array of shape (n, p)
        The rows behind the estimate.
    looks : Looks, optional
        Of labelled objects. Without them only the limits count.
    """
    if looks is not None and len(X):
        found = found._replace(explained=explained_by(found.shares, old, X, looks))
    if not found.is_trusted:
        low, high = np.minimum(found.low, old), np.maximum(found.high, old)
        return found._replace(shares=old, low=low, high=high)
    agree = bool(((found.low <= old) & (old <= found.high)).all())
    return found._replace(shares=old, agree=True) if agree else found


def as_prior(prior: Mapping[Any, float] | Sequence[float], classes: Iterable[Any]) -> Array:
    """Check shares of the classes, given by name or in the order of `classes`.

    Examples
    --------
    >>> as_prior({"QSO": 1, "RRL": 3}, ["QSO", "RRL"])
    array([0.25, 0.75])
    """
    names = [str(name) for name in classes]
    if isinstance(prior, Mapping):
        given = {str(name): value for name, value in prior.items()}
        unknown = [name for name in given if name not in names]
        lacking = [name for name in names if name not in given]
        if unknown or lacking:
            words = [f"no class {', '.join(unknown)}"] if unknown else []
            words += [f"no share for {', '.join(lacking)}"] if lacking else []
            listed = f"the classes are {', '.join(names)}"
            raise DataError(f"prior: {' and '.join(words)}; {listed}; give a share for each")
        prior = [given[name] for name in names]
    shares = np.asarray(prior, dtype=np.float64)
    if shares.shape != (len(names),) or not (np.isfinite(shares) & (shares > 0)).all():
        raise DataError(f"prior: give a positive share for each of {', '.join(names)}")
    return np.asarray(shares / shares.sum())
