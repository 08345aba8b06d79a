"""Two-band light curves as a MACHO-like survey would record them."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, SeedSequence, default_rng
from numpy.typing import NDArray

from skyfill.datasets.field.cadence import Cadence, draw_cadence, field_number
from skyfill.datasets.field.colors import BANDS, Array
from skyfill.datasets.field.observing import BAND_AMPLITUDE, measure, photometric_error
from skyfill.datasets.field.placement import Sky, add_light
from skyfill.datasets.field.population import CLASSES, RowArrays
from skyfill.datasets.field.signals import deviations

COLORS = ("blue", "red")
_BANDS = (BANDS.index("V"), BANDS.index("R"))
# Five-sigma limit of one image, and share of the visits that yield a measurement.
LIMITS = (20.1, 19.8)
_KEPT = (0.76, 0.70)
_FLOOR = 0.015
# Known stars are measured at their positions, even below the detection limit.
_BELOW_LIMIT = 1.0
_OUTLIERS = 0.007
_OBJECTS_AT_ONCE = 512


@dataclass(frozen=True)
class Measurements(RowArrays):
    """A long table of measurements, sorted by object, band and time.

    Attributes
    ----------
    source : int array of shape (m,)
        Index of the object.
    color : int array of shape (m,)
        Index into `COLORS`.
    times, magnitudes, errors : arrays of shape (m,)
        Modified Julian date, magnitude, and error as the survey states it.
    """

    source: NDArray[np.int64]
    color: NDArray[np.int8]
    times: Array
    magnitudes: NDArray[np.float32]
    errors: NDArray[np.float32]


def record(sky: Sky, seed: SeedSequence) -> Measurements:
    """Record both bands of every object, in blocks of objects with a seed each."""
    n = len(sky.ra)
    starts = range(0, max(n, 1), _OBJECTS_AT_ONCE)
    blocks = [np.arange(start, min(start + _OBJECTS_AT_ONCE, n)) for start in starts]
    first, *seeds = seed.spawn(1 + len(blocks))
    cadence = draw_cadence(default_rng(first))
    parts = [
        _record_block(sky, rows, cadence, rng=default_rng(child))
        for rows, child in zip(blocks, seeds, strict=True)
    ]
    return Measurements.concatenate(parts)


def _record_block(
    sky: Sky, rows: NDArray[np.intp], cadence: Cadence, *, rng: Generator
) -> Measurements:
    field = field_number(sky.ra[rows], sky.dec[rows])
    times = cadence.times[field]
    signal = deviations(sky.population.take(rows), times, rng)
    ratio = np.array([BAND_AMPLITUDE[name] for name in CLASSES])[sky.population.kind[rows]]
    part = sky.take(rows)
    bands = []
    for color, band in enumerate(_BANDS):
        mean = part.magnitudes[band][:, None]
        true = _blend(part, mean + ratio[:, band : band + 1] * signal, band)
        noise, shift = cadence.noise[field], cadence.shift[field]
        bands.append(_measure(true, color, (noise, shift), rng=rng))
    return _flatten(rows, times, bands)


def _blend(part: Sky, magnitudes: Array, band: int) -> Array:
    """Add the flux of neighbors, which dilutes the variation."""
    magnitudes[part.host] = add_light(magnitudes[part.host], part.neighbors[band][:, None])
    return magnitudes


def _measure(
    true: Array, color: int, night: tuple[Array, Array], *, rng: Generator
) -> tuple[Array, Array]:
    """Return magnitudes and stated errors; NaN where the visit yielded no measurement."""
    noise, shift = night
    limit = np.array(LIMITS[color])
    wild = np.where(rng.random(true.shape) < _OUTLIERS, 8.0, 1.0)
    kicks = noise * wild * rng.standard_normal(true.shape)
    measured = measure(true, limit, _FLOOR, kicks=kicks) + shift
    lost = (rng.random(true.shape) > _KEPT[color]) | (measured > limit + _BELOW_LIMIT)
    error = photometric_error(measured, limit, _FLOOR) * noise
    stated = error * (1 + 0.08 * rng.standard_normal(true.shape))
    return np.where(lost, np.nan, measured), np.maximum(stated, 0.003)


def _flatten(
    rows: NDArray[np.intp], times: Array, bands: list[tuple[Array, Array]]
) -> Measurements:
    magnitudes, errors = (np.stack(pair, axis=1) for pair in zip(*bands, strict=True))
    source, color, visit = np.nonzero(~np.isnan(magnitudes))
    return Measurements(
        source=rows[source],
        color=color.astype(np.int8),
        times=times[source, visit].round(5),
        magnitudes=magnitudes[source, color, visit].astype(np.float32),
        errors=errors[source, color, visit].astype(np.float32),
    )
