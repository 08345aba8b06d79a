"""Compiled kernels for the distribution of one gap: a mixture of normals, seen through its margin.

`resp` holds the responsibilities of the components for the gap's row, `mean` and `sd` what each
component says of the gap's normal score.
"""

import math

import numpy as np
from numba import njit

from skyfill.network.mixture.compiled import leaf
from skyfill.network.mixture.kernels import (
    complete,
    find_lost,
    make_factors,
    make_room,
    normalize,
    prepare,
)
from skyfill.network.mixture.lanes import LANES, combine, copy, norm
from skyfill.network.mixture.limited_kernels import (
    CELLS,
    changes_little,
    level_of,
    score_of,
    tabulate,
)
from skyfill.network.mixture.margin_kernels import look_up, value_at
from skyfill.network.mixture.margin_moments import (
    add_component,
    add_normal_value,
    level_below,
    place_of,
)
from skyfill.network.mixture.random_keys import number
from skyfill.network.mixture.truncated_kernels import quantile

# Components of less than this responsibility are left out of moments and posteriors. Each cell of a
# posterior then misses less than this share per component of its distribution.
NEGLIGIBLE = 1e-5
# Scores at which the distribution of a gap is tabulated before its quantiles are looked for.
COARSE = 33
_ROOT_2 = math.sqrt(2.0)


@njit(cache=True, nogil=True, error_model="numpy")
def fill_gaps(row_of, column_of, resp, mean, sd, windows, wanted, tables, ladder, out, spread):  # type: ignore[no-untyped-def]
    """Write the mean and sd of each wanted gap on the scale of the tables.

    Gaps of one row follow one another.
    """
    some, room = np.empty(resp.shape[1], np.int64), (np.empty(resp.shape[1]), np.empty(CELLS))
    gaps = (row_of, column_of, resp, mean, sd, windows, wanted)
    fill_each(*gaps, tables, ladder, out, spread, some, room)


@leaf
def fill_each(  # type: ignore[no-untyped-def]
    row_of, column_of, resp, mean, sd, windows, wanted, tables, ladder, out, spread, some, room
):
    """Write mean and sd of the gaps; `some` and `room` have room for each component."""
    last, count, total = -1, 0, 0.0
    for g in range(row_of.size):
        r, j = row_of[g], column_of[g]
        if not wanted[g]:
            continue
        if is_limited(windows, g):
            window = (windows[g, 0], windows[g, 1], windows[g, 2])
            if not changes_little(resp[r], mean[g], sd[g], window):
                gap = (resp[r], mean[g], sd[g])
                out[r, j], spread[r, j] = limited_moments(gap, window, tables[j], ladder, room)
                continue
        if r != last:
            last, (count, total) = r, list_components(resp[r], some)
        first, second, table = 0.0, 0.0, tables[j]
        for i in range(count):
            k = some[i]
            part = (resp[r, k], mean[g, k], sd[g, k])
            first, second = add_component(part, table, ladder, first, second)
        first /= total
        out[r, j] = first
        spread[r, j] = np.sqrt(max(second / total - first * first, 0.0))


@leaf
def is_limited(windows, g):  # type: ignore[no-untyped-def]
    """Check whether a gap has a limit."""
    return windows.shape[0] > 0 and (windows[g, 0] > -np.inf or windows[g, 1] < np.inf)


@leaf
def limited_moments(gap, window, table, ladder, room):  # type: ignore[no-untyped-def]
    """Mean and sd of a gap within limits, on the scale of its table."""
    (resp, mean, sd), (logs, mass) = gap, room
    first, width = tabulate(resp, mean, sd, window, logs, mass)
    one, two = 0.0, 0.0
    if table.ndim == 1:  # of an earlier version
        for i in range(mass.size):
            value = look_up(table, first + (i + 0.5) * width)
            one += mass[i] * value
            two += mass[i] * value * value
    else:  # a cell counts as the normal that is about as wide
        step = ladder[1][level_below(width / math.sqrt(12.0), ladder)]
        for i in range(mass.size):
            at = place_of(first + (i + 0.5) * width, step)
            one, two = add_normal_value(mass[i], at, step, table, one, two)
    return one, math.sqrt(max(two - one * one, 0.0))


@leaf
def list_components(resp, some):  # type: ignore[no-untyped-def]
    """List the components that are not negligible; return their number and sum."""
    count, total = 0, 0.0
    for k in range(resp.size):
        some[count] = k
        counts = resp[k] > NEGLIGIBLE
        count += counts
        total += resp[k] if counts else 0.0
    return count, total


@leaf
def mixture_cdf(score, resp, mean, sd):  # type: ignore[no-untyped-def]
    """Probability that a gap's normal score lies below."""
    total, below = 0.0, 0.0
    for k in range(resp.size):
        if resp[k] > NEGLIGIBLE:
            total += resp[k]
            below += resp[k] * 0.5 * math.erfc(-(score - mean[k]) / (sd[k] * _ROOT_2))
    return below / total


