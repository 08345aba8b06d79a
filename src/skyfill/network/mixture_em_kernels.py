"""Compiled E-step of mixtures: expected moments of every component, summed over rows."""

import numpy as np
from numba import njit

from skyfill.network.lanes import LANES, add_products, combine, copy, multiply, sum_products
from skyfill.network.mixture_kernels import (
    complete,
    find_lost,
    make_factors,
    make_room,
    normalize,
    prepare,
)

# Rows of a run that are completed together: what all components say of them stays in the cache.
RUN = 32


@njit(cache=True, nogil=True, error_model="numpy")
def expect_mixture(X, order, starts, components, weight, total, cross, gaps):  # type: ignore[no-untyped-def]
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
    """Tell whether a component of a block can have made a row."""
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
