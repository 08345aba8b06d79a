"""Compiled kernels for one row with limits or errors: every component of every fit.

The row is conditioned on what it has seen, with the variances of errors added to the covariance of
the seen cells: for eight components at a time, as for plain rows (kernels.py). What that leaves of
the other cells is found only for components that matter. Limits are then met by expectation
propagation, one component at a time: a limit never makes a row more likely.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.network._array import Array, IntArray
from skyfill.network.mixture.kernels import make_room, normalize
from skyfill.network.mixture.lanes import (
    LANES,
    combine,
    copy,
    eliminate,
    multiply,
    pivot,
    subtract,
    sum_products,
)
from skyfill.network.mixture.truncated_kernels import propagate

# Components that fall behind the best of their fit by this much (in logs) are not followed up.
BEHIND = 10.0
# Least distance of two limits, in normal scores.
NARROWEST = 1e-6
# What a cell is.
SEEN, UNKNOWN, LIMITED, NOISY = range(4)


class Uncertain(NamedTuple):
    """Cells of a part of a table, in normal scores, all of shape (n, p)."""

    values: Array  # NaN where nothing was seen
    low: Array  # the value is larger; -inf where no limit is known
    high: Array  # the value is smaller; inf where no limit is known
    noise: Array  # variance of the error of a seen value, or of a soft limit; 0 where exact


class Room(NamedTuple):
    """Room to work on one row in; `k` components in all."""

    kind: IntArray  # (p,): what each cell is
    last: IntArray  # (p,): what each was in the row that was factorised last; -1 where none was
    seen: IntArray  # (p,): cells with values
    lost: IntArray  # (p,): cells that are not exact
    place: IntArray  # (p,): where each limited cell stands among the lost
    known: IntArray  # (k,): how many lost cells `gain` and `cov` are known of
    z: Array
    lower: Array  # (blocks, p, p, lanes): Cholesky factor of what is seen, its diagonal inverted
    y: Array  # (blocks, p, lanes): that factor's inverse times what is seen, less the mean
    log_w: Array  # (blocks, lanes): all of the log density of what is seen but -quad/2
    log_gaps: Array  # (blocks, lanes): log chance of the pattern of gaps
    logs: Array  # (k,): log density of the row
    gain: Array  # (k, p, p): the factor's inverse times covariances of seen and lost cells
    cov: Array  # (k, p, p): covariance of the lost cells, limits left aside
    at: Array  # (k, p): their means, limits left aside
    alpha: Array  # (k, p): pull of each limit
    W: Array  # (k, p, p): what the limits take away from the covariance
    cavity: Array  # (k, 2, p): distribution of a limited cell but for its own limit
    square: Array  # (2, p, p): covariance of limited cells, without and with their limits
    line: Array  # (8, p): limits, their variance, and what propagation finds


@njit(cache=True, nogil=True, error_model="numpy")
def make_row(blocks, p):  # type: ignore[no-untyped-def]
    """Make room for one row."""
    k = blocks * LANES
    return Room(
        np.empty(p, np.int64),
        np.full(p, -1, np.int64),
        np.empty(p, np.int64),
        np.empty(p, np.int64),
        np.empty(p, np.int64),
        np.zeros(k, np.int64),
        make_room(p),
        np.empty((blocks, p, p, LANES)),
        np.empty((blocks, p, LANES)),
        np.empty((blocks, LANES)),
        np.empty((blocks, LANES)),
        np.empty(k),
        np.empty((k, p, p)),
        np.empty((k, p, p)),
        np.empty((k, p)),
        np.empty((k, p)),
        np.empty((k, p, p)),
        np.empty((k, 2, p)),
        np.empty((2, p, p)),
        np.empty((8, p)),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def sort_cells(cells, r, room):  # type: ignore[no-untyped-def]
    """Find what each cell of a row is; return how many are seen, lost, limited and noisy."""
    seen, count, limited, noisy = 0, 0, 0, 0
    for j in range(cells.values.shape[1]):
        kind = SEEN
        if np.isnan(cells.values[r, j]):
            is_free = cells.low[r, j] == -np.inf and cells.high[r, j] == np.inf
            kind = UNKNOWN if is_free else LIMITED
        elif cells.noise[r, j] > 0.0:
            kind = NOISY
        room.kind[j] = kind
        if not np.isnan(cells.values[r, j]):
            room.seen[seen] = j
            seen += 1
        if kind != SEEN:
            room.lost[count] = j
            if kind == LIMITED:
                room.place[limited] = count
                limited += 1
            noisy += kind == NOISY
            count += 1
    return seen, count, limited, noisy


@njit(cache=True, nogil=True, error_model="numpy")
def prepare_row(cells, r, shape, components, room):  # type: ignore[no-untyped-def]
    """Factorise the covariance of what a row has seen for every block, and count its gaps.

    A limit says why a cell is missing: it does not count as a gap once more. A row without errors
    can share the work with the row before it.
    """
    seen, _, _, noisy = shape
    if noisy == 0 and np.array_equal(room.kind, room.last):
        return
    room.last[:] = room.kind
    if noisy:
        room.last[0] = -1
    room.known[:] = 0
    p = components.means.shape[1]
    for b in range(components.means.shape[0]):
        copy(room.z, p + 2, room.log_gaps, b)
        for j in range(components.log_lost.shape[1]):
            at = b * p + j
            if room.kind[j] == UNKNOWN:
                combine(1.0, room.log_gaps, b, 1.0, components.log_lost, at, room.log_gaps, b)
            elif room.kind[j] != LIMITED:
                combine(1.0, room.log_gaps, b, 1.0, components.log_seen, at, room.log_gaps, b)
        factorize_seen(cells, r, seen, b, components, room)


@njit(cache=True, nogil=True, error_model="numpy")
def factorize_seen(cells, r, seen, b, components, room):  # type: ignore[no-untyped-def]
    """Factorise the covariance of seen cells, errors included, for a block."""
    covs, lower, z = components.covs, room.lower, room.z
    p = covs.shape[1]
    first, det, one, half = b * p * p, p, p + 1, p + 3
    constant = 0.5 * seen * np.log(2.0 * np.pi)
    combine(1.0, components.log_weights, b, -constant, z, one, room.log_w, b)
    copy(z, one, z, det)
    for i in range(seen):
        row, start = first + i * p, first + room.seen[i] * p
        for j in range(i):
            other = first + j * p
            at = start + room.seen[j]
            eliminate(covs, at, lower, row, lower, other, j, lower, other + j, lower, row + j)
        noise = cells.noise[r, room.seen[i]]
        combine(0.5, covs, start + room.seen[i], 0.5 * noise, z, one, z, half)
        pivot(z, half, lower, row, i, lower, row + i)
        multiply(z, det, lower, row + i, z, det)
        # One logarithm per component, not one per cell; before the products run out of range.
        if i == seen - 1 or i % 8 == 7:
            for k in range(LANES):
                room.log_w[b, k] += np.log(z[det, k])
            copy(z, one, z, det)


@njit(cache=True, nogil=True, error_model="numpy")
def look_at_seen(cells, r, seen, b, components, room, quad):  # type: ignore[no-untyped-def]
    """Write the seen cells of a row, less the mean and made independent, and their squares' sum."""
    p = components.means.shape[1]
    first, at, scratch = b * p * p, b * p, p + 3
    for i in range(seen):
        row, j = first + i * p, room.seen[i]
        subtract(cells.values[r, j], components.means, at + j, room.z, scratch)
        eliminate(
            room.z, scratch, room.lower, row, room.y, at, i, room.lower, row + i, room.y, at + i
        )
    sum_products(room.y, at, room.y, at, seen, quad, 0)


