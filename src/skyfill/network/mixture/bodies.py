"""Bodies of the loops that a GPU runs over rows, components and cells of a table with gaps.

See `skyfill.device`. The formulas are those of kernels.py, where eight components stand side by
side in vector instructions; here each component of each row has a thread. Components stand along
the last axis, so that neighbouring threads read neighbouring numbers. `unit` holds zero, one and
the least pivot in the precision in which everything is computed.
"""

import math

import numpy as np
from numba import njit

from skyfill.atomic import add_at
from skyfill.network.mixture.gap_kernels import choose
from skyfill.network.mixture.kernels import add_log, normalize_fit
from skyfill.network.mixture.margin_kernels import last_below, score_between, value_at
from skyfill.network.mixture.margin_moments import add_component


@njit
def score_cell(i, room, X, place, shift, width, knots, out):  # type: ignore[no-untyped-def]
    """Give the normal score of a cell; `place` is the number of its column's knots, or -1."""
    r, j = i // X.shape[1], i % X.shape[1]
    value = X[r, j]
    if math.isnan(value):
        out[r, j] = value
    elif place[j] < 0:
        out[r, j] = (value - shift[j]) / width[j]
    else:
        m = place[j]
        at = last_below(knots[2], knots[1][m], knots[1][m + 1], value)
        atom = last_below(knots[6], knots[5][m], knots[5][m + 1], value)
        out[r, j] = score_between(value, m, at, atom, knots)


@njit
def sort_columns(r, room, Z, n_components, order, steps, counts):  # type: ignore[no-untyped-def]
    """List the columns of a row: those that are lost, then those that are seen; count the first.

    `steps` are the places of the columns in arrays that have the components along the last axis.
    """
    p, count = Z.shape[1], 0
    for j in range(p):
        if math.isnan(Z[r, j]):
            order[r, count], steps[r, count] = j, j * n_components
            count += 1
    counts[r] = count
    for j in range(p):
        if not math.isnan(Z[r, j]):
            order[r, count], steps[r, count] = j, j * n_components
            count += 1


# Unsigned numbers are used as they are; signed ones might count from the end of an array, and the
# test for that takes a GPU longer than the arithmetic.
_NO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)


@njit(cache=True, nogil=True, error_model="numpy")
def solve(x, order, steps, count, k, means, precisions, unit, room):  # type: ignore[no-untyped-def]
    """Factorise what is lost of a row for a component, P = L L^T, and solve for what is seen.

    `room` gets the rows of L, their diagonal inverted, one after the other; then L^-1 P c of the
    lost columns, and the seen columns c less their mean. Returns -2 times the log density but for
    its constant, and the log of the determinant of L^-1.
    """
    p = np.uint64(x.size)
    solved = p * (p + _ONE) // _TWO
    seen = solved + p
    quad, log_det = unit[0], unit[0]
    a = count
    while a < p:
        step = np.uint64(steps[a])
        here, line = x[order[a]] - means[step + k], step * p + k
        room[seen + a] = here
        # With half the diagonal the sum up to it is half of what the whole row gives.
        half = precisions[line + step] * here
        b = count
        while b < a:
            half += precisions[line + steps[b]] * room[seen + b]
            b += _ONE
        quad += half * here
        a += _ONE
    quad += quad
    a, row = _NO, _NO
    while a < count:
        step = np.uint64(steps[a])
        line = step * p + k
        right, pivot = unit[0], precisions[line + step]
        pivot += pivot
        b = count
        while b < p:
            right += precisions[line + steps[b]] * room[seen + b]
            b += _ONE
        b, other = _NO, _NO
        while b < a:
            value, h = precisions[line + steps[b]], _NO
            while h < b:
                value -= room[row + h] * room[other + h]
                h += _ONE
            value *= room[other + b]
            room[row + b] = value
            pivot -= value * value
            right -= value * room[solved + b]
            b += _ONE
            other += b
        inverse = unit[1] / math.sqrt(max(pivot, unit[2]))
        right *= inverse
        room[row + a], room[solved + a] = inverse, right
        quad -= right * right
        log_det += math.log(inverse)
        a += _ONE
        row += a
    return quad, log_det


