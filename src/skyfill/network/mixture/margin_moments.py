"""Mean and variance of a value whose normal score is normal: a margin, smoothed and tabulated.

A margin jumps beside an atom and rises steeply in a long tail, where the few nodes of a quadrature
hit or miss. So the integrals are tabulated: in closed form, from knot to knot, for a narrow normal
about each score. Smoothing gives the tables of wider normals, whose standard deviations grow in
steps of 19 %. A normal of any other width is one of these convolved with another normal: over the
latter, three nodes of a quadrature see smooth functions alone. The error is below 0.002 of the
height of a jump, for standard deviations from 1/32 to 2.

Models of earlier versions began with averages over narrow cells of scores, or took seven nodes of a
tabulated map; they still do, so that a model file gives the numbers that it gave when it was new.
The tables of the latter have one axis less.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.network._array import Array, IntArray
from skyfill.network.mixture.compiled import leaf
from skyfill.network.mixture.margin import BY_CELLS, Margin
from skyfill.network.mixture.margin_kernels import look_up

# Scores that the tables reach to; the narrowest spread, and entries to it; spreads per doubling.
REACH, FINEST, STEPS, PER_OCTAVE, OCTAVES = 5, 1 / 32, 4, 4, 6
WIDEST = FINEST * 2**OCTAVES
# Reach of integrals and of smoothing, in standard deviations: what a steep tail has there still
# counts.
FAR, SMOOTHING = 8.0, 7
# Segments narrower than this, in standard deviations, have the same density all along.
NARROW = 1e-3
# Spreads of the levels; the first is the map itself, in narrow cells.
SPREADS = np.array([0.0, *FINEST * 2 ** (np.arange(PER_OCTAVE * OCTAVES) / PER_OCTAVE)])
# Entries are as far apart as the spread allows, and not farther than a steep tail allows.
HALVED = np.minimum([0, *np.arange(PER_OCTAVE * OCTAVES) // PER_OCTAVE], 3)
PER_SCORE = STEPS / FINEST / 2.0**HALVED
_SIZES = (2 * REACH * PER_SCORE).astype(np.int64) + 1
_STARTS, _LAST = np.cumsum([0, *_SIZES]), _SIZES - 2.0
# The first levels with as many entries.
BASES = tuple((1 + np.flatnonzero(np.diff(HALVED[1:], prepend=-1))).tolist())
# Parts of the narrowest spread in which spreads are looked up, and those of earlier versions.
FINER, COARSER = 64, 16
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(3)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


# Those of earlier versions.
MANY_NODES, MANY_WEIGHTS = np.polynomial.hermite_e.hermegauss(7)
MANY_WEIGHTS = MANY_WEIGHTS / MANY_WEIGHTS.sum()


class Ladder(NamedTuple):
    """Where the levels of a table stand; handed to kernels, since a GPU reads constants slowly."""

    widest: IntArray  # level of the widest spread that is not wider than so many parts
    steps: Array  # (levels, 4): variance, entries per score, first entry, last but one


def _ladder(finer: int) -> Ladder:
    spreads = np.arange(WIDEST / FINEST * finer) * (FINEST / finer)
    steps = np.stack([SPREADS**2, PER_SCORE, _STARTS[:-1], _LAST], axis=1)
    return Ladder(np.searchsorted(SPREADS, spreads, "right") - 1, steps)


LADDER, EARLIER_LADDER = _ladder(FINER), _ladder(COARSER)


class MarginMoments(NamedTuple):
    """Tables of some margins, about the middle and by the reach of each: no square overflows."""

    tables: Array  # (p, entries, 2): mean and variance; of earlier versions (p, entries): values
    middle: Array  # (p,)
    reach: Array  # (p,)
    ladder: Ladder


def moments_of(margins: tuple[Margin, ...]) -> MarginMoments:
    """Tabulate the moments of some margins."""
    tables, middle, reach = zip(*(margin_moments(margin) for margin in margins), strict=True)
    ladder = EARLIER_LADDER if margins[0].moments == BY_CELLS else LADDER
    return MarginMoments(np.stack(tables), np.array(middle), np.array(reach), ladder)


def tabulated_moments(grids: Array) -> MarginMoments:
    """Scale the tabulated maps of earlier versions."""
    middle = grids[:, grids.shape[1] // 2]
    reach = 2 * np.abs(grids / 2 - middle[:, None] / 2).max(axis=1)
    reach[reach == 0] = 1.0
    tables = (grids - middle[:, None]) / reach[:, None]
    return MarginMoments(tables, middle, reach, EARLIER_LADDER)


def margin_moments(margin: Margin) -> tuple[Array, float, float]:
    """Tabulate the moments of one margin; return the table, the middle and the reach."""
    ends = margin.from_normal(np.array([-REACH, 0.0, REACH]))
    middle = float(ends[1])
    reach = float(2 * np.abs(ends / 2 - middle / 2).max()) or 1.0
    first, second = _average_cells(margin, middle, reach)
    levels = [(first, second - first**2)]
    if margin.moments == BY_CELLS:
        _smooth_cells(levels)
    else:
        for level in BASES:
            levels += _smooth_segments(margin, middle, reach, level)
    entries = [levels[0], *(_unbiased(*level) for level in levels[1:])]
    return np.concatenate([np.stack(pair, axis=1) for pair in entries]), middle, reach


def _smooth_segments(
    margin: Margin, middle: float, reach: float, base: int
) -> list[tuple[Array, Array]]:
    """Moments of one level, in closed form from knot to knot, and of those with as many entries."""
    levels = base + np.flatnonzero(HALVED[base:] == HALVED[base])
    more = (SPREADS[levels] ** 2 - SPREADS[base] ** 2) * PER_SCORE[base] ** 2
    wide = math.ceil(SMOOTHING * math.sqrt(more[-1]))
    scores = np.arange(-wide, _SIZES[base] + wide) / PER_SCORE[base] - REACH
    y, rises = 2 * (margin.x / 2 - middle / 2) / reach, np.array(margin._rises) / reach
    mean, second = np.empty((2, len(scores)))
    _integrate(scores, SPREADS[base], y, margin.z, rises, mean, second)
    found = []
    for variance in more.tolist():
        # Sums over entries of what is smooth already are integrals.
        kernel = _kernel(variance)
        part = slice(wide - len(kernel) // 2, len(scores) - wide + len(kernel) // 2)
        first, square = (np.convolve(a[part], kernel, "valid") for a in (mean, second))
        found.append((first, np.maximum(square - first**2, 0.0)))
    return found


def _kernel(variance: float) -> Array:
    """Weights of a normal about an entry, in steps of the table."""
    reach = math.ceil(SMOOTHING * math.sqrt(variance))
    kernel = np.exp(-0.5 * np.arange(-reach, reach + 1) ** 2 / max(variance, 1e-300))
    return np.asarray(kernel / kernel.sum())


@njit(cache=True, nogil=True, error_model="numpy")
def _integrate(scores, spread, y, z, rises, mean, squares):  # type: ignore[no-untyped-def]
    """Write mean and mean square of a map for normals of one spread about some scores.

    The map has the values y at the scores z and is linear between and, with its `rises`, beyond.
    """
    last = z.size - 1
    for i in range(scores.size):
        center = scores[i]
        p = np.searchsorted(z, center - FAR * spread)
        u, below, density = -FAR, 0.0, 0.0
        first, second = 0.0, 0.0
        while True:
            # Segment p ends at knot p; within it the value is `middle` and changes by `slope`.
            v = (z[p] - center) / spread if p <= last else FAR
            is_last = v >= FAR
            if is_last:
                v, up_to, end = FAR, 1.0, 0.0
            else:
                up_to = 0.5 * math.erfc(-v * math.sqrt(0.5))
                end = math.exp(-0.5 * v * v) / math.sqrt(2.0 * math.pi)
            if v > u:
                if p == 0:
                    slope, at = rises[0], 0
                elif p > last:
                    slope, at = rises[1], last
                else:
                    slope, at = (y[p] - y[p - 1]) / (z[p] - z[p - 1]), p - 1
                slope, half = slope * spread, 0.5 * (u + v)
                middle = y[at] + slope * (half - (z[at] - center) / spread)
                mass = up_to - below
                if v - u < NARROW:
                    one, two = 0.0, mass * (v - u) ** 2 / 12.0
                else:
                    one = density - end - half * mass
                    two = mass + u * density - v * end - half * (2.0 * one + half * mass)
                first += middle * mass + slope * one
                second += middle * middle * mass + 2.0 * middle * slope * one + slope * slope * two
            if is_last:
                break
            u, below, density, p = v, up_to, end, p + 1
        mean[i], squares[i] = first, second


def _smooth_cells(levels: list[tuple[Array, Array]]) -> None:
    """Add the levels of earlier versions, each from the one before."""
    for level in range(1, len(SPREADS)):
        mean, var = levels[-1]
        if HALVED[level] > HALVED[level - 1]:
            mean, var = mean[::2], var[::2]
        before = SPREADS[level - 1] ** 2 or (FINEST / STEPS) ** 2 / 12  # a cell is smooth itself
        more = (SPREADS[level] ** 2 - before) * PER_SCORE[level] ** 2
        levels.append(_smooth(mean, var, more))


def _average_cells(margin: Margin, middle: float, reach: float) -> tuple[Array, Array]:
    """Mean and mean square of the values in narrow cells of scores, exact for linear segments."""
    n, width = _SIZES[0], 1 / PER_SCORE[0]
    edges = -REACH + width * (np.arange(n + 1) - 0.5)
    inner = margin.z[(margin.z > edges[0]) & (margin.z < edges[-1])]
    ends = np.unique(np.concatenate([edges, inner]))
    center, half = (ends[1:] + ends[:-1]) / 2, np.diff(ends) / 2
    # The two nodes of Gauss & Legendre lie within a segment, so that jumps are at its ends.
    nodes = center + half * np.array([[-1.0], [1.0]]) / math.sqrt(3.0)
    values = 2 * (margin.from_normal(nodes) / 2 - middle / 2) / reach
    cell = np.minimum(np.searchsorted(edges, center) - 1, n - 1)
    share = 2 * half / width
    sums = [np.bincount(cell, share * v.mean(axis=0), n) for v in (values, values**2)]
    return sums[0].astype(np.float64), sums[1].astype(np.float64)


def _smooth(mean: Array, var: Array, more: float) -> tuple[Array, Array]:
    """Moments under a normal whose variance is larger by `more`, in steps of the table."""
    kernel = _kernel(more)
    reach = len(kernel) // 2
    # Beyond its ends the map is linear.
    out = np.arange(1, reach + 1)
    low = mean[0] - (mean[1] - mean[0]) * out[::-1]
    high = mean[-1] + (mean[-1] - mean[-2]) * out
    mean, var = np.concatenate([low, mean, high]), np.pad(var, reach, mode="edge")
    smooth = np.convolve(mean, kernel, "valid")
    second = np.convolve(var + mean**2, kernel, "valid")
    return smooth, np.maximum(second - smooth**2, 0.0)


def _unbiased(mean: Array, var: Array) -> tuple[Array, Array]:
    """Shift entries so that lines between them are right on average, not at the entries."""
    bend = np.pad(np.diff(mean, 2), 1)
    return mean - bend / 12, var


@leaf
def level_below(sd, ladder):  # type: ignore[no-untyped-def]
    """Give the level of a spread that is not wider: the widest, or nearly so."""
    size = ladder[0].size
    return ladder[0][int(min(max(0.0, sd * (size / WIDEST)), size - 1.0))]


@leaf
def add_normal_value(share, at, step, table, first, second):  # type: ignore[no-untyped-def]
    """Add to sums of values and squares a normal of a tabulated spread; `at` is its place."""
    # The bound stands first in max: a NaN, which is never larger, is then no index.
    i = int(min(max(0.0, at), step[3]))
    part, i = at - i, i + int(step[2])
    mean = table[i, 0] + part * (table[i + 1, 0] - table[i, 0])
    var = table[i, 1] + part * (table[i + 1, 1] - table[i, 1])
    return first + share * mean, second + share * (mean * mean + max(0.0, var))


@leaf
def add_component(part, table, ladder, first, second):  # type: ignore[no-untyped-def]
    """Add to sums of values and squares what a component says of a gap, on the scale of its table.

    `part` holds its share, mean and sd.
    """
    share, mean, sd = part
    if table.ndim == 1:  # of an earlier version; known when this is compiled
        for q in range(MANY_NODES.size):
            value = look_up(table, mean + sd * MANY_NODES[q])
            first += share * MANY_WEIGHTS[q] * value
            second += share * MANY_WEIGHTS[q] * value * value
        return first, second
    step = ladder[1][level_below(sd, ladder)]
    rest = math.sqrt(max(0.0, sd * sd - step[0])) * step[1]
    center = place_of(mean, step)
    for q in range(NODES.size):
        at, weight = center + rest * NODES[q], share * WEIGHTS[q]
        first, second = add_normal_value(weight, at, step, table, first, second)
    return first, second


@leaf
def place_of(score, step):  # type: ignore[no-untyped-def]
    """Entry of a level, counted from its first, that belongs to a score."""
    return (score + REACH) * step[1]
