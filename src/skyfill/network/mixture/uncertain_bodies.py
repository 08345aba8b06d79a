"""Bodies of the loops that a GPU runs for limits and errors; see bodies.py.

Limits are met as on the processor (row_kernels.py), by expectation propagation for one component at
a time: the likeliest of each fit first, then those that do not fall too far behind it.
"""

import math

import numpy as np
from numba import njit

from skyfill.network.mixture.bodies import score
from skyfill.network.mixture.gap_kernels import choose
from skyfill.network.mixture.margin_kernels import value_at
from skyfill.network.mixture.random_keys import begin, number
from skyfill.network.mixture.row_kernels import BEHIND, NARROWEST
from skyfill.network.mixture.solving import (
    NO,
    ONE,
    TWO,
    complete_row,
    covariance,
    invert,
    place_errors,
    solve,
    substitute,
)
from skyfill.network.mixture.truncated_kernels import draw_some_within, propagate

# Numbers per limit that propagation needs.
LINES = 6
# Numbers per column that draws need.
DRAWN = 6


@njit
def score_uncertain(i, room, given, maps, cells):  # type: ignore[no-untyped-def]
    """Give the normal scores of a cell: its value, its limits and the variance of its error.

    `given` are values, lower and upper limits and errors; those that are not there have no rows.
    """
    X, lower, upper, errors = given
    Z, low, high, noise = cells
    r, j = i // X.shape[1], i % X.shape[1]
    center = X[r, j]
    Z[r, j] = score(center, j, *maps)
    low[r, j], high[r, j], noise[r, j] = -math.inf, math.inf, 0.0
    if math.isnan(center):
        if upper.shape[0] and not math.isnan(upper[r, j]):
            center = upper[r, j]
            high[r, j] = score(center, j, *maps)
        if lower.shape[0] and not math.isnan(lower[r, j]):
            center = lower[r, j]
            low[r, j] = score(center, j, *maps)
            # Two limits can have one score: in a constant column, or beyond the reach of scores.
            if high[r, j] <= low[r, j]:
                high[r, j] = low[r, j] + NARROWEST
    if errors.shape[0] and errors[r, j] > 0.0 and not math.isnan(center):
        above = score(center + errors[r, j], j, *maps)
        half = 0.5 * (above - score(center - errors[r, j], j, *maps))
        noise[r, j] = half * half


@njit
def find_top(i, room, bounds, n_components, limits, logs, pairs):  # type: ignore[no-untyped-def]
    """Find the likeliest component of a row in one fit, as a pair; -1 where there are no limits."""
    fits = bounds.size - 1
    r, f = i // fits, i % fits
    top = bounds[f]
    for k in range(bounds[f], bounds[f + 1]):
        top = k if logs[r, k] > logs[r, top] else top
    pairs[i] = r * n_components + top if limits[r] else -1


@njit
def meet_limits(i, rooms, pairs, first_slot, cells, sorts, sites, known, met):  # type: ignore[no-untyped-def]
    """Bring the limits of a row into a component; write their sites and log probability."""
    (room, square), (slots, all_tau, all_nu) = rooms, sites
    (order, steps, counts, limits), (means, _, n_components, unit) = sorts, known
    r, k = pairs[i] // n_components, np.uint64(pairs[i] % n_components)
    p, count, limited = np.uint64(order.shape[1]), np.uint64(counts[r]), np.uint64(limits[r])
    first, c = count - limited, np.int64(limited)
    place_errors(r, order[r], count, cells, room)
    solve(cells[0][r], order[r], steps[r], count, k, known, room, True)
    substitute(first, count, p, room)
    invert(first, count, unit, room)
    V, S = square[0, :c, :c], square[1, :c, :c]
    solved, start = p * (p + ONE) // TWO, np.int64(p * (p + ONE) // TWO + TWO * p + p)
    low, high = room[start : start + c], room[start + c : start + 2 * c]
    noise, mean = room[start + 2 * c : start + 3 * c], room[start + 3 * c : start + 4 * c]
    tau, nu = room[start + 4 * c : start + 5 * c], room[start + 5 * c : start + 6 * c]
    for a in range(c):
        here = first + np.uint64(a)
        j = order[r, here]
        at = means[steps[r, here] + k] - room[solved + here]
        low[a], high[a] = cells[1][r, j] - at, cells[2][r, j] - at
        noise[a] = cells[3][r, j]
        for b in range(a + 1):
            V[a, b] = covariance(here, first + np.uint64(b), count, unit, room)
            V[b, a] = V[a, b]
    value = propagate(V, low, high, noise, S, mean, tau, nu, square[2])
    slot = first_slot + i
    slots[pairs[i]] = slot
    for a in range(c):
        here = first + np.uint64(a)
        at = means[steps[r, here] + k] - room[solved + here]
        all_tau[a, slot], all_nu[a, slot] = tau[a], nu[a] + tau[a] * at
    met[r, k] += value


