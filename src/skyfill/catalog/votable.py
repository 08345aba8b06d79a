"""Read VOTable: the first table of the file.

Files that skyfill wrote are read batch by batch. All others go through astropy, which reads the
whole file at once and takes about 15 s per million rows.
"""

import io
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.arrays import to_arrow
from skyfill.catalog.column_info import ColumnInfo, described
from skyfill.catalog.file_io import open_bytes, read_whole
from skyfill.catalog.format_contract import Scan, chosen, sliced
from skyfill.catalog.table import META_PREFIX, with_facts
from skyfill.catalog.votable_binary2 import (
    COLUMNS_KEY,
    END_TAGS,
    decode_column,
    find_head,
    read_rows,
    row_layout,
    writer,
)
from skyfill.errors import CatalogError
from skyfill.limits import check_limit

__all__ = ["KIND", "scan", "writer"]

KIND = "VOTable"


def scan(path: Path, columns: Sequence[str] | None, batch_rows: int) -> Scan:
    """Open the first table: TABLEDATA, BINARY, BINARY2 or embedded FITS."""
    head = find_head(path)
    with _whole(path) if head is None else io.BytesIO(head + END_TAGS) as stream:
        table = _first_table(stream)
    facts = _column_facts(table)
    names = [fact["name"] for fact in facts]
    kept = [names.index(name) for name in chosen(names, columns)]
    if head is None:
        arrays = [_column(table, k) for k in kept]
        batch = pa.RecordBatch.from_arrays(arrays, schema=_schema(table, facts, kept, arrays))
        return Scan(batch.schema, sliced(batch, batch_rows))

    def decoded(rows: np.ndarray) -> list[pa.Array]:
        return [decode_column(rows, k, table.fields[k], facts[k].get("type")) for k in kept]

    layout = row_layout(table.fields)
    schema = _schema(table, facts, kept, decoded(np.zeros(0, layout)))
    pieces = read_rows(path, len(head), layout, batch_rows)
    batches = (pa.RecordBatch.from_arrays(decoded(piece), schema=schema) for piece in pieces)
    return Scan(schema, batches)


def _whole(path: Path) -> io.BytesIO:
    with open_bytes(path) as stream:
        return io.BytesIO(read_whole(stream))


def _first_table(stream: Any) -> Any:
    from astropy.io import votable

    _refuse_references(stream)
    file = votable.parse(stream, verify="ignore")
    table = next(file.iter_tables(), None)
    if table is None or not table.fields:
        raise CatalogError("the VOTable holds no table with columns")
    return table


def _refuse_references(stream: Any) -> None:
    """Refuse rows that are in another file or on another machine: astropy would fetch them."""
    n_columns = 0

    def check(tag: str, attributes: dict[str, str]) -> None:
        nonlocal n_columns
        n_columns += _local(tag) == "field"
        check_limit("columns", n_columns, "the table has more columns", CatalogError)
        cells = math.prod(map(int, re.findall("[0-9]+", attributes.get("arraysize", ""))))
        # astropy takes a second for every million elements, even if the cell is empty.
        check_limit(
            "row-bytes", 8 * cells, f"a cell has {cells} elements, {8 * cells} bytes", CatalogError
        )
        href = {_local(name): word for name, word in attributes.items()}.get("href")
        if _local(tag) == "stream" and href is not None:
            raise CatalogError(
                f"its rows are not in the file but at {href!r}, which is not fetched; fetch it "
                "yourself and read that file"
            )

    parser = expat.ParserCreate()
    parser.StartElementHandler = check
    parser.ParseFile(stream)
    stream.seek(0)


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _column_facts(table: Any) -> list[dict[str, str]]:
    """Return what is known of each column: from skyfill's own INFO, else from its FIELD."""
    infos = {info.name: info.value for info in table.infos}
    own = {facts["name"]: facts for facts in json.loads(infos.get(COLUMNS_KEY, "[]"))}
    names = list(own) if len(own) == len(table.fields) else [str(f.name) for f in table.fields]
    found = []
    for name, field in zip(names, table.fields, strict=True):
        stated = {key: str(getattr(field, key, None) or "") for key in ("unit", "ucd")}
        stated["description"] = str(field.description or "")
        found.append({**stated, "name": name, **own.get(name, {})})
    return found


def _schema(
    table: Any, facts: list[dict[str, str]], kept: list[int], arrays: list[pa.Array]
) -> pa.Schema:
    fields = []
    for k, array in zip(kept, arrays, strict=True):
        words = {key.encode(): word.encode() for key, word in facts[k].items() if word}
        field = pa.field(facts[k]["name"], array.type)
        fields.append(described(field, ColumnInfo.from_metadata(words)))
    infos = {str(info.name): str(info.value) for info in table.infos if info.name != COLUMNS_KEY}
    ours = {key: value for key, value in infos.items() if key.startswith(META_PREFIX)}
    meta = {key.removeprefix(META_PREFIX): value for key, value in ours.items()}
    return pa.schema(fields, metadata=with_facts(pa.schema([]), meta))


def _column(table: Any, k: int) -> pa.Array:
    """Convert a column that astropy has read."""
    field = table.fields[k]
    values = table.array[field.ID]
    is_text = field.datatype in ("char", "unicodeChar")
    if values.dtype == object and not is_text:
        lists = (to_arrow(np.ma.asarray(cell).reshape(-1)) for cell in values)
        return pa.array([cells.to_pylist() for cells in lists])
    if values.dtype.kind == "c":
        values = np.ma.stack([values.real, values.imag], axis=-1)
    array = _text(values) if is_text and values.ndim == 1 else to_arrow(values)
    # Other programs cannot distinguish an empty string from a null; most mean a null.
    return pc.if_else(pc.equal(array, ""), None, array) if pa.types.is_string(array.type) else array


def _text(values: Any) -> pa.Array:
    """Convert words or objects, some of which may be bytes or masked."""
    cells = zip(values.data.tolist(), np.ma.getmaskarray(values), strict=True)
    words = (None if lost else cell for cell, lost in cells)
    return pa.array(
        [w.decode("utf-8", "replace") if isinstance(w, bytes) else w and str(w) for w in words],
        pa.string(),
    )
