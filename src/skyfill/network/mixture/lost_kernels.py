"""Compiled kernels for the lost cells of one row with limits or errors, given what it has seen.

A cell is lost if it is not known exactly. Of a cell seen with an error, the truth is the value less
the error: seen from the value, it is the error that is unknown, and that is independent of all true
values. So such cells and gaps have one formula, with different means and covariances to start from,
and a small error is no difference of large numbers.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.network._array import Array, IntArray
from skyfill.network.mixture.compiled import leaf
from skyfill.network.mixture.kernels import make_room
from skyfill.network.mixture.lanes import (
    LANES,
    TINY,
    add_products,
    combine,
    copy,
    eliminate,
    sum_products,
)

# What a cell is.
SEEN, UNKNOWN, LIMITED, NOISY = range(4)
# How much is known of the lost cells of a block: nothing, all but the noisy ones, all.
NOTHING, GAPS, ALL = range(3)


class Room(NamedTuple):
    """Room to work on one row in; `k` components in all."""

    kind: IntArray  # (p,): what each cell is
    last: IntArray  # (p,): what each was in the row that was factorised last; -1 where none was
    seen: IntArray  # (p,): cells with values
    lost: IntArray  # (p,): cells that are not exact
    place: IntArray  # (p,): where each limited cell stands among the lost
    among: IntArray  # (p,): where each noisy one of the lost stands among the seen
    known: IntArray  # (blocks,): which cells `gain` and `cov` are known of
    here: IntArray  # (blocks,): which cells `at` is known of, for the row at hand
    z: Array
    lower: Array  # (blocks, p, p, lanes): Cholesky factor of what is seen, its diagonal inverted
    y: Array  # (blocks, p, lanes): that factor's inverse times what is seen, less the mean
    log_w: Array  # (blocks, lanes): all of the log density of what is seen but -quad/2
    log_gaps: Array  # (blocks, lanes): log chance of the pattern of gaps
    logs: Array  # (k,): log density of the row
    quad: Array  # (lanes,): squares of what is seen, made independent, for a block
    gain: Array  # (blocks, p, p, lanes): inverse factor times covariances of seen and lost cells
    cov: Array  # (blocks, p, p, lanes): lower half of their covariance, limits left aside
    at: Array  # (blocks, p, lanes): their means, limits left aside
    alpha: Array  # (blocks, p, lanes): pull of each limit
    W: Array  # (blocks, p, p, lanes): what the limits take away from the covariance
    cavity: Array  # (2, blocks, p, lanes): mean and variance of limited cells but for their limits
    pull: Array  # (p, p + 1, lanes): of each column a number, then covariances with limited cells
    taken: Array  # (p, p + 1, lanes): of each column a number, then these covariances times W
    mean: Array  # (p, lanes): means of lost cells with limits
    share: Array  # (2, lanes): responsibilities, and these with the sign changed
    square: Array  # (2, p, p): covariance of limited cells, without and with their limits
    line: Array  # (8, p): limits, their variance, and what propagation finds


@njit(cache=True, nogil=True, error_model="numpy")
def make_row(blocks, p):  # type: ignore[no-untyped-def]
    """Make room for one row."""
    return Room(
        np.empty(p, np.int64),
        np.full(p, -1, np.int64),
        np.empty(p, np.int64),
        np.empty(p, np.int64),
        np.empty(p, np.int64),
        np.empty(p, np.int64),
        np.zeros(blocks, np.int64),
        np.zeros(blocks, np.int64),
        make_room(p),
        np.empty((blocks, p, p, LANES)),
        np.empty((blocks, p, LANES)),
        np.empty((blocks, LANES)),
        np.empty((blocks, LANES)),
        np.empty(blocks * LANES),
        np.empty(LANES),
        np.empty((blocks, p, p, LANES)),
        np.empty((blocks, p, p, LANES)),
        np.empty((blocks, p, LANES)),
        np.empty((blocks, p, LANES)),
        np.empty((blocks, p, p, LANES)),
        np.empty((2, blocks, p, LANES)),
        np.empty((p, p + 1, LANES)),
        np.empty((p, p + 1, LANES)),
        np.empty((p, LANES)),
        np.empty((2, LANES)),
        np.empty((2, p, p)),
        np.empty((8, p)),
    )


@leaf
def look_at_lost(cells, r, shape, b, components, room, everything):  # type: ignore[no-untyped-def]
    """Write means and covariances of the lost cells for one block, limits left aside.

    Cells that were seen with an error are left out, unless `everything` is asked for.
    """
    seen, count, _, noisy = shape
    wanted = ALL if everything or not noisy else GAPS
    kind, lost, among, noise = room.kind, room.lost, room.among, cells.noise
    gain, cov, z, known, at = room.gain, room.cov, room.z, room.known, room.at
    if known[b] < wanted:
        covs, lower, columns = components.covs, room.lower, room.seen
        level = (known[b], wanted)
        regress_lost(
            r, kind, lost, among, columns, seen, count, b, level, noise, covs, lower, gain, cov, z
        )
        known[b] = wanted
    if room.here[b] < wanted:
        values, means, y = cells.values, components.means, room.y
        center_lost(r, kind, lost, among, seen, count, b, wanted, values, means, gain, y, at, z)
        room.here[b] = wanted


@leaf
def regress_lost(  # type: ignore[no-untyped-def]
    r, kind, lost, among, columns, seen, count, b, level, noise, covs, lower, gain, cov, z
):
    """Regress the lost cells that are wanted and not yet known on what is seen.

    Of a cell seen with an error it is the error, with which only its own value is correlated.
    """
    p, (known, wanted) = covs.shape[1], level
    first, one, nothing, scratch = b * p * p, p + 1, p + 2, p + 3
    for i in range(count):
        j, row, start, is_noisy = lost[i], first + i * p, 0, kind[lost[i]] == NOISY
        if is_noisy and wanted == GAPS:
            continue
        if is_noisy:
            start = among[i]
            out, own = row + start, first + start * p + start
            combine(-noise[r, j], lower, own, 0.0, z, nothing, gain, out)
            for a in range(start + 1, seen):
                own, n = first + a * p, a - start
                eliminate(
                    z, nothing, lower, own + start, gain, out, n, lower, own + a, gain, row + a
                )
        elif known == NOTHING:
            for a in range(seen):
                at, own = first + j * p + columns[a], first + a * p
                eliminate(covs, at, lower, own, gain, row, a, lower, own + a, gain, row + a)
        for h in range(i + 1):
            other_noisy = kind[lost[h]] == NOISY
            if (other_noisy and wanted == GAPS) or (known and not is_noisy and not other_noisy):
                continue
            begin = max(start, among[h]) if other_noisy else start
            here, there, n, out = row + begin, first + h * p + begin, seen - begin, row + h
            if not is_noisy and not other_noisy:
                at = first + j * p + lost[h]
                eliminate(covs, at, gain, here, gain, there, n, z, one, cov, out)
            elif i != h:
                eliminate(z, nothing, gain, here, gain, there, n, z, one, cov, out)
            else:
                combine(noise[r, j], z, one, 0.0, z, one, z, scratch)
                eliminate(z, scratch, gain, here, gain, there, n, z, one, cov, out)
        for k in range(LANES):
            cov[b, i, i, k] = max(cov[b, i, i, k], TINY)


@leaf
def center_lost(  # type: ignore[no-untyped-def]
    r, kind, lost, among, seen, count, b, wanted, values, means, gain, y, at, z
):
    """Write the means of lost cells."""
    p = means.shape[1]
    one, nothing = p + 1, p + 2
    for i in range(count):
        j, row, out, first = lost[i], (b * p + i) * p, b * p + i, 0
        if kind[j] != NOISY:
            copy(means, b * p + j, at, out)
        elif wanted == ALL:
            first = among[i]
            combine(values[r, j], z, one, 0.0, z, nothing, at, out)
        else:
            continue
        add_products(gain, row + first, y, b * p + first, seen - first, at, out)


@leaf
def meet_cell(i, j, b, limited, place, cov, at, alpha, W, pull, taken, mean):  # type: ignore[no-untyped-def]
    """Write the mean of a lost cell with all limits, and what they take from its covariances.

    The covariance of two cells then is ``cov - (taken * pull).sum()``.
    """
    p = place.size
    first, row = b * p * p, j * (p + 1) + 1
    for a in range(limited):
        copy(cov, first + max(i, place[a]) * p + min(i, place[a]), pull, row + a)
    for a in range(limited):
        sum_products(W, first + a * p, pull, row, limited, taken, row + a)
    copy(at, b * p + i, mean, j)
    add_products(pull, row, alpha, b * p, limited, mean, j)
