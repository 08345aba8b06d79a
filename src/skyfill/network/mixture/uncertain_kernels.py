"""Compiled kernels for rows with limits or errors: every component of every fit.

A cell that was seen with an error is lost, with a Gaussian factor of its own: its error variance
adds to the diagonal of the precision of what is lost. That is done for eight components at a time,
as for plain rows (kernels.py). Limits are then met by expectation propagation, one component at a
time, and only for components that can matter: a limit never makes a row more likely.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.network._array import Array, IntArray
from skyfill.network.mixture.gap_kernels import choose, look_up
from skyfill.network.mixture.kernels import Factors, factorize, make_factors, make_room, normalize
from skyfill.network.mixture.lanes import (
    LANES,
    combine,
    copy,
    eliminate,
    multiply,
    subtract,
    sum_products,
)
from skyfill.network.mixture.truncated_kernels import draw_windows, propagate, quantile, uniform

# Components that fall behind the best of their fit by this much (in logs) are not followed up.
BEHIND = 10.0
# Components of less responsibility than this are left out of moments and of what is lost.
NEGLIGIBLE = 1e-5
# What a cell is.
SEEN, UNKNOWN, LIMITED, NOISY = range(4)


class Uncertain(NamedTuple):
    """Cells of a part of a table, in normal scores, all of shape (n, p)."""

    values: Array  # NaN where nothing was seen
    low: Array  # the value is larger; -inf where no limit is known
    high: Array  # the value is smaller; inf where no limit is known
    noise: Array  # variance of the error of a seen value, or of a soft limit; 0 where exact


class Room(NamedTuple):
    """Room to work on one row in."""

    kind: IntArray  # (p,): what each cell is
    last: IntArray  # (p,): what each was in the row that was factorised last; -1 where none was
    lost: IntArray  # (p + 1,): cells that are not exact, then -1
    place: IntArray  # (p,): where each limited cell stands among the lost
    factors: Factors
    z: Array
    c: Array  # (blocks * p, lanes): completed cells less the mean
    logs: Array  # (blocks * lanes,): log density of the row
    alpha: Array  # (components, p): pull of each limit
    W: Array  # (components, p, p): what the limits take away from the covariance
    cavity: Array  # (components, 2, p): distribution of a limited cell but for its own limit
    square: Array  # (2, p, p): covariance of limited cells, without and with their limits
    line: Array  # (8, p): limits, their variance, and what propagation finds


@njit(cache=True, nogil=True, error_model="numpy")
def make_row(blocks, p):  # type: ignore[no-untyped-def]
    """Make room for one row."""
    k = blocks * LANES
    return Room(
        np.empty(p, np.int64),
        np.full(p, -1, np.int64),
        np.empty(p + 1, np.int64),
        np.empty(p, np.int64),
        make_factors(blocks, p),
        make_room(p),
        np.empty((blocks * p, LANES)),
        np.empty(k),
        np.empty((k, p)),
        np.empty((k, p, p)),
        np.empty((k, 2, p)),
        np.empty((2, p, p)),
        np.empty((8, p)),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def sort_cells(cells, r, room):  # type: ignore[no-untyped-def]
    """Find what each cell of a row is; return how many are lost, limited and noisy."""
    count, limited, noisy = 0, 0, 0
    for j in range(cells.values.shape[1]):
        kind = SEEN
        if np.isnan(cells.values[r, j]):
            is_free = cells.low[r, j] == -np.inf and cells.high[r, j] == np.inf
            kind = UNKNOWN if is_free else LIMITED
        elif cells.noise[r, j] > 0.0:
            kind = NOISY
        room.kind[j] = kind
        if kind != SEEN:
            room.lost[count] = j
            if kind == LIMITED:
                room.place[limited] = count
                limited += 1
            noisy += kind == NOISY
            count += 1
    room.lost[count] = -1
    return count, limited, noisy


@njit(cache=True, nogil=True, error_model="numpy")
def prepare_row(cells, r, shape, components, room):  # type: ignore[no-untyped-def]
    """Factorise what is lost of a row for every block, and count its gaps.

    A limit says why a cell is missing: it does not count as a gap once more. A row without errors
    can share the work with the row before it.
    """
    count, _, noisy = shape
    if noisy == 0 and np.array_equal(room.kind, room.last):
        return
    room.last[:] = room.kind
    if noisy:
        room.last[0] = -1
    p = components.means.shape[1]
    lower, root, log_w, log_gaps = room.factors
    tau = np.zeros(p)
    constant = 0.5 * (p - count) * np.log(2.0 * np.pi)
    for i in range(count):
        j = room.lost[i]
        if room.kind[j] == NOISY:
            tau[i] = 1.0 / cells.noise[r, j]
            constant += 0.5 * np.log(2.0 * np.pi * cells.noise[r, j])
    for b in range(components.means.shape[0]):
        copy(room.z, p + 2, log_gaps, b)
        for j in range(components.log_lost.shape[1]):
            at = b * p + j
            if room.kind[j] == UNKNOWN:
                combine(1.0, log_gaps, b, 1.0, components.log_lost, at, log_gaps, b)
            elif room.kind[j] != LIMITED:
                combine(1.0, log_gaps, b, 1.0, components.log_seen, at, log_gaps, b)
        combine(1.0, components.log_norms, b, -constant, room.z, p + 1, log_w, b)
        factorize(b, room.lost, count, tau, components.precisions, lower, root, log_w, room.z)


@njit(cache=True, nogil=True, error_model="numpy")
def complete_row(cells, r, count, b, components, room, quad):  # type: ignore[no-untyped-def]
    """Complete a row for a block, limits left aside; see `complete` of kernels.py."""
    means, precisions, z, c = components.means, components.precisions, room.z, room.c
    lower, root = room.factors.lower, room.factors.root
    p = means.shape[1]
    first, at, scratch, one, nothing = b * p * p, b * p, p, p + 1, p + 2
    for j in range(p):
        if room.kind[j] != SEEN:
            copy(z, nothing, c, at + j)
            copy(z, nothing, z, j)
            continue
        subtract(cells.values[r, j], means, at + j, c, at + j)
        sum_products(precisions, first + j * p, c, at, j + 1, z, j)
    sum_products(c, at, z, 0, p, quad, 0)
    combine(2.0, quad, 0, 0.0, quad, 0, quad, 0)
    for i in range(count):
        j = room.lost[i]
        sum_products(precisions, first + j * p, c, at, p, z, i)
        if room.kind[j] == NOISY:
            tau = 1.0 / cells.noise[r, j]
            subtract(cells.values[r, j], means, at + j, z, scratch)
            combine(1.0, z, i, -tau, z, scratch, z, i)
            multiply(z, scratch, z, scratch, z, scratch)
            combine(1.0, quad, 0, tau, z, scratch, quad, 0)
    for i in range(count):
        row = first + i * p
        eliminate(z, i, lower, row, z, 0, i, lower, row + i, z, i)
    sum_products(z, 0, z, 0, count, z, scratch)
    combine(1.0, quad, 0, -1.0, z, scratch, quad, 0)
    for i in range(count):
        out = at + room.lost[i]
        eliminate(z, nothing, root, first + i * p + i, z, i, count - i, z, one, c, out)


@njit(cache=True, nogil=True, error_model="numpy")
def covariance(root, b, k, i, j, count):  # type: ignore[no-untyped-def]
    """Give an entry of the covariance of what is lost, limits left aside."""
    total = 0.0
    for h in range(max(i, j), count):
        total += root[b, i, h, k] * root[b, j, h, k]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def meet_limits(cells, r, count, limited, component, components, room):  # type: ignore[no-untyped-def]
    """Bring the limits of a row into one component; return their log probability."""
    b, k = component // LANES, component % LANES
    p = components.means.shape[1]
    root = room.factors.root
    V, S = room.square[0, :limited, :limited], room.square[1, :limited, :limited]
    low, high, noise = room.line[0, :limited], room.line[1, :limited], room.line[2, :limited]
    mean, tau, nu = room.line[3, :limited], room.line[4, :limited], room.line[5, :limited]
    cavity = room.line[6:8]
    for a in range(limited):
        j = room.lost[room.place[a]]
        at = components.means[b, j, k] + room.c[b * p + j, k]
        low[a], high[a] = cells.low[r, j] - at, cells.high[r, j] - at
        noise[a] = cells.noise[r, j]
        for e in range(a + 1):
            V[a, e] = covariance(root, b, k, room.place[a], room.place[e], count)
            V[e, a] = V[a, e]
    value = propagate(V, low, high, noise, S, mean, tau, nu, cavity)
    for a in range(limited):
        j = room.lost[room.place[a]]
        at = components.means[b, j, k] + room.c[b * p + j, k]
        room.alpha[component, a] = nu[a] - tau[a] * mean[a]
        room.cavity[component, 0, a] = at + cavity[0, a]
        room.cavity[component, 1, a] = cavity[1, a]
        for e in range(limited):
            room.W[component, a, e] = (tau[a] if a == e else 0.0) - tau[a] * S[a, e] * tau[e]
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_row(cells, r, components, room, shape, resp):  # type: ignore[no-untyped-def]
    """Complete a row for all components; return log-likelihoods with and without gaps and limits.

    `shape` holds the numbers of lost, limited and noisy cells.
    """
    count, limited, noisy = shape
    blocks, p, _ = components.means.shape
    quad, bounds = np.empty(LANES), components.bounds
    for b in range(blocks):
        complete_row(cells, r, count, b, components, room, quad)
        combine(1.0, room.factors.log_w, b, -0.5, quad, 0, room.logs, b)
    resp[:] = room.logs
    seen = normalize(resp, bounds)
    for b in range(blocks):
        combine(1.0, room.logs, b, 1.0, room.factors.log_gaps, b, room.logs, b)
    if limited:
        for f in range(bounds.size - 1):
            follow_up(cells, r, count, limited, bounds[f], bounds[f + 1], components, room)
    resp[:] = room.logs
    return normalize(resp, bounds), seen


@njit(cache=True, nogil=True, error_model="numpy")
def follow_up(cells, r, count, limited, first, last, components, room):  # type: ignore[no-untyped-def]
    """Bring the limits into the components of one fit: the likeliest first, then what is near."""
    logs = room.logs
    top = first
    for component in range(first, last):
        if logs[component] > logs[top]:
            top = component
    logs[top] += meet_limits(cells, r, count, limited, top, components, room)
    best = logs[top]
    for component in range(first, last):
        if component == top:
            continue
        if logs[component] < best - BEHIND:
            logs[component] = -np.inf
            continue
        logs[component] += meet_limits(cells, r, count, limited, component, components, room)
        best = max(best, logs[component])


@njit(cache=True, nogil=True, error_model="numpy")
def shift_one(component, i, count, limited, room, g):  # type: ignore[no-untyped-def]
    """Give what the limits add to the mean of a lost cell, and its variance."""
    b, k = component // LANES, component % LANES
    root = room.factors.root
    shift, var = 0.0, covariance(root, b, k, i, i, count)
    for a in range(limited):
        g[a] = covariance(root, b, k, i, room.place[a], count)
        shift += g[a] * room.alpha[component, a]
    for a in range(limited):
        for e in range(limited):
            var -= g[a] * room.W[component, a, e] * g[e]
    return shift, var


@njit(cache=True, nogil=True, error_model="numpy")
def shift_by_limits(component, count, limited, room, p, shift, spread):  # type: ignore[no-untyped-def]
    """Covariance of what is lost, and what the limits add to its mean."""
    b, k = component // LANES, component % LANES
    root = room.factors.root
    for i in range(count):
        for j in range(i + 1):
            spread[i, j] = covariance(root, b, k, i, j, count)
            spread[j, i] = spread[i, j]
    shift[:count] = 0.0
    if not limited:
        return
    G, GW = np.empty((count, limited)), np.empty((count, limited))
    for i in range(count):
        for a in range(limited):
            G[i, a] = spread[i, room.place[a]]
            shift[i] += G[i, a] * room.alpha[component, a]
    for i in range(count):
        for a in range(limited):
            GW[i, a] = 0.0
            for e in range(limited):
                GW[i, a] += G[i, e] * room.W[component, e, a]
    for i in range(count):
        for j in range(count):
            for a in range(limited):
                spread[i, j] -= GW[i, a] * G[j, a]


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_uncertain(cells, rows, denoise, components, first_gap, resp, mean, sd, loglik, seen):  # type: ignore[no-untyped-def]
    """Write what every component says of the rows and of their lost cells.

    As `weigh_rows` for plain rows; a cell seen with an error counts as lost, and a limited cell
    gets the distribution that it has within its limits. Unless asked to `denoise`, nothing is
    found out about cells seen with an error.
    """
    blocks, p, _ = components.means.shape
    room, spread = make_row(blocks, p), np.empty(p)
    for r in rows:
        shape = sort_cells(cells, r, room)
        count, limited, noisy = shape
        prepare_row(cells, r, shape, components, room)
        loglik[r], seen[r] = weigh_row(cells, r, components, room, shape, resp[r])
        for component in range(blocks * LANES):
            b, k = component // LANES, component % LANES
            if resp[r, component] <= NEGLIGIBLE:
                for i in range(count):
                    mean[first_gap[r] + i, component] = 0.0
                    sd[first_gap[r] + i, component] = 1.0
                continue
            for i in range(count):
                j, gap = room.lost[i], first_gap[r] + i
                if room.kind[j] == UNKNOWN or (denoise and room.kind[j] == NOISY):
                    more, var = shift_one(component, i, count, limited, room, spread)
                    at = components.means[b, j, k] + room.c[b * p + j, k]
                    mean[gap, component] = at + more
                    sd[gap, component] = np.sqrt(max(var, 1e-300))
            for a in range(limited):
                gap = first_gap[r] + room.place[a]
                mean[gap, component] = room.cavity[component, 0, a]
                sd[gap, component] = np.sqrt(room.cavity[component, 1, a])


@njit(cache=True, nogil=True, error_model="numpy")
def add_uncertain(cells, rows, components, weight, total, cross, gaps):  # type: ignore[no-untyped-def]
    """Add the expected moments of rows to those of plain rows; return their log-likelihood."""
    blocks, p, _ = components.means.shape
    room, shift, spread = make_row(blocks, p), np.empty(p), np.empty((p, p))
    resp, c, loglik = np.empty(blocks * LANES), np.empty(p), 0.0
    for r in rows:
        shape = sort_cells(cells, r, room)
        count, limited, noisy = shape
        prepare_row(cells, r, shape, components, room)
        value, _ = weigh_row(cells, r, components, room, shape, resp)
        loglik += value
        for component in range(blocks * LANES):
            share, b, k = resp[component], component // LANES, component % LANES
            if share <= NEGLIGIBLE:
                continue
            shift_by_limits(component, count, limited, room, p, shift, spread)
            weight[b, k] += share
            for j in range(p):
                c[j] = room.c[b * p + j, k]
            for i in range(count):
                j = room.lost[i]
                c[j] += shift[i]
                gaps[b, j, k] += share * (room.kind[j] != NOISY)
                for h in range(i + 1):
                    cross[b, j, room.lost[h], k] += share * spread[i, h]
            for i in range(p):
                total[b, i, k] += share * c[i]
                for j in range(i + 1):
                    cross[b, i, j, k] += share * c[i] * c[j]
    return loglik


@njit(cache=True, nogil=True, error_model="numpy")
def draw_uncertain(cells, rows, components, resp, seeds, grids, out):  # type: ignore[no-untyped-def]
    """Write joint draws of what is lost: a component, its limited cells, the rest given these."""
    blocks, p, _ = components.means.shape
    room, spare, state = make_row(blocks, p), np.empty(blocks * LANES), np.empty(1, np.uint64)
    x, e = np.empty(p), np.empty(p)
    for r in rows:
        shape = sort_cells(cells, r, room)
        count, limited, noisy = shape
        prepare_row(cells, r, shape, components, room)
        weigh_row(cells, r, components, room, shape, spare)
        state[0] = seeds[r]
        for t in range(out.shape[0]):
            component = choose(resp[r], uniform(state))
            b, k = component // LANES, component % LANES
            draw_row(cells, r, count, limited, component, components, room, state, x, e)
            for i in range(count):
                j = room.lost[i]
                score = components.means[b, j, k] + room.c[b * p + j, k] + x[i]
                out[t, r, j] = look_up(grids[j], score)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_row(cells, r, count, limited, component, components, room, state, x, e):  # type: ignore[no-untyped-def]
    """Draw what is lost of a row, less its mean without the limits, for one component."""
    b, k = component // LANES, component % LANES
    root = room.factors.root
    # Limited cells first, then the others; L is the Cholesky factor in this order.
    order, is_limited = np.empty(count, np.int64), np.zeros(count, np.bool_)
    for a in range(limited):
        order[a] = room.place[a]
        is_limited[room.place[a]] = True
    at = limited
    for i in range(count):
        if not is_limited[i]:
            order[at] = i
            at += 1
    L = np.zeros((count, count))
    for i in range(count):
        for j in range(i + 1):
            value = covariance(root, b, k, order[i], order[j], count)
            for h in range(j):
                value -= L[i, h] * L[j, h]
            L[i, j] = np.sqrt(max(value, 1e-300)) if i == j else value / L[j, j]
    if limited:
        start_within(cells, r, count, limited, component, components, room, L, state, e)
    for i in range(limited, count):
        e[i] = quantile(uniform(state))
    for i in range(count):
        x[order[i]] = 0.0
        for h in range(i + 1):
            x[order[i]] += L[i, h] * e[h]


@njit(cache=True, nogil=True, error_model="numpy")
def start_within(cells, r, count, limited, component, components, room, L, state, e):  # type: ignore[no-untyped-def]
    """Draw the limited cells within their limits; write the normals that give them by L."""
    b, k = component // LANES, component % LANES
    p, root = components.means.shape[1], room.factors.root
    low, high, noise = np.empty(limited), np.empty(limited), np.empty(limited)
    start, found = np.zeros(limited), np.empty(limited)
    for a in range(limited):
        j = room.lost[room.place[a]]
        mean = components.means[b, j, k] + room.c[b * p + j, k]
        low[a], high[a], noise[a] = (
            cells.low[r, j] - mean,
            cells.high[r, j] - mean,
            cells.noise[r, j],
        )
        for h in range(limited):
            entry = covariance(root, b, k, room.place[a], room.place[h], count)
            start[a] += entry * room.alpha[component, h]
    inverse = np.linalg.inv(L[:limited, :limited])
    draw_windows(inverse.T @ inverse, low, high, noise, start, state, found)
    e[:limited] = inverse @ found
