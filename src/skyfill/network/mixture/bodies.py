"""Bodies of the loops that a GPU runs over rows, components and cells of a table with gaps.

See `skyfill.device`. Components stand along the last axis, so that neighbouring threads read
neighbouring numbers.
`cells`, `sorts` and `sites` are explained in solving.py.
"""

import math

import numpy as np
from numba import njit

from skyfill.atomic import add_at
from skyfill.network.mixture.gap_kernels import choose, find_quantiles, limited_moments
from skyfill.network.mixture.kernels import add_log
from skyfill.network.mixture.limited_kernels import CELLS, changes_little
from skyfill.network.mixture.margin_kernels import last_below, score_between, value_at
from skyfill.network.mixture.margin_moments import add_component
from skyfill.network.mixture.random_keys import number
from skyfill.network.mixture.solving import (
    NO,
    ONE,
    TWO,
    complete_row,
    covariance,
    place_errors,
    solve,
)
from skyfill.network.mixture.truncated_kernels import quantile


@njit
def score_cell(i, room, X, place, shift, width, knots, out):  # type: ignore[no-untyped-def]
    """Give the normal score of a cell."""
    r, j = i // X.shape[1], i % X.shape[1]
    out[r, j] = score(X[r, j], j, place, shift, width, knots)


@njit(cache=True, nogil=True, error_model="numpy")
def score(value, j, place, shift, width, knots):  # type: ignore[no-untyped-def]
    """Give the normal score of a value; `place` is the number of its column's knots, or -1."""
    if math.isnan(value):
        return value
    if place[j] < 0:
        return (value - shift[j]) / width[j]
    m = place[j]
    at = last_below(knots[2], knots[1][m], knots[1][m + 1], value)
    atom = last_below(knots[6], knots[5][m], knots[5][m + 1], value)
    return score_between(value, m, at, atom, knots)


# Log densities that are this much smaller do not count; that of a row which nothing explains.
FAR, NOWHERE = 30.0, -1e300
# What a cell is, in the order in which the columns of a row are worked on.
LOST, LIMITED, EXACT = range(3)


@njit
def sort_columns(r, room, cells, n_components, order, steps, counts, limits):  # type: ignore[no-untyped-def]
    """List the columns of a row: the lost ones, those with limits last among them; then the others.

    A value with an error counts as lost. `steps` are the places of the columns in arrays that have
    the components along the last axis; `counts` and `limits` are the numbers of lost columns and of
    those with limits.
    """
    at = 0
    for kind in range(3):
        for j in range(cells[0].shape[1]):
            if kind_of(r, j, cells) == kind:
                order[r, at], steps[r, at] = j, j * n_components
                at += 1
        if kind == LOST:
            limits[r] = at
        elif kind == LIMITED:
            counts[r], limits[r] = at, at - limits[r]


@njit(cache=True, nogil=True, error_model="numpy")
def kind_of(r, j, cells):  # type: ignore[no-untyped-def]
    """Find what a cell is."""
    Z, low, high, noise = cells
    is_plain = noise.shape[0] == 0
    if not math.isnan(Z[r, j]):
        return EXACT if is_plain or noise[r, j] == 0.0 else LOST
    if is_plain or (low[r, j] == -math.inf and high[r, j] == math.inf):
        return LOST
    return LIMITED


@njit
def weigh(i, room, cells, sorts, known, log_norms, gap_logs, logs, bare):  # type: ignore[no-untyped-def]
    """Log density of a row under a component; `bare` without the chance of its gaps."""
    Z, (order, steps, counts, limits) = cells[0], sorts
    n_components, p = log_norms.size, Z.shape[1]
    r, k = i // n_components, np.uint64(i % n_components)
    count, sited = np.uint64(counts[r]), cells[3].shape[0] > 0
    log_scale = place_errors(r, order[r], count, cells, room)
    quad, log_det = solve(Z[r], order[r], steps[r], count, k, known, room, sited)
    constant = 0.5 * (p - counts[r]) * math.log(2 * math.pi) - log_scale
    value = log_norms[k] - constant + log_det - 0.5 * quad
    logs[r, k] = value
    if gap_logs.shape[1]:
        bare[r, k] = value
        for a in range(p):
            # A limit says why a cell is missing: it does not count as a gap once more.
            if a < counts[r] - limits[r] or a >= counts[r]:
                j = order[r, a]
                value += gap_logs[0 if math.isnan(Z[r, j]) else 1, j, k]
        logs[r, k] = value


