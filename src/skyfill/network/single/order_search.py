"""Orders of the columns for K2, by search: hill climbing over orders (Teyssier & Koller 2005).

Along an order each column takes the best of the families that come before it. So once the scores of
the promising families are known, the score of any order follows without another look at the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from skyfill.network._array import Array
from skyfill.network.single.k2 import Codes, family_counts, grow, log_factorials, score_counts
from skyfill.threads import map_threads

# Promising parents of a column: all families of up to so many of these are scored.
CANDIDATES = 10
# Most parents of the families that decide about orders.
MOST_PARENTS = 3


class Family(NamedTuple):
    """Parents as a bit mask, and how much they raise the log score of a column."""

    parents: int
    gain: float


Families = list[list[Family]]  # of each column, the best first; the last has no parents


def search_order(
    tables: Sequence[Codes], max_parents: int | None, starts: Sequence[Sequence[int]]
) -> list[int]:
    """Find the order with the best total score of several complete tables.

    Climbs from every one of the `starts`; a step takes one column to its best place.
    """
    most = MOST_PARENTS if max_parents is None else min(max_parents, MOST_PARENTS)
    families = promising_families(tables, most)
    found = map_threads(lambda i: _climb(families, starts[i], i), list(range(len(starts))))
    return max(found, key=lambda order: order_gain(families, order))


def promising_families(tables: Sequence[Codes], most: int) -> Families:
    """Score families of up to `most` promising parents, summed over tables."""
    logs = log_factorials(tables[0])
    columns = list(range(len(tables[0].levels)))
    return map_threads(lambda child: _families_of(tables, child, most, logs), columns)


def _families_of(tables: Sequence[Codes], child: int, most: int, logs: Array) -> list[Family]:
    others = [k for k in range(len(tables[0].levels)) if k != child]

    def scores(parents: tuple[int, ...], candidates: list[int]) -> Array:
        r = int(tables[0].levels[child])
        counts = (family_counts(codes, child, parents, candidates) for codes in tables)
        return np.sum([score_counts(each, r, logs) for each in counts], axis=0)

    empty = float(scores((), [])[0])
    gains: dict[tuple[int, ...], float] = {(): 0.0}
    candidates = others
    for size in range(1, most + 1):
        for base in [family for family in gains if len(family) == size - 1]:
            more = [k for k in candidates if not base or k > base[-1]]
            if more:
                found = scores(base, more) - empty
                gains |= {(*base, k): float(v) for k, v in zip(more, found, strict=True)}
        if size == 1:
            taken, _ = grow(tables[0], child, others, most, logs)
            candidates = _candidates(gains, taken, others)
            gains = {f: g for f, g in gains.items() if not f or f[0] in candidates}
    return _undominated(gains)


def _candidates(
    gains: Mapping[tuple[int, ...], float], taken: tuple[int, ...], others: list[int]
) -> list[int]:
    """Promising parents: those that K2 takes if all columns come before, then the best alone."""
    ranked = sorted(others, key=lambda k: -gains[k,])
    helpful = [k for k in ranked if gains[k,] > 0]
    return sorted(list(dict.fromkeys([*taken, *helpful]))[:CANDIDATES])


def _undominated(gains: dict[tuple[int, ...], float]) -> list[Family]:
    """Keep the families that are better than all families within them, the best first."""
    kept = [
        Family(sum(1 << k for k in family), gain)
        for family, gain in gains.items()
        if all(
            gain > gains[part] for size in range(len(family)) for part in combinations(family, size)
        )
    ]
    return sorted(kept, key=lambda family: -family.gain)


def _best(families: list[Family], before: int) -> float:
    """Gain of the best family among the columns of a mask."""
    return next(gain for parents, gain in families if not parents & ~before)


def order_gain(families: Families, order: Sequence[int]) -> float:
    """Total gain of the best families along an order."""
    total, before = 0.0, 0
    for child in order:
        total += _best(families[child], before)
        before |= 1 << child
    return total


def _climb(families: Families, start: Sequence[int], seed: int) -> list[int]:
    """Take one column after the other to its best place, until none can gain."""
    order, rng = list(start), np.random.default_rng(seed)
    now, idle = order_gain(families, order), 0
    columns = rng.permutation(len(order)).tolist()
    while idle < len(columns):
        column = columns[0]
        columns = [*columns[1:], column]
        moved, gain = _best_place(families, [k for k in order if k != column], column)
        better = gain > now + 1e-9 * abs(now)
        order, now, idle = (moved, gain, 0) if better else (order, now, idle + 1)
    return order


def _best_place(families: Families, rest: list[int], column: int) -> tuple[list[int], float]:
    """Insert a column into an order where the total gain is largest."""
    masks = [0]
    for k in rest:
        masks.append(masks[-1] | 1 << k)
    bit = 1 << column
    ahead = [_best(families[k], mask) for k, mask in zip(rest, masks, strict=False)]
    after = [_best(families[k], mask | bit) for k, mask in zip(rest, masks, strict=False)]
    own = np.array([_best(families[column], mask) for mask in masks])
    before_it = np.concatenate([[0.0], np.cumsum(ahead)])
    behind_it = np.concatenate([[0.0], np.cumsum(after)])
    totals = before_it + own + (behind_it[-1] - behind_it)
    at = int(totals.argmax())
    return [*rest[:at], column, *rest[at:]], float(totals[at])