@njit(cache=True, nogil=True, error_model="numpy")
def gap_levels(row_of, resp, mean, sd, windows, scores, out):  # type: ignore[no-untyped-def]
    """Write the probability that each gap's normal score lies below a given one."""
    logs, mass = np.empty(resp.shape[1]), np.empty(CELLS)
    for g in range(row_of.size):
        if is_limited(windows, g):
            window = (windows[g, 0], windows[g, 1], windows[g, 2])
            first, width = tabulate(resp[row_of[g]], mean[g], sd[g], window, logs, mass)
            out[g] = level_of(scores[g], first, width, mass)
            continue
        out[g] = mixture_cdf(scores[g], resp[row_of[g]], mean[g], sd[g])


@leaf
def gap_spread(resp, mean, sd):  # type: ignore[no-untyped-def]
    """Give the standard deviation of a gap's normal score: how little is known of it."""
    total, first, second = 0.0, 0.0, 0.0
    for k in range(resp.size):
        if resp[k] > NEGLIGIBLE:
            total += resp[k]
            first += resp[k] * mean[k]
            second += resp[k] * (mean[k] * mean[k] + sd[k] * sd[k])
    first /= total
    return math.sqrt(max(second / total - first * first, 0.0))


@leaf
def gap_spreads(row_of, resp, mean, sd, out):  # type: ignore[no-untyped-def]
    """Write the spread of each gap."""
    for g in range(row_of.size):
        out[g] = gap_spread(resp[row_of[g]], mean[g], sd[g])


@leaf
def interpolate(steps, level):  # type: ignore[no-untyped-def]
    """Value at a level of a function that is given in even steps from 0 to 1."""
    at = level * (steps.size - 1)
    i = int(min(max(0.0, at), steps.size - 2.0))
    return steps[i] + (at - i) * (steps[i + 1] - steps[i])


@leaf
def calibrate_levels(at, column, spread, knots, by_spread, out):  # type: ignore[no-untyped-def]
    """Levels of a gap's posterior: first by its spread, then by its column."""
    after = first_reaching(knots, spread)
    share = (spread - knots[after - 1]) / (knots[after] - knots[after - 1])
    share = min(max(share, 0.0), 1.0)
    for q in range(at.size):
        narrow = interpolate(by_spread[after - 1], at[q])
        wide = interpolate(by_spread[after], at[q])
        out[q] = interpolate(column, narrow + share * (wide - narrow))


@leaf
def find_score(level, ends, resp, mean, sd):  # type: ignore[no-untyped-def]
    """Find the normal score below which a gap lies with a given probability.

    Regula falsi in the manner of Illinois: an end that stays twice has its weight halved.
    """
    low, high = ends[0], ends[1]
    below = mixture_cdf(low, resp, mean, sd) - level
    above = mixture_cdf(high, resp, mean, sd) - level
    side = 0
    for _ in range(60):
        if high - low < 1e-9 or below >= 0.0 or above <= 0.0:
            break
        middle = (low * above - high * below) / (above - below)
        value = mixture_cdf(middle, resp, mean, sd) - level
        if abs(value) < 1e-9:
            return middle
        if value < 0.0:
            low, below = middle, value
            above = 0.5 * above if side == -1 else above
            side = -1
        else:
            high, above = middle, value
            below = 0.5 * below if side == 1 else below
            side = 1
    return low if below >= 0.0 else (high if above <= 0.0 else 0.5 * (low + high))


@njit(cache=True, nogil=True, error_model="numpy")
def gap_quantiles(row_of, column_of, resp, mean, sd, windows, maps, calibration, out):  # type: ignore[no-untyped-def]
    """Write quantiles of each gap."""
    room, found = np.empty(quantile_room(resp.shape[1])), np.empty(calibration[0].size)
    for g in range(row_of.size):
        r, j = row_of[g], column_of[g]
        window = (-np.inf, np.inf, 0.0)
        if is_limited(windows, g):
            window = (windows[g, 0], windows[g, 1], windows[g, 2])
        find_quantiles((resp[r], mean[g], sd[g]), window, j, maps, calibration, room, found)
        for q in range(found.size):
            out[q, r, j] = found[q]


@leaf
def quantile_room(n_components):  # type: ignore[no-untyped-def]
    """Count the numbers that `find_quantiles` needs room for."""
    return n_components + CELLS + 2 * COARSE


@leaf
def find_quantiles(gap, window, j, maps, calibration, room, found):  # type: ignore[no-untyped-def]
    """Find quantiles of a gap: a monotone map keeps them, so they are found among the scores.

    `calibration` holds the levels asked for, those of the columns, spreads, levels at these, and
    the levels of the columns within limits.
    """
    at, columns, knots, by_spread, within = calibration
    resp, mean, sd = gap
    if window[0] > -np.inf or window[1] < np.inf:
        mass, logs = room[:CELLS], room[CELLS:]
        first, width = tabulate(resp, mean, sd, window, logs, mass)
        for q in range(at.size):
            level = interpolate(within[j], at[q])
            found[q] = value_at(maps, j, score_of(level, first, width, mass))
        return
    calibrate_levels(at, columns[j], gap_spread(resp, mean, sd), knots, by_spread, found)
    coarse, below = room[:COARSE], room[COARSE : 2 * COARSE]
    lay_scores(gap, coarse, below)
    for q in range(at.size):
        i = first_reaching(below, found[q])
        score = find_score(found[q], coarse[i - 1 : i + 1], resp, mean, sd)
        found[q] = value_at(maps, j, score)