@njit
def settle(i, room, bounds, tops, logs, met):  # type: ignore[no-untyped-def]
    """Leave out components of a row, in one fit, that fall too far behind the best before them."""
    fits = bounds.size - 1
    r, f = i // fits, i % fits
    if tops[i] < 0:
        return
    top = tops[i] % logs.shape[1]
    best = met[r, top]
    for k in range(bounds[f], bounds[f + 1]):
        if k == top:
            continue
        if logs[r, k] < best - BEHIND:
            met[r, k] = -math.inf
        else:
            best = max(best, met[r, k])


@njit
def draw_uncertain(  # type: ignore[no-untyped-def]
    i, rooms, rows, cells, sorts, sites, known, resp, keys, states, denoise, maps, out
):
    """Write joint draws of a row with limits or errors; see `draw_lost`.

    With `denoise`, values seen with an error are drawn, too. `keys` is explained in
    `bodies.draw_row`; `states` has room for a word for each cell.
    """
    (room, squares), (order, steps, counts, limits), means = rooms, sorts, known[0]
    r, p = rows[i], order.shape[1]
    count, limited = np.uint64(counts[r]), np.uint64(limits[r])
    solved, (words, codes, first) = np.uint64(p * (p + 1) // 2), keys
    lines = room[p * (p + 1) // 2 + 3 * p :]
    x = lines[5 * p : 5 * p + np.int64(counts[r])]
    for t in range(out.shape[0]):
        k = np.uint64(choose(resp[r], number(words[r], first + t, codes[p])))
        complete_row(r, k, room, cells, sorts, sites, known)
        start_at(lines, count, limited, solved, room)
        place_errors(r, order[r], count, cells, room)
        solve(cells[0][r], order[r], steps[r], count, k, known, room, True)
        substitute(NO, count, np.uint64(p), room)
        invert(NO, count, known[3], room)
        for a in range(count):
            here = limited_first(np.uint64(a), count, limited)
            begin(states[r], a, words[r], first + t, codes[order[r, here]])
        draw_lost(r, k, room, squares, lines, cells, sorts, known, states[r], x)
        for a in range(count):
            here = limited_first(np.uint64(a), count, limited)
            if denoise or math.isnan(cells[0][r, order[r, here]]):
                score = means[steps[r, here] + k] - room[solved + here] + x[a]
                out[t, r, order[r, here]] = value_at(maps, order[r, here], score)


@njit(cache=True, nogil=True, error_model="numpy")
def start_at(lines, count, limited, solved, room):  # type: ignore[no-untyped-def]
    """Keep the distances from the means that limited columns have in the light of their limits."""
    a = NO
    while a < limited:
        lines[a] = room[solved + count - limited + a]
        a += ONE


@njit(cache=True, nogil=True, error_model="numpy")
def draw_lost(r, k, room, squares, lines, cells, sorts, known, states, x):  # type: ignore[no-untyped-def]
    """Draw what is lost of a row, less its mean without the limits; limited columns come first.

    `lines` begins with what `start_at` has kept, and has room for four more numbers per column.
    """
    (order, steps, counts, limits), (means, _, _, unit) = sorts, known
    p, c = order.shape[1], np.int64(limits[r])
    count, limited = np.uint64(counts[r]), np.uint64(limits[r])
    low, high, noise = lines[p : p + c], lines[2 * p : 2 * p + c], lines[3 * p : 3 * p + c]
    start, e = lines[:c], lines[4 * p : 5 * p]
    for a in range(c):
        here = limited_first(np.uint64(a), count, limited)
        j, distance = order[r, here], room[np.uint64(p * (p + 1) // 2) + here]
        at = means[steps[r, here] + k] - distance
        low[a], high[a], noise[a] = cells[1][r, j] - at, cells[2][r, j] - at, cells[3][r, j]
        start[a] = distance - start[a]
    for a in range(x.size):
        one = limited_first(np.uint64(a), count, limited)
        for b in range(a + 1):
            two = limited_first(np.uint64(b), count, limited)
            squares[0, a, b] = covariance(max(one, two), min(one, two), count, unit, room)
    draw_some_within((squares[0], squares[1], squares[2]), (low, high, noise), start, states, e, x)


@njit(cache=True, nogil=True, error_model="numpy")
def limited_first(a, count, limited):  # type: ignore[no-untyped-def]
    """Place of a lost column, when those with limits are counted before the others."""
    return count - limited + a if a < limited else a - limited
