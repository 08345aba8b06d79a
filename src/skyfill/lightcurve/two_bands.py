"""Features of two bands together: color, and variation at the same time.

They compare the first two bands of the collection. Epochs of the two bands within `PAIR_DAYS` of
each other are paired, each with its nearest and at most once.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.lightcurve.curve import Array, Curve, IntArray, Star
from skyfill.lightcurve.noise import GAUSSIAN_K, robust_kurtosis, weighted_mean
from skyfill.lightcurve.shape import mad, mean, median, sigma

PAIR_DAYS = 0.1
LEAST_PAIRS = 3


class Pairs(NamedTuple):
    """Residuals of paired epochs about the weighted mean of their band, in units of the errors."""

    first: Array
    second: Array


def color(star: Star) -> float:
    """Return the difference of the mean magnitudes, first band minus second.

    Examples
    --------
    >>> curves = [Curve(np.arange(2.0), np.array([m, m + 1]), np.ones(2)) for m in (19.0, 18.25)]
    >>> color(Star(tuple(curves)))
    0.75
    """
    return _difference(star, mean(star.curves[0]), mean(star.curves[1]))


def color_median(star: Star) -> float:
    """Return the difference of the median magnitudes, first band minus second."""
    return _difference(star, median(star.curves[0]), median(star.curves[1]))


def sigma_ratio(star: Star) -> float:
    """Return the standard deviation of the first band over that of the second."""
    return sigma(star.curves[0]) / sigma(star.curves[1])


def mad_ratio(star: Star) -> float:
    """Return the median absolute deviation of the first band over that of the second."""
    return mad(star.curves[0]) / mad(star.curves[1])


def stetson_j(star: Star) -> float:
    """Return Stetson's J: mean of the signed roots of the products of paired residuals (1996)."""
    first, second = star.once(find_pairs)
    if len(first) < LEAST_PAIRS:
        return np.nan
    n, m = (len(curve) for curve in star.curves[:2])
    product = first * second * np.sqrt(n / (n - 1) * m / (m - 1))
    return float(np.mean(np.sign(product) * np.sqrt(np.abs(product))))


def stetson_l(star: Star) -> float:
    """Return Stetson's L = J K / 0.798, with K over the paired residuals of both bands (1996)."""
    both = np.concatenate(star.once(find_pairs))
    return stetson_j(star) * float(robust_kurtosis(both, np.ones(len(both)), 0.0)) / GAUSSIAN_K


def band_correlation(star: Star) -> float:
    """Return the correlation of the residuals of paired epochs."""
    first, second = star.once(find_pairs)
    if len(first) < LEAST_PAIRS or np.ptp(first) == 0 or np.ptp(second) == 0:
        return np.nan
    return float(np.corrcoef(first, second)[0, 1])


def band_angle(star: Star) -> float:
    """Return the direction in which deviations of paired epochs scatter.

    The angle of their principal axis, from the first band to the second: pi / 4 if both bands vary
    equally, less if the first varies more.
    """
    a, b = star.curves[:2]
    i, j = star.once(pair_indices)
    x, y = a.value[i] - mean(a), b.value[j] - mean(b)
    angle = np.arctan2(2 * np.sum(x * y), np.sum(x * x) - np.sum(y * y)) / 2
    return float(angle) if len(i) >= LEAST_PAIRS else np.nan


def pair_indices(star: Star) -> tuple[IntArray, IntArray]:
    """Pair the epochs of the first two bands."""
    first, second = star.curves[:2]
    found: tuple[IntArray, IntArray] = pair_epochs(first.time, second.time, PAIR_DAYS)
    return found


def find_pairs(star: Star) -> Pairs:
    """Return the residuals of paired epochs."""
    i, j = star.once(pair_indices)
    return Pairs(_residuals(star.curves[0])[i], _residuals(star.curves[1])[j])


def _residuals(curve: Curve) -> Array:
    return (curve.value - weighted_mean(curve)) / curve.error


def _difference(star: Star, first: float, second: float) -> float:
    if not star.is_flux:
        return first - second
    return float(-2.5 * np.log10(first / second)) if min(first, second) > 0 else np.nan


@njit(cache=True, nogil=True)
def pair_epochs(first, second, apart):  # type: ignore[no-untyped-def]
    """Pair epochs that are mutually nearest and at most `apart` from each other."""
    n = min(len(first), len(second))
    left, right = np.empty(n, np.int64), np.empty(n, np.int64)
    count = 0
    for i in range(len(first)):
        j = nearest_epoch(second, first[i])
        if abs(second[j] - first[i]) <= apart and nearest_epoch(first, second[j]) == i:
            left[count], right[count] = i, j
            count += 1
    return left[:count], right[:count]


@njit(cache=True, nogil=True)
def nearest_epoch(time, moment):  # type: ignore[no-untyped-def]
    """Find the epoch nearest to a moment; of two equally near, the earlier."""
    low, k = 0, len(time)
    while low < k:
        middle = (low + k) // 2
        if time[middle] < moment:
            low = middle + 1
        else:
            k = middle
    if k == len(time) or (k > 0 and moment - time[k - 1] <= time[k] - moment):
        k -= 1
    return k
