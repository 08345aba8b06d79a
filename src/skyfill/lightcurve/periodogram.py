"""Lomb-Scargle periodogram of all bands of a star together, on a grid set by the sampling.

In each band, a sinusoid and a mean are fitted, weighted by the errors; the bands share only the
frequency. The power is the share of chi squared that these fits remove (Zechmeister & Kuerster 2009
for one band, VanderPlas & Ivezic 2015 for several).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numba import njit

from skyfill.lightcurve.curve import Array, ComplexArray, IntArray
from skyfill.lightcurve.spectrum import COMBS, StarPoints, bump_transform, fft_cells, fourier_sums

# Grid points per 1 / baseline, the width of a peak.
OVERSAMPLING = 5
# Nightly surveys reveal periods far shorter than a night; denser sampling extends the search.
LEAST_LIMIT_PER_DAY = 10.0
# Share of the time steps that are shorter than half the shortest period searched.
SHORT_STEPS = 0.05
MOST_FREQUENCIES = 1 << 20
# Value of the spectral window above which f and f_alias - f cannot be distinguished: epochs regular
# to a fiftieth of their period. One hour of every sidereal night, as in EROS-1, gives 0.95.
ALIAS = 0.99
# What is left of such a maximum half-way between two points of the grid.
ALIAS_ON_GRID = 0.9
# Value of the window below which its central peak has ended.
FALLEN = 0.5
N_PEAKS = 5
LEAST_SPECTRUM = 3


@dataclass(frozen=True)
class Grid:
    """Frequencies ``step * k``, in cycles per day, for k from `first` to `size` - 1."""

    step: float
    first: int
    size: int

    @property
    def frequency(self) -> Array:
        """All frequencies of the grid."""
        return np.arange(self.first, self.size) * np.float64(self.step)


@dataclass(frozen=True)
class Periodogram:
    """Result of the search for a period.

    Attributes
    ----------
    frequency, power : arrays of shape (peaks,)
        The highest peaks at their exact maxima, the best first; cycles per day.
    mean, sd : float
        Of the power over the whole grid.
    grid : Grid
        Frequencies searched; it ends where the sampling no longer distinguishes them.
    spectrum : array
        Power at the frequencies of the grid.
    """

    frequency: Array
    power: Array
    mean: float
    sd: float
    grid: Grid
    spectrum: Array


def choose_grid(time: Array, start: IntArray) -> Grid:
    """Choose the grid from baseline and sampling.

    From one cycle per baseline, in steps of a fifth of that, to half the inverse of the 5th
    percentile of the time steps, but at least to 10 cycles per day: observing only at night does
    not hide shorter periods as long as the hour varies.

    Parameters
    ----------
    time : array of shape (n,)
        Epochs in days, one band after the other, ascending in each, not all equal.
    start : array of shape (bands + 1,)
        Where the bands begin, and the end.

    Examples
    --------
    >>> grid = choose_grid(np.arange(101) * 0.02, np.array([0, 101]))  # half an hour apart
    >>> print(grid.frequency[0].round(3), grid.frequency[-1].round(1))
    0.5 25.0
    """
    steps = np.delete(np.diff(time), start[1:-1] - 1)
    step = 1 / (OVERSAMPLING * np.ptp(time))
    limit = max(LEAST_LIMIT_PER_DAY, 0.5 / np.quantile(steps, SHORT_STEPS))
    size = int(min(round(limit / step), MOST_FREQUENCIES)) + 1
    return Grid(float(step), OVERSAMPLING, max(size, 2 * OVERSAMPLING))


def power_spectrum(points: StarPoints, grid: Grid) -> Array:
    """Compute the power on the grid, as far as the sampling distinguishes frequencies.

    The array may be shorter than the grid: it ends at half the frequency at which the spectral
    window returns to (nearly) one; for regular sampling, that is the Nyquist frequency.
    """
    sums = fourier_sums(points, grid.step, grid.size)
    bump = bump_transform(fft_cells(grid.size))
    removed, window = np.zeros(grid.size), np.zeros(grid.size, np.complex64)
    shares = points.total / points.total.sum()
    for band, scatter in enumerate(points.scatter):
        add_band(sums[band], bump, (scatter, points.total[band], shares[band]), removed, window)
    last = _first_alias(points, window, grid)
    power: Array = removed[grid.first : last] / (points.scatter * points.total).sum()
    return power


def find_periods(points: StarPoints, grid: Grid | None = None) -> Periodogram:
    """Search for periods, and refine the best peaks to their maxima.

    Parameters
    ----------
    points : StarPoints
        At least three in each band, not constant.
    grid : Grid, optional
        By default from `choose_grid`.
    """
    grid = choose_grid(points.time, points.start) if grid is None else grid
    power = power_spectrum(points, grid)
    peaks = highest_peaks(power, OVERSAMPLING, N_PEAKS)
    places = grid.step * (grid.first + peaks)
    frequency, height = settle(partial(powers_at, points), places, grid.step)
    order = np.argsort(-height, kind="stable")
    return Periodogram(
        frequency=frequency[order],
        power=height[order],
        mean=float(power.mean()),
        sd=float(power.std()),
        grid=replace(grid, size=grid.first + len(power)),
        spectrum=power,
    )


def _first_alias(points: StarPoints, window: ComplexArray, grid: Grid) -> int:
    """Find the first k at which the spectral window at 2f returns to nearly one, else the size."""
    for k in window_maxima(window, ALIAS_ON_GRID):
        place, step = 2 * grid.step * float(k), 2 * grid.step
        if settle(partial(window_at, points), place, step)[1] > ALIAS:
            return int(alias_end(k, grid.first))
    return grid.size


def alias_end(k: Any, first: int) -> Any:
    """Return where the grid ends if the window returns to one at twice its frequency k."""
    return np.maximum(k, first + LEAST_SPECTRUM)


def window_at(points: StarPoints, frequency: float) -> float:
    """Compute the size of the spectral window of all bands at one frequency."""
    shares = np.repeat(points.total / points.total.sum(), np.diff(points.start))
    turns = np.exp(-2j * np.pi * frequency * points.time)
    return float(np.abs(np.sum(shares * points.weight * turns)))


def settle(height: Callable[[Any], Any], frequency: Any, step: Any) -> tuple[Any, Any]:
    """Climb from points of the grid to the maxima near them; return frequencies and heights.

    All are numbers, or arrays wherever they are; `height` takes the same and returns the same.
    """
    middle = height(frequency)
    for width in (step / 2, step / 10):
        left, right = height(frequency - width), height(frequency + width)
        frequency = frequency + _vertex(left, middle, right) * width
        middle = height(frequency)
    return frequency, middle


def _vertex(left: Any, middle: Any, right: Any) -> Any:
    """Locate the maximum of a parabola through three heights, at most one step away."""
    bend = left - 2 * middle + right
    within = np.clip(0.5 * (left - right) / np.where(bend < 0, bend, -1.0), -1, 1)
    return np.where(bend >= 0, np.sign(right - left), within)


def powers_at(points: StarPoints, frequencies: Array) -> Array:
    """Compute the power at some frequencies from the points themselves."""
    return np.array([power_at(points, float(f)) for f in frequencies])


def power_at(points: StarPoints, frequency: float) -> float:
    """Compute the power at one frequency from the points themselves."""
    return float(
        power_at_frequency(
            points.time, points.value, points.weight, points.start, points.total, frequency
        )
        / (points.scatter * points.total).sum()
    )


@njit(cache=True, nogil=True)
def add_band(sums, bump, facts, removed, window):  # type: ignore[no-untyped-def]
    """Add the chi squared that the sinusoid of a band removes, and its spectral window at 2f."""
    scatter, total, share = facts
    size = len(removed)
    window_2f = np.empty(size, np.complex128)
    for k in range(size):
        at_f, at_2f = unpack(sums, bump, k)
        window_2f[k] = at_2f
        window_f = window_2f[k // 2] if k % 2 == 0 else unpack_odd(sums, bump, k)
        removed[k] += total * removed_by(at_f, window_f, at_2f, scatter)
        window[k] += share * at_2f


@njit(cache=True, nogil=True, inline="always")
def unpack(sums, bump, k):  # type: ignore[no-untyped-def]
    """Separate the values at frequency f = k from the weights at 2f."""
    m, s, cells = k // COMBS, k % COMBS, sums.shape[1]
    here = sums[s, m] * bump[m]
    if s == 0:
        mirror = sums[0, (cells - m) % cells].conjugate() * bump[m]
    else:
        mirror = sums[COMBS - s, cells - m - 1].conjugate() * bump[m + 1]
    return 0.5 * (here + mirror), -0.5j * (here - mirror)


@njit(cache=True, nogil=True, inline="always")
def unpack_odd(sums, bump, k):  # type: ignore[no-untyped-def]
    """Find the weights at an odd k; those at an even one are the weights at 2f of its half."""
    m, cells = k // COMBS, sums.shape[1]
    if k % COMBS == 1:
        return np.complex128(sums[COMBS, m]) * bump[m]
    return np.complex128(sums[COMBS, cells - m - 1].conjugate()) * bump[m + 1]


@njit(cache=True, nogil=True, inline="always")
def removed_by(at_f, window_f, window_2f, scatter):  # type: ignore[no-untyped-def]
    """Compute the weighted mean square that the best sinusoid removes, from the sums of a band."""
    cc = 0.5 * (1 + window_2f.real) - window_f.real**2
    ss = 0.5 * (1 - window_2f.real) - window_f.imag**2
    cs = 0.5 * window_2f.imag - window_f.real * window_f.imag
    determinant = cc * ss - cs * cs
    # Such a sinusoid is indistinguishable from a constant; single precision leaves 1e-6 there.
    if determinant < 1e-4:
        return 0.0
    yc, ys = at_f.real, at_f.imag
    found = (ss * yc * yc + cc * ys * ys - 2 * cs * yc * ys) / determinant
    return min(max(found, 0.0), scatter)


@njit(cache=True, nogil=True)
def power_at_frequency(time, value, weight, start, total, frequency):  # type: ignore[no-untyped-def]
    """Compute the chi squared that sinusoids of one frequency remove in all bands."""
    removed = 0.0
    for band in range(len(total)):
        at_f, window_f, window_2f, scatter = 0j, 0j, 0j, 0.0
        for i in range(start[band], start[band + 1]):
            angle = -2 * np.pi * frequency * time[i]
            turn = complex(np.cos(angle), np.sin(angle))
            at_f += weight[i] * value[i] * turn
            window_f += weight[i] * turn
            window_2f += weight[i] * turn * turn
            scatter += weight[i] * value[i] * value[i]
        removed += total[band] * removed_by(at_f, window_f, window_2f, scatter)
    return removed


@njit(cache=True, nogil=True)
def window_maxima(window, least):  # type: ignore[no-untyped-def]
    """Find the maxima above `least`, beyond the central peak of the window."""
    found = np.empty(len(window), np.int64)
    count, fallen = 0, False
    for k in range(1, len(window) - 1):
        size = abs(window[k])
        fallen = fallen or size < FALLEN
        if fallen and size > least and size >= abs(window[k - 1]) and size > abs(window[k + 1]):
            found[count] = k
            count += 1
    return found[:count]


@njit(cache=True, nogil=True)
def highest_peaks(power, apart, n_peaks):  # type: ignore[no-untyped-def]
    """Find the highest local maxima, best first, none within `apart` of a higher one."""
    chosen = np.empty(n_peaks, np.int64)
    return chosen[: scan_peaks(power, 0, len(power), apart, chosen, 0)]


@njit(cache=True, nogil=True)
def scan_peaks(power, first, last, apart, chosen, count):  # type: ignore[no-untyped-def]
    """Add the maxima from `first` up to `last` to the `count` chosen ones; return their number."""
    n_peaks = len(chosen)
    for k in range(first, last):
        if count == n_peaks and power[k] <= power[chosen[count - 1]]:
            continue
        left = k == 0 or power[k] >= power[k - 1]
        right = k == len(power) - 1 or power[k] > power[k + 1]
        if left and right:
            count = _insert(power, chosen, count, k, apart)
    return count


@njit(cache=True, nogil=True)
def _insert(power, chosen, count, k, apart):  # type: ignore[no-untyped-def]
    """Insert a maximum unless a higher one is near; remove lower ones near it."""
    higher = 0
    while higher < count and power[k] <= power[chosen[higher]]:
        if abs(chosen[higher] - k) <= apart:
            return count
        higher += 1
    kept, moved = higher, k
    for i in range(higher, count):
        old = chosen[i]
        if abs(old - k) > apart:
            chosen[kept] = moved
            moved = old
            kept += 1
    if kept < len(chosen):
        chosen[kept] = moved
        kept += 1
    return kept
