"""CSV and ECSV: rows of cells below a line of names; ECSV also describes the columns.

A plain CSV file is what any other program reads; what it cannot say (units, descriptions, roles)
is lost. The types of its columns are found in a first pass.
"""

import csv
import io
import os
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from skyfill.catalog.column_info import Role
from skyfill.catalog.ecsv_header import TextHeader, header_lines, names_line, read_header
from skyfill.catalog.file_io import (
    NOT_UTF8,
    check_growth,
    is_gzipped,
    open_bytes,
    open_native,
    read_line,
)
from skyfill.catalog.format_contract import BatchWriter, Scan, chosen, sliced
from skyfill.catalog.roles import is_identifier_name
from skyfill.catalog.schema import Schema
from skyfill.errors import CatalogError

KIND = "CSV table"
_BLOCK_BYTES = 1 << 23
# Spellings of a missing number; in a text column they remain text. INDEF is IRAF's.
NULL_WORDS = ("", "nan", "NaN", "NAN", "NA", "N/A", "n/a", "null", "NULL", "None", "--", "-nan",
              "INDEF")  # fmt: skip
_BOOLEAN_WORDS = ("True", "False", "true", "false", "TRUE", "FALSE")
# Rows that are turned into text at once.
_ROWS = 1 << 14
# Text that needs no quotes; words that are read as something else.
_BARE = r"^[A-Za-z]([\w .+:/*()-]*[\w.+:/*()-])?$"
_OTHER_WORDS = r"^(nan|na|n/a|null|none|indef|inf|infinity|true|false)$"


def scan(
    path: Path,
    columns: Sequence[str] | None,
    batch_rows: int,
    rules: Schema | None = None,
) -> Scan:
    """Open a CSV or ECSV file; `rules` say which columns of a plain file are text."""
    with open_bytes(path) as stream:
        header = read_header(stream, *(rules or Schema()).layout)
    fields = header.fields
    if not fields:
        fields, decimal_point, null_words = _inferred(path, header, rules or Schema())
        header = replace(header, decimal_point=decimal_point, null_words=null_words)
    kept = [fields[header.names.index(name)] for name in chosen(header.names, columns)]
    schema = pa.schema(kept, metadata=header.schema_metadata)
    return Scan(schema, _batches(path, header, schema, batch_rows), header.notes)


@contextmanager
def writer(stream: IO[bytes], schema: pa.Schema, path: Path) -> Iterator[BatchWriter]:
    """Write ECSV, or plain CSV by the name of the file: a null is an empty cell."""
    for column in schema:
        _check_storable(column)
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    between, is_described = "\t" if kind == ".tsv" else ",", kind == ".ecsv"
    stream.write(header_lines(schema) if is_described else names_line(schema.names, between))
    options = pv.WriteOptions(include_header=False, quoting_style="needed")

    def write(batch: pa.RecordBatch) -> None:
        if is_described:
            cells = [_as_cells(column) for column in batch.columns]
            rows = pa.RecordBatch.from_arrays(cells, names=batch.schema.names)
            pv.write_csv(rows, stream, options)
            return
        for start in range(0, len(batch), _ROWS):
            columns = [_as_plain(column) for column in batch.slice(start, _ROWS).columns]
            stream.write(_lines(columns, between))

    yield BatchWriter(write)


def _as_cells(column: pa.Array) -> pa.Array:
    if pa.types.is_boolean(column.type):
        return pc.if_else(column, "True", "False")  # the spelling of ECSV
    return column.cast(pa.string()) if pa.types.is_temporal(column.type) else column


