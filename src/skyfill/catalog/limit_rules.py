"""Limits as people write them: ``<4.0``, a negative flux, a magnitude without an error, a depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog.arrays import NUMBER_PATTERN
from skyfill.catalog.column_info import ColumnInfo, Reason, Role
from skyfill.catalog.roles import with_guessed_roles
from skyfill.catalog.table import Table
from skyfill.errors import CatalogError

# Facts of a schema that this file applies.
LIMITS, DEPTH = "limits", "depth"
_SIGNED = r"^\s*[<>]=?\s*"
# Names of a column that marks the limits of another with signs.
_FLAGS = ("l_{}", "{}_flag", "{}_lim", "{}_limit", "{}_l", "limit_{}")
Found = tuple[NDArray[np.bool_], NDArray[np.float64]]


def apply_limits(table: Table, name: str, facts: Mapping[str, Any]) -> Table:
    """Turn cells that are limits into gaps that were not detected, and keep the limits beside them.

    Parameters
    ----------
    table : Table
    name : str
        The column.
    facts : mapping
        ``limits``: "signs" (``<4.0``, and ``>4.0`` for magnitudes), "flag" (another column marks
        them, see `flag_column`), "negative" (a limit of its size) or "no error" (a value without
        an error); ``depth``: the limit of undetected and unmatched sources that have none.

    Examples
    --------
    >>> table = apply_limits(Table.from_columns({"S": ["5.1", "<4.0"]}), "S", {"limits": "signs"})
    >>> table.column("S").to_pylist(), table.column("S_limit").to_pylist()
    ([5.1, None], [None, 4.0])
    """
    if LIMITS in facts:
        table, (found, limits) = RULES[facts[LIMITS]](table, name)
        # What a model filled is no limit, though it has no error.
        is_filled = _mask(pc.equal(table.reasons(name), str(Reason.FILLED)))
        table = _with_limits(table, name, found & ~is_filled, limits)
    return _with_depth(table, name, float(facts[DEPTH])) if DEPTH in facts else table


def _signs(table: Table, name: str) -> tuple[Table, Found]:
    column = table.column(name).combine_chunks()
    if not pa.types.is_string(column.type):
        return table, (np.zeros(len(table), bool), np.full(len(table), np.nan))
    signed = _mask(pc.match_substring_regex(column, _SIGNED))
    wrong = _of_bright(table, name, column)
    words = pc.replace_substring_regex(column, _SIGNED, "")
    words = pc.utf8_trim_whitespace(words)
    is_number = pc.match_substring_regex(words, NUMBER_PATTERN)
    lost = pc.is_in(words, value_set=pa.array(["", "nan", "NaN", "--", "...", "N/A"]))
    bad = ~_mask(is_number) & ~_mask(lost) & ~_mask(column.is_null())
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise CatalogError(
            f"column {name!r}, row {row + 1}: {column[row].as_py()!r} is neither a number nor a "
            "limit such as <4.0; correct it or declare it as a sentinel"
        )
    numbers = pc.if_else(is_number, words, pa.scalar(None, pa.string())).cast(pa.float64())
    table = table.with_column(name, numbers, table.info(name))
    values = table.numbers(name)[:, 0]
    # A magnitude brighter than a limit is of a saturated source: nothing is known of it.
    values[wrong] = np.nan
    return table, (signed, values)


def _of_bright(table: Table, name: str, signs: pa.Array) -> NDArray[np.bool_]:
    """Select signs of magnitudes on the bright side; CatalogError where a flux has such a sign."""
    info = table.info(name)
    is_magnitude = (info.ucd or "").startswith("phot.mag") or info.unit == "mag"
    wrong = _mask(pc.match_substring_regex(signs, r"^\s*" + ("<" if is_magnitude else ">")))
    if wrong.any() and not is_magnitude:
        row = int(np.flatnonzero(wrong)[0])
        raise CatalogError(
            f"column {name!r}, row {row + 1}: {signs[row].as_py()!r} is a limit of a magnitude; "
            f'declare it as one (columns.{name}.unit = "mag")'
        )
    return wrong


def flag_column(table: Table, name: str) -> str | None:
    """Name the column whose signs or flags mark the limits of a column: by role or by name.

    Examples
    --------
    >>> flag_column(Table.from_columns({"S": [5.1], "l_S": ["<"]}), "S")
    'l_S'
    """
    own = [n for n in table.names_with(Role.LIMIT) if table.info(n).of == name]
    own += [flag.format(name) for flag in _FLAGS]
    return next((n for n in own if n in table.names and not _is_real(table, n)), None)


def flagged(table: Table, flag: str) -> NDArray[np.bool_]:
    """Select the rows in which a column of signs or flags marks a limit."""
    column = table.column(flag).combine_chunks()
    if pa.types.is_string(column.type):
        return _mask(pc.match_substring_regex(column, _SIGNED))
    return _mask(pc.not_equal(column.cast(pa.int64()), 0))


def _flag(table: Table, name: str) -> tuple[Table, Found]:
    flag, values = flag_column(table, name), table.numbers(name)[:, 0]
    if flag is None:
        raise CatalogError(
            f'column {name!r}: limits = "flag", but no column such as l_{name} or {name}_flag '
            f"marks them; give one the role limit (columns.COLUMN.role, columns.COLUMN.of = "
            f"{name!r})"
        )
    found, column = flagged(table, flag) & ~np.isnan(values), table.column(flag).combine_chunks()
    if pa.types.is_string(column.type):
        values[_of_bright(table, name, column)] = np.nan
    return table, (found, values)


def _is_real(table: Table, name: str) -> bool:
    return bool(pa.types.is_floating(table.column(name).type))


def _negative(table: Table, name: str) -> tuple[Table, Found]:
    values = table.numbers(name)[:, 0]
    return table, (values < 0, -values)


def _without_error(table: Table, name: str) -> tuple[Table, Found]:
    # A column that is declared to hold them comes before one that is named so.
    known = (table, with_guessed_roles(table))
    found = (n for each in known for n in each.names_with(Role.ERROR) if each.info(n).of == name)
    beside = next(found, None)
    if beside is None:
        raise CatalogError(
            f'column {name!r}: limits = "no error", but no column holds its errors; give one the '
            f"role error (columns.COLUMN.role, columns.COLUMN.of = {name!r})"
        )
    values, errors = table.numbers(name, beside).T
    return table, (~np.isnan(values) & ~(errors > 0), values)


RULES: dict[str, Callable[[Table, str], tuple[Table, Found]]] = {
    "signs": _signs,
    "flag": _flag,
    "negative": _negative,
    "no error": _without_error,
}


def _mask(flags: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(flags, False).to_numpy(zero_copy_only=False))


def limit_column(table: Table, name: str) -> str:
    """Name the column of the limits of a column, whether it exists or not."""
    own = (n for n in table.names_with(Role.LIMIT) if table.info(n).of == name)
    return next((n for n in own if not pa.types.is_string(table.column(n).type)), f"{name}_limit")


def _with_limits(
    table: Table, name: str, found: NDArray[np.bool_], limits: NDArray[np.float64]
) -> Table:
    """Make gaps of cells that are limits; a limit that is not known is a rejected value."""
    known = pa.array(found & ~np.isnan(limits))
    words = pc.if_else(known, str(Reason.UNDETECTED), str(Reason.REJECTED))
    reasons = pc.if_else(pa.array(found), words, table.reasons(name))
    column = table.column(name).combine_chunks()
    kept = pc.if_else(pa.array(found), pa.scalar(None, column.type), column)
    table = table.with_column(name, kept, table.info(name)).with_reasons(name, reasons)
    return with_stated_limits(table, name, np.where(found, limits, np.nan))


def _with_depth(table: Table, name: str, depth: float) -> Table:
    words = table.reasons(name)
    beyond = [str(Reason.UNDETECTED), str(Reason.UNMATCHED)]
    return with_stated_limits(
        table, name, np.where(_mask(pc.is_in(words, pa.array(beyond))), depth, np.nan)
    )


def with_stated_limits(table: Table, name: str, limits: NDArray[np.float64]) -> Table:
    """Write limits where none is stated yet."""
    beside = limit_column(table, name)
    before = table.numbers(beside)[:, 0] if beside in table.names else np.full(len(table), np.nan)
    column = pa.array(np.where(np.isnan(before), limits, before), from_pandas=True)
    info = ColumnInfo(table.info(name).unit, None, f"Limit of {name}", Role.LIMIT, name)
    return table.with_column(beside, column, info)
