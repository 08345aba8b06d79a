"""Widen posteriors of gaps that lie beyond what their columns were learned from (support.py)."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numba import njit

from skyfill.network._array import Array, IntArray
from skyfill.network.cells import Cells
from skyfill.network.mixture.margin import Margin
from skyfill.network.mixture.support import Support

# Spreads below this count as this.
LEAST_SPREAD = 1e-6


class Network(Protocol):
    """What is asked of a mixture of networks here."""

    @property
    def margins(self) -> tuple[Margin, ...]:
        """Maps of the columns."""

    @property
    def support(self) -> Support | None:
        """What the columns were learned from."""

    @property
    def box(self) -> tuple[Array, Array]:
        """Smallest and largest values that put no gap beyond."""

    def scores(self, X: Array) -> Array:
        """Give normal scores."""

    def spreads(self, X: Cells) -> Array:
        """Give the spreads of gaps, in normal scores, before they are widened."""

    def middle(self, cells: Cells) -> Array:
        """Give the medians of gaps."""


class Beyond(NamedTuple):
    """Gaps beyond: rows that have some, places of these gaps among the rows, what they gain."""

    rows: IntArray  # (m,)
    row_of: IntArray  # (gaps,): place in `rows`
    column_of: IntArray  # (gaps,)
    distance: Array  # (gaps,): from what the column was learned from, in normal scores
    more: Array  # (gaps,): standard deviation to add, in normal scores


@njit(cache=True, nogil=True, error_model="numpy")
def _leave_the_box(X, low, high, out):  # type: ignore[no-untyped-def]
    n, p = X.shape
    for i in range(n):
        for k in range(p):
            if X[i, k] < low[k] or X[i, k] > high[k]:
                out[i] = True


def box_of(margins: tuple[Margin, ...], support: Support) -> tuple[Array, Array]:
    """Give the values of each column within which no gap of any other one lies beyond."""
    matters = support.related > 0
    low = np.where(matters, support.low, -np.inf).max(axis=0)
    high = np.where(matters, support.high, np.inf).min(axis=0)
    sides = ([_value(m, z) for m, z in zip(margins, side, strict=True)] for side in (low, high))
    first, last = map(np.array, sides)
    return first, last


def _value(margin: Margin, score: float) -> float:
    return float(margin.from_normal(np.array([score]))[0]) if np.isfinite(score) else score


def find_gaps_beyond(network: Network, cells: Cells) -> Beyond | None:
    """Find the gaps of a table that lie beyond, those with limits aside; None if there are none."""
    if network.support is None:
        return None
    outside = np.zeros(len(cells), bool)
    _leave_the_box(cells.values, *network.box, outside)
    rows = np.flatnonzero(outside)
    if not rows.size:
        return None
    part = cells.take(rows)
    distances = network.support.distance(network.scores(part.values))
    row_of, column_of = np.nonzero((distances > 0) & ~part.is_limited)
    if not row_of.size:
        return None
    distance = distances[row_of, column_of]
    return Beyond(rows, row_of, column_of, distance, network.support.doubt * distance)


def widen_sd(network: Network, beyond: Beyond, mean: Array, sd: Array) -> None:
    """Widen standard deviations in place."""
    for j, mine in _columns(beyond):
        rows, margin = beyond.rows[beyond.row_of[mine]], network.margins[j]
        score, more = margin.to_normal(mean[rows, j]), beyond.more[mine]
        half = (margin.from_normal(score + more) - margin.from_normal(score - more)) / 2
        sd[rows, j] = np.hypot(sd[rows, j], half)


def widen_values(network: Network, cells: Cells, beyond: Beyond, values: Array) -> None:
    """Stretch quantiles or draws, of shape (levels, n, p), about the medians in place."""
    part = cells.take(beyond.rows)
    spread, middle = network.spreads(part), network.middle(part)
    for j, mine in _columns(beyond):
        place, margin = beyond.row_of[mine], network.margins[j]
        own = np.maximum(spread[place, j], LEAST_SPREAD)
        about = margin.to_normal(middle[place, j])
        old = np.stack([margin.to_normal(some) for some in values[:, beyond.rows[place], j]])
        new = about + np.hypot(own, beyond.more[mine]) / own * (old - about)
        values[:, beyond.rows[place], j] = margin.from_normal(new)


def _columns(beyond: Beyond) -> list[tuple[int, IntArray]]:
    """Places of the gaps of each column that has some."""
    columns = np.unique(beyond.column_of).tolist()
    return [(j, np.flatnonzero(beyond.column_of == j)) for j in columns]
