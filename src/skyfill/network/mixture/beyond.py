"""Gaps beyond what was seen of their column: found, and rehearsed with values that are known.

A survey does not see faint objects: their gaps are not like the cells that it filled, even where
nobody has stated a limit. Such gaps show by the other columns, which lie outside the range that
they have where the survey saw something. What a model says of them is tried out beforehand: seen
cells of the rows that are most like those without the column are hidden, or whole rows at the ends
of the table are left out, and found again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from skyfill.network._array import Array, BoolArray, IntArray
from skyfill.network.cells import Cells
from skyfill.network.mixture.calibration import hide_like_gaps
from skyfill.network.mixture.fit import Plan
from skyfill.network.mixture.map_choice import held_out_log, hold_out, plan_trial
from skyfill.network.mixture.maps import Maps, map_columns
from skyfill.network.mixture.network import MixtureNetwork
from skyfill.network.mixture.rehearsal import (
    LEAST_LIMITED,
    LEAST_SEEN,
    STRICTER,
    Rehearsal,
    miss,
    rehearsed,
)
from skyfill.network.mixture.support import find_doubt, find_support

# A column has gaps beyond if more than this share of them is at least so far outside.
BEYOND, FAR_OUT = 0.1, 0.1
# Share of the rows that is left out at either end of a table, and how often other cells of these
# are hidden: the outermost cells, which are few, decide.
OUTER, HIDINGS = 0.15, 5
# What sharing regressions must leave at most of what is missed without: it blurs components.
WORTH = 0.9
# Rows to try ways on, and fits that tell how uncertain gaps beyond are.
TRIAL_ROWS, DOUBT_FITS = 2000, 2


def gaps_beyond(cells: Cells) -> BoolArray:
    """Say which gaps lie beyond the rows that have their column."""
    scores = _plain_scores(cells)
    return np.asarray(find_support(scores).distance(scores) > FAR_OUT)


def find_beyond(cells: Cells) -> BoolArray:
    """Find the columns many of whose gaps lie beyond the rows that have the column.

    Examples
    --------
    >>> V = np.linspace(14.0, 20.0, 300)
    >>> J = np.where(V < 17, V - 1, np.nan)
    >>> find_beyond(Cells(np.column_stack([V, J, V - 0.5]))).tolist()
    [False, True, False]
    """
    gaps = np.isnan(cells.values)
    n_gaps, n_seen = gaps.sum(axis=0), (~gaps).sum(axis=0)
    often = gaps_beyond(cells).sum(axis=0) > BEYOND * np.maximum(n_gaps, 1)
    return often & (n_gaps >= LEAST_LIMITED) & (n_seen >= LEAST_SEEN)


def _plain_scores(cells: Cells) -> Array:
    names = tuple(map(str, range(cells.values.shape[1])))
    return MixtureNetwork(names, map_columns(cells, "smooth"), ()).scores(cells.values)


def rehearse_beyond(cells: Cells, share: float) -> Rehearsal | None:
    """Hide a share of the seen cells of columns with gaps beyond: those most like the gaps."""
    columns = np.flatnonzero(find_beyond(cells))
    if not columns.size:
        return None
    scores, hidden = _plain_scores(cells), np.zeros(cells.values.shape, bool)
    filled = np.where(np.isnan(scores), 0.0, scores)
    related = find_support(scores).related
    for j in columns.tolist():
        gaps = np.isnan(scores[:, j])
        way = (filled[gaps].mean(axis=0) - filled[~gaps].mean(axis=0)) * related[j]
        like = filled @ way
        hidden[:, j] = ~gaps & (like > np.quantile(like[~gaps], 1.0 - share))
    hidden[(hidden | np.isnan(scores)).all(axis=1)] = False
    truth = np.where(hidden, cells.values, np.nan)
    scale = np.nanstd(np.where(np.isnan(cells.values).all(axis=0), 0.0, cells.values), axis=0)
    return Rehearsal(cells, cells.hide(hidden), truth, hidden, np.where(scale > 0, scale, 1.0))


class Outside(NamedTuple):
    """Rows to learn from, and others, unlike these, with hidden cells."""

    train: Cells
    lost: Cells
    truth: Array


def leave_out_ends(cells: Cells, rng: Generator) -> Outside:
    """Leave out the rows at both ends of the direction in which a table extends most."""
    scores = _plain_scores(cells)
    filled = np.where(np.isnan(scores), 0.0, scores)
    along = filled @ np.linalg.eigh(filled.T @ filled)[1][:, -1]
    low, high = np.quantile(along, [OUTER, 1 - OUTER])
    outer = (along < low) | (along > high)
    rows = cells.take(np.tile(np.flatnonzero(outer), HIDINGS))
    hidden = hide_like_gaps(rows, rng)
    return Outside(cells.take(~outer), rows.hide(hidden), np.where(hidden, rows.values, np.nan))


def outside_of(rehearsal: Rehearsal) -> Outside:
    """See a rehearsal in the same way: all rows teach, and some of them have hidden cells."""
    rows = rehearsal.is_value.any(axis=1)
    return Outside(rehearsal.harder, rehearsal.harder.take(rows), rehearsal.truth[rows])


def choose_pooling(
    cells: Cells, kind: Maps, plan: Plan, strength: float, rng: Generator
) -> tuple[float, ...]:
    """Share regressions among components (pooling.py) where gaps beyond gain more than others lose.

    Both ways fill cells that are hidden at random and cells that are most like the gaps beyond;
    these count by the share of the gaps that lie beyond.
    """
    rows = cells.take(rng.permutation(len(cells))[:TRIAL_ROWS])
    beyond = find_beyond(rows)
    if not beyond.any():
        return ()
    weight = float(gaps_beyond(rows).sum() / max(np.isnan(rows.values).sum(), 1))
    trial, held = plan_trial(plan, rows), hold_out(rows, rng)
    made = [one for one in (rehearse_beyond(rows, share) for share in STRICTER) if one is not None]

    def log_missed(pooling: tuple[float, ...]) -> float:
        mine = trial._replace(pooling=pooling)
        far = [np.log(miss(rehearsed(kind, mine, one.harder), one)) for one in made]
        return float(weight * np.mean(far) + (1 - weight) * held_out_log(kind, mine, held))

    pooled = tuple(np.where(beyond, strength, 1.0).tolist())
    return pooled if log_missed(pooled) < log_missed(()) + np.log(WORTH) else ()


def learn_doubt(cells: Cells, kind: Maps, plan: Plan, rng: Generator) -> float:
    """Find how uncertain a step beyond makes a gap: by gaps beyond, or by the ends of a table."""
    made = rehearse_beyond(cells, STRICTER[-1])
    outside = leave_out_ends(cells, rng) if made is None else outside_of(made)
    return doubt_of(rehearsed(kind, plan, outside.train, DOUBT_FITS), outside)


def doubt_of(model: MixtureNetwork, outside: Outside) -> float:
    """Find the doubt of a model that was fitted to the rows that teach."""
    support = find_support(model.scores(outside.train.values))
    distance = support.distance(model.scores(outside.lost.values))
    away = model.scores(outside.truth) - model.scores(model.middle(outside.lost))
    known = ~np.isnan(outside.truth) & ~outside.lost.is_limited
    spread = model.spreads(outside.lost)
    return find_doubt(away[known], spread[known], distance[known])


def count_beyond(network: MixtureNetwork, cells: Cells) -> tuple[IntArray, IntArray]:
    """Count each column's gaps without limits, and those of them that lie beyond."""
    gaps, distance = np.isnan(cells.values) & ~cells.is_limited, np.zeros(cells.values.shape)
    if network.support is not None:
        distance = network.support.distance(network.scores(cells.values))
    return gaps.sum(axis=0), (gaps & (distance > FAR_OUT)).sum(axis=0)


def with_support(
    network: MixtureNetwork, cells: Cells, doubt: float, *, is_shared: bool = False
) -> MixtureNetwork:
    """Let a network know the rows that it was learned from, and how uncertain it is beyond."""
    ends = np.stack([np.nanmin(cells.values, axis=0), np.nanmax(cells.values, axis=0)])
    support = find_support(network.scores(cells.values))._replace(ends=ends, doubt=doubt)
    n_gaps, n_beyond = count_beyond(replace(network, support=support), cells)
    many = (n_beyond > BEYOND * n_gaps) & (n_gaps >= LEAST_LIMITED)
    shares = np.where(many, n_beyond / np.maximum(n_gaps, 1), 0.0)
    return replace(network, support=support._replace(beyond=shares, is_shared=is_shared))
