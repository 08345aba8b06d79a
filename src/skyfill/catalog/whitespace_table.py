"""Text tables whose cells are separated by blanks, also IPAC and CDS tables, read by astropy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.arrays import is_number, to_arrow
from skyfill.catalog.column_info import ColumnInfo, described
from skyfill.catalog.csv_table import NULL_WORDS, allowed_kinds, infer_types
from skyfill.catalog.file_io import open_bytes, read_whole
from skyfill.catalog.format_contract import Scan, chosen, sliced
from skyfill.catalog.schema import Schema
from skyfill.catalog.usual_values import is_numeric
from skyfill.errors import CatalogError
from skyfill.limits import check_limit

KIND = "text table"
# Characters from which the number of columns is known.
_START = 1 << 22


def scan(
    path: Path,
    columns: Sequence[str] | None,
    batch_rows: int,
    rules: Schema | None = None,
) -> Scan:
    """Read a whole text table; return it in batches. Identifiers stay text as in a CSV file."""
    from astropy.io import ascii as tables

    with open_bytes(path) as stream:
        text = read_whole(stream).decode("utf-8-sig", "replace")
    if "\0" in text:
        raise CatalogError("not a text file; is its extension right?")
    n_columns = max((len(line.split()) for line in text[:_START].splitlines()[:2]), default=0)
    check_limit("columns", n_columns, f"the table has {n_columns} columns", CatalogError)
    longest = max(map(len, text[:_START].split()), default=0)
    check_limit("word-bytes", longest, f"a word has {longest} letters", CatalogError)
    told = (rules or Schema()).layout
    given = list(told.names)
    layout = "no_header" if given or told.no_header else _layout(text)
    lines = (text if layout in ("cds", "ipac") else text.replace("\t", " ")).splitlines()
    if layout == "commented_header":
        lines = _one_comment(lines)
    how: dict[str, Any] = {"format": layout, "guess": False}
    if given:
        _check_names(lines, given)
        how["names"] = given
    found = tables.read(lines, **how)
    names = chosen(found.colnames, columns)
    typed = layout in ("cds", "ipac")
    kinds = {} if typed else {name: allowed_kinds(name, rules or Schema()) for name in names}
    exact = [name for name, kind in kinds.items() if "float" not in kind]
    if exact:
        as_text = {name: [tables.convert_numpy(str)] for name in exact}
        found = tables.read(lines, converters=as_text, **how)
    arrays = [_column(found[name]) for name in names]
    arrays = [
        _narrowed(array, kinds[name]) if name in kinds and pa.types.is_string(array.type) else array
        for name, array in zip(names, arrays, strict=True)
    ]
    fields = [
        described(pa.field(name, array.type), _info(found[name]))
        for name, array in zip(names, arrays, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
    return Scan(batch.schema, sliced(batch, batch_rows))


def _layout(text: str) -> str:
    lines = [line for line in text[: 1 << 16].splitlines() if line.strip()]
    if any("Byte-by-byte Description" in line for line in lines):
        return "cds"
    if lines and lines[0].lstrip()[:1] in ("|", "\\"):
        return "ipac"
    return _plain_layout(lines)


def _plain_layout(lines: list[str]) -> str:
    """Find column names in the first row, in the comment above it, or nowhere."""
    comments = [line for line in lines if line.startswith("#")]
    rows = [line.split() for line in lines if not line.startswith("#")]
    above = comments[-1].lstrip("# ").split() if comments else []
    if rows and len(above) == len(rows[0]) and any(map(is_number, rows[0])):
        return "commented_header"
    has_names = not rows or not all(map(is_number, rows[0]))
    return "basic" if has_names else "no_header"


def _one_comment(lines: list[str]) -> list[str]:
    """Leave out all comments but the last one above the rows, which names the columns."""
    first = next(i for i, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    last = max(i for i in range(first) if lines[i].startswith("#"))
    return [lines[last], *(line for line in lines[first:] if not line.startswith("#"))]


def _check_names(lines: list[str], names: list[str]) -> None:
    rows = (line.split() for line in lines if line.strip() and not line.startswith("#"))
    first = next(rows, names)
    if len(first) != len(names):
        raise CatalogError(
            f"the first row has {len(first)} cells, {len(names)} names are given; give one for "
            "each, or the separator (--delimiter)"
        )


def _column(column: Any) -> pa.Array:
    return to_arrow(column.data if hasattr(column, "mask") else np.asarray(column))


def _narrowed(cells: pa.Array, kinds: set[str]) -> pa.Array:
    """Turn text into the numbers that it stands for, where some cells are words for no value."""
    (kind,) = infer_types([pa.RecordBatch.from_arrays([cells], ["cells"])], [kinds])
    if not is_numeric(kind):
        return cells
    is_null = pc.is_in(cells, value_set=pa.array(NULL_WORDS))
    return pc.if_else(is_null, pa.scalar(None, cells.type), cells).cast(kind)


def _info(column: Any) -> ColumnInfo:
    unit = None if column.unit is None else str(column.unit)
    return ColumnInfo(unit=unit or None, description=column.description or None)
