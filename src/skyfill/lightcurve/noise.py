"""Features that compare the scatter of a band with its errors."""

import numpy as np
from numba import njit

from skyfill.lightcurve.curve import Curve
from skyfill.lightcurve.shape import sigma

# E|x| of a standard normal x: Stetson's K of Gaussian noise, by which L is scaled.
GAUSSIAN_K = 0.798


def weighted_mean(curve: Curve) -> float:
    """Return the mean weighted by 1 / error^2."""
    return float(curve.once(weighted)[0])


def chi2(curve: Curve) -> float:
    """Return chi squared of a constant per degree of freedom."""
    return float(curve.once(weighted)[1]) / (len(curve) - 1)


def excess_sigma(curve: Curve) -> float:
    """Return the scatter beyond the errors; negative where the errors exceed the scatter."""
    excess = sigma(curve) ** 2 - float(np.mean(curve.error**2))
    return float(np.sign(excess) * np.sqrt(abs(excess)))


def mean_error(curve: Curve) -> float:
    """Return the mean of the errors."""
    return float(np.mean(curve.error))


def stetson_k(curve: Curve) -> float:
    """Return Stetson's K: mean over root mean square of the residuals in units of their errors.

    0.798 for Gaussian noise, 0.900 for a well-sampled sinusoid, small for isolated outliers
    (Stetson 1996).
    """
    return float(robust_kurtosis(curve.value, curve.error, weighted_mean(curve)))


def weighted(curve: Curve) -> tuple[float, float]:
    """Return the weighted mean and chi squared about it."""
    found: tuple[float, float] = weighted_square(curve.value, curve.error)
    return found


@njit(cache=True, nogil=True)
def weighted_square(value, error):  # type: ignore[no-untyped-def]
    """Compute the mean weighted by the errors, and chi squared about it."""
    top, total, square = 0.0, 0.0, 0.0
    for i in range(len(value)):
        weight = 1 / (error[i] * error[i])
        top += weight * (value[i] - value[0])
        total += weight
    center = value[0] + top / total
    for i in range(len(value)):
        square += ((value[i] - center) / error[i]) ** 2
    return center, square


@njit(cache=True, nogil=True)
def robust_kurtosis(value, error, center):  # type: ignore[no-untyped-def]
    """Compute mean over root mean square of the residuals in units of their errors."""
    size, square = 0.0, 0.0
    for i in range(len(value)):
        residual = (value[i] - center) / error[i]
        size += abs(residual)
        square += residual * residual
    return size / np.sqrt(len(value) * square) if square > 0 else np.nan
