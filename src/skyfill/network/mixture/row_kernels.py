"""Compiled kernels for one row with limits or errors: every component of every fit.

The row is conditioned on what it has seen, with the variances of errors added to the covariance of
the seen cells: for eight components at a time, as for plain rows (kernels.py). What that leaves of
the other cells is found only for blocks of components that matter (lost_kernels.py). Limits are
then met by expectation propagation, one component at a time: a limit never makes a row more likely.
"""

from typing import NamedTuple

import numpy as np

from skyfill.network._array import Array
from skyfill.network.mixture.compiled import leaf
from skyfill.network.mixture.kernels import normalize
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
from skyfill.network.mixture.lost_kernels import (
    LIMITED,
    NOISY,
    NOTHING,
    SEEN,
    UNKNOWN,
    look_at_lost,
)
from skyfill.network.mixture.truncated_kernels import fit_windows, weigh_windows

# Components that fall behind the best of their fit by this much (in logs) are not followed up.
BEHIND = 10.0
# Least distance of two limits, in normal scores.
NARROWEST = 1e-6


class Uncertain(NamedTuple):
    """Cells of a part of a table, in normal scores, all of shape (n, p)."""

    values: Array  # NaN where nothing was seen
    low: Array  # the value is larger; -inf where no limit is known
    high: Array  # the value is smaller; inf where no limit is known
    noise: Array  # variance of the error of a seen value, or of a soft limit; 0 where exact


@leaf
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
            elif kind == NOISY:
                room.among[count] = seen - 1
                noisy += 1
            count += 1
    return seen, count, limited, noisy


@leaf
def prepare_row(cells, r, shape, components, room):  # type: ignore[no-untyped-def]
    """Factorise the covariance of what a row has seen for every block, and count its gaps.

    A limit says why a cell is missing: it does not count as a gap once more. A row without errors
    can share the work with the row before it.
    """
    seen, _, _, noisy = shape
    kind, last, z, noise, gaps = room.kind, room.last, room.z, cells.noise, room.log_gaps
    is_new = noisy > 0
    for j in range(kind.size):
        is_new |= kind[j] != last[j]
    if not is_new:
        return
    for j in range(kind.size):
        last[j] = -1 if noisy else kind[j]
    covs, lower, log_w, columns = components.covs, room.lower, room.log_w, room.seen
    for b in range(components.means.shape[0]):
        room.known[b] = NOTHING
        weigh_gaps(kind, b, components.log_lost, components.log_seen, gaps, z)
        copy(components.log_weights, b, log_w, b)
        factorize_seen(r, columns, seen, b, noise, covs, lower, log_w, z)


@leaf
def weigh_gaps(kind, b, log_lost, log_seen, log_gaps, z):  # type: ignore[no-untyped-def]
    """Write the log chance of the pattern of gaps for a block."""
    p = kind.size
    copy(z, p + 2, log_gaps, b)
    for j in range(log_lost.shape[1]):
        if kind[j] == UNKNOWN:
            combine(1.0, log_gaps, b, 1.0, log_lost, b * p + j, log_gaps, b)
        elif kind[j] != LIMITED:
            combine(1.0, log_gaps, b, 1.0, log_seen, b * p + j, log_gaps, b)


@leaf
def factorize_seen(r, columns, seen, b, noise, covs, lower, log_w, z):  # type: ignore[no-untyped-def]
    """Factorise the covariance of seen cells, errors included, for a block."""
    p = covs.shape[1]
    first, det, one, half = b * p * p, p, p + 1, p + 3
    combine(1.0, log_w, b, -0.5 * seen * np.log(2.0 * np.pi), z, one, log_w, b)
    copy(z, one, z, det)
    for i in range(seen):
        row, start = first + i * p, first + columns[i] * p
        for j in range(i):
            other, at = first + j * p, start + columns[j]
            eliminate(covs, at, lower, row, lower, other, j, lower, other + j, lower, row + j)
        combine(0.5, covs, start + columns[i], 0.5 * noise[r, columns[i]], z, one, z, half)
        pivot(z, half, lower, row, i, lower, row + i)
        multiply(z, det, lower, row + i, z, det)
        # One logarithm per component, not one per cell; before the products run out of range.
        if i == seen - 1 or i % 8 == 7:
            for k in range(LANES):
                log_w[b, k] += np.log(z[det, k])
            copy(z, one, z, det)


@leaf
def look_at_seen(r, columns, seen, b, values, means, lower, y, z, quad):  # type: ignore[no-untyped-def]
    """Write the seen cells of a row, less the mean and made independent, and their squares' sum."""
    p = means.shape[1]
    first, at, scratch = b * p * p, b * p, p + 3
    for i in range(seen):
        row, j = first + i * p, columns[i]
        subtract(values[r, j], means, at + j, z, scratch)
        eliminate(z, scratch, lower, row, y, at, i, lower, row + i, y, at + i)
    sum_products(y, at, y, at, seen, quad, 0)