@njit(cache=True, nogil=True, error_model="numpy")
def substitute(count, p, room):  # type: ignore[no-untyped-def]
    """Turn what `solve` left into the distances of the lost columns from their means."""
    solved, a = p * (p + _ONE) // _TWO, count
    while a > _NO:
        a -= _ONE
        value, h = room[solved + a], a + _ONE
        row = h * (h + _ONE) // _TWO
        while h < count:
            value -= room[row + a] * room[solved + h]
            h += _ONE
            row += h
        room[solved + a] = value * room[a * (a + _ONE) // _TWO + a]


@njit(cache=True, nogil=True, error_model="numpy")
def invert(count, unit, room):  # type: ignore[no-untyped-def]
    """Replace L, whose diagonal is inverted already, by its inverse."""
    h, row = _ONE, _ONE
    while h < count:
        a = _NO
        while a < h:
            value, g, other = unit[0], a, a * (a + _ONE) // _TWO
            while g < h:
                value -= room[row + g] * room[other + a]
                g += _ONE
                other += g
            room[row + a] = value * room[row + h]
            a += _ONE
        h += _ONE
        row += h


@njit(cache=True, nogil=True, error_model="numpy")
def covariance(a, b, count, unit, room):  # type: ignore[no-untyped-def]
    """Covariance of two lost columns, a not before b, from the inverse of L."""
    value, h, row = unit[0], a, a * (a + _ONE) // _TWO
    while h < count:
        value += room[row + a] * room[row + b]
        h += _ONE
        row += h
    return value


@njit
def weigh(  # type: ignore[no-untyped-def]
    i, room, Z, order, steps, counts, means, precisions, log_norms, gap_logs, unit, logs, bare
):
    """Log density of a row under a component; `bare` without the chance of its gaps."""
    n_components, p = log_norms.size, Z.shape[1]
    r, k = i // n_components, np.uint64(i % n_components)
    count = np.uint64(counts[r])
    quad, log_det = solve(Z[r], order[r], steps[r], count, k, means, precisions, unit, room)
    constant = 0.5 * (p - counts[r]) * math.log(2 * math.pi)
    value = log_norms[k] - constant + log_det - 0.5 * quad
    logs[r, k] = value
    if gap_logs.shape[1]:
        bare[r, k] = value
        for a in range(p):
            value += gap_logs[0 if a < counts[r] else 1, order[r, a], k]
        logs[r, k] = value


@njit
def share(i, room, bounds, logs, values):  # type: ignore[no-untyped-def]
    """Turn the log densities of a row in one fit into responsibilities; write their sum's log."""
    fits = bounds.size - 1
    r, f = i // fits, i % fits
    values[r, f] = normalize_fit(logs[r], bounds[f], bounds[f + 1], fits)


@njit
def average(r, room, values, loglik):  # type: ignore[no-untyped-def]
    """Log of the mean density of a row over all fits."""
    best, total = -math.inf, 0.0
    for f in range(values.shape[1]):
        best, total = add_log(values[r, f], best, total)
    loglik[r] = best + math.log(total / values.shape[1])


@njit
def complete(  # type: ignore[no-untyped-def]
    i, room, pairs, Z, order, steps, counts, means, precisions, n_components, unit, mean, sd
):
    """Mean and sd of what is lost of a row under a component; a pair is row * components + k."""
    r, k = pairs[i] // n_components, np.uint64(pairs[i] % n_components)
    count, p = np.uint64(counts[r]), np.uint64(Z.shape[1])
    solved = p * (p + _ONE) // _TWO
    solve(Z[r], order[r], steps[r], count, k, means, precisions, unit, room)
    substitute(count, p, room)
    invert(count, unit, room)
    a = _NO
    while a < count:
        j = order[r, a]
        mean[j, i] = means[steps[r, a] + k] - room[solved + a]
        sd[j, i] = math.sqrt(covariance(a, a, count, unit, room))
        a += _ONE


@njit
def fill_gap(i, room, gaps, first, shares, mean, sd, tables, middle, reach, out, spread):  # type: ignore[no-untyped-def]
    """Mean and sd of a gap on the scale of its column.

    The components that matter for row r are the pairs ``first[r]:first[r + 1]``.
    """
    r, j = gaps[i] // out.shape[1], gaps[i] % out.shape[1]
    total, sum_one, sum_two = 0.0, 0.0, 0.0
    for q in range(first[r], first[r + 1]):
        part = (shares[q], mean[j, q], sd[j, q])
        sum_one, sum_two = add_component(part, tables[j], sum_one, sum_two)
        total += shares[q]
    average = sum_one / total
    out[r, j] = middle[j] + reach[j] * average
    spread[r, j] = reach[j] * math.sqrt(max(sum_two / total - average * average, 0.0))


@njit
def draw_row(i, room, Z, order, steps, counts, means, precisions, unit, resp, dice, maps, out):  # type: ignore[no-untyped-def]
    """Write a joint draw of a row: a component by its responsibility, then its Gaussian.

    `dice` holds uniform numbers, normal ones, and where the normal ones of each row begin. Item i
    is draw * rows + row.
    """
    uniform, normal, own = dice
    n, p = Z.shape[0], np.uint64(Z.shape[1])
    t, r = i // n, i % n
    count, solved = np.uint64(counts[r]), p * (p + _ONE) // _TWO
    if count == _NO:
        return
    k = np.uint64(choose(resp[r], uniform[t, r]))
    solve(Z[r], order[r], steps[r], count, k, means, precisions, unit, room)
    substitute(count, p, room)
    invert(count, unit, room)
    a = _NO
    while a < count:
        j, noise = order[r, a], 0.0
        h, row = a, a * (a + _ONE) // _TWO
        while h < count:
            noise += room[row + a] * normal[t, np.uint64(own[r]) + h]
            h += _ONE
            row += h
        score = means[steps[r, a] + k] - room[solved + a] + noise
        out[t, r, j] = value_at(maps, j, score)
        a += _ONE


@njit
def expand(  # type: ignore[no-untyped-def]
    i, room, pairs, ahead, Z, order, steps, counts, means, precisions, unit, resp, rows, spread
):
    """Complete a row under a component, for the expected moments.

    Written are the row less its mean and a one, times the root of the responsibility, as a column
    of `rows`; the covariance of what is lost is added to one of the tables of `spread`. Here a pair
    is k * rows + row, and the columns of component k are moved by ``ahead[k]``.
    """
    n, p = Z.shape[0], np.uint64(Z.shape[1])
    r, k = pairs[i] % n, np.uint64(pairs[i] // n)
    count, at, solved = np.uint64(counts[r]), i + ahead[k], p * (p + _ONE) // _TWO
    share_of_row = resp[r, k]
    root = math.sqrt(share_of_row)
    solve(Z[r], order[r], steps[r], count, k, means, precisions, unit, room)
    a = count
    while a < p:
        rows[order[r, a], at] = root * room[solved + p + a]
        a += _ONE
    substitute(count, p, room)
    rows[p, at] = root
    a = _NO
    while a < count:
        rows[order[r, a], at] = -root * room[solved + a]
        a += _ONE
    invert(count, unit, room)
    table = i % spread.shape[0]
    a = _NO
    while a < count:
        b = _NO
        while b <= a:
            place = (table, k, order[r, a], order[r, b])
            add_at(spread, place, share_of_row * covariance(a, b, count, unit, room))
            b += _ONE
        a += _ONE
