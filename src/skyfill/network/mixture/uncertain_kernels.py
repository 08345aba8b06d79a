"""Compiled kernels for tables whose rows have limits or errors: moments, posteriors and draws."""

import numpy as np
from numba import njit

from skyfill.network.mixture.compiled import leaf
from skyfill.network.mixture.gap_kernels import NEGLIGIBLE, choose
from skyfill.network.mixture.lanes import (
    LANES,
    TINY,
    add_products,
    combine,
    copy,
    eliminate,
    multiply,
    subtract,
)
from skyfill.network.mixture.lost_kernels import (
    LIMITED,
    NOISY,
    SEEN,
    UNKNOWN,
    look_at_lost,
    make_row,
    meet_cell,
)
from skyfill.network.mixture.margin_kernels import value_at
from skyfill.network.mixture.random_keys import begin, number
from skyfill.network.mixture.row_kernels import prepare_row, sort_cells, weigh_row
from skyfill.network.mixture.truncated_kernels import draw_some_within


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_uncertain(cells, rows, denoise, components, first_gap, resp, mean, sd, loglik, seen):  # type: ignore[no-untyped-def]
    """Write what every component says of the rows and of their lost cells.

    As `weigh_rows` for plain rows; a cell seen with an error counts as lost, and a limited cell
    gets the distribution that it has within its limits. Unless asked to `denoise`, nothing is
    found out about cells seen with an error.
    """
    blocks, p, _ = components.means.shape
    room = make_row(blocks, p)
    for r in rows:
        gaps = (first_gap[r], mean, sd)
        loglik[r], seen[r] = weigh_one(cells, r, denoise, components, room, resp, gaps)


@leaf
def weigh_one(cells, r, denoise, components, room, resp, gaps):  # type: ignore[no-untyped-def]
    """Write what every component says of a row; return its log-likelihoods."""
    p, blocks = room.lost.size, room.here.size
    shape = sort_cells(cells, r, room)
    prepare_row(cells, r, shape, components, room)
    found = weigh_row(cells, r, components, room, shape, resp[r])
    first, mean, sd = gaps
    for b in range(blocks):
        if matters(resp[r], b):
            look_at_lost(cells, r, shape, b, components, room, denoise)
            write_lost(shape, b, denoise, first, room, mean, sd)
            continue
        for gap in range(first, first + shape[1]):
            copy(room.z, p + 2, mean, gap * blocks + b)
            copy(room.z, p + 1, sd, gap * blocks + b)
    return found


@leaf
def matters(resp, b):  # type: ignore[no-untyped-def]
    """Whether a component of a block has more than a negligible share in a row."""
    largest = 0.0
    for k in range(b * LANES, (b + 1) * LANES):
        largest = max(largest, resp[k])
    return largest > NEGLIGIBLE


@leaf
def write_lost(shape, b, denoise, first_gap, room, mean, sd):  # type: ignore[no-untyped-def]
    """Write what a block says of the lost cells of a row."""
    _, count, limited, _ = shape
    blocks, p, z, place = room.here.size, room.lost.size, room.z, room.place
    cov, at, alpha, W, cavity = room.cov, room.at, room.alpha, room.W, room.cavity
    pull, taken, center, spread = room.pull, room.taken, room.mean, room.share
    for i in range(count):
        j, gap = room.lost[i], first_gap + i
        if room.kind[j] == UNKNOWN or (denoise and room.kind[j] == NOISY):
            meet_cell(i, j, b, limited, place, cov, at, alpha, W, pull, taken, center)
            own, row = (b * p + i) * p + i, j * (p + 1) + 1
            eliminate(cov, own, taken, row, pull, row, limited, z, p + 1, spread, 0)
            copy(center, j, mean, gap * blocks + b)
            for k in range(LANES):
                sd[gap, b * LANES + k] = np.sqrt(max(spread[0, k], TINY))
    for a in range(limited):
        gap = first_gap + place[a]
        copy(cavity, b * p + a, mean, gap * blocks + b)
        for k in range(LANES):
            sd[gap, b * LANES + k] = np.sqrt(cavity[1, b, a, k])


@njit(cache=True, nogil=True, error_model="numpy")
def add_uncertain(cells, rows, components, weight, total, cross, gaps):  # type: ignore[no-untyped-def]
    """Add the expected moments of rows to those of plain rows; return their log-likelihood."""
    blocks, p, _ = components.means.shape
    room, resp, loglik = make_row(blocks, p), np.empty(blocks * LANES), 0.0
    for r in rows:
        loglik += add_one(cells, r, components, room, resp, weight, total, cross, gaps)
    return loglik


