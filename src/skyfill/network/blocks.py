"""Components of mixtures laid out as the compiled kernels want them, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from skyfill.network import mixture_kernels as kernels
from skyfill.network._array import Array
from skyfill.network.lanes import LANES

if TYPE_CHECKING:
    from skyfill.network.mixture import Mixture


def in_blocks(fits: Sequence[Mixture]) -> kernels.Components:
    """Lay all components of all fits out as the kernels want them."""
    covs = np.concatenate([fit.covs for fit in fits])
    precisions = np.linalg.inv(covs)
    precisions = (precisions + precisions.transpose(0, 2, 1)) / 2
    weights = np.concatenate([fit.weights for fit in fits])
    log_norms = np.log(weights) - 0.5 * np.linalg.slogdet(covs)[1]
    np.einsum("kjj->kj", precisions)[:] /= 2
    # Where gaps tell nothing there is nothing to add for them.
    columns = 0 if fits[0].gap_rates is None else None
    lost, seen = (_side_by_side(logs[:, :columns]) for logs in gap_logs(fits))
    return kernels.Components(
        _side_by_side(np.concatenate([fit.means for fit in fits])),
        # Components of no weight fill the last block up; they can have any precision.
        _side_by_side(precisions, np.eye(covs.shape[1])),
        _side_by_side(log_norms, -np.inf),
        lost,
        seen,
        np.cumsum([0, *(len(fit.weights) for fit in fits)], dtype=np.int64),
    )


def _side_by_side(values: Array, more: Array | float = 0.0) -> Array:
    """Put the first axis in blocks of lanes at the end: (k, ...) to (blocks, ..., lanes)."""
    blocks = -(-len(values) // LANES)
    full = np.empty((blocks * LANES, *values.shape[1:]))
    full[: len(values)], full[len(values) :] = values, more
    return np.ascontiguousarray(np.moveaxis(full.reshape(blocks, LANES, *values.shape[1:]), 1, -1))


def one_by_one(blocks: Array, count: int) -> Array:
    """Undo it: (blocks, ..., lanes) to (k, ...)."""
    back = np.moveaxis(blocks, -1, 1)
    return back.reshape(-1, *back.shape[2:])[:count]


def gap_logs(fits: Sequence[Mixture]) -> tuple[Array, Array]:
    """Log probability of each component that a cell is a gap, or not; 0 where gaps tell nothing."""
    rates = [fit.gap_rates for fit in fits if fit.gap_rates is not None]
    if not rates:
        nothing = np.zeros((sum(len(fit.weights) for fit in fits), fits[0].means.shape[1]))
        return nothing, nothing
    return np.log(np.concatenate(rates)), np.log1p(-np.concatenate(rates))
