"""Calibrate quantiles on held-out cells, so that a 90 % interval holds 90 % of the true values.

A mixture fitted to few rows is overconfident about gaps that it can predict well and too cautious
about the others, or the reverse, and columns differ. Hidden cells of held-out rows show both.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr, ndtri

from skyfill.network._array import Array
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
Learn = Callable[[Array, Generator], MixtureNetwork]


def fit_levels(learn: Learn, X: Array, rng: Generator) -> tuple[Array, BySpread]:
    """Find the levels of the posterior at which hidden cells of held-out rows lie.

    Parameters
    ----------
    learn : callable
        Learns a model from rows; takes the rows and a generator.
    X : array of shape (n, p)
        Rows in random order; NaN is a gap.
    rng : numpy.random.Generator
        Decides what is hidden.

    Returns
    -------
    columns : array of shape (p, levels)
        Level of each column's posterior for probabilities from 0 to 1 in even steps.
    by_spread : BySpread
        Levels to ask a column for, where the posterior is narrow or wide.
    """
    size = int(HELD_OUT * len(X))
    n_parts = min(max(-(-HELD_ROWS // size), 1), round(1 / HELD_OUT))
    found = [_held_out(learn, X, slice(i * size, (i + 1) * size), rng) for i in range(n_parts)]
    pit, spread = (np.concatenate(side) for side in zip(*found, strict=True))
    known = ~np.isnan(pit)
    everywhere = _blend(pit[known], STEPS)
    columns = np.stack([_blend(pit[known[:, j], j], everywhere) for j in range(X.shape[1])])
    # What is left once the columns are calibrated.
    left = np.stack([np.interp(p, levels, STEPS) for p, levels in zip(pit.T, columns, strict=True)])
    return columns, _by_spread(left.T[known], spread[known])


def _held_out(learn: Learn, X: Array, held: slice, rng: Generator) -> tuple[Array, Array]:
    """PIT and spread of hidden cells of held-out rows, NaN elsewhere."""
    model, rows = learn(np.delete(X, held, axis=0), rng), np.tile(X[held], (TIMES, 1))
    lost = _hide(rows, rng)
    pit, spread = model.pit(lost, rows, rng), model.spreads(lost)
    hidden = np.isnan(lost) & ~np.isnan(rows)
    return np.where(hidden, pit, np.nan), np.where(hidden, spread, np.nan)


def _hide(rows: Array, rng: Generator) -> Array:
    """Hide cells: at random in half of the rows, in the pattern of another row in the others."""
    cells = rng.random(rows.shape) < HIDDEN
    pattern = np.isnan(rows)[rng.permutation(len(rows))]
    empty = ~(pattern & ~np.isnan(rows)).any(axis=1)
    mask = np.where((empty | (rng.random(len(rows)) < 0.5))[:, None], cells, pattern)
    lost = np.where(mask, np.nan, rows)
    # Where nothing would be left, nothing is hidden.
    return np.where(np.isnan(lost).all(axis=1, keepdims=True), rows, lost)


def _blend(found: Array, prior: Array) -> Array:
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
    return BySpread(knots, np.stack([_blend(pit[group == g], STEPS) for g in kept]))