@njit(cache=True, nogil=True, error_model="numpy")
def look_at_lost(shape, component, components, room, everything):  # type: ignore[no-untyped-def]
    """Write means and covariances of the lost cells for one component, limits left aside.

    Cells that were seen with an error are left out, unless `everything` is asked for.
    """
    seen, count, _, _ = shape
    b, k = component // LANES, component % LANES
    gain, cov, lower = room.gain[component], room.cov[component], room.lower
    if room.known[component] == 0 or (everything and room.known[component] == 1):
        room.known[component] = 2 if everything else 1
        for i in range(count):
            j = room.lost[i]
            if not everything and room.kind[j] == NOISY:
                continue
            for a in range(seen):
                left = components.covs[b, j, room.seen[a], k]
                for e in range(a):
                    left -= lower[b, a, e, k] * gain[i, e]
                gain[i, a] = left * lower[b, a, a, k]
            for h in range(i + 1):
                if not everything and room.kind[room.lost[h]] == NOISY:
                    continue
                left = components.covs[b, j, room.lost[h], k]
                for a in range(seen):
                    left -= gain[i, a] * gain[h, a]
                cov[i, h] = left if h < i else max(left, 1e-300)
                cov[h, i] = cov[i, h]
    for i in range(count):
        if everything or room.kind[room.lost[i]] != NOISY:
            mean = components.means[b, room.lost[i], k]
            for a in range(seen):
                mean += gain[i, a] * room.y[b, a, k]
            room.at[component, i] = mean


