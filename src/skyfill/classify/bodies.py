"""The body of the loop that a GPU runs over rows: every tree, from its root to a leaf."""

import math

from numba import njit


@njit
def walk_trees(r, room, X, starts, feature, threshold, missing_left, target, values, total):  # type: ignore[no-untyped-def]
    """Add the values of the leaves that a row reaches to its totals; see `skyfill.device`.

    Where `values` have one column, tree t adds to total ``t % n_totals``.
    """
    n_totals, width = total.shape[1], values.shape[1]
    for t in range(starts.size - 1):
        node = starts[t]
        while feature[node] >= 0:
            x = X[r, feature[node]]
            is_left = missing_left[node] == 1 if math.isnan(x) else x <= threshold[node]
            node = node + 1 if is_left else target[node]
        first = 0 if width > 1 else t % n_totals
        for c in range(width):
            total[r, first + c] += values[target[node], c]
