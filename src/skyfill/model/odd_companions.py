"""Errors and limits that do not fit the values beside them: wrong signs, sides or units."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog import Role, Table
from skyfill.model.cells import beside, find_companions, is_magnitude
from skyfill.model.pipeline import Feature

Array = NDArray[np.float64]
# Fewest measured values and limits to judge by.
LEAST_SEEN, LEAST_LIMITS = 20, 5
# A survey sees what is on the bright side of its limits: at least this share of its values.
BRIGHT_SHARE = 0.2


class OddLimits(NamedTuple):
    """Limits on the wrong side of the measured values, or far from all of them.

    `share` is that of the values on the bright side of the median limit; `low` and `high` are the
    ends of the measured values, in the units of the feature.
    """

    name: str
    is_magnitude: bool
    share: float
    limit: float
    low: float
    high: float

    @property
    def is_far(self) -> bool:
        """Whether the limit is farther from the measured values than these from one another."""
        reach = self.high - self.low
        return not self.low - reach <= self.limit <= self.high + reach


class OddErrors(NamedTuple):
    """Errors that are 0 or negative, or larger than the scatter of the values they belong to."""

    name: str
    of: str
    n_without: int
    median: float
    scatter: float


def find_odd_limits(features: Sequence[Feature], table: Table) -> list[OddLimits]:
    """Find features whose stated limits contradict their measured values.

    Examples
    --------
    >>> from skyfill.catalog import ColumnInfo
    >>> K, limit = np.linspace(10, 16, 40), np.full(40, 16.0)
    >>> info = {"l_K": ColumnInfo(role=Role.LIMIT, of="K")}
    >>> table = Table.from_columns({"K": K, "l_K": limit}, info=info)
    >>> [each.share for each in find_odd_limits([Feature("K")], table)]
    [0.0]
    >>> find_odd_limits([Feature("K", "mag")], table)
    []
    """
    found = []
    for feature, _, column, limits in _pairs(features, table, Role.LIMIT):
        stated, seen = limits[~np.isnan(limits)], column[~np.isnan(column)]
        if stated.size < LEAST_LIMITS or seen.size < LEAST_SEEN:
            continue
        limit, is_mag = float(np.median(stated)), is_magnitude(feature)
        share = float((seen <= limit).mean() if is_mag else (seen > limit).mean())
        ends = float(seen.min()), float(seen.max())
        odd = OddLimits(feature.name, is_mag, share, limit, *ends)
        found += [odd] if share < BRIGHT_SHARE or odd.is_far else []
    return found


def find_odd_errors(features: Sequence[Feature], table: Table) -> list[OddErrors]:
    """Find errors that cannot be what they seem.

    Examples
    --------
    >>> from skyfill.catalog import ColumnInfo
    >>> columns = {"V": np.linspace(14, 18, 40), "e_V": np.full(40, 20.0)}
    >>> info = {"e_V": ColumnInfo(role=Role.ERROR, of="V")}
    >>> table = Table.from_columns(columns, info=info)
    >>> [each.median for each in find_odd_errors([Feature("V")], table)]
    [20.0]
    """
    found = []
    for feature, name, column, errors in _pairs(features, table, Role.ERROR):
        known = ~np.isnan(errors) & ~np.isnan(column)
        if known.sum() < LEAST_SEEN:
            continue
        n_without = int((errors[known] <= 0).sum())
        positive = errors[known & (errors > 0)]
        median = float(np.median(positive)) if positive.size else 0.0
        scatter = float(np.std(column[known]))
        if n_without or median > scatter > 0:
            found.append(OddErrors(name, feature.name, n_without, median, scatter))
    return found


def _pairs(
    features: Sequence[Feature], table: Table, role: Role
) -> Iterator[tuple[Feature, str, Array, Array]]:
    """Give features with a column of errors or limits: its name, values, and what is beside."""
    companions = find_companions(table)
    for feature in features:
        name = companions.get((role, feature.name))
        if name is not None:
            values, others = (beside(table, feature, each) for each in (feature.name, name))
            yield feature, name, values, others
