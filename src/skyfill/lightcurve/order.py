"""Features of the order of the values of a band in time."""

import numpy as np
from numba import njit

from skyfill.lightcurve.curve import Curve
from skyfill.lightcurve.shape import mean, moments, sigma


def eta(curve: Curve) -> float:
    """Return von Neumann's ratio of the mean square of successive differences to the variance.

    Two for white noise, near zero for a smooth curve (von Neumann 1941; Kim et al. 2011).

    Examples
    --------
    >>> round(eta(Curve(np.arange(4.0), np.array([0.0, 1.0, 0.0, 1.0]), np.ones(4))), 12)
    3.0
    """
    return float(difference_square(curve.value)) / ((len(curve) - 1) * sigma(curve) ** 2)


def eta_e(curve: Curve) -> float:
    """Return eta of slopes instead of differences: long gaps count for little (Malanchev 2021)."""
    n, span = len(curve), curve.time[-1] - curve.time[0]
    slopes = slope_square(curve.time, curve.value)
    return float((span / (n - 1)) ** 2 * slopes / ((n - 1) * sigma(curve) ** 2))


def con(curve: Curve) -> float:
    """Return the number of runs of three points beyond two sigma on one side, over n - 2.

    Overlapping runs count (Wozniak 2000; Kim et al. 2011).
    """
    return float(count_runs(curve.value, mean(curve), 2 * sigma(curve))) / (len(curve) - 2)


def cusum(curve: Curve) -> float:
    """Return the range of the cumulative sum of the deviations, over n sigma (Ellaway 1978)."""
    return float(sum_range(curve.value, mean(curve))) / (len(curve) * sigma(curve))


def max_slope(curve: Curve) -> float:
    """Return the steepest change between successive points."""
    return float(np.max(np.abs(np.diff(curve.value) / np.diff(curve.time))))


def linear_trend(curve: Curve) -> float:
    """Return the slope of the least-squares line."""
    time = curve.time - curve.time.mean()
    return float(time @ (curve.value - mean(curve)) / (time @ time))


def trend_share(curve: Curve) -> float:
    """Return the share of the variance that the least-squares line explains."""
    time = curve.time - curve.time.mean()
    return linear_trend(curve) ** 2 * float(time @ time) / (len(curve) * curve.once(moments)[1])


@njit(cache=True, nogil=True)
def difference_square(value):  # type: ignore[no-untyped-def]
    """Sum the squares of successive differences."""
    total = 0.0
    for i in range(1, len(value)):
        total += (value[i] - value[i - 1]) ** 2
    return total


@njit(cache=True, nogil=True)
def slope_square(time, value):  # type: ignore[no-untyped-def]
    """Sum the squares of successive slopes."""
    total = 0.0
    for i in range(1, len(value)):
        total += ((value[i] - value[i - 1]) / (time[i] - time[i - 1])) ** 2
    return total


@njit(cache=True, nogil=True)
def count_runs(value, center, limit):  # type: ignore[no-untyped-def]
    """Count points that are at least the third in a run beyond `limit` on one side of `center`."""
    count, above, below = 0, 0, 0
    for v in value:
        above = above + 1 if v > center + limit else 0
        below = below + 1 if v < center - limit else 0
        count += above >= 3 or below >= 3
    return count


@njit(cache=True, nogil=True)
def sum_range(value, center):  # type: ignore[no-untyped-def]
    """Compute the range of the partial sums of the deviations from `center`."""
    total, low, high = 0.0, np.inf, -np.inf
    for v in value:
        total += v - center
        low, high = min(low, total), max(high, total)
    return high - low
