"""Trigonometric sums of unevenly sampled curves on a regular grid of frequencies, by FFT.

Each point is spread over `WIDTH` cells of a regular grid with a bump of known Fourier transform;
an FFT and a division by that transform give the sums (Barnett, Magland & af Klinteberg 2019). The
frequencies k * step are split into four interleaved combs k = 4m + s: a phase factor on each point
shifts comb s to zero, so that four short FFTs run in parallel in the vector unit instead of one
long FFT of mostly padding. The sums of the values at frequency f and of the weights at 2f are real
sequences and share one complex FFT.

Single precision is enough: the sums only locate the peaks, whose power `periodogram` computes
again from the points themselves.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.lightcurve.curve import Array, ComplexArray, IntArray

WIDTH = 8
COMBS = 4
_OVERSAMPLING = 1.25
# Of the bump exp(SHARP (sqrt(1 - z^2) - 1)): a compromise between truncation and aliasing.
_SHARP = 0.97 * np.pi * WIDTH * (1 - 0.5 / _OVERSAMPLING)
_TABLE_CELLS = 512
_NODES = 48


class StarPoints(NamedTuple):
    """The points of all bands of a star, one band after the other.

    `time` starts at zero. In each band, `weight` sums to one and the weighted mean of `value` is
    zero. Band b has the points ``start[b]:start[b + 1]``, of which `scatter` is sum(w v^2) and
    `total` the sum of 1 / error^2.
    """

    time: Array
    value: Array
    weight: Array
    start: IntArray
    scatter: Array
    total: Array


def fourier_sums(points: StarPoints, step: float, size: int) -> ComplexArray:
    """Sum values and weights times exp(-2 pi i k step t) for k below `size`.

    Returns
    -------
    array of shape (bands, 5, cells)
        For each band the FFTs of the four combs of ``w v`` at f plus i times ``w`` at 2f, and of
        the comb k = 4m + 1 of ``w`` at f. Not yet divided by the transform of the bump;
        `periodogram.add_band` unpacks them.
    """
    from scipy.fft import fft

    cells = fft_cells(size)
    grid = np.zeros((len(points.scatter), COMBS + 1, cells), np.complex64)
    for band, (a, b) in enumerate(zip(points.start[:-1], points.start[1:], strict=True)):
        mine = points.weight[a:b], points.value[a:b], bump_table()
        spread(points.time[a:b], step, *mine, 0, COMBS + 1, np.empty(2 * WIDTH), grid[band])
    flat = grid.reshape(-1, cells)
    sums: ComplexArray = fft(flat, axis=1, overwrite_x=True).reshape(grid.shape)
    return sums


def fft_cells(size: int) -> int:
    """Return one of few FFT lengths, so that plans and bumps are found in their caches.

    Examples
    --------
    >>> fft_cells(131072)
    81920
    """
    needed = max(_OVERSAMPLING * size * 2 / COMBS, 4 * WIDTH)
    power = 2 ** (int(np.ceil(np.log2(needed))) - 3)
    return next(int(part * power) for part in (5, 6, 8) if part * power >= needed)


@lru_cache(maxsize=64)
def bump_transform(cells: int) -> Array:
    """Return one over the Fourier transform of the bump at m / cells, up to the largest m used."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    frequency = np.arange(int(cells / (2 * _OVERSAMPLING)) + 2) / cells
    heights = weights * np.exp(_SHARP * (np.sqrt(1 - nodes**2) - 1))
    transform = np.zeros(len(frequency))
    for node, height in zip(nodes, heights, strict=True):
        transform += height * np.cos(np.pi * WIDTH * frequency * node)
    inverse = 2 / (WIDTH * transform)
    inverse.setflags(write=False)  # shared by all threads
    return inverse


@lru_cache(maxsize=1)
def bump_table() -> Array:
    """Tabulate the bump from its left end, `_TABLE_CELLS` entries per cell."""
    z = np.linspace(-1, 1, WIDTH * _TABLE_CELLS + 1)
    table = np.exp(_SHARP * (np.sqrt(1 - z**2) - 1))
    table.setflags(write=False)
    return np.append(table, 0.0)


@njit(cache=True, nogil=True)
def spread(time, step, weight, value, bump, first, last, heights, grid):  # type: ignore[no-untyped-def]
    """Add the points of one band to its grids from `first` up to `last`: four combs, then weights.

    `heights` is room for ``2 * WIDTH`` numbers.
    """
    for i in range(len(time)):
        turns = time[i] * step
        angle = -2 * math.pi * turns
        once = complex(math.cos(angle), math.sin(angle))
        at_f = _weigh(COMBS * turns, grid.shape[1], bump, heights, 0)
        at_2f = _weigh(2 * COMBS * turns, grid.shape[1], bump, heights, WIDTH)
        here, there = weight[i] * value[i] + 0j, 1j * weight[i]
        # Each comb is rotated once more than the last.
        for s in range(min(last, COMBS)):
            if s >= first:
                _add(grid, s - first, at_f, heights, 0, here)
                _add(grid, s - first, at_2f, heights, WIDTH, there)
            here *= once
            there *= once * once
        if last > COMBS:
            _add(grid, COMBS - first, at_f, heights, 0, weight[i] * once)


@njit(cache=True, nogil=True)
def _add(grid, row, cell, heights, offset, strength):  # type: ignore[no-untyped-def]
    """Add a point to one grid, with the heights that begin at `offset`."""
    k = cell
    for j in range(offset, offset + WIDTH):
        grid[row, k] += np.complex64(strength * heights[j])
        k += 1
        if k == grid.shape[1]:
            k = 0


@njit(cache=True, nogil=True)
def _weigh(turns, cells, bump, heights, offset):  # type: ignore[no-untyped-def]
    """Set the heights of the bump at the cells around a point; return the first cell."""
    place = (turns - math.floor(turns)) * cells
    first = int(math.ceil(place - WIDTH / 2))
    x = (first - place + WIDTH / 2) * _TABLE_CELLS
    entry = int(x)
    part = x - entry
    for j in range(offset, offset + WIDTH):
        heights[j] = bump[entry] + part * (bump[entry + 1] - bump[entry])
        entry += _TABLE_CELLS
    return first % cells
