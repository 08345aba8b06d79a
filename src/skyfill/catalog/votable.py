"""VOTable: the first table of the file.

astropy reads the files of others as a whole (slowly: some 15 s per million rows); a file that
skyfill wrote is read in pieces.
"""

import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.arrays import to_arrow
from skyfill.catalog.column_info import ColumnInfo, described
from skyfill.catalog.file_io import open_bytes
from skyfill.catalog.format_contract import Scan, chosen, sliced
from skyfill.catalog.table import META_PREFIX, with_facts
from skyfill.catalog.votable_binary import column_of, read_rows, row_type, split_head
from skyfill.catalog.votable_write import COLUMNS_KEY, writer
from skyfill.errors import CatalogError

__all__ = ["KIND", "scan", "writer"]

KIND = "VOTable"


def scan(path: Path, columns: Sequence[str] | None, batch_rows: int) -> Scan:
    """Open the first table: TABLEDATA, BINARY, BINARY2 or FITS inside."""
    head = split_head(path, COLUMNS_KEY.encode())
    if head is not None:
        return _own_scan(path, _first_table(io.BytesIO(head)), columns, batch_rows)
    with open_bytes(path) as stream:
        element = _first_table(stream)
    names = [str(field.name) for field in element.fields]
    kept = [names.index(name) for name in chosen(names, columns)]
    arrays = [_column(element, k) for k in kept]
    schema = _schema(element, kept, arrays)
    return Scan(schema, sliced(pa.RecordBatch.from_arrays(arrays, schema=schema), batch_rows))


def _first_table(stream: Any) -> Any:
    from astropy.io import votable

    file = votable.parse(stream, verify="ignore")
    element = next(file.iter_tables(), None)
    if element is None or not element.fields:
        raise CatalogError("the VOTable holds no table with columns")
    return element


def _own_scan(path: Path, element: Any, columns: Sequence[str] | None, batch_rows: int) -> Scan:
    rows = row_type(element.fields)
    names = list(_own_facts(element))
    kept = [names.index(name) for name in chosen(names, columns)]
    schema = _schema(element, kept, _own_columns(np.zeros(0, rows), element, kept))

    def batches() -> Iterator[pa.RecordBatch]:
        for piece in read_rows(path, rows, batch_rows):
            yield pa.RecordBatch.from_arrays(_own_columns(piece, element, kept), schema=schema)

    return Scan(schema, batches())


def _own_facts(element: Any) -> dict[str, dict[str, str]]:
    """Give what skyfill knew of the columns when it wrote the file, by name."""
    infos = {info.name: info.value for info in element.infos}
    return {facts["name"]: facts for facts in json.loads(infos.get(COLUMNS_KEY, "[]"))}


def _own_columns(rows: np.ndarray, element: Any, kept: list[int]) -> list[pa.Array]:
    facts = list(_own_facts(element).values())
    arrays = [column_of(rows, k, element.fields[k]) for k in kept]
    return [
        array.cast(pa.type_for_alias(facts[k]["type"])) if "type" in facts[k] else array
        for k, array in zip(kept, arrays, strict=True)
    ]


def _schema(element: Any, kept: list[int], arrays: list[pa.Array]) -> pa.Schema:
    facts = _own_facts(element)
    is_own = len(facts) == len(element.fields)
    names = list(facts) if is_own else [str(field.name) for field in element.fields]
    fields = [
        described(pa.field(names[k], array.type), _info(element.fields[k], facts.get(names[k], {})))
        for k, array in zip(kept, arrays, strict=True)
    ]
    infos = {str(info.name): str(info.value) for info in element.infos if info.name != COLUMNS_KEY}
    ours = {key: value for key, value in infos.items() if key.startswith(META_PREFIX)}
    meta = {key.removeprefix(META_PREFIX): value for key, value in ours.items()}
    return pa.schema(fields, metadata=with_facts(pa.schema([]), meta))


def _info(field: Any, own: dict[str, str]) -> ColumnInfo:
    found = {
        key: str(own.get(key) or getattr(field, key, None) or "")
        for key in ColumnInfo.__dataclass_fields__
    }
    return ColumnInfo.from_metadata({k.encode(): v.encode() for k, v in found.items() if v})


def _column(element: Any, k: int) -> pa.Array:
    field = element.fields[k]
    values = element.array[field.ID]
    is_text = field.datatype in ("char", "unicodeChar")
    if values.dtype == object and not is_text:
        return _lists(values)
    array = _text(values) if is_text else to_arrow(_real(values))
    # Others have no common way to tell an empty string from a null; most mean a null.
    return pc.if_else(pc.equal(array, ""), None, array) if pa.types.is_string(array.type) else array


def _text(values: Any) -> pa.Array:
    """Text comes as words or as objects, of which some may be bytes or masked."""
    if values.ndim > 1:
        return to_arrow(values)
    cells = zip(values.data.tolist(), np.ma.getmaskarray(values), strict=True)
    return pa.array([None if lost else _word(cell) for cell, lost in cells], pa.string())


def _word(cell: Any) -> str:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)


def _real(values: Any) -> Any:
    is_complex = values.dtype.kind == "c"
    return np.ma.stack([values.real, values.imag], axis=-1) if is_complex else values


def _lists(values: Any) -> pa.Array:
    return pa.array([to_arrow(np.ma.asarray(cell).reshape(-1)).to_pylist() for cell in values])
