"""Read FITS: the first table of the file, batch by batch."""

import os
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.arrays import to_arrow
from skyfill.catalog.column_info import described
from skyfill.catalog.file_io import is_gzipped, open_bytes, read_bytes
from skyfill.catalog.fits_header import ESCAPED, FitsColumn, FitsTable, find_table, original_type
from skyfill.catalog.fits_write import writer
from skyfill.catalog.fixed_width_cells import unescape
from skyfill.catalog.format_contract import Scan, chosen
from skyfill.catalog.table import with_facts
from skyfill.errors import CatalogError
from skyfill.limits import check_limit

__all__ = ["KIND", "scan", "writer"]

KIND = "FITS table"
MOST_BATCH_BYTES = 1 << 30
# Types that TZEROn stands for, by its value and by the type in the file.
_UNSIGNED = {
    (2.0**15, ">i2"): np.uint16,
    (2.0**31, ">i4"): np.uint32,
    (2.0**63, ">i8"): np.uint64,
    (-128.0, "|u1"): np.int8,
}


def scan(path: Path, columns: Sequence[str] | None, batch_rows: int) -> Scan:
    """Open the first table of a FITS file."""
    table = find_table(path)
    names = [column.name for column in table.columns]
    kept = [names.index(name) for name in chosen(names, columns)]
    _check_size(path, table)
    batches = _batches(path, table, kept, batch_rows)
    empty = _decoded(table, kept, np.zeros(0, table.rows), b"")
    fields = [
        described(pa.field(names[k], array.type), table.columns[k].info)
        for k, array in zip(kept, empty, strict=True)
    ]
    schema = pa.schema(fields)
    return Scan(schema.with_metadata(with_facts(schema, table.meta)), batches)


def _check_size(path: Path, table: FitsTable) -> None:
    """Refuse a truncated file before any of its rows is used."""
    width = table.rows.itemsize
    check_limit("row-bytes", width, f"a row has {width} bytes", CatalogError)
    n_empty = 0 if width else table.n_rows
    check_limit("empty-rows", n_empty, f"the {n_empty} rows are empty", CatalogError)
    expected, found = table.start + table.n_rows * width, os.path.getsize(path)
    if found < expected and not is_gzipped(path):
        raise CatalogError(
            f"the file is truncated: {table.n_rows} rows end at byte {expected}, the file at "
            f"byte {found}; fetch it again"
        )