@leaf
def take_windows(r, lost, place, component, cells, at, cov, V, low, high, noise):  # type: ignore[no-untyped-def]
    """Take the limits of a row less the means of a component, and their covariance."""
    (lower, upper, width), b, k = cells, component // LANES, component % LANES
    for a in range(low.size):
        i = place[a]
        j, center = lost[i], at[b, i, k]
        low[a], high[a], noise[a] = lower[r, j] - center, upper[r, j] - center, width[r, j]
        for e in range(a + 1):
            V[a, e] = cov[b, i, place[e], k]
            V[e, a] = V[a, e]


@leaf
def keep_windows(place, component, at, S, mean, tau, nu, line, alpha, W, cavity):  # type: ignore[no-untyped-def]
    """Keep what the limits of a row do to a component; `line` holds what its cavities are."""
    b, k, n = component // LANES, component % LANES, mean.size
    for a in range(n):
        alpha[b, a, k] = nu[a] - tau[a] * mean[a]
        cavity[0, b, a, k] = at[b, place[a], k] + line[0, a]
        cavity[1, b, a, k] = line[1, a]
        for e in range(n):
            W[b, a, e, k] = (tau[a] if a == e else 0.0) - tau[a] * S[a, e] * tau[e]


@leaf
def weigh_row(cells, r, components, room, shape, resp):  # type: ignore[no-untyped-def]
    """Weigh all components by a row; return log-likelihoods with and without gaps and limits.

    `shape` holds the numbers of seen, lost, limited and noisy cells.
    """
    seen, limited, blocks, bounds = shape[0], shape[2], room.here.size, components.bounds
    columns, values, means, lower = room.seen, cells.values, components.means, room.lower
    y, z, quad, logs, log_w = room.y, room.z, room.quad, room.logs, room.log_w
    for b in range(blocks):
        room.here[b] = NOTHING
        look_at_seen(r, columns, seen, b, values, means, lower, y, z, quad)
        combine(1.0, log_w, b, -0.5, quad, 0, logs, b)
        copy(logs, b, resp, b)
    of_seen = normalize(resp, bounds)
    if not limited and not components.log_lost.shape[1]:
        return of_seen, of_seen
    for b in range(blocks):
        combine(1.0, logs, b, 1.0, room.log_gaps, b, logs, b)
    if limited:
        follow_up(cells, r, shape, components, room)
    for b in range(blocks):
        copy(logs, b, resp, b)
    return normalize(resp, bounds), of_seen


@leaf
def follow_up(cells, r, shape, components, room):  # type: ignore[no-untyped-def]
    """Bring the limits into the components of each fit: the likeliest first, then what is near."""
    logs, bounds, here, limited = room.logs, components.bounds, room.here, shape[2]
    lost, place, at, cov = room.lost, room.place, room.at, room.cov
    alpha, W, cavity, line = room.alpha, room.W, room.cavity, room.line
    V, S, left = room.square[0], room.square[1], line[6:]
    low, high, noise = line[0, :limited], line[1, :limited], line[2, :limited]
    mean, tau, nu = line[3, :limited], line[4, :limited], line[5, :limited]
    limits = cells.low, cells.high, cells.noise
    forget_limits(limited, alpha, W, cavity)
    for f in range(bounds.size - 1):
        top, best = find_top(logs, bounds[f], bounds[f + 1]), -np.inf
        for turn in range(bounds[f] - 1, bounds[f + 1]):
            # The first turn is that of the likeliest.
            component = top if turn < bounds[f] else turn
            if turn == top:
                continue
            if logs[component] < best - BEHIND:
                logs[component] = -np.inf
                continue
            if here[component // LANES] == NOTHING:
                look_at_lost(cells, r, shape, component // LANES, components, room, False)
            take_windows(r, lost, place, component, limits, at, cov, V, low, high, noise)
            shrunk = fit_windows(V, low, high, noise, S, mean, tau, nu)
            value = weigh_windows(low, high, noise, S, mean, tau, nu, left) - shrunk
            keep_windows(place, component, at, S, mean, tau, nu, left, alpha, W, cavity)
            logs[component] += value
            best = max(best, logs[component])


@leaf
def find_top(logs, first, last):  # type: ignore[no-untyped-def]
    """Find the likeliest component of a fit."""
    top = first
    for component in range(first, last):
        if logs[component] > logs[top]:
            top = component
    return top


@leaf
def forget_limits(limited, alpha, W, cavity):  # type: ignore[no-untyped-def]
    """Let no component know the limits of the row: those that fall behind never will."""
    for b in range(alpha.shape[0]):
        for a in range(limited):
            for k in range(LANES):
                alpha[b, a, k], cavity[0, b, a, k], cavity[1, b, a, k] = 0.0, 0.0, 1.0
                for e in range(limited):
                    W[b, a, e, k] = 0.0
