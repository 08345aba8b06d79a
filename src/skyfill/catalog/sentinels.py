"""Values that stand for "no value": the unmistakable ones are gaps, others are if declared."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog.arrays import is_number, number_dtype
from skyfill.catalog.brightness import Brightness, brightness_of
from skyfill.catalog.column_info import ColumnInfo, Reason, Role
from skyfill.catalog.column_summary import ColumnSummary, reads_as_null, summarize_column
from skyfill.catalog.table import Table
from skyfill.catalog.usual_values import find_usual, is_customary, is_numeric
from skyfill.errors import CatalogError

Sentinel = float | str
_Counts = dict[float, int]

# A column named so is never zero.
_PERIOD = re.compile(r"(.*_)?per(iod)?(_|$)", re.IGNORECASE)
# A column with fewer distinct values is a flag or a code, whose extremes mean nothing.
_MANY = 10
# A value this many times more frequent than its neighbors stands out.
_OFTEN = 10


@dataclass(frozen=True)
class Suspect:
    """A value that may stand for "no value".

    Parameters
    ----------
    value : float or str
        As it would be declared.
    count : int
        Rows with this value.
    why : str
        Why it is suspicious.
    unmistakable : bool
        Whether a model that learns the column takes it for a gap.
    """

    value: Sentinel
    count: int
    why: str
    unmistakable: bool = False


def declare(
    table: Table, sentinels: Mapping[str, Sequence[Sentinel]], reason: Reason = Reason.REJECTED
) -> Table:
    """Turn declared sentinels into nulls with a reason.

    Every column that is named gets a companion column of reasons, even if no row holds a
    sentinel, so that all batches of a table have the same columns.

    Examples
    --------
    >>> table = declare(Table.from_columns({"J": [14.2, 99.999]}), {"J": [99.999]})
    >>> table.column("J").to_pylist(), table.reasons("J").to_pylist()
    ([14.2, None], [None, 'rejected'])
    """
    for name, values in sentinels.items():
        column = table.column(name)
        hits = pc.is_in(column, value_set=_value_set(name, column.type, values))
        reasons = pc.if_else(hits, str(reason), pa.chunked_array([table.reasons(name)]))
        kept = pc.if_else(hits, pa.scalar(None, column.type), column)
        table = table.with_column(name, kept).with_reasons(name, reasons)
    return table


def select_values(column: pa.Array | pa.ChunkedArray, values: Sequence[float]) -> NDArray[np.bool_]:
    """Mark the cells of a column that hold some numbers, compared in the type of the column.

    Examples
    --------
    >>> select_values(pa.array([14.2, 99.999], pa.float32()), [99.999]).tolist()
    [False, True]
    """
    if not values or not can_hold(column.type, values[0]):
        return np.zeros(len(column), bool)
    hits = pc.is_in(column, value_set=_value_set("", column.type, values))
    return np.asarray(hits.to_numpy(zero_copy_only=False), dtype=bool)


def can_hold(kind: pa.DataType, value: Sentinel) -> bool:
    """Check whether a column of a type can hold a sentinel."""
    if isinstance(value, str):
        return bool(pa.types.is_string(kind))
    return is_numeric(kind)


def _value_set(name: str, kind: pa.DataType, values: Sequence[Sentinel]) -> pa.Array:
    for value in values:
        if not can_hold(kind, value):
            raise CatalogError(f"column {name!r} of type {kind} cannot hold the sentinel {value!r}")
    if pa.types.is_integer(kind):
        limits = np.iinfo(number_dtype(kind))
        whole = [int(v) for v in values if math.isfinite(float(v)) and float(v).is_integer()]
        return pa.array([v for v in whole if limits.min <= v <= limits.max], kind)
    return pa.array(values, kind)


def find_suspects(
    summary: ColumnSummary, role: Role = Role.OTHER, name: str = "", info: ColumnInfo | None = None
) -> list[Suspect]:
    """Find values that may be sentinels, without changing anything.

    Of features and errors, the unmistakable ones come first (`find_unmistakable`).
    Suspicious values are numbers made of nines and limits of integer types that lie apart from
    all other values; repeated extremes farther from the other values than their range; zero where
    all others are positive, in a column of errors, or if it is repeated in one of periods or
    fluxes; words such as ``N/A``. A share or a count may well be zero.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from skyfill.catalog.column_summary import summarize_column
    >>> find_suspects(summarize_column(pa.array([14.2, 15.1, 999.9999, 999.9999])))[0].why
    'lies apart from all other values'
    """
    if summary.words:
        return _suspect_words(summary)
    is_flux = brightness_of(name, info or ColumnInfo()) is Brightness.FLUX
    never_zero = role is Role.ERROR or is_flux or bool(_PERIOD.match(name))
    sure = find_unmistakable(summary) if role in (Role.FEATURE, Role.ERROR) else []
    found = _suspect_numbers(summary, role, never_zero=never_zero) if summary.lowest else []
    values = [suspect.value for suspect in sure]
    return [*sure, *(suspect for suspect in found if suspect.value not in values)]


def find_unmistakable(summary: ColumnSummary) -> list[Suspect]:
    """Find values of a column of numbers that surely stand for "no value".

    They are of the kind that surveys use (`find_usual`), in two rows or more and at an end of the
    column, which has ten other values. And they are negative where none of these is, or ten times
    lower than the lowest, or further off than the range of these, or ten times as frequent as any
    and well apart from all.

    Examples
    --------
    >>> values = np.append(np.linspace(4000.0, 9000.0, 50), [-999.0, -999.0, 99999.0])
    >>> [found.value for found in find_unmistakable(summarize_column(pa.array(values)))]
    [-999.0]
    """
    counts = {**summary.lowest, **summary.highest}
    values = np.array([float(value) for value in counts])
    usual = find_usual(pa.array(values), is_whole=summary.is_whole)
    plain, found = values[~usual], []
    for (value, n_rows), is_usual in zip(counts.items(), usual.tolist(), strict=True):
        if not is_usual or n_rows < 2 or len(plain) < _MANY:
            continue
        end = summary.lowest if value in summary.lowest else summary.highest
        why = _why_sure(value, plain)
        if not why and n_rows >= _OFTEN * summary.most and _is_alone(value, plain, end):
            why = "far more frequent than all others"
        if why:
            found.append(Suspect(value, n_rows, why, unmistakable=True))
    return found


def _why_sure(value: float, plain: NDArray[np.float64]) -> str | None:
    low, high = plain.min(), plain.max()
    if value < 10 * min(low, 0.0):
        return "negative where all other values are not" if low >= 0 else "far below all others"
    is_apart = max(low - value, value - high) > high - low
    return "lies apart from all other values" if is_apart else None


def _is_alone(value: float, plain: NDArray[np.float64], end: _Counts) -> bool:
    """Whether a frequent value is not where others are cut off, as percentages at 99.9.

    These come near it or, with a long tail, as near as they come to each other at that end.
    """
    distance, near = np.abs(plain - value).min(), np.sort(plain[np.isin(plain, [*end])])
    is_between = plain.min() < value < plain.max()
    return bool(
        distance > abs(value) / 100 and (is_between or distance > np.diff(near).max(initial=0))
    )


def suspects_of(table: Table, names: Iterable[str]) -> dict[str, list[Suspect]]:
    """Find values that may be sentinels in columns of numbers.

    Examples
    --------
    >>> table = Table.from_columns({"J": [14.2, 15.1, -99.0], "K": [13.0, 14.0, 14.5]})
    >>> {name: each[0].value for name, each in suspects_of(table, "JK").items()}
    {'J': -99.0}
    """
    found = {}
    for name in names:
        column = table.column(name)
        if is_numeric(column.type):
            summary = summarize_column(column.combine_chunks())
            info = table.info(name)
            found[name] = find_suspects(summary, info.role, name, info)
    return {name: suspects for name, suspects in found.items() if suspects}


def _suspect_words(summary: ColumnSummary) -> list[Suspect]:
    n_seen = summary.n_rows - summary.n_null
    are_numbers = 2 * summary.n_numbers > n_seen
    suspects = []
    for word, count in summary.words.most_common():
        if are_numbers and is_limit(word):
            suspects.append(Suspect(word, count, "is a limit"))
        elif are_numbers and not is_number(word):
            suspects.append(Suspect(word, count, "is text among numbers"))
        elif not are_numbers and reads_as_null(word):
            suspects.append(Suspect(word, count, "reads as no value"))
    return suspects


def _suspect_numbers(summary: ColumnSummary, role: Role, *, never_zero: bool) -> list[Suspect]:
    counts = {**summary.lowest, **summary.highest}
    plain = sorted(value for value in counts if not is_customary(value))
    found: dict[float, str] = {}
    for value in sorted(counts):
        # Beside one sentinel there may be another: FIRST has -1 and 0.
        rest = [other for other in plain if other not in found]
        if why := _why(value, counts, rest, role, never_zero=never_zero):
            found[value] = why
    return [Suspect(value, counts[value], why) for value, why in found.items()]


def _why(
    value: float, counts: _Counts, plain: list[float], role: Role, *, never_zero: bool
) -> str | None:
    if is_customary(value):
        return _why_customary(value, counts, plain)
    if value == plain[0] == 0 < plain[-1]:
        is_often = len(plain) >= _MANY and _is_frequent(value, counts, plain)
        often = role is Role.ERROR or (never_zero and is_often)
        return "zero where all other values are positive" if often else None
    return _why_extreme(value, counts, plain) if value in (plain[0], plain[-1]) else None


def _why_customary(value: float, counts: _Counts, plain: list[float]) -> str | None:
    if not plain:
        return "a customary sentinel" if abs(value) >= 99 else None
    low, high = plain[0], plain[-1]
    distance = max(low - value, value - high)
    if distance <= 0:
        return None
    if 0 < value < 10 and str(value).count("9") < 3:  # 9 and 9.9 are measured too
        is_often = len(plain) >= _MANY and _is_frequent(value, counts, plain)
        return "repeated at the end of the range" if is_often else None
    if value < 0 <= low:
        return "negative where all other values are not"
    if distance > (high - low) / 2:
        return "lies apart from all other values"
    return "repeated at the end of the range" if _is_frequent(value, counts, plain) else None


def _why_extreme(value: float, counts: _Counts, plain: list[float]) -> str | None:
    rest = [other for other in plain if other != value]
    if counts[value] < 3 or len(rest) < _MANY:
        return None
    if value < 0 <= rest[0]:
        return "the only negative value, repeated"
    distance = max(rest[0] - value, value - rest[-1])
    return "repeated, apart from all others" if distance > rest[-1] - rest[0] else None


def _is_frequent(value: float, counts: _Counts, plain: list[float]) -> bool:
    """Check whether a value is far more frequent than the three next to it."""
    near = sorted((other for other in plain if other != value), key=lambda v: abs(v - value))[:3]
    return counts[value] >= _OFTEN * max((counts[other] for other in near), default=1)


def is_limit(word: Sentinel) -> bool:
    """Check whether a text is a limit.

    Examples
    --------
    >>> is_limit("<4.0"), is_limit("bright")
    (True, False)
    """
    return isinstance(word, str) and is_number(word.lstrip(" <>=")) and word.strip()[:1] in "<>"
