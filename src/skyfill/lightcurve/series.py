"""Fourier series fitted at a given frequency by weighted least squares, and the best of them.

The normal equations of a series of order K need only the sums of the weights at 2K harmonics and of
the values at K, so that one pass over the points is fast; their Cholesky factor also solves all
lower orders.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.lightcurve.curve import Array, Curve
from skyfill.lightcurve.noise import weighted
from skyfill.lightcurve.periodogram import Periodogram, highest_peaks, settle
from skyfill.lightcurve.spectrum import StarPoints

ORDER = 4
# Added to the diagonal of the normal equations, times the square of the harmonic. It keeps the
# series from oscillating in phase gaps; where the phases are covered, the diagonal is one half.
RIDGE = 1e-4
# Points needed per coefficient: a poorly sampled band gets fewer harmonics.
POINTS_PER_TERM = 3
# Best peaks tried at each order, and candidates refined to a fraction of a step.
N_TRIED, N_SETTLED = 5, 3
_PHASES = 64


class Series(NamedTuple):
    """``mean + sum_k amplitude_k cos(2 pi k f t + phase_k)``, with the time of the curve.

    `left` is the share of the weighted scatter that the series does not explain.
    """

    mean: float
    amplitude: Array
    phase: Array
    left: float


class Choice(NamedTuple):
    """Frequency (cycles per day) and order of the series that describes a star best."""

    frequency: float
    order: int
    score: float


def fit_series(curve: Curve, frequency: float, order: int = ORDER) -> Series:
    """Fit a Fourier series; harmonics that the points cannot constrain are zero.

    Examples
    --------
    >>> time = np.sort(np.random.default_rng(0).uniform(0, 50, 100))
    >>> wave = 18 + 0.3 * np.cos(2 * np.pi * 0.7 * time + 1) + 0.1 * np.cos(2 * np.pi * 1.4 * time)
    >>> series = fit_series(Curve(time, wave, np.ones(100)), 0.7)
    >>> series.amplitude.round(2), round(float(series.phase[0]), 2)
    (array([0.3, 0.1, 0. , 0. ]), 1.0)
    """
    center = curve.once(weighted)[0]
    weight = curve.error**-2
    weight /= weight.sum()
    terms = affordable(len(curve), order)
    turns = (curve.time - curve.time[0]) * frequency
    coefficients, left = solve(turns, curve.value - center, weight, terms)
    wave = coefficients[1::2] - 1j * coefficients[2::2]
    # Move the origin from the first epoch to time zero.
    wave *= np.exp(-2j * np.pi * frequency * curve.time[0] * np.arange(1, terms + 1))
    wave = np.append(wave, np.zeros(order - terms))
    return Series(center + coefficients[0], np.abs(wave), np.angle(wave), float(left[-1]))


def affordable(n_points: int, order: int) -> int:
    """Return the highest order that a number of points can constrain.

    Examples
    --------
    >>> affordable(500, 4), affordable(16, 4), affordable(5, 4)
    (4, 2, 1)
    """
    return max(min(order, (n_points // POINTS_PER_TERM - 1) // 2), 1)


def one_cycle(series: Series) -> Array:
    """Return the series without its mean over one period, from the maximum of its first term."""
    k = np.arange(1, len(series.amplitude) + 1)[:, None]
    phase = series.phase[:, None] - k * series.phase[0]
    turns = np.arange(_PHASES) / _PHASES
    waves = series.amplitude[:, None] * np.cos(2 * np.pi * k * turns + phase)
    return np.asarray(waves.sum(axis=0))


def choose_series(points: StarPoints, found: Periodogram) -> Choice:
    """Find the frequency and order with the lowest Bayesian information criterion.

    Candidates are the best peaks of the periodogram, half their frequency, and the best peaks of
    the power summed over 2, 3 and 4 harmonics. Binaries with two eclipses per period, to which a
    single sinusoid fits at half the period, are found at their true period.

    Parameters
    ----------
    points : StarPoints
        All bands.
    found : Periodogram
        Of these points.
    """
    order = affordable(int(np.diff(points.start).min()), ORDER)
    tried = [(criteria(points, f, order), f) for f in _candidates(found, order)]
    tried.sort(key=lambda pair: float(pair[0].min()))
    settled = [_settle(points, pair, found.grid.step) for pair in tried[:N_SETTLED]]
    return min(settled, key=lambda choice: choice.score)


def _settle(points: StarPoints, tried: tuple[Array, float], step: float) -> Choice:
    """Move a candidate to the frequency at which its best order fits best."""
    best = int(np.argmin(tried[0])) + 1
    frequency, height = settle(
        lambda f: -float(criteria(points, f, best)[-1]), tried[1], 0.5 * step
    )
    return Choice(float(frequency), best, -float(height))


def _candidates(found: Periodogram, order: int) -> list[float]:
    first, step = found.grid.first, found.grid.step
    frequencies = [*found.frequency, *(found.frequency / 2)]
    for k in range(2, order + 1):
        peaks = highest_peaks(harmonic_sum(found.spectrum, first, k), first, N_TRIED)
        frequencies += [*(step * (peaks + first))]
    return [float(f) for f in frequencies if f >= step * first]


def criteria(points: StarPoints, frequency: float, order: int) -> Array:
    """Return the Bayesian information criterion of series of all orders up to `order`."""
    left = np.zeros(order)
    for band, (a, b) in enumerate(zip(points.start[:-1], points.start[1:], strict=True)):
        turns = points.time[a:b] * frequency
        share = solve(turns, points.value[a:b], points.weight[a:b], order)[1]
        left += share * points.scatter[band] * points.total[band]
    n, terms = len(points.time), 2 * len(points.scatter) * np.arange(1, order + 1)
    return np.asarray(n * np.log(left) + terms * np.log(n))


@njit(cache=True, nogil=True)
def harmonic_sum(power, first, order):  # type: ignore[no-untyped-def]
    """Sum the power at k, 2k, ... order k; index zero of `power` is k = `first`."""
    size = (first + len(power) - 1) // order + 1 - first
    total = np.zeros(max(size, 0))
    for k in range(len(total)):
        for j in range(1, order + 1):
            total[k] += power[j * (k + first) - first]
    return total


@njit(cache=True, nogil=True)
def solve(turns, value, weight, order):  # type: ignore[no-untyped-def]
    """Solve least squares for 1, cos, sin, cos 2, sin 2, ...

    Returns the coefficients, and the share of the scatter that each order up to `order` leaves.
    """
    window = np.zeros(2 * order + 1, np.complex128)
    sums = np.zeros(order + 1, np.complex128)
    scatter = 0.0
    for i in range(len(turns)):
        angle = 2 * np.pi * turns[i]
        once = complex(np.cos(angle), np.sin(angle))
        wave = weight[i] + 0j
        for k in range(order + 1):
            window[k] += wave
            sums[k] += wave * value[i]
            wave *= once
        for k in range(order + 1, 2 * order + 1):
            window[k] += wave
            wave *= once
        scatter += weight[i] * value[i] * value[i]
    normal, right = _equations(window, sums, order)
    half = _factor(normal, right)
    left = np.empty(order)
    rest = scatter
    for i in range(2 * order + 1):
        rest -= half[i] * half[i]
        if i > 0 and i % 2 == 0:
            # A series through every point leaves nothing, but its logarithm is needed.
            left[i // 2 - 1] = max(rest / scatter, 1e-12)
    return _back(normal, half), left


@njit(cache=True, nogil=True)
def _equations(window, sums, order):  # type: ignore[no-untyped-def]
    """Build the lower triangle of the normal equations and their right side from the sums."""
    size = 2 * order + 1
    normal, right = np.zeros((size, size)), np.zeros(size)
    normal[0, 0], right[0] = window[0].real, sums[0].real
    for a in range(1, order + 1):
        i, j = 2 * a - 1, 2 * a
        right[i], right[j] = sums[a].real, sums[a].imag
        normal[i, 0], normal[j, 0] = window[a].real, window[a].imag
        for b in range(1, a + 1):
            m, n = 2 * b - 1, 2 * b
            plus, minus = 0.5 * window[a + b], 0.5 * window[a - b]
            normal[i, m] = minus.real + plus.real
            normal[j, n] = minus.real - plus.real
            normal[j, m] = plus.imag + minus.imag
            if b < a:
                normal[i, n] = plus.imag - minus.imag
        normal[i, i] += RIDGE * a * a
        normal[j, j] += RIDGE * a * a
    return normal, right


@njit(cache=True, nogil=True)
def _factor(lower, right):  # type: ignore[no-untyped-def]
    """Replace the lower triangle by its Cholesky factor; solve the factor for the right side."""
    n = len(right)
    half = right.copy()
    for j in range(n):
        for i in range(j, n):
            rest = lower[i, j]
            for k in range(j):
                rest -= lower[i, k] * lower[j, k]
            # The ridge keeps the pivots positive; rounding may not.
            lower[i, j] = np.sqrt(max(rest, 1e-12)) if i == j else rest / lower[j, j]
        for k in range(j):
            half[j] -= lower[j, k] * half[k]
        half[j] /= lower[j, j]
    return half


@njit(cache=True, nogil=True)
def _back(lower, half):  # type: ignore[no-untyped-def]
    """Solve the transposed factor."""
    x = half.copy()
    for i in range(len(x) - 1, -1, -1):
        for k in range(i + 1, len(x)):
            x[i] -= lower[k, i] * x[k]
        x[i] /= lower[i, i]
    return x
