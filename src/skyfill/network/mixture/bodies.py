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
from skyfill.network.mixture.gap_kernels import choose, component_moments, look_up
from skyfill.network.mixture.kernels import normalize
from skyfill.network.mixture.margin import last_below, score_between


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
def sort_columns(r, room, Z, order, counts):  # type: ignore[no-untyped-def]
    """List the columns of a row: those that are lost, then those that are seen; count the first."""
    p, count = Z.shape[1], 0
    for j in range(p):
        if math.isnan(Z[r, j]):
            order[r, count] = j
            count += 1
    counts[r] = count
    for j in range(p):
        if not math.isnan(Z[r, j]):
            order[r, count] = j
            count += 1


@njit(cache=True, nogil=True, error_model="numpy")
def solve(x, order, count, k, means, precisions, unit, room):  # type: ignore[no-untyped-def]
    """Factorise what is lost of a row for a component, P = L L^T, and solve for what is seen.

    `room` gets the rows of L, their diagonal inverted, one after the other; then L^-1 P c of the
    lost columns, and the seen columns c less their mean. Returns -2 times the log density but for
    its constant, and the log of the determinant of L^-1.
    """
    p = x.size
    solved, seen = p * (p + 1) // 2, p * (p + 1) // 2 + p
    quad, log_det = unit[0], unit[0]
    for a in range(count, p):
        j = order[a]
        room[seen + a] = x[j] - means[j, k]
        # With half the diagonal the sum up to it is half of what the whole row gives.
        half = unit[0]
        for b in range(count, a + 1):
            half += precisions[j, order[b], k] * room[seen + b]
        quad += half * room[seen + a]
    quad += quad
    for a in range(count):
        j, row = order[a], a * (a + 1) // 2
        right, pivot = unit[0], precisions[j, j, k]
        pivot += pivot
        for b in range(count, p):
            right += precisions[j, order[b], k] * room[seen + b]
        for b in range(a):
            value, other = precisions[j, order[b], k], b * (b + 1) // 2
            for h in range(b):
                value -= room[row + h] * room[other + h]
            value *= room[other + b]
            room[row + b] = value
            pivot -= value * value
            right -= value * room[solved + b]
        inverse = unit[1] / math.sqrt(max(pivot, unit[2]))
        right *= inverse
        room[row + a], room[solved + a] = inverse, right
        quad -= right * right
        log_det += math.log(inverse)
    return quad, log_det


