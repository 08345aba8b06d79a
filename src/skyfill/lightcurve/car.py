"""Damped random walk (CAR(1), Ornstein-Uhlenbeck process) fitted to a band by maximum likelihood.

The deviation x from the mean obeys ``dx = -x / tau dt + sigma dW``: it decays within tau days, and
grows by sigma per square root of a day over short times. Its variance is ``sigma^2 tau / 2``. A
Kalman filter gives the likelihood of a curve with measurement errors in one pass (Kelly, Bechtold &
Siemiginowska 2009); the same pass gives the mean that maximizes it, because the log likelihood is
quadratic in the mean. Sigma and tau are fitted in their logarithms, without bounds; where the
likelihood does not depend on them, a weak penalty settles them at intermediate values.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.lightcurve.curve import Array, Curve, UncomputableError
from skyfill.lightcurve.shape import mean, moments

_START_TAUS = 8
_START_SCALES = (0.1, 0.5, 1.0, 2.0)
# Half the 95th percentile of chi squared with one degree of freedom.
DROP_95 = 1.9207
_MAX_STEPS = 250
_TOLERANCE = 1e-6
# Too weak to move an existing maximum by more than a thousandth of an e-folding.
TIE_BREAK = 1e-3


class CarFit(NamedTuple):
    """The damped random walk of highest likelihood.

    `flag` is the sum of 1 if a tau as long as the baseline is not excluded at 95 %, and of 2 if
    a tau as short as the shortest time step is not.
    """

    sigma: float
    tau: float
    mean: float
    log_likelihood: float
    flag: int


def car_sigma(curve: Curve) -> float:
    """Return sigma of the damped random walk, per square root of a day."""
    return curve.once(fit_car).sigma


def car_tau(curve: Curve) -> float:
    """Return the relaxation time of the damped random walk."""
    return curve.once(fit_car).tau


def car_mean(curve: Curve) -> float:
    """Return the mean of the damped random walk."""
    return curve.once(fit_car).mean


def car_flag(curve: Curve) -> float:
    """Return 1 where the data set no upper limit to tau, plus 2 where they set no lower limit."""
    return float(curve.once(fit_car).flag)


def car_gain(curve: Curve) -> float:
    """Return the gain of log likelihood per point over white noise of free variance."""
    error = _errors(curve)
    white = best_white(curve.value - mean(curve), error)
    return (curve.once(fit_car).log_likelihood - float(white)) / len(curve)


def fit_car(curve: Curve) -> CarFit:
    """Fit a damped random walk to a band; without errors the points are taken as exact."""
    center = mean(curve)
    scale = float(np.sqrt(curve.once(moments)[1]))
    if scale == 0:
        raise UncomputableError("a constant curve follows no random walk")
    unit = float(curve.time[-1] - curve.time[0]) / np.sqrt(len(curve))
    time, value, error = curve.time / unit, (curve.value - center) / scale, _errors(curve) / scale
    log_variance, log_tau, log_likelihood, offset, flag = fit_walk(time, value, error)
    return CarFit(
        sigma=scale * float(np.exp(0.5 * log_variance) / np.sqrt(unit)),
        tau=unit * float(np.exp(log_tau)),
        mean=center + scale * offset,
        log_likelihood=log_likelihood - len(time) * float(np.log(scale)),
        flag=int(flag),
    )


def _errors(curve: Curve) -> Array:
    return curve.error if curve.has_errors else np.zeros(len(curve))


@njit(cache=True, nogil=True)
def log_likelihood_at(time, value, error, log_variance, log_tau):  # type: ignore[no-untyped-def]
    """Compute the log likelihood of a damped random walk, and the mean that maximizes it.

    One filter runs over the values and over a constant of one; the effect of the best mean
    follows from the products of their innovations.
    """
    tau = math.exp(log_tau)
    stationary = 0.5 * math.exp(log_tau + log_variance)
    state, unit, spread = 0.0, 0.0, stationary
    logs, product, vv, uv, uu = 0.0, 1.0, 0.0, 0.0, 0.0
    for i in range(len(time)):
        if i > 0:
            decay = math.exp((time[i - 1] - time[i]) / tau)
            state *= decay
            unit *= decay
            spread = stationary - decay * decay * (stationary - spread)
        noise = error[i] * error[i]
        weight = 1 / (spread + noise)
        v, u = value[i] - state, 1.0 - unit
        state += spread * weight * v
        unit += spread * weight * u
        spread *= noise * weight
        vv += v * v * weight
        uv += u * v * weight
        uu += u * u * weight
        product *= weight
        if not 1e-200 < product < 1e200:  # a logarithm per point would cost as much as the filter
            logs += math.log(product)
            product = 1.0
    logs += math.log(product)
    return 0.5 * (logs - vv + uv * uv / uu - len(time) * math.log(2 * math.pi)), uv / uu


@njit(cache=True, nogil=True)
def _at(time, value, error, log_variance, log_tau):  # type: ignore[no-untyped-def]
    """Return a place with what is maximized: log likelihood with a weak penalty away from one."""
    away = log_tau**2 + (log_variance + log_tau) ** 2
    height = log_likelihood_at(time, value, error, log_variance, log_tau)[0]
    return log_variance, log_tau, height - 0.5 * TIE_BREAK * away


@njit(cache=True, nogil=True)
def fit_walk(time, value, error):  # type: ignore[no-untyped-def]
    """Maximize the likelihood from several starts; `fit_car` sets the units of time and value.

    Returns log sigma^2, log tau, log likelihood, mean and flag.
    """
    best = climb(time, value, error)
    height, offset = log_likelihood_at(time, value, error, best[0], best[1])
    span, shortest, flag = time[-1] - time[0], np.inf, 0
    for i in range(1, len(time)):
        shortest = min(shortest, time[i] - time[i - 1])
    for bit, tau in ((1, span), (2, shortest)):
        drop = height - _best_at_tau(time, value, error, np.log(tau), best[0] + best[1])
        flag += bit * (drop < DROP_95)
    return best[0], best[1], height, offset, flag


@njit(cache=True, nogil=True)
def climb(time, value, error):  # type: ignore[no-untyped-def]
    """Maximize from the two best points of a coarse grid; return log sigma^2, log tau, height."""
    first, second = _starts(time, value, error)
    best = first
    # A loop, so that the climb is compiled into one place.
    for start in (first, second):
        found = _simplex(time, value, error, start)
        best = found if found[2] > best[2] else best
    return best


@njit(cache=True, nogil=True)
def _starts(time, value, error):  # type: ignore[no-untyped-def]
    """Return the two best points of a coarse grid in tau and variance, with different tau."""
    # From well below the mean time step to well above the baseline; the unit is between them.
    reach = 0.5 * math.log(len(time)) + 1.5
    first, second = (0.0, 0.0, -math.inf), (0.0, 0.0, -math.inf)
    for k in range(_START_TAUS):
        best = (0.0, 0.0, -math.inf)
        log_tau = reach * (2 * k / (_START_TAUS - 1) - 1)
        for scale in _START_SCALES:
            place = _at(time, value, error, math.log(2 * scale) - log_tau, log_tau)
            best = place if place[2] > best[2] else best
        if best[2] > first[2]:
            first, second = best, first
        elif best[2] > second[2]:
            second = best
    return first, second


@njit(cache=True, nogil=True)
def _simplex(time, value, error, start):  # type: ignore[no-untyped-def]
    """Climb by the method of Nelder & Mead (1965) in (log sigma^2, log tau)."""
    a = start
    b = _at(time, value, error, start[0] + 0.5, start[1])
    c = _at(time, value, error, start[0], start[1] + 0.5)
    for _ in range(_MAX_STEPS):
        a, b, c = _best_first(a, b, c)
        if a[2] - c[2] < _TOLERANCE:
            break
        middle = (0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), 0.0)
        new = _toward(time, value, error, c, middle, 2.0)
        part = 0.0
        if new[2] > a[2]:
            part = 3.0
        elif new[2] <= b[2]:
            part = 1.5 if new[2] > c[2] else 0.5
        if part > 0:
            other = _toward(time, value, error, c, middle, part)
            new = other if other[2] > new[2] else new
        if new[2] > c[2]:
            c = new
        else:
            b = _toward(time, value, error, b, a, 0.5)
            c = _toward(time, value, error, c, a, 0.5)
    return a


@njit(cache=True, nogil=True)
def _best_first(a, b, c):  # type: ignore[no-untyped-def]
    """Sort three places by their height."""
    if b[2] > a[2]:
        a, b = b, a
    if c[2] > b[2]:
        b, c = c, b
        if b[2] > a[2]:
            a, b = b, a
    return a, b, c


@njit(cache=True, nogil=True)
def _toward(time, value, error, worst, middle, part):  # type: ignore[no-untyped-def]
    """Go a fraction `part` of the way from the worst corner to the middle of the others."""
    log_variance = worst[0] + part * (middle[0] - worst[0])
    return _at(time, value, error, log_variance, worst[1] + part * (middle[1] - worst[1]))


@njit(cache=True, nogil=True)
def _best_at_tau(time, value, error, log_tau, log_product):  # type: ignore[no-untyped-def]
    """Maximize the log likelihood at a given tau, by golden section in log sigma^2.

    `log_product` is log (sigma^2 tau) of the best fit; the search spans a factor of 400 on both
    sides of it.
    """
    ratio = 0.5 * (np.sqrt(5.0) - 1)
    low, high = log_product - log_tau - 6.0, log_product - log_tau + 6.0
    best = -np.inf
    while high - low > 0.05:
        a, b = high - ratio * (high - low), low + ratio * (high - low)
        left = log_likelihood_at(time, value, error, a, log_tau)[0]
        right = log_likelihood_at(time, value, error, b, log_tau)[0]
        best = max(best, left, right)
        if left > right:
            high = b
        else:
            low = a
    return best


@njit(cache=True, nogil=True)
def best_white(value, error):  # type: ignore[no-untyped-def]
    """Maximize the log likelihood of white noise with a free variance beyond the errors."""
    scatter = np.var(value)
    best = -np.inf
    low, high = np.log(scatter) - 12.0, np.log(scatter) + 2.0
    for _ in range(3):
        step = (high - low) / 12
        place = low
        for k in range(13):
            height = _white(value, error, np.exp(low + k * step))
            if height > best:
                best, place = height, low + k * step
        low, high = place - step, place + step
    return best


@njit(cache=True, nogil=True)
def _white(value, error, variance):  # type: ignore[no-untyped-def]
    logs, top, total, square = 0.0, 0.0, 0.0, 0.0
    for i in range(len(value)):
        noise = variance + error[i] * error[i]
        logs += np.log(noise)
        top += value[i] / noise
        total += 1 / noise
        square += value[i] * value[i] / noise
    return -0.5 * (logs + square - top * top / total + len(value) * np.log(2 * np.pi))
