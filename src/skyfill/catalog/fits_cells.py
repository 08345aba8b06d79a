"""Bytes of FITS cells to Arrow columns."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.arrays import to_arrow
from skyfill.catalog.fits_header import ESCAPED, FitsColumn, original_type
from skyfill.catalog.records import unescape
from skyfill.errors import CatalogError

_UNSIGNED = {2.0**15: np.uint16, 2.0**31: np.uint32, 2.0**63: np.uint64, -128.0: np.int8}


def decode(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    """Turn the raw cells of one column into an Arrow array with nulls.

    Parameters
    ----------
    column : FitsColumn
        What the header says.
    cells : array
        Big-endian elements of shape (n, repeat); bytes of shape (n,) for text.
    """
    array = _DECODERS[column.code](column, cells)
    original = original_type(column)
    return array if original is None else array.cast(original)


def _text(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    if column.repeat == 0:
        return pa.nulls(len(cells), pa.string())
    # A cell that starts with NUL is the standard's null string.
    is_null = cells.view(np.uint8).reshape(len(cells), column.repeat)[:, 0] == 0
    words = np.char.rstrip(_until_nul(cells))
    text = pa.array(_decoded(words), pa.string(), mask=is_null)
    if column.kind == ESCAPED:
        return pa.array([None if c is None else unescape(c) for c in text.to_pylist()], pa.string())
    # Others have no way to tell an empty string from a null; most mean a null.
    return text if column.kind else pc.if_else(pc.equal(text, ""), None, text)


def _until_nul(cells: np.ndarray) -> np.ndarray:
    if not (np.char.find(cells, b"\0") >= 0).any():
        return cells
    return np.array([cell.split(b"\0")[0] for cell in cells.tolist()], dtype=cells.dtype)


def _decoded(words: np.ndarray) -> list[str]:
    joined = words.tolist()
    try:
        return [word.decode("utf-8") for word in joined]
    except UnicodeDecodeError:
        return [word.decode("latin-1") for word in joined]


def _logical(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    values, known = cells == b"T", (cells == b"T") | (cells == b"F")
    return _shaped(np.ma.MaskedArray(values, ~known), column.repeat)


def _bits(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    bits = np.unpackbits(cells, axis=1)[:, : column.repeat].astype(bool)
    return _shaped(bits, column.repeat)


def _integers(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    values = _scaled_integers(column, cells)
    if column.null is None:
        return _shaped(values, column.repeat)
    return _shaped(np.ma.MaskedArray(values, cells == int(column.null)), column.repeat)


def _scaled_integers(column: FitsColumn, cells: np.ndarray) -> np.ndarray:
    if column.scale == 1 and column.zero == 0:
        return cells
    unsigned = _UNSIGNED.get(column.zero)
    if column.scale == 1 and unsigned and np.dtype(unsigned).itemsize == cells.itemsize:
        # The standard's way to keep unsigned integers: the highest bit is flipped.
        flipped = cells.astype(f"u{cells.itemsize}") ^ np.array(
            1 << (8 * cells.itemsize - 1), f"u{cells.itemsize}"
        )
        return np.asarray(flipped).view(unsigned)
    return np.asarray(cells * column.scale + column.zero)


def _floats(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    if column.scale == 1 and column.zero == 0:
        return _shaped(cells, column.repeat)
    return _shaped(cells * column.scale + column.zero, column.repeat)


def _complex(column: FitsColumn, cells: np.ndarray) -> pa.Array:
    return _shaped(cells, 2 * column.repeat)


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
    **dict.fromkeys("ED", _floats),
    **dict.fromkeys("CM", _complex),
    "a": _text,
    **dict.fromkeys("ifed", _written_number),
}


def decode_lists(column: FitsColumn, cells: np.ndarray, heap: bytes) -> pa.Array:
    """Turn (length, place) pairs and the heap that they point into, into lists."""
    if column.repeat == 0:
        return pa.nulls(len(cells), pa.float64())
    item = np.dtype({"L": "S1", "A": "S1", "B": ">u1", "I": ">i2", "J": ">i4", "K": ">i8",
                     "E": ">f4", "D": ">f8"}.get(column.item, "V"))  # fmt: skip
    if item.kind == "V":
        raise CatalogError(f"column {column.name!r}: lists of {column.item!r} cannot be read")
    ends = cells[:, 1] + cells[:, 0] * item.itemsize
    if (cells < 0).any() or (ends > len(heap)).any():
        raise CatalogError(f"column {column.name!r}: lists that lie beyond the end of the file")
    parts = [heap[start:end] for start, end in zip(cells[:, 1], ends, strict=True)]
    if column.item == "A":
        return pa.array([part.split(b"\0")[0].decode("latin-1") for part in parts], pa.string())
    flat = np.frombuffer(b"".join(parts), item)
    values = to_arrow(flat == b"T") if column.item == "L" else to_arrow(flat)
    return pa.ListArray.from_arrays(np.concatenate([[0], np.cumsum(cells[:, 0])]), values)
