"""Find columns of a table that do not go with the others as they did in training.

Some seen cells of each column are compared with what other cells of their rows say of them. A wrong
zero point or unit, or a swapped column, moves most cells by many standard deviations; a reversed
sign makes them fall where they should rise. Another selection of objects does neither.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from skyfill.network._array import Array, BoolArray
from skyfill.network.cells import Cells
from skyfill.network.mixture.network import MixtureNetwork
from skyfill.network.mixture.widening import LEAST_SPREAD

# Cells of a column to compare, and the fewest of them.
COMPARED, LEAST_COMPARED = 300, 20
# Cells are compared if they are said to be this near to the middle of their column, in scores. Near
# the limit of a survey those that it saw are brighter than others, so that they seem to disagree.
MIDDLE = 1.0
# A column disagrees if half of its cells are off by more than so many standard deviations, and by
# so much of the spread of the column.
FAR_OFF, NOTABLE = 2.5, 0.1
# It is reversed if its correlation with what is said of it is below this, and by so many standard
# errors below 0; and if half of its cells are off by more than 0.67, as they are by chance.
REVERSED, CERTAIN, BY_CHANCE = -0.3, 5.0, 0.9
# Columns belong together if one is missing so much more often where the other is.
TOGETHER = 0.5
# Columns are blamed one by one, as long as others disagree; so many at most, and so many suspects
# each time.
MOST_BLAMED, SUSPECTS = 5, 4
# Columns are equally bad if they differ by less than this factor.
CLEARLY = 0.95


class Disagreement(NamedTuple):
    """How the cells of a column compare with what others say of them."""

    column: int
    n: int
    off: float  # median difference, on the scale of the column
    away: float  # median of its absolute value, in normal scores
    sigmas: float  # the same, in standard deviations
    correlation: float

    @property
    def is_off(self) -> bool:
        """Whether most cells are elsewhere than the others say."""
        return self.sigmas > FAR_OFF and self.away > NOTABLE

    @property
    def is_reversed(self) -> bool:
        """Whether the column falls where it should rise."""
        is_so = self.correlation < min(REVERSED, -CERTAIN / self.n**0.5)
        return is_so and self.sigmas > BY_CHANCE and self.away > NOTABLE

    @property
    def badness(self) -> float:
        """How much it disagrees; 0 if it does not."""
        return self.sigmas if self.is_off else -self.correlation * self.is_reversed


def compare(
    network: MixtureNetwork, cells: Cells, j: int, hidden: BoolArray
) -> Disagreement | None:
    """Compare cells of a column with the distributions that others give them.

    Values outside the range seen in training, which no distribution reaches, are not compared.

    Parameters
    ----------
    network : MixtureNetwork
    cells : Cells
    j : int
        The column.
    hidden : array of shape (p,)
        Which columns are hidden: itself, and perhaps others.

    Returns
    -------
    Disagreement or None
        None if there are too few cells.
    """
    seen, outside = ~np.isnan(cells.values), _outside(network, cells)[:, j]
    rows = np.flatnonzero(seen[:, j] & ~outside & (seen & ~hidden).any(axis=1))
    cells = cells.take(rows[:: max(1, rows.size // COMPARED)])
    without, margin = _without(cells, hidden), network.margins[j]
    middle = network.middle(without)[:, j] if rows.size else np.empty(0)
    value, said = margin.to_normal(cells.values[:, j]), margin.to_normal(middle)
    near = np.abs(said) < MIDDLE
    if near.sum() < LEAST_COMPARED:
        return None
    spread = _spreads(network, cells, without, j)[near]
    away = _apart(margin.score_interval(cells.values[near, j]), margin.score_interval(middle[near]))
    return Disagreement(
        j,
        int(near.sum()),
        float(np.median((cells.values[:, j] - middle)[near])),
        float(np.median(away)),
        float(np.median(away / np.maximum(spread, LEAST_SPREAD))),
        _correlation(value[near], said[near]),
    )


def _apart(one: tuple[Array, Array], other: tuple[Array, Array]) -> Array:
    """Give distances of intervals of scores: those of atoms and of ends of columns are long."""
    return np.maximum(np.maximum(one[0] - other[1], other[0] - one[1]), 0.0)


def _outside(network: MixtureNetwork, cells: Cells) -> BoolArray:
    if network.support is None:
        return np.zeros(cells.values.shape, bool)
    low, high = network.support.ends
    return (cells.values < low) | (cells.values > high)


def _spreads(network: MixtureNetwork, cells: Cells, without: Cells, j: int) -> Array:
    """Give standard deviations of what is said of a column, with its errors, in scores."""
    spread = network.spreads(without)[:, j]
    if network.support is not None:
        distance = network.support.distance(network.scores(without.values))[:, j]
        spread = np.hypot(spread, network.support.doubt * distance)
    errors = network.score_cells(cells).errors
    return spread if errors is None else np.hypot(spread, np.nan_to_num(errors[:, j]))


def _correlation(one: Array, other: Array) -> float:
    a, b = one - one.mean(), other - other.mean()
    norm = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / norm) if norm > 0 else 0.0


def find_families(cells: Cells) -> BoolArray:
    """Find columns that are missing together, as those of a survey: which go with which, (p, p).

    Examples
    --------
    >>> J = np.where(np.arange(60) % 2, np.nan, 1.0)
    >>> find_families(Cells(np.column_stack([np.ones(60), J, 2 * J]))).astype(int).tolist()
    [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    """
    lost = np.isnan(cells.values).astype(np.float64)
    n_lost, n_seen = lost.sum(axis=0), len(lost) - lost.sum(axis=0)
    together = lost.T @ lost / np.maximum(n_lost, 1)[:, None]
    apart = (1 - lost).T @ lost / np.maximum(n_seen, 1)[:, None]
    enough = (np.minimum(n_lost, n_seen) >= LEAST_COMPARED)[:, None]
    return np.asarray((enough & (together - apart > TOGETHER)) | np.eye(len(n_lost), dtype=bool))


def find_disagreements(network: MixtureNetwork, cells: Cells) -> list[Disagreement]:
    """Find columns that disagree with the others.

    A wrong column makes others look wrong: one without which they agree is blamed, or else the
    worst, and left out; then the others are compared again. Where values lie outside the range seen
    in training, a column must disagree with and without them.

    Examples
    --------
    >>> from skyfill.network import learn_mixture
    >>> V, color = np.linspace(14, 18, 400), np.cos(np.arange(400.0))
    >>> X = np.column_stack([V, V - color, V - 2 * color])
    >>> network = learn_mixture(X, n_components=1, n_fits=1).network
    >>> find_disagreements(network, Cells(X))
    []
    >>> [each.column for each in find_disagreements(network, Cells(X + [0, 1, 0]))]
    [1]
    """
    # That a cell is hidden here says nothing of its object.
    fits = tuple(fit._replace(gap_rates=None) for fit in network.fits)
    network = replace(network, fits=fits)
    found, outside = _blame(network, cells, range(len(network))), _outside(network, cells)
    if found and outside.any():
        columns = [each.column for each in found]
        without = {each.column for each in _blame(network, cells.hide(outside), columns)}
        found = [each for each in found if each.column in without]
    return found


def _blame(network: MixtureNetwork, cells: Cells, columns: Iterable[int]) -> list[Disagreement]:
    """Blame columns one by one: one without which all others agree, or else the worst.

    Of several that would explain all it is the worst; of equals, the one that is off by least.
    """
    found, bad = list[Disagreement](), _disagreeing(network, cells, set(columns))
    while bad and len(found) < MOST_BLAMED:
        suspects = sorted(bad, key=lambda one: -one.badness)[:SUSPECTS]
        # What agrees while a wrong column is there does so without it.
        names = {one.column for one in bad}
        left = [
            _disagreeing(network, _hidden(cells, each.column), names - {each.column})
            for each in suspects
        ]
        enough = [i for i, others in enumerate(left) if not others] or [0]
        clear = CLEARLY * suspects[enough[0]].badness
        alike = [i for i in enough if suspects[i].badness > clear]
        i = min(alike, key=lambda i: suspects[i].away)
        found.append(suspects[i])
        bad, cells = left[i], _hidden(cells, suspects[i].column)
    return found


def _disagreeing(network: MixtureNetwork, cells: Cells, columns: set[int]) -> list[Disagreement]:
    """Compare columns with all others and, since a whole survey may be off, with other surveys."""
    alone, families = np.eye(len(network), dtype=bool), find_families(cells)
    ways = {(j, hidden[j].tobytes()): hidden[j] for hidden in (alone, families) for j in columns}
    compared = (compare(network, cells, j, hidden) for (j, _), hidden in ways.items())
    bad = [each for each in compared if each is not None and each.badness]
    # Of both ways the one that shows it more clearly.
    by_column = {each.column: each for each in sorted(bad, key=lambda one: one.badness)}
    return list(by_column.values())


def _hidden(cells: Cells, column: int) -> Cells:
    return _without(cells, np.arange(cells.values.shape[1]) == column)


def _without(cells: Cells, columns: BoolArray) -> Cells:
    return cells.hide(np.broadcast_to(columns, cells.values.shape))
