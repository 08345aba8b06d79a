"""Parts of the sky that a survey covers, as polygons."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.datasets.field.colors import Array
from skyfill.errors import SkyfillError
from skyfill.sky.sphere import unit_vectors


@dataclass(frozen=True)
class Polygons:
    """A union of convex polygons whose edges are great circles.

    Attributes
    ----------
    polygons : tuple of polygons
        Each is a tuple of corners (right ascension, declination) in degrees, counterclockwise
        as seen in the sky with east to the left.

    Examples
    --------
    >>> patch = Polygons((box(78.0, 80.0, -70.0, -69.0),))
    >>> patch.contains(np.array([79.0, 81.0]), np.array([-69.5, -69.5]))
    array([ True, False])
    """

    polygons: tuple[tuple[tuple[float, float], ...], ...]

    def contains(self, ra: Array, dec: Array) -> NDArray[np.bool_]:
        """Select the positions (degrees) that lie inside."""
        position = unit_vectors(ra, dec).T
        inside = np.zeros(len(ra), dtype=bool)
        for polygon in self.polygons:
            inside |= _is_inside(polygon, position)
        return inside

    def to_moc(self, max_depth: int = 12) -> Any:
        """Return the union as a `mocpy.MOC` (needs the extra ``moc``)."""
        moc_class, units = _mocpy()
        corners = (np.array(polygon).T * units.deg for polygon in self.polygons)
        mocs = [
            moc_class.from_polygon(lon=lon, lat=lat, max_depth=max_depth) for lon, lat in corners
        ]
        return mocs[0].union(*mocs[1:]) if len(mocs) > 1 else mocs[0]


def box(west: float, east: float, south: float, north: float) -> tuple[tuple[float, float], ...]:
    """Return the corners of a patch between two right ascensions and two declinations."""
    return ((west, south), (east, south), (east, north), (west, north))


def square(center: tuple[float, float], side: float, angle: float) -> Sequence[Any]:
    """Return the corners of a square with this side, rotated by an angle (degrees)."""
    turn = np.deg2rad(angle) + np.arange(4) * np.pi / 2 + np.pi / 4
    reach = side / np.sqrt(2)
    ra = center[0] + reach * np.cos(turn) / np.cos(np.deg2rad(center[1]))
    return tuple(zip(ra.tolist(), (center[1] + reach * np.sin(turn)).tolist(), strict=True))


def _is_inside(polygon: Sequence[tuple[float, float]], position: Array) -> NDArray[np.bool_]:
    corners = unit_vectors(*np.array(polygon, dtype=float).T)
    inside = np.ones(position.shape[1], dtype=bool)
    # Sums by hand: BLAS is slow for products as thin as these.
    for a, b, c in np.cross(corners, np.roll(corners, -1, axis=0)):
        inside &= a * position[0] + b * position[1] + c * position[2] >= 0
    return inside


def _mocpy() -> tuple[Any, Any]:
    try:
        from mocpy import MOC
    except ImportError:
        raise SkyfillError("a MOC needs mocpy: pip install 'skyfill[moc]'") from None
    from astropy import units

    return MOC, units
