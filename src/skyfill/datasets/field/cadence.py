"""Visits of the MACHO-like survey to its fields, and the quality of each night."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skyfill.datasets.field.colors import Array
from skyfill.datasets.field.placement import DEC_SPAN, RA_SPAN

FIRST_NIGHT, LAST_NIGHT = 48823, 51546  # modified Julian dates: July 1992 to January 2000
VISITS = 720
_FIELD_SIDE, _TILE_SIDE = 0.72, 0.1
_COLUMNS, _ROWS = 10, 7
_COS_DEC = float(np.cos(np.deg2rad(-69.0)))


@dataclass(frozen=True)
class Cadence:
    """Visits to each field.

    Attributes
    ----------
    times : array of shape (fields, visits)
        Modified Julian dates, ascending.
    noise : array of shape (fields, visits)
        Factor on the photometric error: seeing, moonlight and clouds.
    shift : array of shape (fields, visits)
        Offset of all magnitudes in a bad image, not included in its error bars; mostly 0.
    """

    times: Array
    noise: Array
    shift: Array


def draw_cadence(rng: Generator) -> Cadence:
    """Draw seven and a half years of visits with seasons, weather and some bad images."""
    shape = (_COLUMNS * _ROWS, VISITS)
    nights = np.arange(FIRST_NIGHT, LAST_NIGHT)
    clear = rng.random(len(nights)) < 0.75
    chance = np.where(clear, _season(nights), 0.0)
    # The smallest of exponential keys are a weighted draw without replacement (Efraimidis 2006).
    keys = rng.exponential(size=(shape[0], len(nights))) / np.maximum(chance, 1e-9)
    chosen = np.sort(np.argpartition(keys, VISITS, axis=1)[:, :VISITS], axis=1)
    times = nights[chosen] + rng.uniform(0.4, 0.8, shape)
    bad = rng.random(shape) < 0.015
    shift = np.where(bad, rng.normal(0.0, 0.15, shape), 0.0)
    return Cadence(times, 10 ** rng.normal(0.0, 0.12, shape), shift)


def _season(night: NDArray[np.int_]) -> Array:
    """Return the chance of a visit: highest in southern summer, zero for six weeks of winter."""
    phase = np.cos(2 * np.pi * (night - 48988) / 365.25)
    return np.asarray(np.maximum(0.55 + 0.6 * phase, 0.0))


def field_number(ra: Array, dec: Array) -> NDArray[np.int64]:
    """Return the index of the field of the survey at positions (degrees)."""
    column, row = _grid(ra, dec, _FIELD_SIDE)
    return np.clip(row, 0, _ROWS - 1) * _COLUMNS + np.clip(column, 0, _COLUMNS - 1)


def tile_number(ra: Array, dec: Array) -> NDArray[np.int64]:
    """Return the number of the tile of the survey at positions (degrees)."""
    column, row = _grid(ra, dec, _TILE_SIDE)
    return 1000 + row * 80 + column


def _grid(ra: Array, dec: Array, side: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    column = ((ra - RA_SPAN[0]) * _COS_DEC / side).astype(np.int64)
    return column, ((dec - DEC_SPAN[0]) / side).astype(np.int64)