def _batches(
    path: Path, table: FitsTable, kept: list[int], batch_rows: int
) -> Generator[pa.RecordBatch]:
    names = [table.columns[k].name for k in kept]
    with open_bytes(path) as stream:
        heap = _heap(stream, table) if any(table.columns[k].code in "PQ" for k in kept) else b""
        stream.seek(table.start)
        batch_rows = min(batch_rows, max(MOST_BATCH_BYTES // max(table.rows.itemsize, 1), 1))
        for done in range(0, table.n_rows, batch_rows):
            n_rows = min(batch_rows, table.n_rows - done)
            data = read_bytes(stream, n_rows * table.rows.itemsize)
            if len(data) < n_rows * table.rows.itemsize:
                raise CatalogError(f"the file is truncated after row {done}; fetch it again")
            rows = np.frombuffer(data, table.rows, n_rows)
            yield pa.RecordBatch.from_arrays(_decoded(table, kept, rows, heap), names=names)


def _heap(stream: IO[bytes], table: FitsTable) -> bytes:
    start, end = table.heap
    stream.seek(start)
    return read_bytes(stream, max(0, end - start))


def _decoded(table: FitsTable, kept: list[int], rows: np.ndarray, heap: bytes) -> list[pa.Array]:
    arrays = []
    for k in kept:
        column, cells = table.columns[k], np.ascontiguousarray(rows[f"f{k}"])
        is_list = column.code in "PQ"
        arrays.append(decode_lists(column, cells, heap) if is_list else decode(column, cells))
    return arrays


def decode(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    """Turn the raw cells of a column, of shape (n, repeat) or (n,) for text, into Arrow."""
    array = _DECODERS[column.code](column, cells)
    original = original_type(column)
    return array if original is None else array.cast(original)


def _text(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    if column.repeat == 0:
        return pa.nulls(len(cells), pa.string())
    # A cell that starts with NUL is the standard's null string.
    is_null = cells.view(np.uint8).reshape(len(cells), column.repeat)[:, 0] == 0
    words = np.char.rstrip(_until_nul(cells))
    text = pa.array(_as_text(words.tolist()), pa.string(), mask=is_null)
    if column.kind == ESCAPED:
        return pa.array([None if c is None else unescape(c) for c in text.to_pylist()], pa.string())
    # Other programs cannot distinguish an empty string from a null; most mean a null.
    return text if column.kind else pc.if_else(pc.equal(text, ""), None, text)


def _until_nul(cells: np.ndarray) -> np.ndarray:
    if not (np.char.find(cells, b"\0") >= 0).any():
        return cells
    return np.array([cell.split(b"\0")[0] for cell in cells.tolist()], dtype=cells.dtype)


def _as_text(words: list[bytes]) -> list[str]:
    try:
        return [word.decode("utf-8") for word in words]
    except UnicodeDecodeError:
        return [word.decode("latin-1") for word in words]


def _logical(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    values, known = cells == b"T", (cells == b"T") | (cells == b"F")
    return _shaped(np.ma.MaskedArray(values, ~known), column.repeat)


def _bits(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    bits = np.unpackbits(cells, axis=1)[:, : column.repeat].astype(bool)
    return _shaped(bits, column.repeat)


def _integers(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    values = _scaled(column, cells)
    if column.null is not None:
        values = np.ma.MaskedArray(values, cells == int(column.null))
    return _shaped(values, column.repeat)


def _scaled(column: FitsColumn, cells: np.ndarray) -> np.ndarray:
    if column.scale == 1 and column.zero == 0:
        return cells
    unsigned = _UNSIGNED.get((column.zero, cells.dtype.str))
    if column.scale == 1 and unsigned:
        # The standard stores unsigned integers with the highest bit flipped.
        plain = np.dtype(f"u{cells.itemsize}")
        highest_bit = plain.type(1 << (8 * cells.itemsize - 1))
        return np.asarray(cells.astype(plain) ^ highest_bit).view(unsigned)
    return np.asarray(cells * column.scale + column.zero)


def _shaped(values: np.ndarray, repeat: int) -> pa.Array:
    if repeat == 0:
        return pa.nulls(len(values), pa.float64())
    return to_arrow(values[:, 0] if repeat == 1 else values)


def _written_number(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    """Numbers of an ASCII table; a blank cell is a null."""
    words = np.char.strip(np.char.upper(cells)).tolist()
    null = str(column.null).strip().upper().encode() if column.null is not None else b""
    texts = [None if w in (b"", null) else w.decode().replace("D", "E") for w in words]
    kind = pa.int64() if column.code == "i" else pa.float64()
    try:
        return pa.array(texts, pa.string()).cast(kind)
    except pa.ArrowInvalid as error:
        raise CatalogError(f"column {column.name!r}: {error}") from None


_DECODERS: dict[str, Callable[[FitsColumn, np.ndarray], pa.Array]] = {
    "A": _text,
    "L": _logical,
    "X": _bits,
    **dict.fromkeys("BIJK", _integers),
    **dict.fromkeys("ED", lambda column, cells: _shaped(_scaled(column, cells), column.repeat)),
    **dict.fromkeys("CM", lambda column, cells: _shaped(cells, 2 * column.repeat)),
    "a": _text,
    **dict.fromkeys("ifed", _written_number),
}


def decode_lists(column: FitsColumn, cells: np.ndarray, heap: bytes) -> pa.Array:
    """Turn pairs of length and position in the heap into lists."""
    if column.repeat == 0:
        return pa.nulls(len(cells), pa.float64())
    item = np.dtype({"L": "S1", "A": "S1", "B": ">u1", "I": ">i2", "J": ">i4", "K": ">i8",
                     "E": ">f4", "D": ">f8"}.get(column.item, "V"))  # fmt: skip
    if item.kind == "V":
        raise CatalogError(f"column {column.name!r}: lists of {column.item!r} cannot be read")
    ends = cells[:, 1] + cells[:, 0] * item.itemsize
    if (cells < 0).any() or (ends > len(heap)).any():
        raise CatalogError(f"column {column.name!r}: lists lie beyond the end of the file")
    parts = [heap[start:end] for start, end in zip(cells[:, 1], ends, strict=True)]
    if column.item == "A":
        return pa.array([part.split(b"\0")[0].decode("latin-1") for part in parts], pa.string())
    flat = np.frombuffer(b"".join(parts), item)
    values = to_arrow(flat == b"T") if column.item == "L" else to_arrow(flat)
    return pa.ListArray.from_arrays(np.concatenate([[0], np.cumsum(cells[:, 0])]), values)
