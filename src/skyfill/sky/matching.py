"""Cross-match two lists of positions: arrays in, pairs of rows out."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from skyfill.errors import CatalogError
from skyfill.sky.sphere import (
    ROUNDING,
    Floats,
    Points,
    Rows,
    arcsec_of_chord,
    arrange,
    chord_of_arcsec,
    search,
)

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

Keep = Literal["symmetric", "best", "all"]
Asks = Literal["left", "right"]
KEEP: tuple[Keep, ...] = ("symmetric", "best", "all")

# Rows within this many radii of the other catalogue are in the common area.
COMMON_AREA_RADII = 10
MOST_PAIRS = 200_000_000


@dataclass(frozen=True)
class Matches:
    """Pairs of rows that lie within the radius of each other.

    Attributes
    ----------
    left, right : integer arrays of shape (k,)
        Rows of the two catalogues; sorted by left row, then by separation.
    separation_arcsec : array of shape (k,)
        Separation of the two rows of a pair.
    n_candidates : integer array of shape (n_left,)
        How many right rows lie within the radius of each left row, matched or not.
    """

    left: Rows
    right: Rows
    separation_arcsec: Floats
    n_candidates: Rows

    def __len__(self) -> int:
        return len(self.left)


@dataclass(frozen=True)
class _Nearest:
    """For each point of one catalogue, the nearest of the other; without one, infinite chords."""

    chord: Floats
    row: Rows
    second_chord: Floats


def match_positions(
    ra1: Floats,
    dec1: Floats,
    ra2: Floats,
    dec2: Floats,
    radius_arcsec: float,
    *,
    keep: Keep = "symmetric",
    asks: Asks | None = None,
) -> Matches:
    """Find the pairs of positions that lie within a radius of each other.

    Parameters
    ----------
    ra1, dec1, ra2, dec2 : arrays of shapes (n_left,), (n_left,), (n_right,), (n_right,)
        Degrees. A row where either is NaN never matches.
    radius_arcsec : float
        Largest separation; a pair at exactly this separation is kept.
    keep : {"symmetric", "best", "all"}
        ``symmetric``: one to one. Each row of the catalogue with more rows in the common area
        takes its nearest neighbor, then each row of the other keeps the closest of the rows
        that took it; there is no second choice. These are the pairs of STILTS ``tmatch2
        find=best``; exchanging the catalogues does not change them.
        ``best``: the nearest right row for each left row; right rows may repeat.
        ``all``: every pair.
    asks : {"left", "right"}, optional
        For ``symmetric``, the catalogue whose rows take their nearest neighbor: to be given for
        parts of catalogues, which do not show which of them has more rows.

    Returns
    -------
    Matches
        Of equal separations, the lower row wins.

    Examples
    --------
    >>> found = match_positions([10.0, 20.0], [0.0, 0.0], [20.0001], [0.0], 1.0)
    >>> found.left, found.right, found.separation_arcsec.round(3)
    (array([1]), array([0]), array([0.36]))
    """
    if not radius_arcsec >= 0:
        raise CatalogError(f"the radius is {radius_arcsec} arcsec; it must not be negative")
    if keep not in KEEP:
        raise CatalogError(f"keep={keep!r} is not one of {', '.join(KEEP)}")
    left, right = arrange(ra1, dec1), arrange(ra2, dec2)
    chord = chord_of_arcsec(radius_arcsec) + ROUNDING
    reach = COMMON_AREA_RADII * chord if keep == "symmetric" else chord
    found = _nearest(left, right, reach)
    pair = _PAIRS[keep] if asks is None else _ASKED[asks]
    rows1, rows2, chords = pair(left, right, found, chord)
    return Matches(rows1, rows2, arcsec_of_chord(chords), _count(left, right, found, chord))


def nearest_arcsec(ra1: Floats, dec1: Floats, ra2: Floats, dec2: Floats) -> Floats:
    """Measure the separation of each left position from the nearest right one.

    Returns
    -------
    array of shape (n_left,)
        Arcsec; NaN without a position or if the right catalogue is empty.

    Examples
    --------
    >>> nearest_arcsec([10.0, np.nan], [0.0, 0.0], [11.0], [0.0]).round(6)
    array([3600.,   nan])
    """
    left, right = arrange(ra1, dec1), arrange(ra2, dec2)
    chord = left.by_row(_nearest(left, right, np.inf).chord, np.inf)
    return np.where(np.isfinite(chord), arcsec_of_chord(chord), np.nan)


def _nearest(points: Points, others: Points, reach: float) -> _Nearest:
    if not len(points) or not len(others):
        nothing = np.full(len(points), np.inf)
        return _Nearest(nothing, np.zeros(len(points), dtype=np.int64), nothing)
    limit = math.nextafter(reach, math.inf)  # the tree excludes the limit itself
    tree = others.distinct
    chords, places = search(
        lambda part: tree.query(part, k=2, distance_upper_bound=limit), points.vectors
    )
    seen = np.append(others.lowest_rows, -1)
    rows = seen[places[:, 0]]
    tied = np.flatnonzero(np.isfinite(chords[:, 1]) & (chords[:, 1] == chords[:, 0]))
    if tied.size:
        equals = chords[tied, 0] * (1 + 1e-15)
        balls = tree.query_ball_point(points.vectors[tied], equals)
        rows[tied] = [seen[ball].min() for ball in balls]
    return _Nearest(chords[:, 0], rows, chords[:, 1])


def _count(points: Points, others: Points, found: _Nearest, chord: float) -> Rows:
    """Count the others within the chord of each point; a tree is needed only beyond one."""
    counts = (found.chord <= chord).astype(np.int64)
    many = np.flatnonzero(found.second_chord <= chord)
    counts[many] = _count_in(others.distinct, points.vectors[many], chord)
    if len(others.starts) < len(others):
        some = np.flatnonzero(counts)
        counts[some] += _count_in(others.copies, points.vectors[some], chord)
    return points.by_row(counts, 0)


def _count_in(tree: "cKDTree", vectors: Floats, chord: float) -> Rows:
    if not len(vectors):
        return np.zeros(0, dtype=np.int64)
    (counts,) = search(
        lambda part: (tree.query_ball_point(part, chord, return_length=True),), vectors
    )
    return counts


_Pairs = tuple[Rows, Rows, Floats]


def _best(left: Points, right: Points, found: _Nearest, chord: float) -> _Pairs:
    chords = left.by_row(found.chord, np.inf)
    inside = np.flatnonzero(chords <= chord)
    return inside, left.by_row(found.row, -1)[inside], chords[inside]


def _symmetric(left: Points, right: Points, found: _Nearest, chord: float) -> _Pairs:
    n_left = np.count_nonzero(np.isfinite(found.chord))
    if n_left > len(right):  # the right rows in the common area can only be fewer
        return _left_asks(left, right, found, chord)
    back = _nearest(right, left, COMMON_AREA_RADII * chord)
    n_right = np.count_nonzero(np.isfinite(back.chord))
    ways = []
    if n_left >= n_right:
        ways.append(_left_asks(left, right, found, chord))
    if n_right >= n_left:
        ways.append(_right_asks(left, right, back, chord))
    # With two catalogues of the same size neither comes first, or exchanging them would matter.
    return max(ways, key=lambda pairs: (len(pairs[2]), -pairs[2].sum()))


def _left_asks(left: Points, right: Points, found: _Nearest, chord: float) -> _Pairs:
    return _closest(*_best(left, right, found, chord))


def _right_asks(left: Points, right: Points, back: _Nearest, chord: float) -> _Pairs:
    rows2, rows1, chords = _closest(*_best(right, left, back, chord))
    order = np.argsort(rows1)
    return rows1[order], rows2[order], chords[order]


def _closest(askers: Rows, asked: Rows, chords: Floats) -> _Pairs:
    """Keep the closest asker for each asked row (of equals, the lowest row)."""
    closest = np.full(asked.max(initial=-1) + 1, np.inf)
    np.minimum.at(closest, asked, chords)
    kept = np.flatnonzero(chords == closest[asked])
    first = np.full(closest.size, len(asked))
    np.minimum.at(first, asked[kept], kept)
    kept = kept[first[asked[kept]] == kept]
    return askers[kept], asked[kept], chords[kept]


def _all(left: Points, right: Points, found: _Nearest, chord: float) -> _Pairs:
    n_pairs = _count(left, right, found, chord).sum()
    if n_pairs > MOST_PAIRS:
        raise CatalogError(f"{n_pairs} pairs lie within the radius; choose a smaller radius")
    pairs = left.everything.sparse_distance_matrix(right.everything, chord, output_type="ndarray")
    rows1, rows2 = left.rows[pairs["i"]], right.rows[pairs["j"]]
    order = np.lexsort((rows2, pairs["v"], rows1))
    return rows1[order], rows2[order], pairs["v"][order]


_PAIRS: dict[Keep, Callable[[Points, Points, _Nearest, float], _Pairs]] = {
    "symmetric": _symmetric,
    "best": _best,
    "all": _all,
}
_ASKED: dict[Asks, Callable[[Points, Points, _Nearest, float], _Pairs]] = {
    "left": _left_asks,
    "right": lambda left, right, found, chord: _right_asks(
        left, right, _nearest(right, left, chord), chord
    ),
}
