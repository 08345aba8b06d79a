"""Calibrate quantiles on held-out cells, so that a 90 % interval holds 90 % of the true values.

A mixture fitted to few rows is overconfident about gaps that it can predict well and too cautious
about the others, or the reverse, and columns differ. Hidden cells of held-out rows show both.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from skyfill.network._array import Array, IntArray
from skyfill.network.cells import Cells, as_cells
from skyfill.network.mixture.network import BySpread, MixtureNetwork

# Rows are held out in parts of this share, until there are this many of them.
HELD_OUT, HELD_ROWS = 0.25, 1000
# Share of cells hidden in half of the rows; the other half gets gaps like those of other rows.
# This is repeated with the same fits.
HIDDEN, TIMES = 0.2, 3
STEPS = np.linspace(0.0, 1.0, 41)
# Groups of cells by the spread of their posteriors.
GROUPS = 5
# Levels of few cells are drawn towards those of all cells, as by this many extra cells.
PRIOR = 60.0
# Fewest degrees of freedom of a column whose parameters are uncertain.
LEAST_FREEDOM = 3.0
Learn = Callable[[Cells, Generator], MixtureNetwork]


def fit_levels(learn: Learn, cells: Cells | Array, rng: Generator) -> tuple[Array, BySpread]:
    """Find the levels of the posterior at which hidden cells of held-out rows lie.

    Parameters
    ----------
    learn : callable
        Learns a model from rows; takes the rows and a generator.
    cells : Cells or array of shape (n, p)
        Rows in random order.
    rng : numpy.random.Generator
        Decides what is hidden.

    Returns
    -------
    columns : array of shape (p, levels)
        Level of each column's posterior for probabilities from 0 to 1 in even steps.
    by_spread : BySpread
        Levels to ask a column for, where the posterior is narrow or wide.
    """
    cells = as_cells(cells)
    size = int(HELD_OUT * len(cells))
    n_parts = min(max(-(-HELD_ROWS // size), 1), round(1 / HELD_OUT))
    places = [np.arange(len(cells)) // size == part for part in range(n_parts)]
    found = [_held_out(learn, cells, held, rng) for held in places]
    pit, spread = (np.concatenate(side) for side in zip(*found, strict=True))
    known = ~np.isnan(pit)
    everywhere = blend(pit[known], STEPS)
    columns = np.stack([blend(pit[known[:, j], j], everywhere) for j in range(pit.shape[1])])
    # What is left once the faults of the columns are corrected.
    left = np.stack([np.interp(p, levels, STEPS) for p, levels in zip(pit.T, columns, strict=True)])
    return columns, _by_spread(left.T[known], spread[known])


def uncertain_levels(n_seen: IntArray, n_parameters: int) -> Array:
    """Levels of columns of a table that has too few rows to hold any out.

    A regression with k parameters that are fitted to n values predicts with errors that follow a t
    distribution of n - k degrees of freedom, wider by sqrt(n / (n - k)) (the variance is that of
    maximum likelihood) and by sqrt(1 + k / n) (the parameters are uncertain).

    Parameters
    ----------
    n_seen : integer array of shape (p,)
        Values of each column.
    n_parameters : int
        Parameters of a column's regression.

    Returns
    -------
    array of shape (p, levels)
        As `columns` of `fit_levels`.

    Examples
    --------
    >>> levels = uncertain_levels(np.array([20, 1_000_000]), 4)
    >>> levels[:, -3].round(3).tolist()  # for a probability of 0.95
    [0.984, 0.95]
    """
    n = n_seen.astype(np.float64)[:, None]
    freedom = np.maximum(n - n_parameters, LEAST_FREEDOM)
    wider = np.sqrt(np.maximum(n / freedom, 1.0) * (1.0 + n_parameters / np.maximum(n, 1.0)))
    inner = ndtr(stdtrit(freedom, STEPS[1:-1]) * wider)
    return np.hstack([np.zeros_like(n), inner, np.ones_like(n)])


def _held_out(
    learn: Learn, cells: Cells, held: NDArray[np.bool_], rng: Generator
) -> tuple[Array, Array]:
    """PIT and spread of hidden cells of held-out rows, NaN elsewhere."""
    model = learn(cells.take(~held), rng)
    rows = cells.take(np.tile(np.flatnonzero(held), TIMES))
    hidden = hide_like_gaps(rows, rng)
    lost = rows.hide(hidden)
    pit, spread = model.pit(lost, rows.values, rng), model.spreads(lost)
    return np.where(hidden, pit, np.nan), np.where(hidden, spread, np.nan)


def hide_like_gaps(rows: Cells, rng: Generator) -> NDArray[np.bool_]:
    """Hide cells: at random in half of the rows, in the pattern of another row in the others.

    Non-detections are no pattern to copy: a bright object would have been detected.
    """
    lost = np.isnan(rows.values)
    cells = rng.random(lost.shape) < HIDDEN
    pattern = (lost & ~rows.is_limited)[rng.permutation(len(rows))]
    empty = ~(pattern & ~lost).any(axis=1)
    mask = np.where((empty | (rng.random(len(rows)) < 0.5))[:, None], cells, pattern) & ~lost
    # Where nothing would be left, nothing is hidden.
    return mask & ~(mask | lost).all(axis=1, keepdims=True)


def blend(found: Array, prior: Array) -> Array:
    """Quantiles of the levels found, drawn towards a prior as by some extra cells; ends stay.

    The mean is taken of normal scores, where small levels count as much as large ones.
    """
    if not found.size:
        return prior
    share = found.size / (found.size + PRIOR)
    inner = np.clip([np.quantile(found, STEPS[1:-1]), prior[1:-1]], 1e-9, 1 - 1e-9)
    mean = share * ndtri(inner[0]) + (1 - share) * ndtri(inner[1])
    return np.concatenate([[0.0], ndtr(mean), [1.0]])


def _by_spread(pit: Array, spread: Array) -> BySpread:
    """Levels of groups of cells of like spread."""
    edges = np.quantile(spread, np.linspace(0.0, 1.0, GROUPS + 1)) if spread.size else np.zeros(1)
    group = np.searchsorted(edges[1:-1], spread)
    kept = [g for g in range(GROUPS) if (group == g).any()]
    knots = np.array([np.median(spread[group == g]) for g in kept])
    if len(knots) < 2 or (np.diff(knots) <= 0).any():
        return BySpread(np.arange(2.0), np.tile(STEPS, (2, 1)))
    return BySpread(knots, np.stack([blend(pit[group == g], STEPS) for g in kept]))