@leaf
def lay_scores(gap, coarse, below):  # type: ignore[no-untyped-def]
    """Write scores that span a gap's distribution, and the probability below each."""
    resp, mean, sd = gap
    lowest, highest = np.inf, -np.inf
    for k in range(resp.size):
        if resp[k] > NEGLIGIBLE:
            lowest = min(lowest, mean[k] - 8.0 * sd[k])
            highest = max(highest, mean[k] + 8.0 * sd[k])
    for i in range(COARSE):
        coarse[i] = lowest + (highest - lowest) * i / (COARSE - 1)
        below[i] = mixture_cdf(coarse[i], resp, mean, sd)


@leaf
def first_reaching(values, level):  # type: ignore[no-untyped-def]
    """Find the first of rising values, but for the very first, that is not below; or the last."""
    i = 1
    while i < values.size - 1 and values[i] < level:
        i += 1
    return i


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_rows(X, order, starts, components, first_gap, resp, mean, sd, loglik, seen):  # type: ignore[no-untyped-def]
    """Write each row's responsibilities and likelihood, and per gap and component mean and sd.

    Gaps are numbered in row order: those of row r start at first_gap[r]. `seen` is the
    log-likelihood without the chance of the pattern of gaps.
    """
    means, precisions = components.means, components.precisions
    blocks, p, _ = means.shape
    lost, factors, z = np.empty(p + 1, np.int64), make_factors(blocks, p), make_room(p)
    lower, root, log_w, log_gaps = factors
    c, spread, quad = np.empty((p, LANES)), np.empty((p, LANES)), np.empty(LANES)
    logs, bounds = np.empty(blocks * LANES), components.bounds
    for g in range(starts.size - 1):
        count = find_lost(X[order[starts[g]]], lost)
        prepare(lost, count, components, factors, z)
        for b in range(blocks):
            find_spreads(b, count, root, spread)
            for a in range(starts[g], starts[g + 1]):
                r = order[a]
                complete(X, r, lost, count, b, means, precisions, lower, root, z, c, 0, quad)
                combine(1.0, log_w, b, -0.5, quad, 0, resp, r * blocks + b)
                for i in range(count):
                    gap = (first_gap[r] + i) * blocks + b
                    combine(1.0, means, b * p + lost[i], 1.0, c, lost[i], mean, gap)
                    copy(spread, i, sd, gap)
        for a in range(starts[g], starts[g + 1]):
            r = order[a]
            if components.log_lost.shape[1]:
                for b in range(blocks):
                    combine(1.0, resp, r * blocks + b, -1.0, log_gaps, b, logs, b)
                seen[r] = normalize(logs, bounds)
            loglik[r] = normalize(resp[r], bounds)
            if not components.log_lost.shape[1]:
                seen[r] = loglik[r]


@leaf
def find_spreads(b, count, root, spread):  # type: ignore[no-untyped-def]
    """Write the standard deviation of each gap of a pattern for a block."""
    p = root.shape[1]
    for i in range(count):
        at = (b * p + i) * p + i
        norm(root, at, count - i, spread, i)


@njit(cache=True, nogil=True, error_model="numpy")
def draw_gaps(X, order, starts, components, resp, mean, first_gap, keys, maps, out):  # type: ignore[no-untyped-def]
    """Write joint draws: a component by its responsibility, then its Gaussian, then the margins."""
    blocks, p, _ = components.means.shape
    lost, factors, z = np.empty(p + 1, np.int64), make_factors(blocks, p), make_room(p)
    codes, normal = keys.columns, np.empty(p)
    for g in range(starts.size - 1):
        count = find_lost(X[order[starts[g]]], lost)
        prepare(lost, count, components, factors, z)
        for a in range(starts[g], starts[g + 1]):
            r = order[a]
            gap = first_gap[r]
            for t in range(out.shape[0]):
                key, nth = keys.rows[r], keys.first + t
                chosen = choose(resp[r], number(key, nth, codes[p]))
                b, k = chosen // LANES, chosen % LANES
                for i in range(count):
                    normal[i] = quantile(number(key, nth, codes[lost[i]]))
                for i in range(count):
                    noise = 0.0
                    for h in range(i, count):
                        noise += factors.root[b, i, h, k] * normal[h]
                    out[t, r, lost[i]] = value_at(maps, lost[i], mean[gap + i, chosen] + noise)


@leaf
def choose(resp, uniform):  # type: ignore[no-untyped-def]
    """Index of the component in whose share of the unit interval a number lies."""
    left, best = uniform, 0
    for k in range(resp.size):
        left -= resp[k]
        if left < 0.0:
            return k
        best = k if resp[k] > resp[best] else best
    return best
