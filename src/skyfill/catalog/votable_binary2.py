"""VOTables that skyfill writes: BINARY2 with rows of equal width, encoded and decoded by NumPy.

astropy encodes and decodes row by row, some 90 and 14 times as slowly, and takes a null text for an
empty one.
"""

import binascii
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.arrays import to_arrow
from skyfill.catalog.column_info import ColumnInfo
from skyfill.catalog.file_io import open_bytes
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
from skyfill.errors import CatalogError

COLUMNS_KEY = META_PREFIX + "columns"
END_TAGS = b"</STREAM></BINARY2></DATA></TABLE></RESOURCE></VOTABLE>\n"
_STREAM_TAG = b'<STREAM encoding="base64">'
_MOST_HEADER_BYTES = 1 << 26
_CHUNK_BYTES = 1 << 20
_LINE_BYTES = 57 << 10
_DATATYPES = dict(
    zip(NUMBERS, ("unsignedByte", "short", "int", "long", "float", "double"), strict=True)
)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@contextmanager
def writer(stream: IO[bytes], schema: pa.Schema, path: Path) -> Iterator[BatchWriter]:
    """Write one table in BINARY2, in which a bit per cell marks nulls."""
    with open_spool(schema, path.parent, "VOTable") as spool:
        yield BatchWriter(spool.write)
        stored = spool.stored_columns(needs_null_value=False, text_bytes=_text_bytes)
        layout = _with_flags([column.cell for column in stored])
        stream.write(_head(spool, stored).encode())
        stream.writelines(_base64_lines(_rows(b, stored, layout) for b in spool.batches()))
        stream.write(END_TAGS)


def _text_bytes(extent: Extent) -> int:
    return extent.width if extent.is_plain else 2 * extent.width_utf16


