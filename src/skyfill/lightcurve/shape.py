"""Features of the distribution of the values of a band, whatever their order in time."""

from collections.abc import Callable

import numpy as np
from numba import njit

from skyfill.lightcurve.curve import Curve, sorted_values


def mean(curve: Curve) -> float:
    """Return the arithmetic mean.

    Examples
    --------
    >>> mean(Curve(np.arange(3.0), np.array([1.0, 2.0, 6.0]), np.ones(3)))
    3.0
    """
    return float(curve.once(moments)[0])


def median(curve: Curve) -> float:
    """Return the median."""
    return curve_quantile(curve, 0.5)


def sigma(curve: Curve) -> float:
    """Return the standard deviation, with n - 1 in the denominator."""
    n = len(curve)
    return float(np.sqrt(curve.once(moments)[1] * n / (n - 1)))


def skewness(curve: Curve) -> float:
    """Return the adjusted Fisher-Pearson coefficient G1 (Joanes & Gill 1998)."""
    n, (_, m2, m3, _) = len(curve), curve.once(moments)
    return float(np.sqrt(n * (n - 1)) / (n - 2) * m3 / m2**1.5)


def kurtosis(curve: Curve) -> float:
    """Return the excess kurtosis G2, unbiased for a normal distribution (Joanes & Gill 1998)."""
    n, (_, m2, _, m4) = len(curve), curve.once(moments)
    return float((n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * m4 / m2**2 - 3 * (n - 1)))


def amplitude(curve: Curve) -> float:
    """Return half the range."""
    ordered = curve.once(sorted_values)
    return float(ordered[-1] - ordered[0]) / 2


def percentile_amplitude(curve: Curve) -> float:
    """Return half the range of the middle 90 %."""
    return middle_width(curve, 0.9) / 2


def iqr(curve: Curve) -> float:
    """Return the range of the middle half."""
    return middle_width(curve, 0.5)


def mad(curve: Curve) -> float:
    """Return the median absolute deviation from the median."""
    return float(quantile_of_sorted(np.sort(np.abs(curve.value - median(curve))), 0.5))


def beyond_1_sigma(curve: Curve) -> float:
    """Return the share of points farther than one sigma from the mean."""
    return float(share_beyond(curve.value, mean(curve), sigma(curve)))


def percentile_skewness(curve: Curve) -> float:
    """Return the asymmetry of the 5th and 95th percentile about the median."""
    low, middle, high = (curve_quantile(curve, q) for q in (0.05, 0.5, 0.95))
    return (high + low - 2 * middle) / (high - low)


def extremes_skewness(curve: Curve) -> float:
    """Return the asymmetry of the extremes about the median."""
    ordered = curve.once(sorted_values)
    low, high = ordered[0], ordered[-1]
    return float((high + low - 2 * median(curve)) / (high - low))


def _percentile_ratio(percent: int) -> Callable[[Curve], float]:
    def ratio(curve: Curve) -> float:
        return middle_width(curve, percent / 100) / middle_width(curve, 0.9)

    ratio.__name__ = f"percentile_ratio_{percent}"
    ratio.__doc__ = f"Return the width of the middle {percent} % over that of the middle 90 %."
    return ratio


PERCENTILE_RATIOS = tuple(_percentile_ratio(percent) for percent in (20, 35, 50, 65, 80))


def curve_quantile(curve: Curve, q: float) -> float:
    """Return a quantile, by linear interpolation between the ordered values."""
    return float(quantile_of_sorted(curve.once(sorted_values), q))


def middle_width(curve: Curve, share: float) -> float:
    """Return the width of the middle `share` of the values."""
    return curve_quantile(curve, 0.5 + share / 2) - curve_quantile(curve, 0.5 - share / 2)


def moments(curve: Curve) -> tuple[float, float, float, float]:
    """Return mean and central moments of orders two to four."""
    found: tuple[float, float, float, float] = central_moments(curve.value)
    return found


@njit(cache=True, nogil=True)
def central_moments(value):  # type: ignore[no-untyped-def]
    """Compute the mean, and the central moments of orders two to four."""
    n, mean = len(value), 0.0
    for v in value:
        mean += v
    mean /= n
    m2, m3, m4 = 0.0, 0.0, 0.0
    for v in value:
        square = (v - mean) * (v - mean)
        m2 += square
        m3 += square * (v - mean)
        m4 += square * square
    return mean, m2 / n, m3 / n, m4 / n


@njit(cache=True, nogil=True)
def quantile_of_sorted(ordered, q):  # type: ignore[no-untyped-def]
    """Compute a quantile of ordered values, like NumPy by default."""
    place = q * (len(ordered) - 1)
    left = min(int(place), len(ordered) - 1)
    right = min(left + 1, len(ordered) - 1)
    return ordered[left] + (place - left) * (ordered[right] - ordered[left])


@njit(cache=True, nogil=True)
def share_beyond(value, center, limit):  # type: ignore[no-untyped-def]
    """Compute the share of values farther than `limit` from `center`."""
    count = 0
    for v in value:
        count += abs(v - center) > limit
    return count / len(value)
