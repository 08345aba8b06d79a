"""Rehearse non-detections: make limits stricter, so that known values lie beyond them.

Whether a model carries over to objects that are fainter than all that was seen cannot be judged by
what was seen. But limits can be moved: fitted to a table whose limits are a good deal stricter, a
model must find the values that are then hidden. In this way the largest number of components is
chosen, maps of columns are checked, and intervals within limits are calibrated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from skyfill.network._array import Array
from skyfill.network.cells import Cells
from skyfill.network.mixture.calibration import STEPS, blend
from skyfill.network.mixture.fit import Plan, fit_mixture, trial_tol
from skyfill.network.mixture.maps import Maps, map_columns
from skyfill.network.mixture.mixture import Mixture
from skyfill.network.mixture.network import MixtureNetwork
from skyfill.threads import map_threads

# Share of a column's seen values that the stricter limit hides, unless another one is asked for.
HIDDEN = 0.5
# A column is rehearsed if at least so many of its cells have limits, and so many are seen.
LEAST_LIMITED, LEAST_SEEN = 10, 40
LEVELS = tuple((i + 1) / 20 for i in range(19))
# Shares that are hidden where models are compared; a model is clearly better if it misses less than
# this share of what another one misses.
STRICTER, CLEARLY = (0.25, 0.5), 0.97
# Fits that intervals within limits are calibrated with.
CALIBRATION_FITS = 3


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """A table with stricter limits.

    Attributes
    ----------
    easier, harder : Cells
        The table as it is, and as a model is to be fitted to it.
    truth : array of shape (n, p)
        Values hidden by the stricter limits, or the limits that were there before; NaN elsewhere.
    is_value : boolean array of shape (n, p)
        Where `truth` is a value.
    scale : array of shape (p,)
        Spread of the values that were seen.
    """

    easier: Cells
    harder: Cells
    truth: Array
    is_value: NDArray[np.bool_]
    scale: Array


def rehearse(cells: Cells, share: float = HIDDEN) -> Rehearsal | None:
    """Hide a share of the seen values by stricter limits; None if too few have limits or values."""
    values, n_seen = cells.values, (~np.isnan(cells.values)).sum(axis=0)
    new, truth = values.copy(), np.full(values.shape, np.nan)
    limits = {"lower": cells.lower, "upper": cells.upper}
    sides = {k: np.full(values.shape, np.nan) if v is None else v.copy() for k, v in limits.items()}
    for j in np.flatnonzero(n_seen >= LEAST_SEEN).tolist():
        for name, side in sides.items():
            limited = np.isnan(values[:, j]) & ~np.isnan(side[:, j])
            if limited.sum() < LEAST_LIMITED:
                continue
            _stricter(name, j, values, limited, new, side, truth, share)
    found = ~np.isnan(truth)
    if not found.any():
        return None
    harder = Cells(new, sides["lower"], sides["upper"], cells.errors)
    scale = np.nanstd(np.where((n_seen > 1)[None, :], values, 0.0), axis=0)
    is_value = found & ~np.isnan(values)
    return Rehearsal(cells, harder, truth, is_value, np.where(scale > 0, scale, 1.0))


def _stricter(
    name: str,
    j: int,
    values: Array,
    limited: NDArray[np.bool_],
    new: Array,
    side: Array,
    truth: Array,
    share: float,
) -> None:
    """Move the limits of one column, and hide what lies beyond."""
    column = values[:, j]
    if name == "lower":
        at = np.nanquantile(column, 1.0 - share)
        hidden, weaker = column > at, limited & (side[:, j] > at)
    else:
        at = np.nanquantile(column, share)
        hidden, weaker = column < at, limited & (side[:, j] < at)
    truth[hidden, j], truth[weaker, j] = column[hidden], side[weaker, j]
    new[hidden, j] = np.nan
    side[hidden | weaker, j] = at


def miss(network: MixtureNetwork, rehearsal: Rehearsal) -> float:
    """How far the posteriors are from what the stricter limits hide: CRPS in spreads of columns.

    Beyond the limits that were there before nothing is known: there the score is blind
    (threshold-weighted, Gneiting & Ranjan 2011).
    """
    rows = ~np.isnan(rehearsal.truth).all(axis=1)
    harder, truth = rehearsal.harder.take(rows), rehearsal.truth[rows]
    r, c = np.nonzero(~np.isnan(truth))
    quantiles = network.quantiles(harder, LEVELS)[:, r, c]
    goal, is_value = truth[r, c], rehearsal.is_value[rows][r, c]
    is_lower = ~np.isnan(harder.lower[r, c]) if harder.lower is not None else np.zeros(len(r), bool)
    capped = np.where(is_lower, np.minimum(quantiles, goal), np.maximum(quantiles, goal))
    found = crps(np.where(is_value, quantiles, capped), goal)
    return float((found / rehearsal.scale[c]).mean())


def crps(quantiles: Array, truth: Array) -> Array:
    """Score quantiles of `LEVELS`, along the first axis: about their CRPS.

    Examples
    --------
    >>> crps(np.zeros((19, 1)), np.ones(1)).tolist()
    [1.0]
    """
    levels = np.array(LEVELS).reshape(-1, *(1,) * truth.ndim)
    miss = (truth - quantiles) * (levels - (truth < quantiles))
    return np.asarray(2 * miss.mean(axis=0))


def levels_found(
    network: MixtureNetwork, rehearsal: Rehearsal, truth: Array, rng: Generator
) -> Array:
    """Levels of the posteriors at which what is hidden lies, NaN elsewhere.

    A value known only to lie beyond its old limit may be anywhere beyond.
    """
    found = network.pit(rehearsal.harder, truth, rng)
    found = np.where(np.isnan(rehearsal.truth), np.nan, found)
    share = rng.random(found.shape)
    lower = rehearsal.harder.lower
    is_lower = np.zeros(found.shape, bool) if lower is None else ~np.isnan(lower)
    beyond = np.where(is_lower, found + share * (1.0 - found), share * found)
    return np.where(rehearsal.is_value, found, beyond)


def rehearsed(kind: Maps, plan: Plan, harder: Cells, n_fits: int = 1) -> MixtureNetwork:
    """Fit maps and mixtures to a table with stricter limits.

    Maps of the table as it is would know the ranks of what is hidden.
    """
    names = tuple(map(str, range(harder.values.shape[1])))
    bare = MixtureNetwork(names, map_columns(harder, kind), ())
    scores = bare.score_cells(harder)

    def fit(seed: int) -> Mixture:
        rng, tol = np.random.default_rng(seed), trial_tol(plan)
        resample = n_fits > 1
        return fit_mixture(scores, plan, rng, tol=tol, resample=resample, each=map_threads).params

    return replace(bare, fits=tuple(map_threads(fit, list(range(n_fits)))))


def missed(kind: Maps, plan: Plan, cells: Cells) -> float:
    """How far a model is from what limits of different strictness hide: geometric mean."""
    found = [rehearse(cells, share) for share in STRICTER]
    values = [miss(rehearsed(kind, plan, one.harder), one) for one in found if one is not None]
    return float(np.exp(np.mean(np.log(np.maximum(values, 1e-12)))))


def choose_fewer(kind: Maps, plan: Plan, cells: Cells) -> Plan:
    """Take fewer components where these carry clearly further beyond the limits."""
    best, least = plan, missed(kind, plan, cells)
    for k in (plan.n_components // 3, 1):
        if 0 < k < best.n_components:
            fewer = plan._replace(n_components=k)
            value = missed(kind, fewer, cells)
            if value < CLEARLY * least:
                best, least = fewer, value
    return best


def calibrate_limits(
    network: MixtureNetwork, kind: Maps, plan: Plan, rehearsal: Rehearsal, rng: Generator
) -> Array:
    """Levels of the posteriors within limits, from what stricter limits hide.

    Beyond what was seen all values of a column are too large or too small together: a column is
    one trial, not as many as it has cells. So all columns get the same levels, by the mean over
    columns of normal scores, and the same to both sides. Hidden values have errors: `network`,
    fitted to all values, says what they are without these.
    """
    model = rehearsed(kind, plan, rehearsal.harder, CALIBRATION_FITS)
    without_errors = network.draws(rehearsal.easier, 1, rng, denoise=True)[0]
    truth = np.where(rehearsal.is_value, without_errors, rehearsal.truth)
    found = levels_found(model, rehearsal, truth, rng)
    columns = [column[~np.isnan(column)] for column in found.T]
    levels = [blend(np.concatenate([c, 1.0 - c]), STEPS)[1:-1] for c in columns if c.size]
    inner = ndtr(ndtri(np.clip(levels, 1e-9, 1 - 1e-9)).mean(axis=0))
    return np.tile(np.concatenate([[0.0], inner, [1.0]]), (len(columns), 1))
