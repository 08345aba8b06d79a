"""Features of many stars at once on a GPU, equal to those that are computed star by star."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from skyfill.device import Device, in_batches
from skyfill.lightcurve import bodies
from skyfill.lightcurve.collection import LightCurves
from skyfill.lightcurve.curve import Array, IntArray
from skyfill.lightcurve.periodogram import (
    ALIAS,
    LEAST_LIMIT_PER_DAY,
    MOST_FREQUENCIES,
    N_PEAKS,
    OVERSAMPLING,
    alias_end,
    settle,
)
from skyfill.lightcurve.spectrum import COMBS, WIDTH, bump_table, bump_transform, fft_cells

# Stars whose points are on the device together, and whose spectra are.
STARS_AT_ONCE, SPECTRA_AT_ONCE = 32768, 8192

_MOMENTS = {"mean": bodies.MEAN, "sigma": bodies.SIGMA, "eta": bodies.ETA, "con": bodies.CON,
            "cusum": bodies.CUSUM}  # fmt: skip
_WALK = ("car_sigma", "car_tau")
_LAGS = ("stetson_k_ac", "n_above_4", "n_below_4")
_PERIOD = ("period", "period_snr", "period_power")
NAMES = frozenset([*_MOMENTS, *_WALK, *_LAGS, *_PERIOD, "color", "stetson_l"])


def compute_features(
    device: Device, curves: LightCurves, wanted: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], Array]:
    """Compute features of cleaned light curves.

    Parameters
    ----------
    device : Device
    curves : LightCurves
        In order of time in each band, without anything unusable.
    wanted : iterable of (name, band)
        Names among `NAMES`, and indices of bands; 0 for features of a star.

    Returns
    -------
    dict
        One number per object for each of them; NaN where it is undefined.
    """
    columns = list(wanted)
    with device.alone():
        parts = in_batches(
            device,
            len(curves),
            STARS_AT_ONCE,
            lambda rows: _compute(device, columns, curves.part(rows.start, rows.stop)),
        )
    return {key: np.concatenate([part[key] for part in parts]) for key in columns}


class _Points(NamedTuple):
    """Stars whose points are on the device."""

    curves: LightCurves
    start: Any  # (bands + 1,)
    time: Any
    value: Any
    error: Any
    band_of: Any  # (points,)
    facts: Any  # (bands, N_FACTS)
    scaled: Any  # (3, points): time, value and error for random walks

    @property
    def n_bands(self) -> int:
        return len(self.curves.about.bands)

    def bands(self, band: int) -> IntArray:
        """Return the places of one band of each star among all bands."""
        return np.arange(len(self.curves), dtype=np.int64) * self.n_bands + band


def _compute(
    device: Device, columns: list[tuple[str, int]], curves: LightCurves
) -> dict[tuple[str, int], Array]:
    points, names = _load(device, curves), {name for name, _ in columns}
    facts = device.host(points.facts).reshape(len(curves), points.n_bands, bodies.N_FACTS)
    found = {(n, band): facts[:, band, _MOMENTS[n]] for n, band in columns if n in _MOMENTS}
    for family, work in ((_WALK, _walk), (_LAGS, _lags)):
        for band in sorted({band for name, band in columns if name in family}):
            numbers = device.host(work(device, points, band))
            found |= {(name, band): numbers[:, k] for k, name in enumerate(family)}
    if "color" in names:
        found["color", 0] = _color(curves, facts[:, :, bodies.MEAN])
    if "stetson_l" in names:
        found["stetson_l", 0] = _stetson_l(device, points)
    if names.intersection(_PERIOD):
        numbers = find_all_periods(device, points)
        found |= {(name, 0): numbers[:, k] for k, name in enumerate(_PERIOD)}
    return found


def _load(device: Device, curves: LightCurves) -> _Points:
    """Copy points to the device, take the moments of all bands, and scale the points."""
    n_all, n_points, exact = len(curves.start) - 1, len(curves.time), not curves.about.has_errors
    given = np.ones(n_points) if exact else curves.error
    sources = (curves.start, curves.time, curves.value, given)
    arrays: tuple[Any, Any, Any, Any] = tuple(map(device.array, sources))
    facts = device.empty((n_all, bodies.N_FACTS), fill=np.nan)
    device.run(bodies.describe, n_all, *arrays, facts)
    owners = np.repeat(np.arange(n_all, dtype=np.int32), np.diff(curves.start))
    band_of, scaled = device.array(owners), device.empty((3, n_points))
    device.run(bodies.scale_point, n_points, band_of, *arrays, exact, facts, scaled)
    return _Points(curves, *arrays, band_of, facts, scaled)


def _walk(device: Device, points: _Points, band: int) -> Any:
    bands, out = (
        device.array(points.bands(band)),
        device.empty((len(points.curves), 2), fill=np.nan),
    )
    given = (bands, points.start, points.time, points.scaled, points.facts, out)
    device.run(bodies.walk, len(bands), *given)
    return out


def _lags(device: Device, points: _Points, band: int) -> Any:
    n = len(points.time)
    bands, out = (
        device.array(points.bands(band)),
        device.empty((len(points.curves), 3), fill=np.nan),
    )
    sums, pairs = device.empty(n), device.empty(n, np.int32)
    given = (points.band_of, points.n_bands, band, points.start, points.time, points.scaled)
    device.run(bodies.sum_lag, n, *given, sums, pairs)
    device.run(bodies.read_lags, len(bands), bands, points.start, points.facts, sums, pairs, out)
    return out


def _color(curves: LightCurves, mean: Array) -> Array:
    if len(curves.about.bands) < 2:
        return np.full(len(curves), np.nan)
    first, second = mean[:, 0], mean[:, 1]
    if not curves.about.is_flux:
        return first - second
    with np.errstate(all="ignore"):
        return np.where(np.minimum(first, second) > 0, -2.5 * np.log10(first / second), np.nan)


def _stetson_l(device: Device, points: _Points) -> Array:
    out = device.empty(len(points.curves), fill=np.nan)
    if points.n_bands > 1 and points.curves.about.has_errors:
        given = (points.n_bands, *points[1:5], points.facts, out)
        device.run(bodies.pair_bands, len(points.curves), *given)
    found: Array = device.host(out)
    return found


class _Spectra(NamedTuple):
    """What the periodograms of all stars of a batch need."""

    n_bands: int
    start: Any
    facts: Any
    points: Any  # (3, points): time since the first epoch, value, weight
    stars: Any  # (stars, N_STAR_FACTS)
    step: Array  # (stars,), here


def find_all_periods(device: Device, points: _Points) -> Array:
    """Find the period of every star, the height of its peak above the noise, and its power."""
    n, n_bands = len(points.curves), points.n_bands
    stars = device.empty((n, bodies.N_STAR_FACTS), fill=np.nan)
    limit = LEAST_LIMIT_PER_DAY
    given: tuple[Any, ...] = (n_bands, points.start, points.time, points.facts, limit, stars)
    device.run(bodies.choose_grid, n, *given)
    gathered = device.empty((3, len(points.time)))
    given = (points.band_of, n_bands, *points[2:5], points.facts, stars, gathered)
    device.run(bodies.gather_point, len(points.time), *given)
    known = device.host(stars)
    spectra = _Spectra(n_bands, points.start, points.facts, gathered, stars, known[:, bodies.STEP])
    found = np.full((n, len(_PERIOD)), np.nan)
    for cells, some, size in _by_length(known):
        bytes_each = 8 * n_bands * bodies.ROWS * cells + 12 * int(size.max())
        at_once = max(1, min(SPECTRA_AT_ONCE, device.free_bytes // bytes_each))
        work = partial(_search, device, spectra, cells, some, size)
        found[some] = np.concatenate(in_batches(device, len(some), at_once, work))
    return found


def _by_length(stars: Array) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Group stars by the length of their Fourier transforms; return that, stars and grid sizes."""
    usable = np.flatnonzero(stars[:, bodies.STEP] > 0)
    ends = np.rint(stars[usable, bodies.LIMIT] / stars[usable, bodies.STEP])
    size = np.maximum(np.minimum(ends, MOST_FREQUENCIES) + 1, 2 * OVERSAMPLING).astype(np.int64)
    cells = np.array([fft_cells(int(k)) for k in size], np.int64)
    for length in np.unique(cells):
        mine = cells == length
        yield int(length), usable[mine], size[mine]


