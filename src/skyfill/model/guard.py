"""Is a table like the one that a model was trained on: units, ranges, values that are no values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from scipy.special import betaincinv

from skyfill.catalog import Schema, Table
from skyfill.catalog.fillers import FILLED, ONE_VALUE, find_filler
from skyfill.catalog.limit_rules import LIMITS, flag_column, flagged
from skyfill.catalog.sentinels import Suspect, suspects_of
from skyfill.model.cells import cells_of, features_of
from skyfill.model.pipeline import Feature, Model
from skyfill.network.mixture.agreement import Disagreement, find_disagreements
from skyfill.network.mixture.beyond import BEYOND, count_beyond
from skyfill.network.mixture.margin import Constant, Margin
from skyfill.network.mixture.seen_ranges import seen_ranges

# More values than this share outside the range seen in training are worth a warning, and at least
# so many, or most: new extremes are ordinary in a few rows.
NOTABLE_SHARE, NOTABLE_COUNT, MOST = 0.01, 5, 0.5
# So rarely is it said of a feature of objects like those of the training set.
BY_CHANCE = 0.001
# Rows of a table in memory that are looked at.
SAMPLE_ROWS = 1 << 17


class Outside(NamedTuple):
    """A feature of which values lie outside the range seen in training, in the model's units."""

    name: str
    share: float
    low: float
    high: float


def find_outside(model: Model, table: Table) -> list[Outside]:
    """Find features of which many values lie outside the range seen in training."""
    X, found = features_of(model, table)[0], []
    for name, column, ends in zip(model.names, X.T, seen_ranges(model.network), strict=True):
        seen = column[~np.isnan(column)]
        if ends is None or not seen.size:
            continue
        count = int(((seen < ends[0]) | (seen > ends[1])).sum())
        share = count / seen.size
        notable = max(NOTABLE_SHARE, _share_by_chance(model, seen.size / len(column)))
        if share > MOST or (share > notable and count >= NOTABLE_COUNT):
            found.append(Outside(name, share, *ends))
    return found


def _share_by_chance(model: Model, share_seen: float) -> float:
    """Return the share of the population that a small training set may well leave outside.

    Between the smallest and the largest of n values lies all but a share that follows a beta
    distribution of 2 and n - 1, whatever the distribution of the values is.
    """
    if model.trained_on is None:
        return 0.0
    n = share_seen * len(model.trained_on)
    return float(betaincinv(2, max(n - 1, 1), 1 - BY_CHANCE))


def find_disagreeing(model: Model, table: Table) -> list[tuple[Feature, Disagreement]]:
    """Find features whose values contradict those of the others: other zero points, for example.

    Numbers are in the model's units. Nothing is said by a model of fewer than 200 rows, which does
    not know how sure it is, and of features most of whose values are outside the range seen.
    """
    if model.network.support is None:
        return []
    far = [each.name for each in find_outside(model, table) if each.share > MOST]
    found = find_disagreements(model.network, cells_of(model, table)[0])
    named = [(model.features[each.column], each) for each in found]
    return [(feature, each) for feature, each in named if feature.name not in far]


class Beyond(NamedTuple):
    """A feature, its gaps in some rows, and how many of these lie beyond what it was learned from.

    Gaps with limits are left out.
    """

    name: str
    n_gaps: int
    n_beyond: int

    @property
    def is_notable(self) -> bool:
        """Whether so many gaps lie beyond that it is worth a warning."""
        share = self.n_beyond / max(self.n_gaps, 1)
        return share > MOST or (share > BEYOND and self.n_beyond >= NOTABLE_COUNT)


def find_gaps_beyond(model: Model, table: Table) -> list[Beyond]:
    """Count gaps of objects unlike all that have the feature in the training set.

    Returns
    -------
    list of Beyond
        Of the features that have such gaps.
    """
    counts = count_beyond(model.network, cells_of(model, table)[0])
    found = (Beyond(*each) for each in zip(model.names, *(c.tolist() for c in counts), strict=True))
    return [each for each in found if each.n_beyond]