@njit
def share(i, room, bounds, logs, values):  # type: ignore[no-untyped-def]
    """Log density of a row in one fit, from those of its components."""
    fits = bounds.size - 1
    r, f = i // fits, i % fits
    top, total = -math.inf, 0.0
    for k in range(bounds[f], bounds[f + 1]):
        top = max(top, logs[r, k])
    for k in range(bounds[f], bounds[f + 1]):
        if logs[r, k] > top - FAR:
            total += math.exp(logs[r, k] - top)
    values[r, f] = top + math.log(total) if total > 0.0 else NOWHERE


@njit
def respond(i, room, bounds, fit_of, values, logs):  # type: ignore[no-untyped-def]
    """Turn a log density into a responsibility; neighbouring threads read neighbouring numbers."""
    r, k = i // logs.shape[1], i % logs.shape[1]
    f, fits = fit_of[k], bounds.size - 1
    value = logs[r, k] - values[r, f]
    if values[r, f] == NOWHERE:  # no component can have made the row: none is more likely
        value = -math.log(bounds[f + 1] - bounds[f])
    logs[r, k] = math.exp(value) / fits if value > -FAR else 0.0


@njit
def average(r, room, values, loglik):  # type: ignore[no-untyped-def]
    """Log of the mean density of a row over all fits."""
    best, total = -math.inf, 0.0
    for f in range(values.shape[1]):
        best, total = add_log(values[r, f], best, total)
    loglik[r] = best + math.log(total / values.shape[1])


@njit
def complete(i, room, pairs, cells, sorts, sites, known, mean, sd):  # type: ignore[no-untyped-def]
    """Mean and sd of what is lost of a row under a component; a pair is row * components + k.

    Of a column with limits: those that it would have without its own limits.
    """
    (order, steps, _, limits), (means, _, n_components, unit) = sorts, known
    r, k = pairs[i] // n_components, np.uint64(pairs[i] % n_components)
    count, p = complete_row(r, k, room, cells, sorts, sites, known)
    solved = p * (p + ONE) // TWO
    tau_at, free_below = solved + p, count - np.uint64(limits[r])
    a = NO
    while a < count:
        center, var = means[steps[r, a] + k] - room[solved + a], covariance(a, a, count, unit, room)
        if a >= free_below:
            free = max(1.0 / var - room[tau_at + a], 1e-12 / var)
            center = (center / var - room[tau_at + p + a]) / free
            var = 1.0 / free
        mean[order[r, a], i], sd[order[r, a], i] = center, math.sqrt(var)
        a += ONE


@njit
def fill_gap(i, room, gaps, first, shares, mean, sd, scales, out, spread):  # type: ignore[no-untyped-def]
    """Mean and sd of a gap on the scale of its column.

    The components that matter for row r are the pairs ``first[r]:first[r + 1]``.
    """
    tables, middle, reach, ladder = scales
    r, j = gaps[i] // out.shape[1], gaps[i] % out.shape[1]
    total, sum_one, sum_two = 0.0, 0.0, 0.0
    for q in range(first[r], first[r + 1]):
        part = (shares[q], mean[j, q], sd[j, q])
        sum_one, sum_two = add_component(part, tables[j], ladder, sum_one, sum_two)
        total += shares[q]
    average = sum_one / total
    out[r, j] = middle[j] + reach[j] * average
    spread[r, j] = reach[j] * math.sqrt(max(sum_two / total - average * average, 0.0))


