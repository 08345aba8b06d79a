"""Text tables whose cells are separated by blanks, also IPAC and CDS tables, read by astropy."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skyfill.catalog.arrays import is_number, to_arrow
from skyfill.catalog.column_info import ColumnInfo, described
from skyfill.catalog.file_io import open_bytes
from skyfill.catalog.format_contract import Scan, chosen, sliced
from skyfill.errors import CatalogError

KIND = "text table"


def scan(path: Path, columns: Sequence[str] | None, batch_rows: int) -> Scan:
    """Read a whole text table; return it in batches."""
    from astropy.io import ascii as tables

    with open_bytes(path) as stream:
        text = stream.read().decode("utf-8-sig", "replace")
    if "\0" in text:
        raise CatalogError("not a text file; is its extension right?")
    layout = _layout(text)
    lines = (text if layout in ("cds", "ipac") else text.replace("\t", " ")).splitlines()
    found = tables.read(lines, format=layout, guess=False)
    names = chosen(found.colnames, columns)
    arrays = [_column(found[name]) for name in names]
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
    if comments and rows and len(comments[-1].lstrip("# ").split()) == len(rows[0]):
        return "commented_header" if len(comments) == 1 else "basic"
    has_names = not rows or not all(map(is_number, rows[0]))
    return "basic" if has_names else "no_header"


def _column(column: Any) -> pa.Array:
    return to_arrow(column.data if hasattr(column, "mask") else np.asarray(column))


def _info(column: Any) -> ColumnInfo:
    unit = None if column.unit is None else str(column.unit)
    return ColumnInfo(unit=unit or None, description=column.description or None)
