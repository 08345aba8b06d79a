"""Writing VOTable: one table in BINARY2, whose rows say which of their cells are null."""

import binascii
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.column_info import ColumnInfo
from skyfill.catalog.fixed_width_cells import NUMBERS, number_cells, text_cells
from skyfill.catalog.fixed_width_columns import (
    Extent,
    Spool,
    StoredColumn,
    encode_batch,
    open_spool,
)
from skyfill.catalog.format_contract import BatchWriter
from skyfill.catalog.table import META_PREFIX, schema_meta
from skyfill.catalog.votable_binary import DATATYPES, END_TAGS, STREAM_TAG, row_layout
from skyfill.errors import CatalogError

COLUMNS_KEY = META_PREFIX + "columns"
_LINE_BYTES = 57 << 10
_DATATYPES = dict(zip(NUMBERS, DATATYPES, strict=True))
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@contextmanager
def writer(stream: IO[bytes], schema: pa.Schema, folder: Path) -> Iterator[BatchWriter]:
    """Write one table in BINARY2."""
    with open_spool(schema, folder, "VOTable") as spool:
        yield spool
        _write(stream, spool)


def _write(stream: IO[bytes], spool: Spool) -> None:
    stored = spool.stored_columns(needs_null_value=False, text_bytes=_text_bytes)
    stream.write(_head(spool, stored).encode())
    rows = row_layout([column.cell for column in stored])
    encoded = (_rows(batch, stored, rows) for batch in spool.batches())
    for line in _base64_lines(encoded):
        stream.write(line)
    stream.write(END_TAGS)


def _rows(batch: pa.RecordBatch, stored: list[StoredColumn], rows: np.dtype) -> bytes:
    filled = encode_batch(batch, stored, rows, _encode)
    lost = [pc.is_null(column).to_numpy(zero_copy_only=False) for column in batch.columns]
    filled["flags"] = np.packbits(np.stack(lost, axis=1), axis=1)
    return filled.tobytes()


def _encode(column: StoredColumn, values: pa.Array) -> np.ndarray:
    kind = column.kind
    if pa.types.is_boolean(kind):
        return text_cells(pc.fill_null(pc.if_else(values, "T", "F"), "?"), 1)
    if not pa.types.is_string(kind):
        return number_cells(values, kind, float("nan") if pa.types.is_floating(kind) else 0)
    words = values.cast(pa.string())
    return text_cells(words, column.text_bytes) if column.extent.is_plain else _wide(column, words)


def _wide(column: StoredColumn, words: pa.Array) -> np.ndarray:
    """Give text as 16-bit characters."""
    cells = ["" if cell is None else cell for cell in words.to_pylist()]
    if any("\0" in cell for cell in cells):
        raise CatalogError(
            f"column {column.field.name!r} holds text with the character NUL, which VOTable "
            f"cannot keep; replace it or write Parquet"
        )
    return np.array([cell.encode("utf-16-be") for cell in cells], column.cell)


def _text_bytes(extent: Extent) -> int:
    return extent.width if extent.is_plain else 2 * extent.width_utf16


def _datatype(column: StoredColumn) -> tuple[str, str]:
    """Give the attributes datatype and arraysize."""
    if pa.types.is_string(column.kind):
        word, width = ("char", 1) if column.extent.is_plain else ("unicodeChar", 2)
        return word, str(column.text_bytes // width)
    word = "boolean" if pa.types.is_boolean(column.kind) else _DATATYPES[column.item]
    return word, "" if column.repeat is None else str(column.repeat)


def _base64_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Cut the bytes where base64 needs no padding, whatever the width of a row."""
    rest = b""
    for part in parts:
        rest += part
        whole = len(rest) - len(rest) % 3
        for start in range(0, whole, _LINE_BYTES):
            yield binascii.b2a_base64(rest[start : min(start + _LINE_BYTES, whole)])
        rest = rest[whole:]
    yield binascii.b2a_base64(rest)


def _head(spool: Spool, stored: list[StoredColumn]) -> str:
    facts = {META_PREFIX + key: value for key, value in schema_meta(spool.schema).items()}
    columns = json.dumps([_own_facts(column) for column in stored])
    infos = "".join(_info(name, value) for name, value in {**facts, COLUMNS_KEY: columns}.items())
    fields = "".join(map(_field, stored))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3">\n'
        f'<RESOURCE type="results">\n<TABLE nrows="{spool.n_rows}">\n{infos}{fields}'
        f"<DATA><BINARY2>{STREAM_TAG.decode()}\n"
    )


def _info(name: str, value: str) -> str:
    return f"<INFO name={_attribute(name)} value={_attribute(value)}/>\n"


def _field(column: StoredColumn) -> str:
    info = ColumnInfo.from_metadata(column.field.metadata)
    datatype, size = _datatype(column)
    known = {"name": column.field.name, "datatype": datatype, "arraysize": size}
    known |= {"unit": info.unit or "", "ucd": info.ucd or ""}
    attributes = " ".join(f"{k}={_attribute(v)}" for k, v in known.items() if v or k == "name")
    text = escape(_xml(info.description or ""))
    return f"<FIELD {attributes}><DESCRIPTION>{text}</DESCRIPTION></FIELD>\n"


def _own_facts(column: StoredColumn) -> dict[str, str]:
    """Give what FIELD has no place for, or not without loss."""
    info = ColumnInfo.from_metadata(column.field.metadata).to_metadata()
    kind = column.field.type
    changed = kind != column.kind and pa.types.is_integer(kind)
    return {"name": column.field.name, **info, **({"type": str(kind)} if changed else {})}


def _attribute(text: str) -> str:
    return quoteattr(_xml(text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


def _xml(text: str) -> str:
    """XML has no place for control characters; what is exact stands in our JSON."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
