"""A set of simulated objects, before any survey observes it."""

from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skyfill.datasets.field.colors import Array

CLASSES = ("NV", "QSO", "BE", "CEPH", "RRL", "EB", "LPV")
DISTANCE_MODULUS = 18.48


@dataclass(frozen=True)
class RowArrays:
    """A record of arrays whose last axis is the same."""

    def take(self, rows: NDArray[Any]) -> Self:
        """Keep the given rows, in the given order."""
        return type(self)(*(getattr(self, field.name)[..., rows] for field in fields(self)))

    @classmethod
    def concatenate(cls, parts: list[Self]) -> Self:
        """Concatenate records along the last axis."""
        columns = ([getattr(part, field.name) for part in parts] for field in fields(cls))
        return cls(*(np.concatenate(column, axis=-1) for column in columns))


@dataclass(frozen=True)
class Population(RowArrays):
    """Objects of one or several classes.

    Attributes
    ----------
    kind : int array of shape (n,)
        Index into `CLASSES`.
    mode : int array of shape (n,)
        Within the class: 1 for first overtones, contact binaries and carbon stars, else 0.
    magnitudes : array of shape (12, n)
        Mean apparent magnitudes in `BANDS`, at the object's distance, before dust.
    dust : array of shape (n,)
        Dust in front of the object, relative to the mean of the field.
    teff, redshift, period, amplitude, tau, sigma : arrays of shape (n,)
        Temperature (K); period (days) and full amplitude in V (mag); time scale (days) and
        asymptotic standard deviation (mag) of a damped random walk; NaN where there is none.
    """

    kind: NDArray[np.int8]
    mode: NDArray[np.int8]
    magnitudes: Array
    dust: Array
    teff: Array
    redshift: Array
    period: Array
    amplitude: Array
    tau: Array
    sigma: Array

    def __len__(self) -> int:
        return len(self.kind)


def make(name: str, magnitudes: Array, **facts: Array | float) -> Population:
    """Build the objects of one class; missing facts are NaN (mode 0, dust 1)."""
    n = magnitudes.shape[1]
    plain: dict[str, Any] = {"mode": 0, "dust": 1.0} | facts
    columns = {
        field.name: np.broadcast_to(np.asarray(plain.get(field.name, np.nan), dtype=float), n)
        for field in fields(Population)
        if field.name not in ("kind", "mode", "magnitudes")
    }
    mode = np.broadcast_to(np.asarray(plain["mode"], dtype=np.int8), n)
    kind = np.full(n, CLASSES.index(name), dtype=np.int8)
    return Population(kind=kind, mode=mode, magnitudes=magnitudes, **columns)


def draw_luminosity(n: int, rng: Generator, *, slope: float, span: tuple[float, float]) -> Array:
    """Draw magnitudes from a luminosity function ``10 ** (slope * magnitude)``."""
    low, high = sorted(10 ** (slope * end) for end in span)
    return np.log10(rng.uniform(low, high, n)) / slope


def jitter_colors(n: int, rng: Generator, scatter: float) -> Array:
    """Draw the scatter of magnitudes from composition and geometry, shape (12, n)."""
    return rng.normal(0.0, scatter, (12, n))
