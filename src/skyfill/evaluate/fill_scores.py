"""Scores of filled values in closed form; lower is better, except for coverage.

Arrays have the same shape, except that quantiles and draws have one more axis in front. CRPS and
log score are proper (Gneiting & Raftery 2007): on average no distribution beats the true one.
"""

from __future__ import annotations

from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from skyfill.evaluate.hide import Hidden

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
# Even levels: quantiles at these serve as draws.
LEVELS = np.arange(1, 100) / 100
N_DRAWS = 100


class CellScores(NamedTuple):
    """Scores of hidden cells, each of shape (cells,); None for what a method does not provide."""

    crps: Array
    log_score: Array | None = None
    pit: Array | None = None


def score_cells(
    imputer: Any, hidden: Hidden, *, true: Array, filled: Array | None = None, rng: Any = 0
) -> CellScores:
    """Score the most informative answer that a fitted imputer has for hidden cells.

    That is the first that it offers of ``quantiles(X, levels)`` (with ``logpdf(X_true, X)``),
    ``posterior(X)`` (a mean and a standard deviation), ``sample(X, n_draws, random_state=)`` and
    ``transform(X)``.

    Parameters
    ----------
    imputer : fitted imputer
    hidden : Hidden
        The table with more gaps, of shape (n, p), and which cells were hidden.
    true : array of shape (n, p)
        The table before.
    filled : array of shape (n, p), optional
        What ``transform`` gave, if it was called already.
    rng : int or numpy.random.Generator
        Breaks ties of the probability integral transform.

    Examples
    --------
    >>> from skyfill.impute import MeanImputer
    >>> imputer = MeanImputer().fit([[1.0], [3.0]])
    >>> hidden = Hidden(np.array([[np.nan]]), np.array([[True]]))
    >>> score_cells(imputer, hidden, true=np.array([[5.0]]))
    CellScores(crps=array([3.]), log_score=None, pit=None)
    """
    X, mask = hidden.X, hidden.mask
    known = hidden.limits if takes_limits(imputer) else {}
    at = true[mask]
    if hasattr(imputer, "quantiles"):
        quantiles = imputer.quantiles(X, LEVELS, **known)[:, mask]
        log_score = -imputer.logpdf(true, X)[mask] if hasattr(imputer, "logpdf") else None
        crps = crps_quantiles(quantiles, LEVELS, at)
        return CellScores(crps, log_score, pit_draws(quantiles, at, rng))
    if hasattr(imputer, "posterior"):
        normal = (*(part[mask] for part in imputer.posterior(X, **known)[:2]), at)
        crps, log_score = crps_gaussian(*normal), log_score_gaussian(*normal)
        return CellScores(crps, log_score, pit_gaussian(*normal))
    if hasattr(imputer, "sample"):
        draws = imputer.sample(X, N_DRAWS, random_state=0, **known)[:, mask]
        return CellScores(crps_draws(draws, at), pit=pit_draws(draws, at, rng))
    values = np.asarray(imputer.transform(X, **known) if filled is None else filled)
    return CellScores(crps_point(values[mask], at))


def takes_limits(imputer: Any) -> bool:
    """Whether an imputer can use limits: its ``fit`` takes ``lower``, and so do its other methods.

    Examples
    --------
    >>> from skyfill.impute import MeanImputer, NetworkImputer
    >>> takes_limits(NetworkImputer()), takes_limits(MeanImputer())
    (True, False)
    """
    fit = getattr(imputer, "fit", None)
    return fit is not None and "lower" in signature(fit).parameters


def nrmse(filled: Array, true: Array, mask: Mask) -> Array:
    """Root mean squared error of each column over its standard deviation.

    As in Pichara & Protopapas (2013): ``sqrt(mean((filled - true)**2) / var(true))``; the mean
    runs over the hidden cells, the variance over all seen cells of the column.

    Parameters
    ----------
    filled, true : arrays of shape (n, p)
    mask : boolean array of shape (n, p)
        The cells that were hidden.

    Returns
    -------
    array of shape (p,)
        NaN for a column without hidden cells or without variance. The paper's number for a table
        is the mean over columns.

    Examples
    --------
    >>> true = np.array([[1.0], [3.0]])
    >>> nrmse(np.array([[2.0], [3.0]]), true, np.array([[True], [False]]))
    array([1.])
    """
    return np.sqrt(column_means((filled - true) ** 2, mask)) / spreads(true)


def spreads(true: Array) -> Array:
    """Measure the standard deviation of each column's seen cells; NaN where it is 0.

    Examples
    --------
    >>> spreads(np.array([[1.0, 5.0], [3.0, 5.0]]))
    array([ 1., nan])
    """
    sd = np.array([column[~np.isnan(column)].std() for column in true.T])
    return np.where(sd > 0, sd, np.nan)


def column_means(values: Array, mask: Mask) -> Array:
    """Mean of each column over masked cells; NaN where there are none.

    Examples
    --------
    >>> column_means(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[True, False], [True, False]]))
    array([ 2., nan])
    """
    total = np.where(mask, values, 0.0).sum(axis=0)
    count = mask.sum(axis=0)
    return np.asarray(np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0))


