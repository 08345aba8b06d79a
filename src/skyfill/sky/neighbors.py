"""All neighbors of each position within a radius of its own, by strips of declination."""

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skyfill.errors import CatalogError
from skyfill.sky.sphere import ARCSEC, ROUNDING, Floats, Rows, unit_vectors
from skyfill.threads import map_rows

MOST_PAIRS = 200_000_000
MOST_STRIPS = 1_000_000
# Strips and right ascensions in degrees make one number, by which positions are sorted.
STRIP_STEP = 1024.0
# Such numbers are exact to a millionth of a degree: a little more than the radius, then the chord
# decides.
SLACK_DEG = 2e-6
# Sources that are looked at together.
MOST_AT_ONCE = 20_000


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
    parts = _search(left, right, radius_arcsec)
    counts = np.concatenate([np.zeros(1, np.int64), *(count for count, _ in parts)])
    starts = np.cumsum(counts)
    if starts[-1] > MOST_PAIRS:
        raise CatalogError(f"{starts[-1]} pairs lie within the radius; choose a smaller radius")
    rows = np.concatenate([np.empty(0, np.int32), *(rows for _, rows in parts)])
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
    parts = _search(left, right, radius_arcsec, counting=True)
    return np.concatenate([np.empty(0, np.int64), *(count for count, _ in parts)])


class _Strips(NamedTuple):
    """Positions sorted by strip of declination, then right ascension."""

    lowest: float
    height: float
    n_strips: int
    keys: Floats
    vectors: Floats
    rows: np.ndarray


def _cut(ra: Floats, dec: Floats, radius: Floats) -> _Strips:
    """Sort positions; strips are about a radius high."""
    placed = np.flatnonzero(np.isfinite(ra) & np.isfinite(dec))
    ra, dec = np.mod(ra[placed], 360.0), dec[placed]
    lowest, extent = (dec.min(), np.ptp(dec)) if dec.size else (0.0, 0.0)
    typical = float(np.median(radius)) / 3600 if radius.size else 0.0
    height = max(typical, extent / MOST_STRIPS, extent / (len(placed) + 1), 1e-9)
    keys = np.floor((dec - lowest) / height) * STRIP_STEP + ra
    order = np.argsort(keys)
    n_strips = int(keys.max(initial=-STRIP_STEP) // STRIP_STEP) + 1
    vectors = unit_vectors(ra[order], dec[order])
    return _Strips(lowest, height, n_strips, keys[order], vectors, placed[order].astype(np.int32))


_Part = tuple[Rows, np.ndarray]


def _search(
    left: tuple[Floats, Floats],
    right: tuple[Floats, Floats],
    radius_arcsec: float | Floats,
    *,
    counting: bool = False,
) -> list[_Part]:
    """Numbers of neighbors of the left rows and their rows, by parts of the left rows."""
    ra, dec = (np.asarray(angles, dtype=np.float64) for angles in left)
    radius = np.broadcast_to(np.asarray(radius_arcsec, dtype=np.float64), ra.shape)
    if np.any(~(radius >= 0)):
        raise CatalogError("a radius is negative or not a number; give a length in arcsec")
    ra2, dec2 = (np.asarray(angles, dtype=np.float64) for angles in right)
    strips = _cut(ra2, dec2, radius)

    def work(part: slice) -> _Part:
        return _search_part(ra[part], dec[part], radius[part], strips, counting=counting)

    return map_rows(work, len(ra))


def _search_part(
    ra: Floats, dec: Floats, radius: Floats, strips: _Strips, *, counting: bool
) -> _Part:
    owner, begins, sizes = _ranges(np.mod(ra, 360.0), dec, radius / 3600 + SLACK_DEG, strips)
    chords = 2 * np.sin(np.minimum(radius * ARCSEC, math.pi) / 2) + ROUNDING
    vectors, counts, found = unit_vectors(ra, dec), np.zeros(len(ra), np.int64), []
    for some in _portions(owner, sizes):
        who = np.repeat(owner[some], sizes[some])
        at = np.arange(len(who)) + np.repeat(
            begins[some] - np.cumsum(sizes[some]) + sizes[some], sizes[some]
        )
        apart = sum((vectors[who, k] - strips.vectors[at, k]) ** 2 for k in range(3))
        near = np.flatnonzero(apart <= chords[who] ** 2)
        counts += np.bincount(who[near], minlength=len(ra))
        if not counting:
            rows = strips.rows[at[near]]
            found.append(rows[np.lexsort((rows, who[near]))])
    return counts, np.concatenate([np.empty(0, np.int32), *found])


def _ranges(ra: Floats, dec: Floats, reach: Floats, strips: _Strips) -> tuple[Rows, Rows, Rows]:
    """For each strip within reach of a position: whose it is, where to look, and how far."""
    placed = np.flatnonzero(np.isfinite(ra) & np.isfinite(dec))
    ra, dec, reach = ra[placed], dec[placed], reach[placed]
    low, high = ((dec + side * reach - strips.lowest) / strips.height for side in (-1, 1))
    first = np.maximum(np.floor(low), 0).astype(np.int64)
    last = np.minimum(np.floor(high), strips.n_strips - 1).astype(np.int64)
    width = _half_width(dec, reach)
    numbers = np.maximum(last - first + 1, 0)
    who = np.repeat(np.arange(len(ra)), numbers)
    strip = first[who] + np.arange(len(who)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    out = []
    for turn in (-360.0, 0.0, 360.0):
        begin, end = np.maximum(ra - width + turn, 0), np.minimum(ra + width + turn, 360)
        meets = np.flatnonzero((begin <= end)[who] & ((width < 180) | (turn == 0))[who])
        if turn == 0:
            begin, end = np.where(width < 180, begin, 0), np.where(width < 180, end, 360)
        mine, base = who[meets], strip[meets] * STRIP_STEP
        starts = np.searchsorted(strips.keys, base + begin[mine] - SLACK_DEG)
        ends = np.searchsorted(strips.keys, base + end[mine] + SLACK_DEG, side="right")
        out.append((placed[mine], starts, ends - starts))
    owner, begins, sizes = (np.concatenate(each) for each in zip(*out, strict=True))
    order = np.argsort(owner, kind="stable")
    return owner[order], begins[order], sizes[order]


def _half_width(dec: Floats, radius: Floats) -> Floats:
    """Degrees of right ascension that a circle reaches to either side; 180 around a pole."""
    inside = np.abs(dec) + radius < 90
    ratio = np.sin(np.radians(radius)) / np.cos(np.radians(np.where(inside, dec, 0.0)))
    width = np.degrees(np.arcsin(np.minimum(ratio, 1.0)))
    return np.where(inside, width, 180.0)


def _portions(owner: Rows, sizes: Rows) -> list[slice]:
    """Cut ranges into portions of about as many sources, no position into two."""
    work = np.cumsum(sizes) // MOST_AT_ONCE
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    cuts = starts[np.flatnonzero(np.diff(work[starts])) + 1] if len(starts) else starts
    edges = [0, *cuts.tolist(), len(owner)]
    return [slice(a, b) for a, b in itertools.pairwise(edges)]