def _as_plain(column: pa.Array) -> pa.Array:
    """Write cells as other programs read them, each to the same value.

    The shortest text of a float64, with a point, lest it be read as a whole number; the digits of
    a float32 are those of the float64 that it is. Text that could be anything else is quoted.
    """
    kind = column.type
    if pa.types.is_floating(kind):
        cells = column.cast(pa.float64()).cast(pa.large_string())
        return pc.replace_substring_regex(cells, r"^(-?\d+)$", r"\1.0")
    cells = _as_cells(column).cast(pa.large_string())
    if not pa.types.is_string(kind):
        return cells
    words = pc.match_substring_regex(cells, _OTHER_WORDS, ignore_case=True)
    is_bare = pc.and_not(pc.match_substring_regex(cells, _BARE), words)
    doubled = pc.replace_substring(cells, '"', '""')
    quote, nothing = (pa.scalar(text, pa.large_string()) for text in ('"', ""))
    return pc.if_else(is_bare, cells, pc.binary_join_element_wise(quote, doubled, quote, nothing))


def _lines(columns: Sequence[pa.Array], between: str) -> pa.Buffer:
    """Join the cells of rows; a line of one empty cell is quoted, as an empty line is no row."""
    separator, end, nothing = (pa.scalar(text, pa.large_string()) for text in (between, "\n", ""))
    empty = "" if len(columns) > 1 else '""'
    rows = pc.binary_join_element_wise(
        *columns, separator, null_handling="replace", null_replacement=empty
    )
    return pc.binary_join_element_wise(rows, end, nothing).buffers()[2]


def _check_storable(column: pa.Field) -> None:
    if "\n" in column.name or "\r" in column.name:
        raise CatalogError(f"column {column.name!r}: the name has a line break; rename it")
    if pa.types.is_nested(column.type) or pa.types.is_binary(column.type):
        raise CatalogError(
            f"column {column.name!r} of type {column.type} does not fit a CSV cell; "
            f"drop it or write Parquet"
        )


def _inferred(
    path: Path, header: TextHeader, rules: Schema
) -> tuple[tuple[pa.Field, ...], str, tuple[str, ...]]:
    """Find the types of the columns, decimal points or commas, and how gaps are written."""
    words = [pa.field(name, pa.string()) for name in header.names]
    kinds = [allowed_kinds(name, rules) for name in header.names]
    convert, found = pv.ConvertOptions(column_types=words), {}
    spellings = set(NULL_WORDS)
    for point in "." if header.delimiter == "," else ".,":
        with closing(_rows(path, header, convert)) as rows:
            batches = map(_with_points, rows) if point == "," else rows
            found[point] = infer_types(batches, kinds, spellings)
        if pa.string() not in found["."]:
            break
    point = max(found, key=lambda point: found[point].count(pa.float64()))
    pairs = zip(header.names, found[point], strict=True)
    return tuple(pa.field(name, kind) for name, kind in pairs), point, tuple(sorted(spellings))