def crps_point(value: ArrayLike, true: ArrayLike) -> Array:
    """CRPS of a single value: its absolute error.

    Examples
    --------
    >>> crps_point([1.0], [3.0])
    array([2.])
    """
    return np.abs(np.subtract(value, true))


def crps_gaussian(mean: ArrayLike, sd: ArrayLike, true: ArrayLike) -> Array:
    """CRPS of a Gaussian (Gneiting et al. 2005); with sd 0 the absolute error.

    Examples
    --------
    >>> crps_gaussian([0.0, 0.0], [1.0, 0.0], [0.0, 2.0]).round(4)
    array([0.2337, 2.    ])
    """
    sd, error = np.broadcast_arrays(np.asarray(sd, float), np.subtract(true, mean))
    z = np.divide(error, sd, out=np.full(sd.shape, np.inf), where=sd > 0)
    spread = sd * (2 * _density(z) - 1 / np.sqrt(np.pi))
    return np.where(sd > 0, error * (2 * ndtr(np.where(sd > 0, z, 0.0)) - 1) + spread, abs(error))


def crps_draws(draws: ArrayLike, true: ArrayLike) -> Array:
    """Unbiased CRPS of the distribution from which a few draws were taken (Ferro 2014).

    Parameters
    ----------
    draws : array of shape (m, ...)
        A single draw counts as a point.
    true : array of shape (...)

    Examples
    --------
    >>> crps_draws([[0.0], [2.0]], [5.0])
    array([3.])
    """
    ordered = np.sort(np.asarray(draws, float), axis=0)
    m = len(ordered)
    error = np.abs(ordered - np.asarray(true)).mean(axis=0)
    if m == 1:
        return np.asarray(error)
    # Sum of |x_i - x_j| over all pairs, from the sorted draws.
    coefficients = 2.0 * np.arange(m) - (m - 1)
    return np.asarray(error - np.tensordot(coefficients, ordered, axes=1) / (m * (m - 1)))


def crps_quantiles(quantiles: ArrayLike, levels: ArrayLike, true: ArrayLike) -> Array:
    """CRPS from quantiles: twice the pinball loss, with a weight for each level.

    Parameters
    ----------
    quantiles : array of shape (k, ...)
    levels : array of shape (k,)
        Increasing, between 0 and 1; ``(i + 1/2) / k`` is best. The result is below the CRPS by
        a fraction of order 1/k².
    true : array of shape (...)

    Examples
    --------
    >>> crps_quantiles([[1.0], [1.0]], [0.25, 0.75], [3.0])
    array([2.])
    """
    levels = np.asarray(levels, float)
    edges = np.concatenate([[0.0], (levels[1:] + levels[:-1]) / 2, [1.0]])
    above = np.asarray(true) - np.asarray(quantiles, float)
    tau = levels.reshape(-1, *(1,) * (above.ndim - 1))
    loss = np.where(above >= 0, tau, tau - 1) * above
    return 2 * np.tensordot(np.diff(edges), loss, axes=1)


def log_score_gaussian(mean: ArrayLike, sd: ArrayLike, true: ArrayLike) -> Array:
    """Minus the log density of a Gaussian at the truth, in nats.

    Examples
    --------
    >>> log_score_gaussian([0.0], [1.0], [0.0]).round(4)
    array([0.9189])
    """
    sd = np.asarray(sd, float)
    z = np.subtract(true, mean) / sd
    return np.asarray(z**2 / 2 + np.log(sd * np.sqrt(2 * np.pi)))


def covered(pit: ArrayLike, level: float) -> Mask:
    """Mark the truths that lie in the central interval of a level, from their PIT.

    Only the part of an atom that the interval needs is counted: a truth that is 0 with
    probability 0.7 is in the 50 % interval [0, 0] five times in ten, not seven.

    Examples
    --------
    >>> covered([0.5, 0.99], 0.9)
    array([ True, False])
    """
    return np.abs(np.asarray(pit) - 0.5) <= level / 2


def pit_gaussian(mean: ArrayLike, sd: ArrayLike, true: ArrayLike) -> Array:
    """Probability integral transform under a Gaussian: uniform where the Gaussian is right.

    Examples
    --------
    >>> pit_gaussian([1.0], [2.0], [1.0])
    array([0.5])
    """
    return np.asarray(ndtr(np.subtract(true, mean) / np.asarray(sd, float)))


def pit_draws(draws: ArrayLike, true: ArrayLike, rng: int | np.random.Generator) -> Array:
    """Fraction of the draws (or of quantiles at even levels) below the truth, ties at random.

    The truth gets a random position between its neighbors, so that the result is exactly uniform
    where truth and draws come from the same distribution, with or without atoms.

    Examples
    --------
    >>> bool(0.0 < pit_draws([[1.0], [2.0]], [0.0], 0)[0] < 1 / 3)
    True
    """
    draws = np.asarray(draws, float)
    below = (draws < true).sum(axis=0)
    ties = (draws == true).sum(axis=0)
    place = np.random.default_rng(rng).random(below.shape)
    return np.asarray((below + place * (ties + 1)) / (len(draws) + 1))


def _density(z: Array) -> Array:
    return np.asarray(np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi))