def find_undeclared(table: Table, names: Iterable[str], rules: Schema) -> dict[str, list[Suspect]]:
    """Find values that may be sentinels and were not declared.

    Columns of which the rules say that they have none (``sentinels = []``) are left out.

    Parameters
    ----------
    table : Table
        The rules were applied to it.
    names : iterable of str
    rules : Schema

    Examples
    --------
    >>> table = Table.from_columns({"J": [14.2, 15.1, 99.999]})
    >>> [suspect.value for suspect in find_undeclared(table, ["J"], Schema())["J"]]
    [99.999]
    >>> find_undeclared(table, ["J"], Schema.from_toml("columns.J.sentinels = []"))
    {}
    """
    found = _find_all(table, names, rules)
    plain = {name: [s for s in each if s.why != ONE_VALUE] for name, each in found.items()}
    return {name: suspects for name, suspects in plain.items() if suspects}


def _find_all(table: Table, names: Iterable[str], rules: Schema) -> dict[str, list[Suspect]]:
    """Find values that may be sentinels, and those that gaps may have been filled with."""
    asked = [name for name in names if rules.facts(name).get("sentinels") != []]
    sample = sampled(table)
    found = suspects_of(sample, asked)
    fillers = {name: filler for name in asked if (filler := find_filler(sample, name))}
    return found | {name: [*found.get(name, []), filler] for name, filler in fillers.items()}


def find_flagged(table: Table, names: Iterable[str], rules: Schema) -> dict[str, tuple[str, int]]:
    """Find values that another column marks as limits, and that were not declared as such.

    Examples
    --------
    >>> table = Table.from_columns({"S": [5.1, 4.0], "l_S": [None, "<"]})
    >>> find_flagged(table, ["S"], Schema())
    {'S': ('l_S', 1)}
    """
    asked = [name for name in names if name in table.names and LIMITS not in rules.facts(name)]
    sample, found = sampled(table), dict[str, tuple[str, int]]()
    for name in asked:
        flag = flag_column(sample, name)
        if flag is not None and pa.types.is_string(sample.column(flag).type):
            count = int((flagged(sample, flag) & ~np.isnan(sample.numbers(name)[:, 0])).sum())
            found |= {name: (flag, count)} if count else {}
    return found


def find_unknown(model: Model, table: Table) -> dict[str, list[Suspect]]:
    """Find values that may be sentinels and were not so in training."""
    names = [name for name in model.names if name in table.names]
    found = _find_all(table, names, model.declared)
    factors = features_of(model, Table(table.arrow.slice(0, 0)))[1]
    network = model.network
    known = zip(model.names, seen_ranges(network), network.margins, factors, strict=True)
    facts = {name: (ends, margin, factor) for name, ends, margin, factor in known}
    new = {
        name: [s for s in suspects if not _is_known(s, *facts[name])]
        for name, suspects in found.items()
    }
    return {name: suspects for name, suspects in new.items() if suspects}


def _is_known(
    suspect: Suspect, ends: tuple[float, float] | None, margin: Margin, factor: float
) -> bool:
    """Whether a value is one of the training set: in its range, or as frequent there."""
    value = float(suspect.value) * factor
    if suspect.why == ONE_VALUE:
        return isinstance(margin, Constant)
    if suspect.why == FILLED:
        low, high = margin.score_interval(np.array([value]))
        return bool(low < high)
    return ends is not None and ends[0] <= value <= ends[1]


def sampled(table: Table, rows: int = SAMPLE_ROWS) -> Table:
    """Return rows at even distances, if a table has more than `rows`."""
    step = -(-len(table) // rows) if rows else 1
    return table if step <= 1 else Table(table.arrow.take(np.arange(0, len(table), step)))
