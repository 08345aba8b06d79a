"""Compiled kernels for tables whose rows have limits or errors: moments, posteriors and draws."""

import numpy as np
from numba import njit

from skyfill.network.mixture.gap_kernels import NEGLIGIBLE, choose
from skyfill.network.mixture.lanes import LANES
from skyfill.network.mixture.margin_kernels import value_at
from skyfill.network.mixture.row_kernels import (
    LIMITED,
    NOISY,
    UNKNOWN,
    look_at_lost,
    make_row,
    prepare_row,
    shift_by_limits,
    shift_one,
    sort_cells,
    weigh_row,
)
from skyfill.network.mixture.truncated_kernels import draw_some_within, uniform


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
        shape = sort_cells(cells, r, room)
        _, count, limited, _ = shape
        prepare_row(cells, r, shape, components, room)
        loglik[r], seen[r] = weigh_row(cells, r, components, room, shape, resp[r])
        for component in range(blocks * LANES):
            if resp[r, component] <= NEGLIGIBLE:
                for i in range(count):
                    mean[first_gap[r] + i, component] = 0.0
                    sd[first_gap[r] + i, component] = 1.0
                continue
            if denoise or not limited:
                look_at_lost(shape, component, components, room, denoise)
            for i in range(count):
                kind, gap = room.kind[room.lost[i]], first_gap[r] + i
                if kind == UNKNOWN or (denoise and kind == NOISY):
                    more, var = shift_one(component, i, limited, room)
                    mean[gap, component] = room.at[component, i] + more
                    sd[gap, component] = np.sqrt(var)
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
        seen, count, limited, _ = shape
        prepare_row(cells, r, shape, components, room)
        value, _ = weigh_row(cells, r, components, room, shape, resp)
        loglik += value
        for component in range(blocks * LANES):
            share, b, k = resp[component], component // LANES, component % LANES
            if share <= NEGLIGIBLE:
                continue
            look_at_lost(shape, component, components, room, True)
            shift_by_limits(component, count, limited, room, shift, spread)
            weight[b, k] += share
            for i in range(seen):
                j = room.seen[i]
                c[j] = cells.values[r, j] - components.means[b, j, k]
            for i in range(count):
                j = room.lost[i]
                c[j] = room.at[component, i] + shift[i] - components.means[b, j, k]
                gaps[b, j, k] += share * (room.kind[j] != NOISY)
                for h in range(i + 1):
                    cross[b, j, room.lost[h], k] += share * spread[i, h]
            for i in range(p):
                total[b, i, k] += share * c[i]
                for j in range(i + 1):
                    cross[b, i, j, k] += share * c[i] * c[j]
    return loglik


@njit(cache=True, nogil=True, error_model="numpy")
def draw_uncertain(cells, rows, components, resp, seeds, maps, out):  # type: ignore[no-untyped-def]
    """Write joint draws of what is lost: a component, its limited cells, the rest given these."""
    blocks, p, _ = components.means.shape
    room, spare, state = make_row(blocks, p), np.empty(blocks * LANES), np.empty(1, np.uint64)
    own, lines, order = np.empty((3, p, p)), np.empty((6, p)), np.empty(p, np.int64)
    for r in rows:
        shape = sort_cells(cells, r, room)
        count = shape[1]
        prepare_row(cells, r, shape, components, room)
        weigh_row(cells, r, components, room, shape, spare)
        put_limited_first(shape, room, order)
        state[0] = seeds[r]
        for t in range(out.shape[0]):
            component = choose(resp[r], uniform(state))
            look_at_lost(shape, component, components, room, True)
            x = draw_lost(cells, r, shape, component, room, order, own, lines, state)
            for a in range(count):
                j = room.lost[order[a]]
                out[t, r, j] = value_at(maps, j, room.at[component, order[a]] + x[a])


@njit(cache=True, nogil=True, error_model="numpy")
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


@njit(cache=True, nogil=True, error_model="numpy")
def draw_lost(cells, r, shape, component, room, order, own, lines, state):  # type: ignore[no-untyped-def]
    """Draw what is lost of a row in that order, less its mean without the limits."""
    _, count, limited, _ = shape
    low, high, noise = lines[0, :limited], lines[1, :limited], lines[2, :limited]
    start, e, x = lines[3, :limited], lines[4, :count], lines[5, :count]
    cov = room.cov[component]
    for a in range(count):
        for b in range(a + 1):
            own[0, a, b] = cov[order[a], order[b]]
    for a in range(limited):
        i = order[a]
        j, mean = room.lost[i], room.at[component, i]
        low[a], high[a] = cells.low[r, j] - mean, cells.high[r, j] - mean
        noise[a], start[a] = cells.noise[r, j], 0.0
        for h in range(limited):
            start[a] += cov[i, order[h]] * room.alpha[component, h]
    draw_some_within((own[0], own[1], own[2]), (low, high, noise), start, state, e, x)
    return x