@njit(cache=True, nogil=True, error_model="numpy")
def meet_limits(cells, r, shape, component, components, room):  # type: ignore[no-untyped-def]
    """Bring the limits of a row into one component; return their log probability."""
    limited = shape[2]
    look_at_lost(shape, component, components, room, False)
    V, S = room.square[0, :limited, :limited], room.square[1, :limited, :limited]
    low, high, noise = room.line[0, :limited], room.line[1, :limited], room.line[2, :limited]
    mean, tau, nu = room.line[3, :limited], room.line[4, :limited], room.line[5, :limited]
    cavity = room.line[6:8]
    for a in range(limited):
        i = room.place[a]
        j, at = room.lost[i], room.at[component, i]
        low[a], high[a] = cells.low[r, j] - at, cells.high[r, j] - at
        noise[a] = cells.noise[r, j]
        for e in range(limited):
            V[a, e] = room.cov[component, i, room.place[e]]
    value = propagate(V, low, high, noise, S, mean, tau, nu, cavity)
    for a in range(limited):
        at = room.at[component, room.place[a]]
        room.alpha[component, a] = nu[a] - tau[a] * mean[a]
        room.cavity[component, 0, a] = at + cavity[0, a]
        room.cavity[component, 1, a] = cavity[1, a]
        for e in range(limited):
            room.W[component, a, e] = (tau[a] if a == e else 0.0) - tau[a] * S[a, e] * tau[e]
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_row(cells, r, components, room, shape, resp):  # type: ignore[no-untyped-def]
    """Weigh all components by a row; return log-likelihoods with and without gaps and limits.

    `shape` holds the numbers of seen, lost, limited and noisy cells.
    """
    seen, _, limited, _ = shape
    blocks, bounds = components.means.shape[0], components.bounds
    quad = np.empty(LANES)
    for b in range(blocks):
        look_at_seen(cells, r, seen, b, components, room, quad)
        combine(1.0, room.log_w, b, -0.5, quad, 0, room.logs, b)
    resp[:] = room.logs
    of_seen = normalize(resp, bounds)
    if not limited and not components.log_lost.shape[1]:
        return of_seen, of_seen
    for b in range(blocks):
        combine(1.0, room.logs, b, 1.0, room.log_gaps, b, room.logs, b)
    if limited:
        for f in range(bounds.size - 1):
            follow_up(cells, r, shape, bounds[f], bounds[f + 1], components, room)
    resp[:] = room.logs
    return normalize(resp, bounds), of_seen


@njit(cache=True, nogil=True, error_model="numpy")
def follow_up(cells, r, shape, first, last, components, room):  # type: ignore[no-untyped-def]
    """Bring the limits into the components of one fit: the likeliest first, then what is near."""
    logs = room.logs
    top = first
    for component in range(first, last):
        if logs[component] > logs[top]:
            top = component
    logs[top] += meet_limits(cells, r, shape, top, components, room)
    best = logs[top]
    for component in range(first, last):
        if component == top:
            continue
        if logs[component] < best - BEHIND:
            logs[component] = -np.inf
            continue
        logs[component] += meet_limits(cells, r, shape, component, components, room)
        best = max(best, logs[component])


@njit(cache=True, nogil=True, error_model="numpy")
def shift_one(component, i, limited, room):  # type: ignore[no-untyped-def]
    """Give what the limits add to the mean of a lost cell, and its variance."""
    cov, W = room.cov[component], room.W[component]
    shift, var = 0.0, cov[i, i]
    for a in range(limited):
        with_a = cov[i, room.place[a]]
        shift += with_a * room.alpha[component, a]
        for e in range(limited):
            var -= with_a * W[a, e] * cov[i, room.place[e]]
    return shift, max(var, 1e-300)


@njit(cache=True, nogil=True, error_model="numpy")
def shift_by_limits(component, count, limited, room, shift, spread):  # type: ignore[no-untyped-def]
    """Covariance of what is lost, and what the limits add to its mean."""
    cov, W = room.cov[component], room.W[component]
    for i in range(count):
        shift[i] = 0.0
        for j in range(i + 1):
            spread[i, j] = cov[i, j]
        for a in range(limited):
            shift[i] += cov[i, room.place[a]] * room.alpha[component, a]
    for a in range(limited):
        if W[a, a] == 0.0:  # a limit that changes nothing
            continue
        for i in range(count):
            taken = 0.0
            for e in range(limited):
                taken += W[a, e] * cov[i, room.place[e]]
            for j in range(i + 1):
                spread[i, j] -= taken * cov[j, room.place[a]]