@njit
def fill_limited_gap(i, room, gaps, first, shares, mean, sd, windows, scales, out, spread):  # type: ignore[no-untyped-def]
    """Mean and sd of a gap that has limits; others keep what `fill_gap` has found."""
    tables, middle, reach, ladder = scales
    r, j = gaps[i] // out.shape[1], gaps[i] % out.shape[1]
    window = (windows[0][r, j], windows[1][r, j], windows[2][r, j])
    if window[0] == -math.inf and window[1] == math.inf:
        return
    a, b = first[r], first[r + 1]
    gap = (shares[a:b], mean[j, a:b], sd[j, a:b])
    if not changes_little(*gap, window):
        one, two = limited_moments(gap, window, tables[j], ladder, (room[CELLS:], room[:CELLS]))
        out[r, j], spread[r, j] = middle[j] + reach[j] * one, reach[j] * two


@njit
def find_gap_quantiles(i, room, gaps, first, shares, mean, sd, windows, maps, calibration, out):  # type: ignore[no-untyped-def]
    """Quantiles of a gap; see `fill_gap`."""
    n_levels, p = out.shape[0], out.shape[2]
    r, j = gaps[i] // p, gaps[i] % p
    a, b = first[r], first[r + 1]
    window = (-math.inf, math.inf, 0.0)
    if windows[0].shape[0]:
        window = (windows[0][r, j], windows[1][r, j], windows[2][r, j])
    found = room[:n_levels]
    gap = (shares[a:b], mean[j, a:b], sd[j, a:b])
    find_quantiles(gap, window, j, maps, calibration, room[n_levels:], found)
    for q in range(n_levels):
        out[q, r, j] = found[q]


@njit
def draw_row(i, room, rows, cells, sorts, sites, known, resp, keys, maps, out):  # type: ignore[no-untyped-def]
    """Write a joint draw of a plain row: a component by its responsibility, then its Gaussian.

    `keys` holds those of the rows, the codes of the columns, and the number of the first draw. Item
    i is draw * rows + number of the row among them.
    """
    (words, codes, first), (order, steps, counts, _), means = keys, sorts, known[0]
    t, r = i // rows.size, rows[i % rows.size]
    if counts[r] == 0:
        return
    k = np.uint64(choose(resp[r], number(words[r], first + t, codes[order.shape[1]])))
    count, p = complete_row(r, k, room, cells, sorts, sites, known)
    solved, h = p * (p + ONE) // TWO, NO
    while h < count:
        normal = quantile(number(words[r], first + t, codes[order[r, h]]))
        a, row = NO, h * (h + ONE) // TWO
        while a <= h:
            room[solved + a] -= room[row + a] * normal
            a += ONE
        h += ONE
    a = NO
    while a < count:
        j = order[r, a]
        out[t, r, j] = value_at(maps, j, means[steps[r, a] + k] - room[solved + a])
        a += ONE


@njit
def expand(i, room, pairs, ahead, cells, sorts, sites, known, resp, rows, spread):  # type: ignore[no-untyped-def]
    """Complete a row under a component, for the expected moments.

    Written are the row less its mean and a one, times the root of the responsibility, as a column
    of `rows`; the covariance of what is lost is added to one of the tables of `spread`. Here a pair
    is k * rows + row, and the columns of component k are moved by ``ahead[k]``.
    """
    order, unit, n = sorts[0], known[3], cells[0].shape[0]
    r, k = pairs[i] % n, np.uint64(pairs[i] // n)
    share_of_row, at = resp[r, k], i + ahead[k]
    root = math.sqrt(share_of_row)
    count, p = complete_row(r, k, room, cells, sorts, sites, known)
    solved, a = p * (p + ONE) // TWO, NO
    while a < count:
        rows[order[r, a], at] = -root * room[solved + a]
        a += ONE
    while a < p:
        rows[order[r, a], at] = root * room[solved + p + a]
        a += ONE
    rows[p, at] = root
    table, a = i % spread.shape[0], NO
    while a < count:
        b = NO
        while b <= a:
            place = (table, k, max(order[r, a], order[r, b]), min(order[r, a], order[r, b]))
            add_at(spread, place, share_of_row * covariance(a, b, count, unit, room))
            b += ONE
        a += ONE
