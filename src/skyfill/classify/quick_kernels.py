"""Compiled scoring of small trees: cuts strike out leaves, 64 rows at a time.

Every split that a row passes to the right makes the leaves to its left unreachable, in whatever
order the splits are asked; of the leaves that are left at the end the first is the row's own
(QuickScorer, Lucchese et al. 2015). The leaves of a tree are the bits of one byte, and so are ranks
of values among few cuts: vector instructions ask one split of 64 rows in a few steps.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

LANES = 64
LEAVES = 8
TOP = np.uint8(255)
# The lowest bit of a byte that is set.
FIRST = np.array([LEAVES - 1, *((i & -i).bit_length() - 1 for i in range(1, 256))], np.uint8)


@njit(cache=True, nogil=True)
def mark_leaves(
    split: NDArray[np.bool_],
    target: NDArray[np.int32],
    starts: NDArray[np.int64],
    masks: NDArray[np.uint8],
    leaves: NDArray[np.int64],
) -> bool:
    """Count the leaves of each tree from the left; clear the bits of those left of a split.

    False where a tree has too many leaves, or where its nodes are not in the order of a walk that
    takes the left child first.
    """
    end = np.empty(split.size, np.int64)
    for t in range(starts.size - 1):
        seen = 0
        for i in range(starts[t], starts[t + 1]):
            leaves[i] = seen
            seen += 0 if split[i] else 1
        if seen > LEAVES:
            return False
        for i in range(starts[t + 1] - 1, starts[t] - 1, -1):
            end[i] = end[target[i]] if split[i] else i + 1
            if split[i] and end[i + 1] != target[i]:
                return False
            masks[i] = 255
            if split[i]:
                for leaf in range(leaves[i + 1], leaves[target[i]]):
                    masks[i] &= ~(1 << leaf)
    return True


@njit(cache=True, nogil=True)
def strike_rows(
    ranks: NDArray[np.uint8],
    starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    cuts: NDArray[np.uint8],
    masks: NDArray[np.uint8],
    first: NDArray[np.uint8],
    values: NDArray[np.float32],
    total: NDArray[np.float64],
) -> None:
    """Add the values of the leaves that are reached; tree t adds to total ``t % n_totals``.

    `ranks` are those of groups x columns x LANES, flat; splits of tree t begin at ``starts[t]``,
    its LEAVES values at ``LEAVES * t``; `total` has shape (groups, n_totals, LANES).
    """
    n_groups, n_totals = total.shape[:2]
    stride = np.uint64(ranks.size // max(n_groups, 1))
    left = np.empty(LANES, np.uint8)
    for group in range(n_groups):
        base = np.uint64(group) * stride
        for t in range(starts.size - 1):
            left[:] = TOP
            for i in range(starts[t], starts[t + 1]):
                at = base + np.uint64(columns[i]) * np.uint64(LANES)
                cut, mask = cuts[i], masks[i]
                for lane in range(LANES):
                    stay = mask if ranks[at + np.uint64(lane)] > cut else TOP
                    left[lane] = left[lane] & stay
            tree = np.uint64(t) * np.uint64(LEAVES)
            for lane in range(LANES):
                leaf = np.uint64(first[np.uint64(left[lane])])
                total[group, t % n_totals, lane] += values[tree + leaf]
