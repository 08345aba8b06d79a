"""Positions of the objects, dust in front of them, and neighbors that may be unresolved."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from skyfill.datasets.field.colors import EXTINCTION, Array
from skyfill.datasets.field.draw import draw_still
from skyfill.datasets.field.population import CLASSES, Population

# Right ascension and declination (degrees): the field, its center, the scale of the disk.
RA_SPAN, DEC_SPAN = (70.0, 90.0), (-71.5, -66.5)
CENTER = (80.5, -69.3)
_SCALE = (6.0, 1.5)
_GALACTIC_DUST, _LMC_DUST = 0.06, 0.08
_BLENDED = 0.10
BLEND_RADIUS_ARCSEC = 2.5


@dataclass(frozen=True)
class Sky:
    """Objects with true positions, dust and unresolved neighbors.

    Attributes
    ----------
    population : Population
        The n objects.
    ra, dec : arrays of shape (n,)
        True positions (degrees).
    reddening : array of shape (n,)
        E(B-V) in front of each object (mag).
    magnitudes : array of shape (12, n)
        Mean apparent magnitudes behind the dust.
    host : int array of shape (m,)
        Objects with a neighbor.
    shift : array of shape (2, m)
        Neighbor minus object, to the east and to the north (arcsec).
    neighbors : array of shape (12, m)
        Magnitudes of the neighbors.
    """

    population: Population
    ra: Array
    dec: Array
    reddening: Array
    magnitudes: Array
    host: NDArray[np.intp]
    shift: Array
    neighbors: Array

    def take(self, rows: NDArray[np.intp]) -> "Sky":
        """Keep the given objects, with their neighbors."""
        new = np.full(len(self.ra), -1)
        new[rows] = np.arange(len(rows))
        kept = new[self.host] >= 0
        return replace(
            self,
            population=self.population.take(rows),
            ra=self.ra[rows],
            dec=self.dec[rows],
            reddening=self.reddening[rows],
            magnitudes=self.magnitudes[:, rows],
            host=new[self.host[kept]],
            shift=self.shift[:, kept],
            neighbors=self.neighbors[:, kept],
        )


def place_objects(population: Population, rng: Generator) -> Sky:
    """Assign objects a position, dust and, for one in ten, a neighbor within the seeing."""
    n = len(population)
    ra, dec = _positions(population, rng)
    reddening = _reddening(population.dust, rng)
    host = np.flatnonzero(rng.random(n) < _BLENDED)
    faint = draw_still(len(host), rng)
    dusty = faint.magnitudes + EXTINCTION[:, None] * reddening[host]
    magnitudes = population.magnitudes + EXTINCTION[:, None] * reddening
    shift = _shifts(len(host), rng)
    # A brighter neighbor would be a separate entry in the base catalogue.
    fainter = dusty + np.maximum(18.5 - dusty[2], 0.0)
    return Sky(population, ra, dec, reddening, magnitudes, host, shift, fainter)


def _positions(population: Population, rng: Generator) -> tuple[Array, Array]:
    """Draw from a disk that fills part of the field; quasars are anywhere behind it."""
    anywhere = population.kind == CLASSES.index("QSO")
    spans = (RA_SPAN, DEC_SPAN)
    axes = zip(spans, CENTER, _SCALE, strict=True)
    disk = [_truncated_normal(len(population), rng, span, (mu, sd)) for span, mu, sd in axes]
    even = [rng.uniform(*span, len(population)) for span in spans]
    ra, dec = (np.where(anywhere, e, d) for e, d in zip(even, disk, strict=True))
    return ra, dec


def _truncated_normal(
    n: int, rng: Generator, span: tuple[float, float], normal: tuple[float, float]
) -> Array:
    mean, scale = normal
    low, high = ndtr((np.array(span) - mean) / scale)
    return np.asarray(mean + scale * ndtri(rng.uniform(low, high, n)))


def _reddening(dust: Array, rng: Generator) -> Array:
    clumpy = _LMC_DUST * 10 ** rng.normal(0.0, 0.28, len(dust))
    return _GALACTIC_DUST * np.minimum(dust, 1.0) + clumpy * np.maximum(dust - 0.35, 0.0) / 0.65


def _shifts(n: int, rng: Generator) -> Array:
    radius = BLEND_RADIUS_ARCSEC * np.sqrt(rng.random(n))
    angle = rng.uniform(0.0, 2 * np.pi, n)
    return np.asarray(radius * np.stack([np.cos(angle), np.sin(angle)]))


def shift_positions(ra: Array, dec: Array, shift: Array) -> tuple[Array, Array]:
    """Move positions (degrees) by small shifts to the east and north (arcsec)."""
    moved = ra + shift[0] / 3600 / np.cos(np.deg2rad(dec))
    return moved, dec + shift[1] / 3600


def crowding(ra: Array, dec: Array) -> Array:
    """Return the crowding at positions (degrees): 1 at the center of the bar, 0 far out."""
    x = (ra - CENTER[0]) * np.cos(np.deg2rad(CENTER[1])) / 2.0
    return np.asarray(np.exp(-(x**2) - ((dec - CENTER[1]) / 0.8) ** 2))


def add_light(first: Any, second: Any) -> Any:
    """Add the fluxes of two magnitudes."""
    return first - 2.5 * np.log10(1.0 + 10 ** (0.4 * (first - second)))
