"""Compiled loops of boosting: derivatives, sums in bins, best splits, trees."""

import numpy as np
from numba import njit

# Bins of a column, and the code of a gap. Half of what a byte holds: looking through the bins takes
# as long as filling them, and 255 give no better classes.
MOST_BINS = 127
GAP = 127
# A child needs this sum of second derivatives.
LEAST_CURVATURE = 1e-3
# Sums of first derivatives, of second derivatives and of rows in a bin.
SLOPE, CURVE, COUNT = 0, 1, 2


@njit(cache=True, nogil=True)
def grow_rounds(codes, wanted, weights, n_bins, has_gaps, scores, facts, nodes):  # type: ignore[no-untyped-def]
    """Grow all trees; `scores` end where the last round leaves them."""
    rate, n_leaves, least, ridge, n_tried, seed = facts
    n, n_scores = scores.shape
    rows, spare = np.empty(n, np.int32), np.empty(n, np.int32)
    slope, curve = np.empty((n_scores, n)), np.empty((n_scores, n))
    sums = np.zeros((n_tried, GAP + 1, 3))
    columns = np.arange(codes.shape[1])
    state = np.array([seed], np.uint64)
    limits = (n_leaves, least, ridge, n_tried)
    tree = 0
    for _ in range(nodes.size.size // n_scores):
        _derive(scores, wanted, weights, slope, curve)
        for k in range(n_scores):
            data = (codes, slope[k], curve[k], n_bins, has_gaps)
            out = (nodes.feature[tree], nodes.cut[tree], nodes.gaps_left[tree], nodes.right[tree])
            ranges = _grow_tree(data, limits, rows, spare, sums, columns, state, out)
            nodes.size[tree] = ranges.shape[0]
            for i in range(ranges.shape[0]):
                if nodes.feature[tree, i] < 0:
                    s, c = 0.0, 0.0
                    for at in range(ranges[i, 0], ranges[i, 1]):
                        s += slope[k, rows[at]]
                        c += curve[k, rows[at]]
                    value = np.float64(np.float32(-rate * s / (c + ridge + 1e-15)))
                    nodes.value[tree, i] = value
                    for at in range(ranges[i, 0], ranges[i, 1]):
                        scores[rows[at], k] += value
            tree += 1


@njit(cache=True, nogil=True)
def _derive(scores, wanted, weights, slope, curve):  # type: ignore[no-untyped-def]
    """Write the derivatives of the weighted log loss by the scores."""
    n, n_scores = scores.shape
    p = np.empty(n_scores)
    for r in range(n):
        if n_scores == 1:
            p[0] = 1.0 / (1.0 + np.exp(-scores[r, 0]))
        else:
            top, total = scores[r].max(), 0.0
            for k in range(n_scores):
                p[k] = np.exp(scores[r, k] - top)
                total += p[k]
            for k in range(n_scores):
                p[k] /= total
        for k in range(n_scores):
            slope[k, r] = weights[r] * (p[k] - wanted[r, k])
            curve[k, r] = weights[r] * p[k] * (1.0 - p[k])


@njit(cache=True, nogil=True)
def _grow_tree(data, limits, rows, spare, sums, columns, state, out):  # type: ignore[no-untyped-def]
    """Split the most promising leaf until there are enough; return each node's range of `rows`.

    The nodes come in the order in which a walk to the left meets them.
    """
    n_leaves, least, ridge, n_tried = limits
    codes = data[0]
    room = 2 * n_leaves - 1
    ranges = np.zeros((room, 2), np.int64)
    found = np.zeros((room, 4))  # gain, column, cut, whether gaps go left
    left, right = np.full(room, -1, np.int64), np.full(room, -1, np.int64)
    for r in range(rows.size):
        rows[r] = r
    ranges[0, 1] = rows.size
    found[0] = _best_split(data, limits, rows, sums, columns, state)
    n = 1
    for _ in range(n_leaves - 1):
        best = -1
        for i in range(n):
            if left[i] < 0 and found[i, 0] > 0.0 and (best < 0 or found[i, 0] > found[best, 0]):
                best = i
        if best < 0:
            break
        a, b = ranges[best]
        middle = a + _part(codes, rows[a:b], spare, found[best])
        left[best], right[best] = n, n + 1
        ranges[n, 0], ranges[n, 1] = a, middle
        ranges[n + 1, 0], ranges[n + 1, 1] = middle, b
        for i in range(n, n + 2 if n + 2 < room else n):
            here = rows[ranges[i, 0] : ranges[i, 1]]
            found[i] = _best_split(data, limits, here, sums, columns, state)
        n += 2
    return _in_order(left, right, ranges, found, n, out)


@njit(cache=True, nogil=True)
def _part(codes, rows, spare, split):  # type: ignore[no-untyped-def]
    """Move the rows that a split sends left to the front; both sides keep their order."""
    column, cut, gaps_left = int(split[1]), int(split[2]), split[3] > 0.0
    n_left, n_right = 0, 0
    for i in range(rows.size):
        code = codes[rows[i], column]
        if gaps_left if code == GAP else code <= cut:
            rows[n_left] = rows[i]
            n_left += 1
        else:
            spare[n_right] = rows[i]
            n_right += 1
    # Compiling an assignment of slices takes seconds.
    for i in range(n_right):
        rows[n_left + i] = spare[i]
    return n_left


@njit(cache=True, nogil=True)
def _in_order(left, right, ranges, found, n, out):  # type: ignore[no-untyped-def]
    """Write the nodes of a tree so that a left child follows its parent; return their ranges."""
    feature, cut, gaps_left, after = out
    ordered = np.empty((n, 2), np.int64)
    stack, place = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    height, at = 1, 0
    while height:
        height -= 1
        node = stack[height]
        place[node] = at
        ordered[at] = ranges[node]
        if left[node] >= 0:
            feature[at], cut[at] = int(found[node, 1]), int(found[node, 2])
            gaps_left[at] = found[node, 3] > 0.0
            stack[height], stack[height + 1] = right[node], left[node]
            height += 2
        at += 1
    for node in range(n):
        if left[node] >= 0:
            after[place[node]] = place[right[node]]
    return ordered


@njit(cache=True, nogil=True)
def _best_split(data, limits, rows, sums, columns, state):  # type: ignore[no-untyped-def]
    """Return gain, column, cut and whether gaps go left, of the best split of these rows."""
    codes, slope, curve, n_bins, has_gaps = data
    _, least, ridge, n_tried = limits
    best = np.zeros(4)
    if rows.size < 2 * least:
        return best
    _draw(columns, n_tried, state)
    total = _sum_bins(codes.ravel(), slope, curve, rows, columns[:n_tried], sums.ravel())
    for i in range(n_tried):
        j = columns[i]
        _scan(sums[i], total, j, n_bins[j], has_gaps[j], least, ridge, best)
    return best


@njit(cache=True, nogil=True)
def _sum_bins(codes, slope, curve, rows, columns, sums):  # type: ignore[no-untyped-def]
    """Sum derivatives and rows in the bins of some columns, and over all rows.

    This takes most of the time. Arrays are flat, and places are unsigned numbers, which need no
    check whether they count from the end.
    """
    places = columns.astype(np.uint64)
    width, stride = np.uint64(codes.size // slope.size), np.uint64(3 * (GAP + 1))
    one, two, three = np.uint64(1), np.uint64(2), np.uint64(3)
    sums[: columns.size * 3 * (GAP + 1)] = 0.0
    total = np.zeros(3)
    for r in rows:
        row = np.uint64(r)
        s, c = slope[row], curve[row]
        total[SLOPE] += s
        total[CURVE] += c
        start, first = row * width, np.uint64(0)
        for i in range(places.size):
            at = first + three * np.uint64(codes[start + places[i]])
            sums[at] += s
            sums[at + one] += c
            sums[at + two] += 1.0
            first += stride
    total[COUNT] = rows.size
    return total


@njit(cache=True, nogil=True)
def _scan(sums, total, column, n_bins, has_gaps, least, ridge, best):  # type: ignore[no-untyped-def]
    """Try the cuts of one column, with gaps on the right and, if it has any, on the left."""
    whole = total[SLOPE] ** 2 / (total[CURVE] + ridge)
    n_gaps = sums[GAP, COUNT]
    for gaps_left in range(2 if has_gaps else 1):
        s, c, n = 0.0, 0.0, 0.0
        if gaps_left:
            s, c, n = sums[GAP, SLOPE], sums[GAP, CURVE], n_gaps
        # With gaps on the right, a cut above all values separates these from the gaps.
        for cut in range(n_bins - 1 if gaps_left or not has_gaps else n_bins):
            if sums[cut, COUNT] == 0.0:
                continue
            s += sums[cut, SLOPE]
            c += sums[cut, CURVE]
            n += sums[cut, COUNT]
            rest = total[CURVE] - c
            if n < least or c < LEAST_CURVATURE:
                continue
            if total[COUNT] - n < least or rest < LEAST_CURVATURE:
                break
            gain = s**2 / (c + ridge) + (total[SLOPE] - s) ** 2 / (rest + ridge) - whole
            if gain > best[0]:
                best[0], best[1], best[2] = gain, column, cut
                # Where training rows have no gap, later ones go with the majority.
                best[3] = gaps_left if n_gaps > 0.0 else 2.0 * n > total[COUNT]


@njit(cache=True, nogil=True)
def _draw(columns, count, state):  # type: ignore[no-untyped-def]
    """Bring `count` columns drawn without replacement to the front."""
    if count == columns.size:
        return
    for i in range(count):
        state[0] += np.uint64(0x9E3779B97F4A7C15)
        z = state[0]
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z ^= z >> np.uint64(31)
        j = i + int(z % np.uint64(columns.size - i))
        columns[i], columns[j] = columns[j], columns[i]
