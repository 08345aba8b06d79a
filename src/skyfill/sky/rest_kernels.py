"""Compiled sums over what the sources outside an association may be among themselves.

Two sources of different surveys that coincide are most likely one object, be it the counterpart or
not. So each association is weighed with the sum over all ways to group the sources left over,
relative to the same sum with nothing taken away. Groups of sources that do not touch factorize.
"""

import math

import numpy as np
from numba import njit

# Pairs of sources with lower odds of being one object do not link them.
LEAST_ODDS = 1e-2
# Linked sources are summed over exactly up to this number; beyond it, weak links are cut first.
MOST_LINKED = 12


@njit(cache=True, nogil=True, error_model="numpy")
def find_root(parent, i):  # type: ignore[no-untyped-def]
    """Root of a node in a forest of links, with the path halved on the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@njit(cache=True, nogil=True, error_model="numpy")
def _link(blocks, log_odds, firsts, least):  # type: ignore[no-untyped-def]
    """Join the sources of each likely block; give each source its root, and the largest size."""
    parent = np.arange(firsts[-1])
    for b in range(log_odds.size):
        if log_odds[b] < least:
            continue
        root = -1
        for k in range(firsts.size - 1):
            if blocks[b, k] >= 0:
                here = find_root(parent, firsts[k] + blocks[b, k])
                if root >= 0:
                    parent[here] = root
                root = find_root(parent, here)
    sizes = np.zeros(firsts[-1], np.int64)
    for i in range(firsts[-1]):
        parent[i] = find_root(parent, i)
        sizes[parent[i]] += 1
    return parent, sizes


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_rest_by_sum(members, blocks, log_odds, firsts, out):  # type: ignore[no-untyped-def]
    """Add to `out` the log of the sum over groupings of the sources that an association leaves.

    `blocks` are sets of two or more sources without the base object, `log_odds` their log odds of
    being one object. Both they and `members` hold indices within the surveys, -1 for none.
    """
    least = math.log(LEAST_ODDS)
    roots, sizes = _link(blocks, log_odds, firsts, least)
    while sizes.max() > MOST_LINKED:
        least += math.log(10.0)
        roots, sizes = _link(blocks, log_odds, firsts, least)
    bits = np.zeros(roots.size, np.int64)
    seen = np.zeros(roots.size, np.int64)
    for i in range(roots.size):
        bits[i] = 1 << seen[roots[i]]
        seen[roots[i]] += 1
    masks, owners = _masks(blocks, bits, roots, firsts)
    for root in range(roots.size):
        if sizes[root] < 2:
            continue
        inside = np.flatnonzero((owners == root) & (log_odds >= least))
        table = _sums(masks[inside], np.exp(log_odds[inside]), sizes[root])
        full = table.size - 1
        for a in range(out.size):
            taken = 0
            for k in range(firsts.size - 1):
                i = firsts[k] + members[a, k]
                if members[a, k] >= 0 and roots[i] == root:
                    taken |= bits[i]
            if taken:
                out[a] += math.log(table[full ^ taken] / table[full])


@njit(cache=True, nogil=True, error_model="numpy")
def _masks(blocks, bits, roots, firsts):  # type: ignore[no-untyped-def]
    """Write each block as bits within its component; -1 for blocks across components."""
    masks, owners = np.zeros(len(blocks), np.int64), np.full(len(blocks), -1)
    for b in range(len(blocks)):
        for k in range(firsts.size - 1):
            if blocks[b, k] >= 0:
                i = firsts[k] + blocks[b, k]
                masks[b] |= bits[i]
                owners[b] = roots[i] if owners[b] in (-1, roots[i]) else -2
    return masks, owners


@njit(cache=True, nogil=True, error_model="numpy")
def _sums(masks, odds, size):  # type: ignore[no-untyped-def]
    """Sum of products of odds over all groupings of each subset of linked sources."""
    table = np.ones(1 << size)
    for subset in range(1, table.size):
        lowest = subset & -subset
        total = table[subset ^ lowest]
        for b in range(masks.size):
            if masks[b] & lowest and masks[b] & subset == masks[b]:
                total += odds[b] * table[subset ^ masks[b]]
        table[subset] = total
    return table


@njit(cache=True, nogil=True, error_model="numpy")
def weigh_rest_by_best(members, blocks, log_odds, firsts, out):  # type: ignore[no-untyped-def]
    """Add to `out` the log odds of the likeliest block in surveys that an association lacks.

    Salvato et al. (2018) count this block alone, and only where it is likelier than not.
    """
    n_surveys = firsts.size - 1
    best = np.zeros(1 << n_surveys)
    for b in range(log_odds.size):
        used = 0
        for k in range(n_surveys):
            used |= (blocks[b, k] >= 0) << k
        for lacked in range(best.size):
            if used & lacked == used:
                best[lacked] = max(best[lacked], log_odds[b])
    for a in range(out.size):
        lacked = 0
        for k in range(n_surveys):
            lacked |= (members[a, k] < 0) << k
        out[a] += best[lacked]
