"""All neighbors of each position within a radius of its own, by strips of declination."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skyfill.errors import CatalogError
from skyfill.sky.neighbor_kernels import search_strips
from skyfill.sky.sphere import ARCSEC, ROUNDING, Floats, Rows, unit_vectors
from skyfill.threads import map_rows

MOST_PAIRS = 200_000_000
MOST_STRIPS = 1_000_000
# Compiled loops read degrees: a little more than the radius, then the chord decides.
SLACK_DEG = 1e-9


@dataclass(frozen=True)
class Neighbors:
    """Rows of the other catalogue near each position.

    Those of position i are ``rows[starts[i]:starts[i + 1]]``.

    Attributes
    ----------
    starts : integer array of shape (n + 1,)
    rows : integer array of shape (k,)
        In ascending order for each position.
    """

    starts: Rows
    rows: np.ndarray

    def __len__(self) -> int:
        return len(self.rows)


def find_neighbors(
    left: tuple[Floats, Floats], right: tuple[Floats, Floats], radius_arcsec: float | Floats
) -> Neighbors:
    """Find every right position within the radius of each left one.

    Parameters
    ----------
    left, right : pairs of arrays (ra_deg, dec_deg)
        Rows with NaN have no neighbors and are no neighbors.
    radius_arcsec : float or array of shape (n_left,)

    Examples
    --------
    >>> here, there = ([10.0, 20.0], [0.0, 0.0]), ([20.0, 20.001], [0.0, 0.0])
    >>> found = find_neighbors(here, there, np.array([5.0, 5.0]))
    >>> found.starts, found.rows
    (array([0, 0, 2]), array([0, 1], dtype=int32))
    """
    search, n = _searcher(left, right, radius_arcsec), len(left[0])
    counts = np.zeros(n + 1, dtype=np.int64)
    map_rows(lambda part: search(part, counts[1:], _NOTHING, True), n)
    starts = np.cumsum(counts)
    if starts[-1] > MOST_PAIRS:
        raise CatalogError(f"{starts[-1]} pairs lie within the radius; choose a smaller radius")
    rows = np.empty(starts[-1], dtype=np.int32)
    map_rows(lambda part: search(part, starts[:-1], rows, False), n)
    return Neighbors(starts, rows)


def count_neighbors(
    left: tuple[Floats, Floats], right: tuple[Floats, Floats], radius_arcsec: float | Floats
) -> Rows:
    """Count the right positions within the radius of each left one; see `find_neighbors`.

    Examples
    --------
    >>> count_neighbors(([10.0, 20.0], [0.0, 0.0]), ([20.0, 20.001], [0.0, 0.0]), 5.0)
    array([0, 2])
    """
    search, n = _searcher(left, right, radius_arcsec), len(left[0])
    counts = np.zeros(n, dtype=np.int64)
    map_rows(lambda part: search(part, counts, _NOTHING, True), n)
    return counts


def _searcher(
    left: tuple[Floats, Floats], right: tuple[Floats, Floats], radius_arcsec: float | Floats
) -> Callable[[slice, Rows, np.ndarray, bool], None]:
    """Return what counts the neighbors of some left rows, or writes them from given places on."""
    ra, dec = (np.asarray(angles, dtype=np.float64) for angles in left)
    radius = np.broadcast_to(np.asarray(radius_arcsec, dtype=np.float64), ra.shape)
    if np.any(~(radius >= 0)):
        raise CatalogError("a radius is negative or not a number; give a length in arcsec")
    ra2, dec2 = (np.asarray(angles, dtype=np.float64) for angles in right)
    strips = _cut(ra2, dec2, radius)
    vectors = unit_vectors(ra, dec)
    chords = 2 * np.sin(np.minimum(radius * ARCSEC, math.pi) / 2) + ROUNDING
    asked = (np.mod(ra, 360.0), dec, radius / 3600 + SLACK_DEG, vectors, chords)

    def search(part: slice, at: Rows, out: np.ndarray, counting: bool) -> None:
        search_strips(*[a[part] for a in asked], *strips, at[part], out, counting)  # type: ignore[call-arg]

    return search


_NOTHING = np.empty(0, dtype=np.int32)
_Strips = tuple[float, float, Rows, Floats, Floats, np.ndarray]


def _cut(ra: Floats, dec: Floats, radius: Floats) -> _Strips:
    """Sort positions by strip, then right ascension; strips are about a radius high."""
    placed = np.flatnonzero(np.isfinite(ra) & np.isfinite(dec))
    ra, dec = np.mod(ra[placed], 360.0), dec[placed]
    lowest, extent = (dec.min(), np.ptp(dec)) if dec.size else (0.0, 0.0)
    typical = float(np.median(radius)) / 3600 if radius.size else 0.0
    height = max(typical, extent / MOST_STRIPS, extent / (len(placed) + 1), 1e-9)
    strip = np.floor((dec - lowest) / height).astype(np.int64)
    order = np.lexsort((ra, strip))
    n_strips = int(strip.max(initial=-1)) + 1
    starts = np.searchsorted(strip[order], np.arange(n_strips + 1))
    rows = placed[order].astype(np.int32)
    return lowest, height, starts, ra[order], unit_vectors(ra[order], dec[order]), rows