def _with_points(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Turn decimal commas into points; what has a point already is no number any more."""
    columns = [
        pc.replace_substring(pc.replace_substring(cells, ".", ".."), ",", ".")
        for cells in rows.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _batches(
    path: Path, header: TextHeader, schema: pa.Schema, batch_rows: int
) -> Generator[pa.RecordBatch]:
    with closing(_rows(path, header, _conversion(header, schema))) as rows:
        for batch in rows:
            columns = [_gaps_of_text(column, header) for column in batch.columns]
            yield from sliced(pa.RecordBatch.from_arrays(columns, schema=schema), batch_rows)


def _conversion(header: TextHeader, schema: pa.Schema) -> pv.ConvertOptions:
    return pv.ConvertOptions(
        column_types=schema,
        decimal_point=header.decimal_point,
        include_columns=schema.names,
        null_values=[""] if header.is_exact else list(header.null_words or NULL_WORDS),
        strings_can_be_null=header.is_exact,
        quoted_strings_can_be_null=not header.is_exact,
        true_values=["True", "true", "TRUE", "1"],
        false_values=["False", "false", "FALSE", "0"],
    )


def _gaps_of_text(column: pa.Array, header: TextHeader) -> pa.Array:
    """Turn empty text cells of other programs' files, quoted or not, into nulls."""
    if header.is_exact or not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _rows(path: Path, header: TextHeader, convert: pv.ConvertOptions) -> Generator[pa.RecordBatch]:
    read = pv.ReadOptions(
        column_names=list(header.names), skip_rows=header.n_lines, block_size=_BLOCK_BYTES
    )
    parse = pv.ParseOptions(
        delimiter=header.delimiter,
        newlines_in_values=True,
        # In a table of one column an empty line is a gap.
        ignore_empty_lines=len(header.names) > 1,
    )
    packed_bytes = os.path.getsize(path) if is_gzipped(path) else None
    try:
        # Without a name the reader is gone, and the file closed, as soon as the loop is left.
        for k, batch in enumerate(pv.open_csv(open_native(path), read, parse, convert)):
            if packed_bytes:
                check_growth(packed_bytes, k * _BLOCK_BYTES)  # each block makes one batch
            yield batch
    except pa.ArrowInvalid as error:
        if "Empty CSV file" not in str(error):
            raise _explained(path, header, error) from None


def _explained(path: Path, header: TextHeader, error: Exception) -> CatalogError:
    """Find the line of the error; Arrow knows only the block."""
    message = str(error)
    cell = re.search(r"column #(\d+).*conversion error to (\S+): invalid value '(.*)'", message)
    with open_bytes(path) as stream:
        if cell:
            return _wrong_cell(stream, header, int(cell[1]), (cell[2], cell[3]))
        if "Expected" in message:
            return _ragged_row(stream, header)
    if "UTF8" in message:
        return CatalogError(NOT_UTF8)
    return CatalogError(f"not a readable {KIND}: {message.splitlines()[0]}")


def _ragged_row(stream: IO[bytes], header: TextHeader) -> CatalogError:
    """Name the first line with more or fewer cells than there are columns."""
    expected = len(header.names)
    for line, cells in _numbered_rows(stream, header):
        if len(cells) != expected:
            return CatalogError(
                f"line {line} has {len(cells)} cells where the header names {expected} columns; "
                f"correct the line"
            )
    return CatalogError("a row has more or fewer cells than the header names columns")


def _wrong_cell(
    stream: IO[bytes], header: TextHeader, index: int, found: tuple[str, str]
) -> CatalogError:
    """Name the line and column of the first cell that is not of the type of its column."""
    kind, value = found
    rows = _numbered_rows(stream, header)
    line = next((n for n, row in rows if index < len(row) and row[index] == value), None)
    place = f"line {line}, " if line else ""
    return CatalogError(
        f"{place}column {header.names[index]!r}: {value!r} does not read as {kind}; correct it, "
        f"or give the column the type string in the header"
    )


def _numbered_rows(stream: IO[bytes], header: TextHeader) -> Iterator[tuple[int, list[str]]]:
    text = io.TextIOWrapper(stream, "utf-8", "replace", newline="")
    lines = iter(lambda: read_line(text), "")
    # csv counts a quoted line break as a line, as an editor does.
    plain = (re.sub("\r\n?", "\n", line).replace("\0", "") for line in lines)
    rows = csv.reader(plain, delimiter=header.delimiter)
    for row in rows:
        if rows.line_num > header.n_lines and row:
            yield rows.line_num, row


def allowed_kinds(name: str, rules: Schema) -> set[str]:
    """Name the kinds of cells that a column may have, by its name and what the user says of it.

    A column that is named or declared as an identifier holds text, or whole numbers that are
    written exactly as they stand in the file: 82.1 and 82.10 are two stars.

    Examples
    --------
    >>> sorted(allowed_kinds("star_id", Schema()))
    ['exact', 'exact unsigned', 'text']
    """
    facts = rules.facts(name)
    is_identifier = facts.get("role") is Role.IDENTIFIER or is_identifier_name(name)
    if facts.get("text", False):
        return {"text"}
    return _EXACT if is_identifier and facts.get("text", True) else set(_FITS) - _EXACT | {"text"}


def infer_types(
    batches: Iterable[pa.RecordBatch], kinds: Sequence[set[str]], spellings: set[str] | None = None
) -> list[pa.DataType]:
    """Find the narrowest type that holds every cell, for each column of text.

    Integers with a leading zero or beyond 64 bits are identifiers, and remain text; so do numbers
    too large for a float64. A column without any value is float64, unless it may only be text.
    Dates remain text.

    Parameters
    ----------
    kinds : sequence of set of str
        See `allowed_kinds`.
    spellings : set of str, optional
        Takes up the words for no value as they are written, with the blanks around them.

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"n": ["1", "nan"], "x": ["1", ".5"], "k": ["01", "2"]})
    >>> infer_types([batch], [allowed_kinds(name, Schema()) for name in "nxk"])
    [DataType(int64), DataType(double), DataType(string)]
    """
    fitting = [set(allowed) for allowed in kinds]
    empty = [allowed != {"text"} for allowed in kinds]
    for batch in batches:
        for k, cells in enumerate(batch.columns):
            if fitting[k] == {"text"} and not empty[k]:
                continue
            words = pc.utf8_trim_whitespace(cells)
            is_null = pc.is_in(words, value_set=pa.array(NULL_WORDS))
            if spellings is not None:
                spellings.update(pc.unique(cells.filter(is_null)).to_pylist())
            seen = words.filter(pc.invert(is_null))
            empty[k] = empty[k] and len(seen) == 0
            fitting[k] = {name for name in fitting[k] if _FITS[name](seen)}
    narrowest = [next(kind for name, kind in _TYPES.items() if name in fits) for fits in fitting]
    return [pa.float64() if empty[k] else narrowest[k] for k in range(len(kinds))]


def _castable(cells: pa.Array, *, kind: pa.DataType) -> bool:
    try:
        cells.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _is_integer(cells: pa.Array, *, kind: pa.DataType) -> bool:
    return not _some(pc.match_substring_regex(cells, "^[+-]?0[0-9]")) and _castable(
        cells, kind=kind
    )


def _is_exact(cells: pa.Array, *, kind: pa.DataType) -> bool:
    """Whether the numbers of the cells are written as the cells are."""
    return not _some(pc.invert(pc.match_substring_regex(cells, "^(0|-?[1-9][0-9]*)$"))) and (
        _castable(cells, kind=kind)
    )


def _is_float(cells: pa.Array) -> bool:
    """Whether the cells are numbers, none of which is too large: 7E400 is no infinity."""
    if not _castable(cells, kind=pa.float64()):
        return False
    digits = pc.match_substring_regex(cells, "[0-9]")
    return not _some(pc.and_(digits, pc.is_inf(cells.cast(pa.float64()))))


def _some(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())


# From narrow to wide. A code is all digits, some of which would be lost in a number.
_TYPES = {
    "exact": pa.int64(),
    "exact unsigned": pa.uint64(),
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "unsigned": pa.uint64(),
    "code": pa.string(),
    "float": pa.float64(),
    "text": pa.string(),
}
_FITS: dict[str, Callable[[pa.Array], bool]] = {
    "exact": partial(_is_exact, kind=pa.int64()),
    "exact unsigned": partial(_is_exact, kind=pa.uint64()),
    "boolean": lambda cells: (
        not _some(pc.invert(pc.is_in(cells, value_set=pa.array(_BOOLEAN_WORDS))))
    ),
    "integer": partial(_is_integer, kind=pa.int64()),
    "unsigned": partial(_is_integer, kind=pa.uint64()),
    "code": lambda cells: not _some(pc.invert(pc.match_substring_regex(cells, "^[+-]?[0-9]+$"))),
    "float": _is_float,
    "text": lambda cells: True,
}
_EXACT = {"exact", "exact unsigned", "text"}