def _with_flags(cells: list[np.dtype]) -> np.dtype:
    """Lay out a row: one bit per column that is set where it is null, then the cells."""
    flags = ("flags", "u1", ((len(cells) + 7) // 8,))
    return np.dtype([flags, *((f"f{k}", cell) for k, cell in enumerate(cells))])


def _rows(batch: pa.RecordBatch, stored: list[StoredColumn], layout: np.dtype) -> bytes:
    rows = encode_batch(batch, stored, layout, _encode)
    lost = [pc.is_null(column).to_numpy(zero_copy_only=False) for column in batch.columns]
    rows["flags"] = np.packbits(np.stack(lost, axis=1), axis=1)
    return rows.tobytes()


def _encode(column: StoredColumn, values: pa.Array) -> np.ndarray:
    kind = column.kind
    if pa.types.is_boolean(kind):
        return text_cells(pc.fill_null(pc.if_else(values, "T", "F"), "?"), 1)
    if not pa.types.is_string(kind):
        return number_cells(values, kind, float("nan") if pa.types.is_floating(kind) else 0)
    words = values.cast(pa.string())
    if column.extent.is_plain:
        return text_cells(words, column.text_bytes)
    if pc.any(pc.match_substring(words, "\0")).as_py():
        raise CatalogError(
            f"column {column.field.name!r} holds text with the character NUL, which VOTable "
            f"cannot keep; replace it or write Parquet"
        )
    return np.array([(cell or "").encode("utf-16-be") for cell in words.to_pylist()], column.cell)


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
    infos = {META_PREFIX + key: value for key, value in schema_meta(spool.schema).items()}
    infos[COLUMNS_KEY] = json.dumps([_own_facts(column) for column in stored])
    elements = [f"<INFO {_attributes(name=name, value=infos[name])}/>\n" for name in infos]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<VOTABLE version="1.4" xmlns="http://www.ivoa.net/xml/VOTable/v1.3">\n'
        f'<RESOURCE type="results">\n<TABLE nrows="{spool.n_rows}">\n'
        f"{''.join([*elements, *map(_field, stored)])}<DATA><BINARY2>{_STREAM_TAG.decode()}\n"
    )


def _field(column: StoredColumn) -> str:
    from astropy.io.votable.ucd import check_ucd

    info = ColumnInfo.from_metadata(column.field.metadata)
    if pa.types.is_string(column.kind):
        datatype = "char" if column.extent.is_plain else "unicodeChar"
        size: int | None = column.text_bytes // _WIDTHS[datatype]
    else:
        datatype = "boolean" if pa.types.is_boolean(column.kind) else _DATATYPES[column.item]
        size = column.repeat
    # Our own facts keep words that VOTable does not know.
    ucd = info.ucd if check_ucd(info.ucd, check_controlled_vocabulary=True) else None
    optional = {"arraysize": size and str(size), "unit": info.unit, "ucd": ucd}
    stated = {key: value for key, value in optional.items() if value}
    attributes = _attributes(name=column.field.name, datatype=datatype, **stated)
    text = escape(_xml(info.description or ""))
    return f"<FIELD {attributes}><DESCRIPTION>{text}</DESCRIPTION></FIELD>\n"


def _own_facts(column: StoredColumn) -> dict[str, str]:
    """Collect what a FIELD cannot state, or not without loss."""
    info = ColumnInfo.from_metadata(column.field.metadata).to_metadata()
    kind = column.field.type
    changed = kind != column.kind and pa.types.is_integer(kind)
    return {"name": column.field.name, **info, **({"type": str(kind)} if changed else {})}


def _attributes(**words: str) -> str:
    breaks = {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"}
    return " ".join(f"{key}={quoteattr(_xml(word), breaks)}" for key, word in words.items())


def _xml(text: str) -> str:
    """Replace control characters, which XML cannot hold; our JSON has the exact text."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def find_head(path: Path) -> bytes | None:
    """Return what precedes the rows if skyfill wrote the file, else None."""
    head = b""
    with open_bytes(path) as stream:
        while _STREAM_TAG not in head and len(head) < _MOST_HEADER_BYTES:
            chunk = stream.read(max(len(head), 1 << 16))
            if not chunk:
                return None
            head += chunk
    head = head[: head.find(_STREAM_TAG) + len(_STREAM_TAG)]
    return head if COLUMNS_KEY.encode() in head else None


def row_layout(fields: list[Any]) -> np.dtype:
    """Lay out the rows that FIELD elements describe."""
    numbers = {word: NUMBERS[kind] for kind, word in _DATATYPES.items()}
    cells = []
    for field in fields:
        size = int(field.arraysize or 1)
        if field.datatype in _WIDTHS:
            cells.append(np.dtype(f"S{size * _WIDTHS[field.datatype]}"))
        else:
            number = numbers[field.datatype]
            cells.append(np.dtype((number, (size,)) if field.arraysize else number))
    return _with_flags(cells)


# Bytes per element of what is stored as characters.
_WIDTHS = {"boolean": 1, "char": 1, "unicodeChar": 2}


def read_rows(path: Path, start: int, layout: np.dtype, batch_rows: int) -> Iterator[np.ndarray]:
    """Read the rows, from byte `start` of the file, in pieces."""
    wanted = batch_rows * layout.itemsize
    with open_bytes(path) as stream:
        stream.seek(start)
        rest = bytearray()
        for part in _decoded(stream):
            rest += part
            while len(rest) >= wanted:
                yield np.frombuffer(bytes(rest[:wanted]), layout)
                del rest[:wanted]
    if len(rest) % layout.itemsize:
        raise CatalogError("the file is truncated: its last row is incomplete; fetch it again")
    yield np.frombuffer(rest, layout)


def _decoded(stream: IO[bytes]) -> Iterator[bytes]:
    """Decode base64 up to the closing tag; four characters make three bytes."""
    rest = b""
    while True:
        chunk = stream.read(_CHUNK_BYTES)
        if not chunk:
            raise CatalogError("the file is truncated: it ends within its rows; fetch it again")
        text, tag, _ = (rest + chunk).partition(b"<")
        rest = text.translate(None, b" \r\n\t")
        whole = len(rest) - len(rest) % 4
        yield binascii.a2b_base64(rest[:whole], strict_mode=True)
        rest = rest[whole:]
        if tag:
            return


def decode_column(rows: np.ndarray, k: int, field: Any, original: str | None) -> pa.Array:
    """Turn the cells of a column into an Arrow array of its original type."""
    lost = (rows["flags"][:, k // 8] >> (7 - k % 8)) & 1 == 1
    cells = rows[f"f{k}"]
    if field.datatype == "boolean":
        return pa.array(cells == b"T", mask=lost)
    if field.datatype == "char":
        array = pa.array(cells.tolist(), pa.binary(), mask=lost).cast(pa.string())
    elif field.datatype == "unicodeChar":
        # NumPy strips trailing zero bytes, of which the last may be half of a character.
        padded = (cell + bytes(len(cell) % 2) for cell in cells.tolist())
        array = pa.array([cell.decode("utf-16-be") for cell in padded], pa.string(), mask=lost)
    else:
        array = to_arrow(np.ma.MaskedArray(cells, lost) if cells.ndim == 1 else cells)
    return array.cast(pa.type_for_alias(original)) if original else array