@njit(cache=True, nogil=True, error_model="numpy")
def substitute(count, p, room):  # type: ignore[no-untyped-def]
    """Turn what `solve` left into the distances of the lost columns from their means."""
    solved = p * (p + 1) // 2
    for back in range(count):
        a = count - 1 - back
        value = room[solved + a]
        for h in range(a + 1, count):
            value -= room[h * (h + 1) // 2 + a] * room[solved + h]
        room[solved + a] = value * room[a * (a + 1) // 2 + a]


@njit(cache=True, nogil=True, error_model="numpy")
def invert(count, unit, room):  # type: ignore[no-untyped-def]
    """Replace L, whose diagonal is inverted already, by its inverse."""
    for h in range(1, count):
        row = h * (h + 1) // 2
        for a in range(h):
            value = unit[0]
            for g in range(a, h):
                value -= room[row + g] * room[g * (g + 1) // 2 + a]
            room[row + a] = value * room[row + h]


@njit(cache=True, nogil=True, error_model="numpy")
def covariance(a, b, count, unit, room):  # type: ignore[no-untyped-def]
    """Covariance of two lost columns, a not before b, from the inverse of L."""
    value = unit[0]
    for h in range(a, count):
        row = h * (h + 1) // 2
        value += room[row + a] * room[row + b]
    return value


@njit
def weigh(i, room, Z, order, counts, means, precisions, log_norms, gap_logs, unit, logs, bare):  # type: ignore[no-untyped-def]
    """Log density of a row under a component; `bare` without the chance of its gaps."""
    n_components, p = means.shape[1], Z.shape[1]
    r, k = i // n_components, np.uint32(i % n_components)
    count = counts[r]
    quad, log_det = solve(Z[r], order[r], count, k, means, precisions, unit, room)
    constant = 0.5 * (p - count) * math.log(2 * math.pi)
    value = log_norms[k] - constant + log_det - 0.5 * quad
    logs[r, k] = value
    if gap_logs.shape[1]:
        bare[r, k] = value
        for a in range(p):
            value += gap_logs[0 if a < count else 1, order[r, a], k]
        logs[r, k] = value


@njit
def share(r, room, bounds, logs, bare, loglik, seen):  # type: ignore[no-untyped-def]
    """Turn the log densities of a row into responsibilities; write its log-likelihoods."""
    loglik[r] = normalize(logs[r], bounds)
    seen[r] = loglik[r]
    if bare.shape[1]:
        seen[r] = normalize(bare[r], bounds)


@njit
def complete(i, room, pairs, Z, order, counts, means, precisions, unit, mean, sd):  # type: ignore[no-untyped-def]
    """Mean and sd of what is lost of a row under a component; a pair is row * components + k."""
    n_components, p = means.shape[1], Z.shape[1]
    r, k = pairs[i] // n_components, np.uint32(pairs[i] % n_components)
    count, solved = counts[r], p * (p + 1) // 2
    solve(Z[r], order[r], count, k, means, precisions, unit, room)
    substitute(count, p, room)
    invert(count, unit, room)
    for a in range(count):
        j = order[r, a]
        mean[j, i] = means[j, k] - room[solved + a]
        sd[j, i] = math.sqrt(covariance(a, a, count, unit, room))


@njit
def fill_gap(i, room, gaps, first, shares, mean, sd, grids, middle, reach, out, spread):  # type: ignore[no-untyped-def]
    """Mean and sd of a gap on the scale of its column.

    The components that matter for row r are the pairs ``first[r]:first[r + 1]``.
    """
    r, j = gaps[i] // out.shape[1], gaps[i] % out.shape[1]
    total, sum_one, sum_two = 0.0, 0.0, 0.0
    for q in range(first[r], first[r + 1]):
        one, two = component_moments(mean[j, q], sd[j, q], grids[j])
        total += shares[q]
        sum_one += shares[q] * one
        sum_two += shares[q] * two
    average = sum_one / total
    out[r, j] = middle[j] + reach[j] * average
    spread[r, j] = reach[j] * math.sqrt(max(sum_two / total - average * average, 0.0))


@njit
def draw_row(i, room, Z, order, counts, means, precisions, unit, resp, dice, grids, out):  # type: ignore[no-untyped-def]
    """Write a joint draw of a row: a component by its responsibility, then its Gaussian.

    `dice` holds uniform numbers, normal ones, and where the normal ones of each row begin. Item i
    is draw * rows + row.
    """
    uniform, normal, own = dice
    n, p = Z.shape
    t, r = i // n, i % n
    count, solved = counts[r], p * (p + 1) // 2
    if count == 0:
        return
    k = np.uint32(choose(resp[r], uniform[t, r]))
    solve(Z[r], order[r], count, k, means, precisions, unit, room)
    substitute(count, p, room)
    invert(count, unit, room)
    for a in range(count):
        j, noise = order[r, a], 0.0
        for h in range(a, count):
            noise += room[h * (h + 1) // 2 + a] * normal[t, own[r] + h]
        out[t, r, j] = look_up(grids[j], means[j, k] - room[solved + a] + noise)


@njit
def expand(i, room, pairs, ahead, Z, order, counts, means, precisions, unit, resp, rows, spread):  # type: ignore[no-untyped-def]
    """Complete a row under a component, for the expected moments.

    Written are the row less its mean and a one, times the root of the responsibility; the
    covariance of what is lost is added to one of the tables of `spread`. Here a pair is
    k * rows + row, and the rows of component k are moved by ``ahead[k]``.
    """
    n, p = Z.shape
    r, k = pairs[i] % n, np.uint32(pairs[i] // n)
    count, at, solved = counts[r], i + ahead[k], p * (p + 1) // 2
    root = math.sqrt(resp[r, k])
    solve(Z[r], order[r], count, k, means, precisions, unit, room)
    for a in range(count, p):
        rows[at, order[r, a]] = root * room[solved + p + a]
    substitute(count, p, room)
    rows[at, p] = root
    for a in range(count):
        rows[at, order[r, a]] = -root * room[solved + a]
    invert(count, unit, room)
    table = i % spread.shape[0]
    for a in range(count):
        for b in range(a + 1):
            place = (table, k, order[r, a], order[r, b])
            add_at(spread, place, resp[r, k] * covariance(a, b, count, unit, room))