def _search(
    device: Device, spectra: _Spectra, cells: int, some: IntArray, size: IntArray, rows: slice
) -> Array:
    """Search the periodograms of some stars of one length."""
    some, size = some[rows], size[rows]
    here, sizes = device.array(some), device.array(size)
    power, window = _power(device, spectra, cells, here, sizes, int(size.max()))
    last = _ends(device, spectra, here, size, window)
    n, first = len(some), OVERSAMPLING
    parts = -(-(power.shape[1] - first) // bodies.SEGMENT)
    sums, ends = device.empty((n, parts, 3)), device.array(last)
    device.run(bodies.sum_segment, n * parts, first, ends, power, sums)
    chosen, counts = device.empty((n, N_PEAKS), np.int64, 0), device.empty(n, np.int64)
    moments = device.empty((n, 2))
    device.run(bodies.find_peaks, n, first, ends, power, sums, chosen, counts, moments)
    step = spectra.step[some][:, None]
    places = step * (first + device.host(chosen))

    def height(frequency: Array) -> Array:
        out = device.empty(frequency.shape)
        given = (here, spectra.n_bands, spectra.start, spectra.points, spectra.facts, spectra.stars)
        device.run(bodies.peak_height, out.size, *given, device.array(frequency), out)
        found: Array = device.host(out)
        return found

    frequency, heights = settle(height, places, step)
    heights[np.arange(N_PEAKS) >= device.host(counts)[:, None]] = -np.inf
    best = np.arange(n), heights.argmax(axis=1)
    mean, sd = device.host(moments).T
    with np.errstate(all="ignore"):
        return np.column_stack([1 / frequency[best], (heights[best] - mean) / sd, heights[best]])


def _power(
    device: Device, spectra: _Spectra, cells: int, some: Any, size: Any, most: int
) -> tuple[Any, Any]:
    """Power of some stars on their grids, and the size of their spectral windows at 2f."""
    n, rows = len(some), len(some) * spectra.n_bands * bodies.ROWS
    grid = device.empty((rows, cells), np.complex64, 0)
    given: tuple[Any, ...] = (some, spectra.n_bands, spectra.start, spectra.points, spectra.stars)
    bump = device.array(bump_table())
    device.run(bodies.spread_row, rows, *given, bump, grid, room=2 * WIDTH)
    sums = device.fft(grid)
    power, window = device.empty((n, most)), device.empty((n, most), np.float32)
    given = (some, spectra.n_bands, size, sums, device.array(bump_transform(cells)), spectra.facts)
    device.run(bodies.power_of, n * -(-most // COMBS), *given, spectra.stars, power, window)
    return power, window


def _ends(device: Device, spectra: _Spectra, some: Any, size: IntArray, window: Any) -> IntArray:
    """Return where each grid ends: where the spectral window at 2f returns to nearly one."""
    n, sizes, last = len(size), device.array(size), size.copy()
    parts = -(-window.shape[1] // bodies.SEGMENT)
    low, high = device.empty((n, parts), np.float32), device.empty((n, parts), np.float32)
    device.run(bodies.window_range, n * parts, sizes, window, low, high)
    before, found = np.zeros(n, np.int64), device.empty(n, np.int64)
    step = 2 * spectra.step[device.host(some)]

    def height(frequency: Array) -> Array:
        out = device.empty(n)
        given = (some, spectra.n_bands, spectra.start, spectra.points, spectra.facts)
        device.run(bodies.window_height, n, *given, device.array(frequency), out)
        heights: Array = device.host(out)
        return heights

    while (before >= 0).any():
        given = (sizes, window, low, high, device.array(before), found)
        device.run(bodies.next_alias, n, *given)
        place = device.host(found)
        is_alias = place > 0
        if is_alias.any():
            is_alias &= settle(height, step * place, step)[1] > ALIAS
        last[is_alias] = alias_end(place[is_alias], OVERSAMPLING)
        before = np.where(is_alias | (place == 0), -1, place)
    return last
