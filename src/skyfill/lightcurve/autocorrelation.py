"""Slotted autocorrelation of a band and the features read off it.

Lag k collects the pairs of points whose separation in time rounds to k slots (Edelson & Krolik 1988
with pairs from one curve). A slot is the mean separation of successive points, so that there are
as many slots as points and about half as many pairs in each.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.lightcurve.curve import Array, Curve, IntArray
from skyfill.lightcurve.noise import robust_kurtosis
from skyfill.lightcurve.shape import mean, moments

# With fewer pairs, the standard error used below does not hold: it assumes a mean of several.
LEAST_PAIRS = 5
SIGNIFICANT = 4.0


class Autocorrelation(NamedTuple):
    """Autocorrelation at lags of ``slot * (1, 2, ...)``; NaN at lags with too few pairs."""

    slot: float
    value: Array
    pairs: IntArray


def autocorrelate(curve: Curve) -> Autocorrelation:
    """Compute the autocorrelation of a band."""
    slot = float(curve.time[-1] - curve.time[0]) / (len(curve) - 1)
    residual = (curve.value - mean(curve)) / np.sqrt(curve.once(moments)[1])
    sums, pairs = sum_pairs(curve.time, residual, slot)
    seen = pairs >= LEAST_PAIRS
    value = np.divide(sums, pairs, out=np.full(len(sums), np.nan), where=seen)
    return Autocorrelation(slot, value[1:], pairs[1:])


def acf_length(curve: Curve) -> float:
    """Return the first lag at which the autocorrelation is below 1 / e."""
    found = curve.once(autocorrelate)
    below = np.flatnonzero(found.value < np.exp(-1))
    return found.slot * float(below[0] + 1) if len(below) else np.nan


def stetson_k_ac(curve: Curve) -> float:
    """Return Stetson's K of the autocorrelation about its mean over the lags (Kim et al. 2011)."""
    value = _seen(curve)
    if len(value) < 2:
        return np.nan
    return float(robust_kurtosis(value, np.ones(len(value)), value.mean()))


def n_above_4(curve: Curve) -> float:
    """Return the number of lags with autocorrelation over four white-noise errors above zero."""
    return float(np.sum(_in_errors(curve) > SIGNIFICANT))


def n_below_4(curve: Curve) -> float:
    """Return the number of lags with autocorrelation over four white-noise errors below zero."""
    return float(np.sum(_in_errors(curve) < -SIGNIFICANT))


def _seen(curve: Curve) -> Array:
    value = curve.once(autocorrelate).value
    return value[~np.isnan(value)]


def _in_errors(curve: Curve) -> Array:
    """Return the autocorrelation in units of its error for white noise, 1 / sqrt(pairs)."""
    found = curve.once(autocorrelate)
    return np.nan_to_num(found.value * np.sqrt(found.pairs))


@njit(cache=True, nogil=True)
def sum_pairs(time, residual, slot):  # type: ignore[no-untyped-def]
    """Sum the products of all pairs, and count the pairs, by lag."""
    n = len(time)
    lags = int((time[-1] - time[0]) / slot + 0.5) + 1
    sums, pairs = np.zeros(lags), np.zeros(lags, np.int64)
    for i in range(n):
        for j in range(i + 1, n):
            lag = int((time[j] - time[i]) / slot + 0.5)
            sums[lag] += residual[i] * residual[j]
            pairs[lag] += 1
    return sums, pairs
