"""Compiled kernels of mixtures: every component of every fit for every row.

The formulas are those of kernels.py. Components stand side by side in blocks (lanes.py), so that
each step is done for eight of them at once. Rows are sorted by their pattern of gaps:
factorisations are made once per run of equal patterns, and runs of length one cost little more.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.network._array import Array, IntArray
from skyfill.network.mixture.lanes import (
    LANES,
    add_products,
    combine,
    copy,
    eliminate,
    multiply,
    pivot,
    subtract,
    sum_products,
)

# Rows of a run that are completed together: what all components make of them stays in the cache.
RUN = 32


class Components(NamedTuple):
    """All components of all fits in blocks; fit f has components bounds[f] to bounds[f+1].

    The last block is filled up with components of no weight.
    """

    means: Array  # (blocks, p, lanes)
    precisions: Array  # (blocks, p, p, lanes), with half the diagonal
    log_norms: Array  # (blocks, lanes): log weight - half the log determinant of the covariance
    log_lost: Array  # (blocks, p, lanes): log chance that a cell is a gap; p is 0 where ignorable
    log_seen: Array  # (blocks, p, lanes)
    bounds: IntArray  # (fits + 1,)
    covs: Array  # (blocks, p, p, lanes)
    log_weights: Array  # (blocks, lanes)


class Factors(NamedTuple):
    """What `prepare` finds of one pattern of gaps, for every block."""

    lower: Array  # (blocks, p, p, lanes): Cholesky factor of the lost block, its diagonal inverted
    root: Array  # (blocks, p, p, lanes): inverse of its transpose, a root of the covariance
    log_w: Array  # (blocks, lanes): all of the log density of a row but -quad/2
    log_gaps: Array  # (blocks, lanes): the part of it that is the chance of the pattern


@njit(cache=True, nogil=True, error_model="numpy")
def make_factors(blocks, p):  # type: ignore[no-untyped-def]
    """Room for what is found of a pattern."""
    shape = (blocks, p, p, LANES)
    room = np.empty((blocks, LANES)), np.zeros((blocks, LANES))
    return Factors(np.empty(shape), np.empty(shape), *room)


@njit(cache=True, nogil=True, error_model="numpy")
def find_lost(x, lost):  # type: ignore[no-untyped-def]
    """List the gaps of a row, and -1 at the end; return their number."""
    count = 0
    for j in range(x.size):
        if np.isnan(x[j]):
            lost[count] = j
            count += 1
    lost[count] = -1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def make_room(p):  # type: ignore[no-untyped-def]
    """Room to work in: p + 1 rows, then one of ones, one of zeros and one more."""
    z = np.zeros((p + 4, LANES))
    z[p + 1] = 1.0
    return z


@njit(cache=True, nogil=True, error_model="numpy")
def prepare(lost, count, components, factors, z):  # type: ignore[no-untyped-def]
    """Factorise a pattern of gaps for every block."""
    means, precisions, log_norms, log_lost, log_seen, _, _, _ = components
    lower, root, log_w, log_gaps = factors
    blocks, p, _ = means.shape
    constant = 0.5 * (p - count) * np.log(2.0 * np.pi)
    for b in range(blocks):
        copy(z, p + 2, log_gaps, b)
        gap = 0
        for j in range(log_lost.shape[1]):
            if j == lost[gap]:
                gap += 1
                combine(1.0, log_gaps, b, 1.0, log_lost, b * p + j, log_gaps, b)
            else:
                combine(1.0, log_gaps, b, 1.0, log_seen, b * p + j, log_gaps, b)
        combine(1.0, log_norms, b, -constant, z, p + 1, log_w, b)
        combine(1.0, log_w, b, 1.0, log_gaps, b, log_w, b)
        factorize(b, lost, count, precisions, lower, root, log_w, z)


@njit(cache=True, nogil=True, error_model="numpy")
def factorize(b, lost, count, precisions, lower, root, log_w, z):  # type: ignore[no-untyped-def]
    """Factorise the lost block of a precision, P = L L^T; log_w loses log|L|."""
    p = precisions.shape[1]
    first, det, one, nothing = b * p * p, p, p + 1, p + 2
    copy(z, one, z, det)
    for i in range(count):
        row = first + i * p
        for j in range(i):
            start, other = first + lost[i] * p + lost[j], first + j * p
            eliminate(
                precisions, start, lower, row, lower, other, j, lower, other + j, lower, row + j
            )
        at = first + lost[i] * p + lost[i]
        pivot(precisions, at, lower, row, i, lower, row + i)
        multiply(z, det, lower, row + i, z, det)
        # One logarithm per component, not one per gap; before the products run out of range.
        if i == count - 1 or i % 8 == 7:
            for k in range(LANES):
                log_w[b, k] += np.log(z[det, k])
            copy(z, one, z, det)
    for j in range(count):
        at = first + j * p
        copy(lower, at + j, root, at + j)
        for i in range(j + 1, count):
            row = first + i * p
            eliminate(z, nothing, lower, row + j, root, at + j, i - j, lower, row + i, root, at + i)


@njit(cache=True, nogil=True, error_model="numpy")
def complete(X, r, lost, count, b, means, precisions, lower, root, z, c, at, quad):  # type: ignore[no-untyped-def]
    """Fill p rows of c from `at` with x - mean, where x is lost with its posterior mean.

    `quad` gets c^T precision c. (Arrays one by one: a tuple's would be counted at every call.)
    """
    p = X.shape[1]
    first, scratch, one, nothing = b * p * p, p, p + 1, p + 2
    gap = 0
    for j in range(p):
        if j == lost[gap]:
            gap += 1
            copy(z, nothing, c, at + j)
            copy(z, nothing, z, j)
            continue
        subtract(X[r, j], means, b * p + j, c, at + j)
        # With half the diagonal the sum up to it is half of what the whole row gives.
        sum_products(precisions, first + j * p, c, at, j + 1, z, j)
    sum_products(c, at, z, 0, p, quad, 0)
    for i in range(count):
        row = first + i * p
        sum_products(precisions, first + lost[i] * p, c, at, p, z, i)
        eliminate(z, i, lower, row, z, 0, i, lower, row + i, z, i)
    sum_products(z, 0, z, 0, count, z, scratch)
    combine(2.0, quad, 0, -1.0, z, scratch, quad, 0)
    for i in range(count):
        out = at + lost[i]
        eliminate(z, nothing, root, first + i * p + i, z, i, count - i, z, one, c, out)


@njit(cache=True, nogil=True, error_model="numpy")
def normalize(logs, bounds):  # type: ignore[no-untyped-def]
    """Turn log densities into responsibilities within each fit, over the number of fits.

    Return the log of the mean density over fits.
    """
    fits = bounds.size - 1
    best, total = -np.inf, 0.0
    for f in range(fits):
        value = normalize_fit(logs, bounds[f], bounds[f + 1], fits)
        best, total = add_log(value, best, total)
    for k in range(bounds[fits], logs.size):
        logs[k] = 0.0
    return best + math.log(total / fits)


@njit(cache=True, nogil=True, error_model="numpy")
def normalize_fit(logs, first, last, fits):  # type: ignore[no-untyped-def]
    """Turn log densities of one fit into responsibilities; return the log of their sum."""
    top, total = -np.inf, 0.0
    for k in range(first, last):
        top = max(top, logs[k])
    for k in range(first, last):
        logs[k] = math.exp(logs[k] - top) if logs[k] > top - 30.0 else 0.0
        total += logs[k]
    if total == 0.0:  # no component can have made the row: none is more likely than another
        top, total = -1e300, float(last - first)
        for k in range(first, last):
            logs[k] = 1.0
    for k in range(first, last):
        logs[k] /= total * fits
    return top + math.log(total)


@njit(cache=True, nogil=True, error_model="numpy")
def add_log(value, best, total):  # type: ignore[no-untyped-def]
    """Add exp(value) to total * exp(best); return both anew, so that nothing overflows."""
    if value > best:
        return value, total * math.exp(best - value) + 1.0
    return best, total + math.exp(value - best)


@njit(cache=True, nogil=True, error_model="numpy")
def add_moments(X, order, starts, components, weight, total, cross, gaps):  # type: ignore[no-untyped-def]
    """Add the expected moments of each component of one fit; return the log-likelihood."""
    blocks, p, _ = components.means.shape
    lost, factors, z = np.empty(p + 1, np.int64), make_factors(blocks, p), make_room(p)
    c, resp = np.empty((blocks * RUN * p, LANES)), np.empty((RUN, blocks * LANES))
    mine, room = np.empty((blocks, LANES)), (np.empty((p * RUN, LANES)), np.empty((p * RUN, LANES)))
    loglik = 0.0
    for g in range(starts.size - 1):
        count = find_lost(X[order[starts[g]]], lost)
        prepare(lost, count, components, factors, z)
        mine[:] = 0.0
        for start in range(starts[g], starts[g + 1], RUN):
            rows = order[start : min(start + RUN, starts[g + 1])]
            loglik += weigh_run(X, rows, lost, count, components, factors, z, c, resp)
            for b in range(blocks):
                add_run(b, p, rows.size, c, resp, room, mine, total, cross)
        for b in range(blocks):
            add_pattern(b, lost, count, factors, mine, weight, gaps, cross)
    return loglik


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_run(X, rows, lost, count, components, factors, z, c, resp):  # type: ignore[no-untyped-def]
    """Complete some rows of one pattern for all components; return their log-likelihood."""
    means, precisions = components.means, components.precisions
    lower, root, log_w, _ = factors
    (blocks, p, _), quad = means.shape, np.empty(LANES)
    for b in range(blocks):
        for a in range(rows.size):
            r, at = rows[a], (b * RUN + a) * p
            complete(X, r, lost, count, b, means, precisions, lower, root, z, c, at, quad)
            combine(1.0, log_w, b, -0.5, quad, 0, resp, a * blocks + b)
    loglik = 0.0
    for a in range(rows.size):
        loglik += normalize(resp[a], components.bounds)
    return loglik


@njit(cache=True, nogil=True, error_model="numpy")
def add_run(b, p, n, c, resp, room, mine, total, cross):  # type: ignore[no-untyped-def]
    """Add first and second moments of the completed rows in which a block has a share."""
    here, weighted = room  # column by column: rows of one column follow one another
    blocks, count = mine.shape[0], 0
    for a in range(n):
        if not has_share(resp[a], b):
            continue
        share = a * blocks + b
        combine(1.0, mine, b, 1.0, resp, share, mine, b)
        for j in range(p):
            at, out = (b * RUN + a) * p + j, j * RUN + count
            copy(c, at, here, out)
            multiply(c, at, resp, share, weighted, out)
            add_products(c, at, resp, share, 1, total, b * p + j)
        count += 1
    for i in range(p):
        for j in range(i + 1):
            out = (b * p + i) * p + j
            add_products(weighted, i * RUN, here, j * RUN, count, cross, out)


@njit(cache=True, nogil=True, error_model="numpy")
def has_share(resp, b):  # type: ignore[no-untyped-def]
    """Whether any component of a block can have made a row."""
    share = 0.0
    for k in range(b * LANES, (b + 1) * LANES):
        share += resp[k]
    return share > 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def add_pattern(b, lost, count, factors, mine, weight, gaps, cross):  # type: ignore[no-untyped-def]
    """Add what the gaps of one pattern give for a block, whatever was seen."""
    p = factors.root.shape[1]
    s = np.empty((1, LANES))
    combine(1.0, weight, b, 1.0, mine, b, weight, b)
    for i in range(count):
        combine(1.0, gaps, b * p + lost[i], 1.0, mine, b, gaps, b * p + lost[i])
        for j in range(i + 1):
            row, other = (b * p + i) * p + i, (b * p + j) * p + i
            sum_products(factors.root, row, factors.root, other, count - i, s, 0)
            add_products(mine, b, s, 0, 1, cross, (b * p + lost[i]) * p + lost[j])
