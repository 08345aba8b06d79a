"""Compiled scoring of trees: walks of eight rows side by side, or leaves struck out 64 at a time.

A split asks ``x[column] > cut``. Values are replaced by their rank among all cuts of their
feature, and a gap by a rank below or above all others: a column exists once for the nodes that
send gaps left and once for those that send them right.

Walks (trees of any size): both children of a split are neighbors, and a leaf is its own child: a
step is four look-ups, one comparison and one addition, without a branch. Eight rows walk side by
side, so that the look-ups of one fill the waits of the others, and one tree serves a block of rows
before the next one takes its place in the cache.

Striking (small trees): every split that a row passes to the right makes the leaves to its left
unreachable, whatever the order of the splits; of the leaves that remain at the end, the first is
the row's own (QuickScorer, Lucchese et al. 2015). The leaves of a tree are the bits of one
byte, and ranks of values among few cuts fit into one, too: vector instructions apply one split to
64 rows in a few steps.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

LARGEST = float(np.finfo(np.float64).max)

WALK_LANES = 8
BLOCK_ROWS = 32 * WALK_LANES
# A node: offset of its column in a group of lanes, rank of its cut, place of its left child, leaf.
COLUMN, CUT, CHILD, LEAF = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
WORDS = 4
# No rank exceeds it: gaps that go right have it, and so has the cut of a leaf.
WALK_TOP = np.uint32(2**32 - 1)

STRIKE_LANES = 64
LEAVES = 8
STRIKE_TOP = np.uint8(255)
# The lowest bit of a byte that is set.
FIRST_BIT = np.array([LEAVES - 1, *((i & -i).bit_length() - 1 for i in range(1, 256))], np.uint8)


@njit(cache=True, nogil=True)
def depth_first(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Order the nodes of a tree so that a left child follows its parent (leaves have left < 0)."""
    order = np.empty(left.size, np.int64)
    stack = np.empty(left.size + 1, np.int64)
    stack[0] = 0
    height, n = 1, 0
    while height:
        height -= 1
        node = stack[height]
        order[n] = node
        n += 1
        if left[node] >= 0:
            stack[height] = right[node]
            stack[height + 1] = left[node]
            height += 2
    return order


@njit(cache=True, nogil=True)
def pack_tree(
    column: NDArray[np.int64],
    cut: NDArray[np.uint32],
    target: NDArray[np.int64],
    first: int,
    nodes: NDArray[np.uint32],
) -> int:
    """Write one tree level by level, siblings side by side; return its depth.

    `target` is the right child of a split and the code of a leaf, which has column -1; the tree
    starts at node `first` of `nodes`.
    """
    source = np.empty(column.size, np.int64)
    source[0] = 0
    n, level_end, depth = 1, 1, 0
    for i in range(column.size):
        if i == level_end:
            level_end = n
            depth += 1
        node = source[i]
        word = WORDS * (first + i)
        if column[node] < 0:
            nodes[word], nodes[word + 1] = 0, WALK_TOP
            nodes[word + 2], nodes[word + 3] = word, target[node]
            continue
        nodes[word], nodes[word + 1] = WALK_LANES * column[node], cut[node]
        nodes[word + 2], nodes[word + 3] = WORDS * (first + n), 0
        source[n], source[n + 1] = node + 1, target[node]
        n += 2
    return depth


@njit(cache=True, nogil=True, inline="always")
def count_below(
    cuts: NDArray[np.float64],
    start: np.uint64,
    size: np.uint64,
    x: NDArray[np.float64],
    at: NDArray[np.uint64],
) -> None:
    """Count the cuts below each x among the `size` sorted ones from `start` on, without a branch.

    All values halve their ranges side by side: the look-ups of one fill the waits of the others.
    """
    one = np.uint64(1)
    at[:] = start
    while size > one:
        half = size >> one
        for i in range(x.size):
            at[i] += half * np.uint64(cuts[at[i] + half - one] < x[i])
        size -= half
    for i in range(x.size):
        at[i] += np.uint64(cuts[at[i]] < x[i]) - start


