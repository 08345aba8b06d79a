"""What a table said before a model filled it: filled values are no measurements."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import Reason, Role, Table, filled_names


def before_filling(table: Table, names: Iterable[str] | None = None) -> Table:
    """Put gaps back, with the reasons that they had, where a model has filled them.

    What the model wrote beside filled values is dropped, and so are features that the table did
    not have. It makes no difference how often this is done. Columns of a table that was not read
    from a file are known by their names after `filled_names.known_by_name`.

    Parameters
    ----------
    table : Table
    names : iterable of str, optional
        The columns to look at; by default all.

    Examples
    --------
    >>> columns = {"J": [14.2, 15.1], "J_gap": [None, "filled"], "J_was": [None, "undetected"]}
    >>> table = before_filling(filled_names.known_by_name(Table.from_columns(columns)))
    >>> table.column("J").to_pylist(), table.reasons("J").to_pylist()
    ([14.2, None], [None, 'undetected'])
    """
    asked = set(table.names if names is None else names) & set(table.names)
    gaps, absent = _gap_columns(table, asked), []
    beside = [name for name in table.names if table.info(name).of in asked]
    parts = [name for name in beside if filled_names.is_filled_part(table, name)]
    for name, gap in gaps.items():
        if table.info(gap) == filled_names.gap_info(name, is_absent=True):
            absent.append(name)
        table = _with_gaps(table, name, gap)
    return table.drop([*parts, *absent]) if parts or absent else table


def reason_columns(table: Table, names: Sequence[str]) -> list[str]:
    """Name the columns that say why cells are missing, or were before they were filled.

    Examples
    --------
    >>> columns = {"J": [14.2], "J_gap": ["filled"], "J_was": ["undetected"], "n": [3]}
    >>> reason_columns(filled_names.known_by_name(Table.from_columns(columns)), ["J"])
    ['J_gap', 'J_was']
    """
    gaps = _gap_columns(table, set(names))
    kept = (_kept_column(table, name) for name in gaps)
    return [*gaps.values(), *(name for name in kept if name is not None)]


def _gap_columns(table: Table, names: set[str]) -> dict[str, str]:
    """Find the columns of reasons, the first one of each column."""
    found: dict[str, str] = {}
    for column in table.names_with(Role.REASON):
        if (of := table.info(column).of) in names:
            found.setdefault(str(of), column)
    return found


def _kept_column(table: Table, name: str) -> str | None:
    """Find the column that keeps the reasons of a filled column; its name has any prefix."""
    info = filled_names.before_info(name)
    own = (n for n in table.names if table.info(n) == info)
    return next((n for n in own if pa.types.is_string(table.column(n).type)), None)


def _with_gaps(table: Table, name: str, gap: str) -> Table:
    words = table.column(gap).combine_chunks()
    filled = pc.fill_null(pc.equal(words, str(Reason.FILLED)), False)
    if not pc.any(filled).as_py():
        return table
    kept, nothing = _kept_column(table, name), pa.scalar(None, pa.string())
    before = table.column(kept).combine_chunks() if kept else pa.nulls(len(table), pa.string())
    before = pc.if_else(pc.equal(before, str(Reason.FILLED)), nothing, before)
    column = table.column(name).combine_chunks()
    measured = pc.if_else(filled, pa.scalar(None, column.type), column)
    table = table.with_column(name, measured, table.info(name))
    return table.with_column(gap, pc.if_else(filled, before, words), table.info(gap))