@leaf
def add_one(cells, r, components, room, resp, weight, total, cross, gaps):  # type: ignore[no-untyped-def]
    """Add the expected moments of a row; return its log-likelihood."""
    p, blocks, kind, share = room.lost.size, room.here.size, room.kind, room.share
    taken, pull = room.taken, room.pull
    shape = sort_cells(cells, r, room)
    prepare_row(cells, r, shape, components, room)
    loglik, _ = weigh_row(cells, r, components, room, shape, resp)
    for b in range(blocks):
        if not matters(resp, b):
            continue
        for k in range(LANES):
            found = resp[b * LANES + k]
            share[0, k] = found if found > NEGLIGIBLE else 0.0
        combine(1.0, weight, b, 1.0, share, 0, weight, b)
        look_at_lost(cells, r, shape, b, components, room, True)
        meet_row(cells, r, shape, b, components, room, cross, gaps)
        for i in range(p):
            own, lost = i * (p + 1), kind[i] != SEEN
            multiply(pull, own, share, 0, taken, own)
            combine(1.0, total, b * p + i, 1.0, taken, own, total, b * p + i)
            for j in range(i + 1):
                n = shape[2] + 1 if lost and kind[j] != SEEN else 1
                add_products(taken, own, pull, j * (p + 1), n, cross, (b * p + i) * p + j)
    return loglik


@leaf
def meet_row(cells, r, shape, b, components, room, cross, gaps):  # type: ignore[no-untyped-def]
    """Write the cells of a row less the means of a block; add their covariances without limits.

    What the limits take from these is written next to each cell.
    """
    seen, count, limited, _ = shape
    p, lost, place, means = room.lost.size, room.lost, room.place, components.means
    cov, at, alpha, W, kind = room.cov, room.at, room.alpha, room.W, room.kind
    pull, taken, center, share = room.pull, room.taken, room.mean, room.share
    combine(-1.0, share, 0, 0.0, share, 0, share, 1)
    for i in range(seen):
        j = room.seen[i]
        subtract(cells.values[r, j], means, b * p + j, pull, j * (p + 1))
    for i in range(count):
        j, row = lost[i], (b * p + i) * p
        own = j * (p + 1)
        meet_cell(i, j, b, limited, place, cov, at, alpha, W, pull, taken, center)
        combine(1.0, center, j, -1.0, means, b * p + j, pull, own)
        for a in range(1, limited + 1):
            multiply(taken, own + a, share, 1, taken, own + a)
        if kind[j] != NOISY:
            combine(1.0, gaps, b * p + j, 1.0, share, 0, gaps, b * p + j)
        for h in range(i + 1):
            add_products(share, 0, cov, row + h, 1, cross, (b * p + j) * p + lost[h])


@njit(cache=True, nogil=True, error_model="numpy")
def draw_uncertain(cells, rows, components, resp, keys, maps, out):  # type: ignore[no-untyped-def]
    """Write joint draws of what is lost: a component, its limited cells, the rest given these."""
    blocks, p, _ = components.means.shape
    room, spare, states = make_row(blocks, p), np.empty(blocks * LANES), np.empty(p, np.uint64)
    own, lines, order = np.empty((3, p, p)), np.empty((6, p)), np.empty(p, np.int64)
    for r in rows:
        shape = sort_cells(cells, r, room)
        count = shape[1]
        prepare_row(cells, r, shape, components, room)
        weigh_row(cells, r, components, room, shape, spare)
        put_limited_first(shape, room, order)
        for t in range(out.shape[0]):
            key, nth = keys.rows[r], keys.first + t
            component = choose(resp[r], number(key, nth, keys.columns[p]))
            b, k = component // LANES, component % LANES
            look_at_lost(cells, r, shape, b, components, room, True)
            for a in range(count):
                begin(states, a, key, nth, keys.columns[room.lost[order[a]]])
            draw_lost(cells, r, shape, component, room, order, own, lines, states)
            for a in range(count):
                j = room.lost[order[a]]
                out[t, r, j] = value_at(maps, j, room.at[b, order[a], k] + lines[5, a])


@leaf
def put_limited_first(shape, room, order):  # type: ignore[no-untyped-def]
    """List the lost cells, those with limits first."""
    _, count, limited, _ = shape
    at = limited
    for a in range(limited):
        order[a] = room.place[a]
    for i in range(count):
        if room.kind[room.lost[i]] != LIMITED:
            order[at] = i
            at += 1


@leaf
def draw_lost(cells, r, shape, component, room, order, own, lines, states):  # type: ignore[no-untyped-def]
    """Draw what is lost of a row in that order, less its mean, to the last of `lines`."""
    _, count, limited, _ = shape
    low, high, noise = lines[0, :limited], lines[1, :limited], lines[2, :limited]
    start, e, x = lines[3, :limited], lines[4, :count], lines[5, :count]
    b, k, cov = component // LANES, component % LANES, room.cov
    for a in range(count):
        for h in range(a + 1):
            own[0, a, h] = cov[b, max(order[a], order[h]), min(order[a], order[h]), k]
    for a in range(limited):
        i = order[a]
        j, mean = room.lost[i], room.at[b, i, k]
        low[a], high[a] = cells.low[r, j] - mean, cells.high[r, j] - mean
        noise[a], start[a] = cells.noise[r, j], 0.0
        for h in range(limited):
            covariance = cov[b, max(i, order[h]), min(i, order[h]), k]
            start[a] += covariance * room.alpha[b, h, k]
    draw_some_within((own[0], own[1], own[2]), (low, high, noise), start, states, e, x)
