"""How much of each feature is missing, and why, counted batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog import Reason, Role, Table, numbers_in
from skyfill.model import Feature, before_filling

UNKNOWN = "unknown"
REASONS = (*(str(reason) for reason in Reason if reason is not Reason.FILLED), UNKNOWN)


@dataclass(frozen=True)
class GapCounts:
    """Gaps of features by reason; the counts of parts of a table can be added.

    Attributes
    ----------
    names : tuple of str
    n_rows : int
    counts : array of shape (p, len(REASONS))
        Gaps of each feature by reason.
    """

    names: tuple[str, ...]
    n_rows: int
    counts: NDArray[np.int64]

    def __add__(self, other: GapCounts) -> GapCounts:
        return GapCounts(self.names, self.n_rows + other.n_rows, self.counts + other.counts)

    @property
    def share(self) -> NDArray[np.float64]:
        """Share of each feature's cells that are gaps, shape (p,)."""
        return np.asarray(self.counts.sum(axis=1) / max(self.n_rows, 1))


def seen_values(table: Table, features: Sequence[Feature]) -> NDArray[np.float64]:
    """Return the measured values of features in the units of the model, shape (n, p).

    NaN where there is no measurement; a value filled by a model is not a measurement.
    """
    table = before_filling(table, [feature.name for feature in features])
    out = np.full((len(table), len(features)), np.nan)
    for j, feature in enumerate(features):
        if feature.name in table.names:
            out[:, j] = _in_unit(table, feature.name, feature)
    return out


def limit_values(table: Table, features: Sequence[Feature]) -> NDArray[np.float64]:
    """Return the limits beyond which undetected features lie; NaN where there is none."""
    limit_of = {table.info(name).of: name for name in table.names_with(Role.LIMIT)}
    undetected = reason_codes(table, features) == 1 + REASONS.index(Reason.UNDETECTED)
    out = np.full(undetected.shape, np.nan)
    for j, feature in enumerate(features):
        if feature.name in limit_of:
            limits = _in_unit(table, limit_of[feature.name], feature)
            out[:, j] = np.where(undetected[:, j], limits, np.nan)
    return out


def _in_unit(table: Table, name: str, feature: Feature) -> NDArray[np.float64]:
    """Return a column in the unit that the model uses for a feature."""
    own = table.info(name).unit
    if own and feature.unit and own != feature.unit:
        return np.asarray(numbers_in(table, name, feature.unit), dtype=np.float64)
    return np.asarray(table.numbers(name)[:, 0])


def reason_codes(table: Table, features: Sequence[Feature]) -> NDArray[np.uint8]:
    """Code each cell: 0 where it is seen, else one more than the index of its reason in REASONS."""
    table = before_filling(table, [feature.name for feature in features])
    lost = np.isnan(seen_values(table, features))
    codes = np.zeros(lost.shape, np.uint8)
    for j, feature in enumerate(features):
        known = feature.name in table.names
        words = table.reasons(feature.name) if known else pa.nulls(len(table), pa.string())
        at = pc.index_in(words, pa.array(REASONS))
        code = pc.fill_null(at, REASONS.index(UNKNOWN)).to_numpy(zero_copy_only=False)
        codes[:, j] = np.where(lost[:, j], code + 1, 0)
    return codes


def count_gaps(table: Table, features: Sequence[Feature] | None = None) -> GapCounts:
    """Count the gaps of features by reason; without `features`, those of role feature.

    Examples
    --------
    >>> from skyfill.catalog import ColumnInfo
    >>> info = {"J": ColumnInfo(role=Role.FEATURE)}
    >>> count_gaps(Table.from_columns({"J": [14.2, None]}, info=info)).share
    array([0.5])
    """
    if features is None:
        features = [Feature(name) for name in table.names_with(Role.FEATURE)]
    codes = reason_codes(table, features)
    found = [Counter(column.tolist()) for column in codes.T]
    counts = [[column[code + 1] for code in range(len(REASONS))] for column in found]
    names = tuple(feature.name for feature in features)
    shape = (len(names), len(REASONS))
    return GapCounts(names, len(table), np.array(counts, dtype=np.int64).reshape(shape))
