"""Names and descriptions of what a model writes beside the values that it fills.

A file that keeps names alone, such as plain CSV, is read as if it had kept the descriptions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pyarrow as pa

from skyfill.catalog.column_info import ColumnInfo, Reason, Role, described, gap_name
from skyfill.catalog.table import Table

BEFORE, _SD = "_was", "sd"
# Beside a value seen with an error: what it would be without it, and how well that is known.
DENOISED = ("denoised", "denoised_sd")
# Ends of the descriptions of what is written beside filled and denoised values.
_FILLED, _NOISELESS = "where it was filled", "without its error"
_PART = re.compile(r"sd|q\d+(?:\.\d+)?(?:e-\d+)?|draw\d+")


def before_name(name: str) -> str:
    """Name the column that keeps the reasons of the gaps of a filled column.

    Examples
    --------
    >>> before_name("J")
    'J_was'
    """
    return name + BEFORE


def filled_parts(quantiles: Iterable[float], n_draws: int) -> list[str]:
    """Name the columns written for a filled value; see `filled_name`.

    Examples
    --------
    >>> filled_parts([0.16, 0.5], 2)
    ['sd', 'q16', 'q50', 'draw1', 'draw2']
    """
    levels = [f"q{100 * q:g}" for q in quantiles]
    return [_SD, *levels, *(f"draw{t}" for t in range(1, n_draws + 1))]


def filled_name(name: str, part: str = _SD) -> str:
    """Name a column that belongs to a filled one, such as ``J_sd``."""
    return f"{name}_{part}"


def filled_info(info: ColumnInfo, name: str, part: str) -> ColumnInfo:
    """Describe a column that belongs to a filled one, whose own description is `info`."""
    what = "Standard deviation" if part == _SD else part
    # All of them express its spread: none may be taken for a feature of its own.
    return ColumnInfo(info.unit, None, f"{what} of {name} {_FILLED}", Role.ERROR, name)


def denoised_info(info: ColumnInfo, name: str, part: str) -> ColumnInfo:
    """Describe a column of `DENOISED` beside a column whose own description is `info`."""
    start = "Standard deviation of" if part == DENOISED[1] else "Mean of"
    return ColumnInfo(info.unit, None, f"{start} {name} {_NOISELESS}", Role.ERROR, name)


def is_filled_part(table: Table, column: str) -> bool:
    """Whether a model wrote a column beside a filled or denoised one; see `filled_parts`.

    Examples
    --------
    >>> mag, error = ColumnInfo("mag"), ColumnInfo("mag", role=Role.ERROR, of="J")
    >>> info = {"J": mag, "J_sd": filled_info(mag, "J", "sd"), "e_J": error}
    >>> table = Table.from_columns({name: [1.0] for name in info}, info=info)
    >>> [is_filled_part(table, name) for name in table.names]
    [False, True, False]
    """
    info = table.info(column)
    ends = tuple(f" of {info.of} {end}" for end in (_FILLED, _NOISELESS))
    return info.role is Role.ERROR and (info.description or "").endswith(ends)


def before_info(name: str) -> ColumnInfo:
    """Describe the column that keeps the reasons why cells of a filled column were missing."""
    return ColumnInfo(description=f"Why {name} was missing before it was filled")


def gap_info(name: str, *, is_absent: bool = False) -> ColumnInfo:
    """Describe the column that marks which cells of a column were filled.

    `is_absent` says that the table did not have the column, of which all cells are filled.
    """
    about = f"The table had no {name}: all values are filled" if is_absent else None
    return ColumnInfo(description=about, role=Role.REASON, of=name)


def described_by_name(
    schema: pa.Schema, read: Callable[[list[str]], Iterable[pa.RecordBatch]]
) -> pa.Schema:
    """Describe reasons, and what a model wrote beside filled values, by names and words alone.

    A column without a description, ``V_gap`` beside ``V``, that holds nothing but the words of
    `Reason` is the column of reasons of ``V``. If one of them is ``filled``, or nothing was to be
    filled, then ``V_sd``, ``V_q16``, ``V_draw1``, ``V_denoised`` and ``V_was`` are a model's.

    Parameters
    ----------
    schema : pyarrow.Schema
    read : callable
        Takes names of columns and gives their batches.

    Examples
    --------
    >>> columns = {"J": [14.2], "J_sd": [0.1], "J_gap": ["filled"], "K": [1.0], "K_sd": [0.1]}
    >>> table = Table.from_columns(columns).arrow
    >>> schema = described_by_name(table.schema, lambda names: table.select(names).to_batches())
    >>> [name for name in schema.names if is_filled_part(Table(schema.empty_table()), name)]
    ['J_sd']
    """
    infos = {field.name: ColumnInfo.from_metadata(field.metadata) for field in schema}
    unknown = {name for name, info in infos.items() if info == ColumnInfo()}
    owners = [name for name in infos if gap_name(name) in unknown]
    asked = {name: None for of in owners for name in (gap_name(of), before_name(of))}
    words: dict[str, set[str | None]] = {name: set() for name in asked if name in unknown}
    for batch in read(list(words)) if owners else ():
        for name, cells in zip(words, batch.columns, strict=True):
            words[name] |= _words(cells)
    new: dict[str, ColumnInfo] = {}
    for of in owners:
        found = words[gap_name(of)] - {None}
        # Where nothing was filled, two columns without a value tell.
        is_empty = not found and words.get(before_name(of), {""}) <= {None}
        if "" in found:
            continue
        new[gap_name(of)] = gap_info(of)
        if Reason.FILLED not in found and not is_empty:
            continue
        if "" not in words.get(before_name(of), {""}):
            new[before_name(of)] = before_info(of)
        if before_name(of) not in infos and words[gap_name(of)] == {Reason.FILLED}:
            new[gap_name(of)] = gap_info(of, is_absent=True)
        for name in unknown & {n for n in infos if n.startswith(f"{of}_")}:
            part = name.removeprefix(f"{of}_")
            if part in DENOISED:
                new[name] = denoised_info(infos[of], of, part)
            elif _PART.fullmatch(part):
                new[name] = filled_info(infos[of], of, part)
    if not new:
        return schema
    fields = [described(field, new.get(field.name, infos[field.name])) for field in schema]
    # A column without a value has no type in plain text.
    texts = {name for name, info in new.items() if info.role is not Role.ERROR}
    fields = [field.with_type(pa.string()) if field.name in texts else field for field in fields]
    return pa.schema(fields, metadata=schema.metadata)


def known_by_name(table: Table) -> Table:
    """Describe the columns of a whole table as `described_by_name` does those of a file.

    Examples
    --------
    >>> table = known_by_name(Table.from_columns({"J": [14.2], "J_gap": ["filled"]}))
    >>> table.info("J_gap").of
    'J'
    """
    arrow = table.arrow
    return Table(
        arrow.cast(described_by_name(arrow.schema, lambda n: arrow.select(n).to_batches()))
    )


def _words(cells: pa.Array) -> set[str | None]:
    """Return the words of `Reason` among cells, None for gaps, and "" for all else."""
    if pa.types.is_string(cells.type):
        known = {None, *Reason}
        return {word if word in known else "" for word in cells.unique().to_pylist()}
    return {None if is_null else "" for is_null in cells.is_null().unique().to_pylist()}
