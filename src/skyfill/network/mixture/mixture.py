"""One mixture of Gaussians in normal scores, and the moments it expects of a table with gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from skyfill.network._array import Array, IntArray
from skyfill.network.cells import Cells, as_cells
from skyfill.network.mixture import kernels
from skyfill.network.mixture.lanes import LANES
from skyfill.network.mixture.row_kernels import Uncertain
from skyfill.network.mixture.uncertain_kernels import add_uncertain
from skyfill.network.moments import Moments, mirrored
from skyfill.network.single.graph import Parents

# Rows worked on at once: enough to share factorisations between rows with the same gaps, few
# enough that all components' means of all gaps stay near.
ROWS_AT_ONCE = 1024


class Mixture(NamedTuple):
    """One fitted mixture, in normal scores.

    `parents` holds each component's graph; None where the covariances are full. `gap_rates` is
    None where gaps are ignorable.
    """

    weights: Array  # (k,)
    means: Array  # (k, p)
    covs: Array  # (k, p, p)
    gap_rates: Array | None  # (k, p)
    parents: tuple[Parents, ...] | None


class Sorted(NamedTuple):
    """A part of a table with its plain rows sorted by pattern of gaps, and its gaps in row order.

    Rows with limits or errors stand apart; what they have seen with an error counts as a gap.
    """

    Z: Array
    order: IntArray
    starts: IntArray
    first_gap: IntArray
    row_of: IntArray
    column_of: IntArray
    uncertain: IntArray  # rows with limits or errors
    cells: Uncertain | None
    windows: Array  # (gaps, 3): limits and their variance; without rows where there are none


def sort_rows(scores: Cells | Array) -> Sorted:
    """Sort rows by their pattern of gaps."""
    scores = as_cells(scores)
    Z, noisy, vague = scores.values, scores.is_noisy, scores.is_limited
    uncertain = np.flatnonzero((noisy | vague).any(axis=1))
    lost = np.isnan(Z) | noisy
    words = np.packbits(lost, axis=1)
    order = np.lexsort(words.T[::-1]) if words.size else np.arange(len(Z))
    if uncertain.size:
        order = order[~np.isin(order, uncertain)]
    new = (words[order[1:]] != words[order[:-1]]).any(axis=1)
    ends = [len(order)] if len(order) else []  # an empty table has no pattern
    starts = np.concatenate([[0], np.flatnonzero(new) + 1, ends]).astype(np.int64)
    row_of, column_of = map(np.ascontiguousarray, np.nonzero(lost))
    first_gap = np.concatenate([[0], np.cumsum(lost.sum(axis=1))[:-1]]).astype(np.int64)
    # In the order of their patterns: rows that follow one another then share factorisations.
    uncertain = uncertain[np.lexsort(words[uncertain].T[::-1])].astype(np.int64)
    cells = lay_out_uncertain(scores) if uncertain.size else None
    windows = np.empty((0, 3))
    if cells is not None and vague.any():
        windows = np.stack([a[row_of, column_of] for a in (cells.low, cells.high, cells.noise)], 1)
        windows[noisy[row_of, column_of]] = (-np.inf, np.inf, 0.0)
    order = order.astype(np.int64)
    return Sorted(Z, order, starts, first_gap, row_of, column_of, uncertain, cells, windows)


def lay_out_uncertain(scores: Cells) -> Uncertain:
    """Lay limits and errors out as the kernels want them."""
    limited = scores.is_limited
    nothing = np.full(scores.values.shape, np.nan)
    low, high, errors = (
        nothing if a is None else a for a in (scores.lower, scores.upper, scores.errors)
    )
    return Uncertain(
        scores.values,
        np.where(limited & ~np.isnan(low), low, -np.inf),
        np.where(limited & ~np.isnan(high), high, np.inf),
        np.where(errors > 0, errors, 0.0) ** 2,
    )


def split(scores: Cells | Array) -> list[Sorted]:
    """Cut a table into parts with their rows sorted by pattern."""
    scores, n = as_cells(scores), len(scores)
    places = (slice(start, start + ROWS_AT_ONCE) for start in range(0, n, ROWS_AT_ONCE))
    return [sort_rows(scores.take(rows)) for rows in places]


def in_blocks(fits: Sequence[Mixture]) -> kernels.Components:
    """Lay all components of all fits out as the kernels want them."""
    precisions, log_norms = precisions_of(fits)
    # Ignorable gaps add nothing to the likelihood.
    columns = 0 if fits[0].gap_rates is None else None
    lost, seen = (_side_by_side(logs[:, :columns]) for logs in gap_logs(fits))
    covs = np.concatenate([fit.covs for fit in fits])
    weights = np.concatenate([fit.weights for fit in fits])
    return kernels.Components(
        _side_by_side(np.concatenate([fit.means for fit in fits])),
        # Components of no weight fill the last block up; they can have any precision.
        _side_by_side(precisions, np.eye(precisions.shape[1])),
        _side_by_side(log_norms, -np.inf),
        lost,
        seen,
        np.cumsum([0, *(len(fit.weights) for fit in fits)], dtype=np.int64),
        _side_by_side(covs, np.eye(covs.shape[1])),
        _side_by_side(np.log(weights), -np.inf),
    )


def precisions_of(fits: Sequence[Mixture]) -> tuple[Array, Array]:
    """Precisions of all components with half their diagonal, and the logs of what scales them."""
    covs = np.concatenate([fit.covs for fit in fits])
    precisions = np.linalg.inv(covs)
    precisions = (precisions + precisions.transpose(0, 2, 1)) / 2
    weights = np.concatenate([fit.weights for fit in fits])
    log_norms = np.log(weights) - 0.5 * np.linalg.slogdet(covs)[1]
    np.einsum("kjj->kj", precisions)[:] /= 2
    return precisions, log_norms


def _side_by_side(values: Array, more: Array | float = 0.0) -> Array:
    """Put the first axis in blocks of lanes at the end: (k, ...) to (blocks, ..., lanes)."""
    blocks = -(-len(values) // LANES)
    full = np.empty((blocks * LANES, *values.shape[1:]))
    full[: len(values)], full[len(values) :] = values, more
    full = full.reshape(blocks, LANES, *values.shape[1:])
    return np.ascontiguousarray(full.transpose(0, *range(2, full.ndim), 1))


def one_by_one(blocks: Array, count: int) -> Array:
    """Undo it: (blocks, ..., lanes) to (k, ...)."""
    back = blocks.transpose(0, blocks.ndim - 1, *range(1, blocks.ndim - 1))
    return back.reshape(-1, *back.shape[2:])[:count]


def gap_logs(fits: Sequence[Mixture]) -> tuple[Array, Array]:
    """Log probabilities that a cell is a gap, or is not; 0 where gaps are ignorable."""
    rates = [fit.gap_rates for fit in fits if fit.gap_rates is not None]
    if not rates:
        nothing = np.zeros((sum(len(fit.weights) for fit in fits), fits[0].means.shape[1]))
        return nothing, nothing
    return np.log(np.concatenate(rates)), np.log1p(-np.concatenate(rates))


def expect_parts(
    parts: Sequence[Sorted], mixture: Mixture, each: Callable[..., list[Moments]]
) -> Moments:
    """Sum the expected moments of parts; `each` maps over them, on one core or on many."""
    moments = each(lambda i: expect_mixture(parts[i], mixture), list(range(len(parts))))
    return sum(moments[1:], start=moments[0])


def expect_mixture(part: Sorted, mixture: Mixture) -> Moments:
    """Take the expected moments of a part of a table: the E-step."""
    components = in_blocks([mixture])
    sums = [np.zeros(a.shape) for a in (components.log_norms, components.means)]
    sums += [np.zeros(a.shape) for a in (components.precisions, components.means)]
    loglik = kernels.add_moments(*part[:3], components, *sums)
    if part.cells is not None:
        loglik += add_uncertain(part.cells, part.uncertain, components, *sums)
    weight, total, cross, gaps = (one_by_one(a, len(mixture.weights)) for a in sums)
    return Moments(len(part.Z), mixture.means, weight, total, mirrored(cross), gaps, loglik)
