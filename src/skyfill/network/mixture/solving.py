"""One row under one component, on a GPU: what is lost of it, given what is seen.

The formulas are those of kernels.py, where eight components stand side by side in vector
instructions; here each component of each row has a thread. `unit` holds zero, one and the least
pivot in the precision in which everything is computed.

A value with an error is a lost one with a *site*, a factor exp(-tau z^2 / 2 + nu z) beside the
component's density; so is a limit, once expectation propagation has found its Gaussian
(uncertain_bodies.py). `cells` are normal scores, lower and upper limits and variances of errors;
the last three have no rows where there are neither limits nor errors. `sorts` are the columns of
each row in the order in which they are worked on, see `bodies.sort_columns`.
"""

import math

import numpy as np
from numba import njit

# Variance of an error at least: below it, a value is as good as exact.
LEAST_NOISE = 1e-10
# Unsigned numbers are used as they are; signed ones might count from the end of an array, and the
# test for that takes a GPU longer than the arithmetic.
NO, ONE, TWO = np.uint64(0), np.uint64(1), np.uint64(2)


@njit(cache=True, nogil=True, error_model="numpy")
def center_seen(x, order, steps, count, k, known, room):  # type: ignore[no-untyped-def]
    """Write the seen columns less their mean; return -2 times what they add to the log density."""
    means, precisions, _, unit = known
    p, quad = np.uint64(x.size), unit[0]
    seen, a = p * (p + ONE) // TWO + p, count
    while a < p:
        step = np.uint64(steps[a])
        here, line = x[order[a]] - means[step + k], step * p + k
        room[seen + a] = here
        # With half the diagonal the sum up to it is half of what the whole row gives.
        half = precisions[line + step] * here
        b = count
        while b < a:
            half += precisions[line + steps[b]] * room[seen + b]
            b += ONE
        quad += half * here
        a += ONE
    return quad + quad


@njit(cache=True, nogil=True, error_model="numpy")
def solve(x, order, steps, count, k, known, room, sited):  # type: ignore[no-untyped-def]
    """Factorise what is lost of a row for a component, P = L L^T, and solve for what is seen.

    `room` gets the rows of L, their diagonal inverted, one after the other; then L^-1 P c of the
    lost columns, and the seen columns c less their mean. If `sited`, it holds the sites of the lost
    columns already: tau in the places before the seen columns, nu after these. Returns -2 times the
    log density but for its constant, and the log of the determinant of L^-1.
    """
    means, precisions, _, unit = known
    p = np.uint64(x.size)
    solved = p * (p + ONE) // TWO
    seen = solved + p
    quad, log_det = center_seen(x, order, steps, count, k, known, room), unit[0]
    a, row = NO, NO
    while a < count:
        step = np.uint64(steps[a])
        line = step * p + k
        right, pivot = unit[0], precisions[line + step]
        pivot += pivot
        b = count
        while b < p:
            right += precisions[line + steps[b]] * room[seen + b]
            b += ONE
        if sited and room[seen + a] > unit[0]:
            tau = room[seen + a]
            nu = room[seen + p + a] - tau * means[step + k]
            pivot += tau
            right -= nu
            quad += nu * nu / tau
        b, other = NO, NO
        while b < a:
            value, h = precisions[line + steps[b]], NO
            while h < b:
                value -= room[row + h] * room[other + h]
                h += ONE
            value *= room[other + b]
            room[row + b] = value
            pivot -= value * value
            right -= value * room[solved + b]
            b += ONE
            other += b
        inverse = unit[1] / math.sqrt(max(pivot, unit[2]))
        right *= inverse
        room[row + a], room[solved + a] = inverse, right
        quad -= right * right
        log_det += math.log(inverse)
        a += ONE
        row += a
    return quad, log_det


@njit(cache=True, nogil=True, error_model="numpy")
def substitute(first, count, p, room):  # type: ignore[no-untyped-def]
    """Turn what `solve` left into the distances of lost columns from their means, from `first`."""
    solved, a = p * (p + ONE) // TWO, count
    while a > first:
        a -= ONE
        value, h = room[solved + a], a + ONE
        row = h * (h + ONE) // TWO
        while h < count:
            value -= room[row + a] * room[solved + h]
            h += ONE
            row += h
        room[solved + a] = value * room[a * (a + ONE) // TWO + a]


@njit(cache=True, nogil=True, error_model="numpy")
def invert(first, count, unit, room):  # type: ignore[no-untyped-def]
    """Replace L, whose diagonal is inverted already, by its inverse, from row `first`."""
    h = first + ONE
    row = h * (h + ONE) // TWO
    while h < count:
        a = first
        while a < h:
            value, g, other = unit[0], a, a * (a + ONE) // TWO
            while g < h:
                value -= room[row + g] * room[other + a]
                g += ONE
                other += g
            room[row + a] = value * room[row + h]
            a += ONE
        h += ONE
        row += h


@njit(cache=True, nogil=True, error_model="numpy")
def covariance(a, b, count, unit, room):  # type: ignore[no-untyped-def]
    """Covariance of two lost columns, a not before b, from the inverse of L."""
    value, h, row = unit[0], a, a * (a + ONE) // TWO
    while h < count:
        value += room[row + a] * room[row + b]
        h += ONE
        row += h
    return value


@njit(cache=True, nogil=True, error_model="numpy")
def place_errors(r, order, count, cells, room):  # type: ignore[no-untyped-def]
    """Write the sites of values with errors, and none elsewhere; return the log of their scale."""
    Z, _, _, noise = cells
    if noise.shape[0] == 0:
        return 0.0
    p, log_scale = np.uint64(Z.shape[1]), 0.0
    tau_at = p * (p + ONE) // TWO + p
    a = NO
    while a < count:
        value, tau = Z[r, order[a]], 0.0
        if math.isnan(value):
            value = 0.0
        else:
            tau = 1.0 / max(noise[r, order[a]], LEAST_NOISE)
            log_scale += 0.5 * math.log(tau / (2 * math.pi))
        room[tau_at + a], room[tau_at + p + a] = tau, tau * value
        a += ONE
    return log_scale


@njit(cache=True, nogil=True, error_model="numpy")
def place_limits(pair, count, limited, sites, room, p):  # type: ignore[no-untyped-def]
    """Write the sites of limits, which were found before."""
    slots, tau, nu = sites
    if limited == NO:
        return
    tau_at, slot, a = p * (p + ONE) // TWO + p + count - limited, slots[pair], NO
    while a < limited:
        room[tau_at + a], room[tau_at + p + a] = tau[a, slot], nu[a, slot]
        a += ONE


@njit(cache=True, nogil=True, error_model="numpy")
def complete_row(r, k, room, cells, sorts, sites, known):  # type: ignore[no-untyped-def]
    """Find the lost columns of a row under a component: distances from means, inverse of L.

    `sites` are slots of the pairs of rows and components, and tau and nu of limits in each slot.
    Returns the number of lost columns and that of all.
    """
    Z, (order, steps, counts, limits) = cells[0], sorts
    count, p, sited = np.uint64(counts[r]), np.uint64(Z.shape[1]), cells[3].shape[0] > 0
    if sited:
        limited = np.uint64(limits[r])
        place_errors(r, order[r], count, cells, room)
        place_limits(r * known[2] + np.int64(k), count, limited, sites, room, p)
    solve(Z[r], order[r], steps[r], count, k, known, room, sited)
    substitute(NO, count, p, room)
    invert(NO, count, known[3], room)
    return count, p