@njit(cache=True, nogil=True)
def rank_rows(
    X: NDArray[np.float64],
    cuts: NDArray[np.float64],
    cut_starts: NDArray[np.int64],
    columns: NDArray[np.int64],
    top: int,
    ranks: NDArray[np.unsignedinteger],
) -> None:
    """Count the cuts below each value; gaps get 0 or `top`, values the count plus 1.

    Column c belongs to feature ``columns[c] // 2``; an odd number sends gaps left. `ranks` has
    shape (groups, columns, lanes): the rows of a group lie side by side.
    """
    lanes = ranks.shape[2]
    x, below = np.zeros(lanes), np.empty(lanes, np.uint64)
    for group in range(ranks.shape[0]):
        first = group * lanes
        last = -1
        for c in range(columns.size):
            feature = columns[c] >> 1
            gap = 0 if columns[c] & 1 else top
            if feature != last:
                last = feature
                for lane in range(min(lanes, X.shape[0] - first)):
                    x[lane] = min(X[first + lane, feature], LARGEST)
                start = np.uint64(cut_starts[feature])
                size = np.uint64(cut_starts[feature + 1] - cut_starts[feature])
                count_below(cuts, start, size, x, below)
            for lane in range(lanes):
                ranks[group, c, lane] = gap if np.isnan(x[lane]) else below[lane] + np.uint64(1)


@njit(cache=True, nogil=True, inline="always")
def walk_group(
    ranks: NDArray[np.uint32],
    base: np.uint64,
    nodes: NDArray[np.uint32],
    depth: int,
    at: NDArray[np.uint64],
) -> None:
    """Move the rows of one group from the nodes `at` to their leaves."""
    for _ in range(depth):
        for lane in range(WALK_LANES):
            node = at[lane]
            x = ranks[base + np.uint64(lane) + np.uint64(nodes[node + COLUMN])]
            right = np.uint64(x > nodes[node + CUT])
            at[lane] = np.uint64(nodes[node + CHILD]) + WORDS * right


@njit(cache=True, nogil=True)
def walk_rows(
    ranks: NDArray[np.uint32],
    starts: NDArray[np.int64],
    depths: NDArray[np.int64],
    nodes: NDArray[np.uint32],
    values: NDArray[np.float32],
    total: NDArray[np.float64],
) -> None:
    """Add the values of the leaves that each row reaches to its totals, tree by tree.

    Where `values` have one column, tree t adds to total ``t % n_totals``. Otherwise the code of a
    leaf is the class to which all of it belongs, or n_totals + its row of `values`.
    """
    n, n_totals = total.shape
    width = values.shape[1]
    n_pure = n_totals if width > 1 else 0
    stride = np.uint64(ranks.size // ((n + WALK_LANES - 1) // WALK_LANES))
    at = np.empty(WALK_LANES, np.uint64)
    for block in range(0, n, BLOCK_ROWS):
        for t in range(starts.size - 1):
            first = 0 if width > 1 else t % n_totals
            for i in range(block, min(block + BLOCK_ROWS, n), WALK_LANES):
                at[:] = np.uint64(WORDS * starts[t])
                walk_group(ranks, np.uint64(i // WALK_LANES) * stride, nodes, depths[t], at)
                for lane in range(min(WALK_LANES, n - i)):
                    leaf = np.int64(nodes[at[lane] + LEAF])
                    if leaf < n_pure:
                        total[i + lane, leaf] += 1.0
                        continue
                    for c in range(width):
                        total[i + lane, first + c] += values[leaf - n_pure, c]


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

    `ranks` are those of groups x columns x STRIKE_LANES, flat; splits of tree t begin at
    ``starts[t]``, its LEAVES values at ``LEAVES * t``; `total` has shape (groups, n_totals,
    STRIKE_LANES).
    """
    n_groups, n_totals = total.shape[:2]
    stride = np.uint64(ranks.size // max(n_groups, 1))
    left = np.empty(STRIKE_LANES, np.uint8)
    for group in range(n_groups):
        base = np.uint64(group) * stride
        for t in range(starts.size - 1):
            left[:] = STRIKE_TOP
            for i in range(starts[t], starts[t + 1]):
                at = base + np.uint64(columns[i]) * np.uint64(STRIKE_LANES)
                cut, mask = cuts[i], masks[i]
                for lane in range(STRIKE_LANES):
                    stay = mask if ranks[at + np.uint64(lane)] > cut else STRIKE_TOP
                    left[lane] = left[lane] & stay
            tree = np.uint64(t) * np.uint64(LEAVES)
            for lane in range(STRIKE_LANES):
                leaf = np.uint64(first[np.uint64(left[lane])])
                total[group, t % n_totals, lane] += values[tree + leaf]
