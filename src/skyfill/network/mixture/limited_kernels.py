"""Compiled kernels for the distribution of one gap within limits, tabulated.

Each component is a normal within the window; the mixture of them is put into narrow cells of equal
width, from which moments, levels and quantiles follow.
"""

import math

import numpy as np

from skyfill.network.mixture.compiled import leaf
from skyfill.network.mixture.truncated_kernels import is_sure, through_window

# Cells of the table, and how far it reaches to both sides (in standard deviations; tails within
# limits fall like an exponential).
CELLS, BELOW, ABOVE = 64, 6.0, 9.0
NEGLIGIBLE = 1e-5


@leaf
def tabulate(resp, mean, sd, window, logs, mass):  # type: ignore[no-untyped-def]
    """Write the probability of each cell; return where the first begins and their width.

    `logs` is room for a number per component.
    """
    low, high, noise = window
    first, last = np.inf, -np.inf
    for k in range(resp.size):
        if resp[k] > NEGLIGIBLE:
            logs[k], inside, var = through_window(mean[k], sd[k] ** 2, low, high, noise)
            reach = math.sqrt(var)
            below, above = (ABOVE, BELOW) if low == -np.inf else (BELOW, ABOVE)
            first = min(first, inside - below * reach)
            last = max(last, inside + above * reach)
    if noise == 0.0:
        first, last = max(first, low), min(last, high)
    width = max((last - first) / mass.size, 1e-12)
    for i in range(mass.size):
        mass[i] = 0.0
    for k in range(resp.size):
        if resp[k] > NEGLIGIBLE:
            add_normal(resp[k] / sd[k], logs[k], mean[k], sd[k], first, width, mass)
    total, root = 0.0, math.sqrt(2.0 * noise)
    for i in range(mass.size):
        if noise > 0.0:
            at = first + (i + 0.5) * width
            if high == np.inf:  # the tail itself: a difference of two would lose it
                mass[i] *= share_below(at, low, root)
            else:
                mass[i] *= max(share_below(high, at, root) - share_below(low, at, root), 0.0)
        total += mass[i]
    if total > 0.0:
        for i in range(mass.size):
            mass[i] /= total
    else:  # nothing is left of the normals there: next to the limit is the best guess
        mass[0 if low > -np.inf else mass.size - 1] = 1.0
    return first, width


@leaf
def share_below(limit, at, root):  # type: ignore[no-untyped-def]
    """Chance that a normal about `at`, of the standard deviation root / sqrt(2), is below."""
    z = (limit - at) / root
    return 1.0 if z > 5.0 else 0.5 * math.erfc(-z)


@leaf
def changes_little(resp, mean, sd, window):  # type: ignore[no-untyped-def]
    """Whether a window contains all of a gap's distribution but for a negligible part."""
    low, high, noise = window
    for k in range(resp.size):
        if resp[k] > NEGLIGIBLE and not is_sure(mean[k], sd[k] ** 2 + noise, low, high):
            return False
    return True


@leaf
def add_normal(share, log, mean, sd, first, width, mass):  # type: ignore[no-untyped-def]
    """Add a normal density to cells of equal width, outwards from where it is largest.

    From cell to cell the density changes by a factor that itself changes by a factor.
    """
    step = width / sd
    start = int(min(max(0.0, (mean - first) / width - 0.5), mass.size - 1.0))
    z = (first + (start + 0.5) * width - mean) / sd
    top, twice = share * math.exp(max(-0.5 * z * z - log, -700.0)), math.exp(-step * step)
    for sign in (1.0, -1.0):
        value, factor = top, math.exp(-step * (sign * z + 0.5 * step))
        i = start
        while 0 <= i < mass.size:
            if sign > 0.0 or i != start:
                mass[i] += value
            value *= factor
            factor *= twice
            i += int(sign)


@leaf
def level_of(score, first, width, mass):  # type: ignore[no-untyped-def]
    """Probability of a lower score."""
    at = (score - first) / width
    total = 0.0
    for i in range(mass.size):
        total += mass[i] * min(max(at - i, 0.0), 1.0)
    return total


@leaf
def score_of(level, first, width, mass):  # type: ignore[no-untyped-def]
    """Score below which the gap lies with a given probability."""
    left = level
    for i in range(mass.size):
        if left <= mass[i] and mass[i] > 0.0:
            return first + (i + left / mass[i]) * width
        left -= mass[i]
    return first + mass.size * width
