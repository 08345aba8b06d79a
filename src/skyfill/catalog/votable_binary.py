"""Rows of a VOTable that skyfill wrote: BINARY2 in which every row has the same width.

astropy reads them as well, but one by one, and takes a null text for an empty one.
"""

import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from skyfill.catalog.arrays import to_arrow
from skyfill.catalog.file_io import open_bytes
from skyfill.catalog.fixed_width_cells import NUMBERS
from skyfill.errors import CatalogError

STREAM_TAG = b'<STREAM encoding="base64">'
END_TAGS = b"</STREAM></BINARY2></DATA></TABLE></RESOURCE></VOTABLE>\n"
DATATYPES = dict(
    zip(("unsignedByte", "short", "int", "long", "float", "double"), NUMBERS.values(), strict=True)
)
_MOST_HEADER_BYTES = 1 << 26
_CHUNK_BYTES = 1 << 20


def split_head(path: Path, mark: bytes) -> bytes | None:
    """Give what stands before the rows, closed to a whole VOTable; None if `mark` is not in it."""
    with open_bytes(path) as stream:
        head = bytearray()
        while STREAM_TAG not in head and len(head) < _MOST_HEADER_BYTES:
            chunk = stream.read(1 << 16)
            if not chunk:
                return None
            head += chunk
    head = head[: head.find(STREAM_TAG) + len(STREAM_TAG)]
    return bytes(head + END_TAGS) if mark in head else None


def row_layout(cells: list[np.dtype]) -> np.dtype:
    """Give the layout of a row: one bit per column that says whether it is null, then the cells."""
    flags = ("flags", "u1", ((len(cells) + 7) // 8,))
    return np.dtype([flags, *((f"f{k}", cell) for k, cell in enumerate(cells))])


def row_type(fields: list[Any]) -> np.dtype:
    """Give the layout of the rows that FIELD elements describe."""
    return row_layout([_cell_type(field) for field in fields])


def _cell_type(field: Any) -> np.dtype:
    size = int(field.arraysize or 1)
    if field.datatype in ("char", "unicodeChar", "boolean"):
        return np.dtype(f"S{size * (2 if field.datatype == 'unicodeChar' else 1)}")
    number = DATATYPES[field.datatype]
    return np.dtype((number, (size,)) if field.arraysize else number)


def read_rows(path: Path, rows: np.dtype, batch_rows: int) -> Iterator[np.ndarray]:
    """Read the rows in pieces."""
    wanted = batch_rows * rows.itemsize
    with open_bytes(path) as stream:
        _skip_head(stream)
        rest = bytearray()
        for part in _decoded(stream):
            rest += part
            while len(rest) >= wanted:
                yield np.frombuffer(bytes(rest[:wanted]), rows)
                del rest[:wanted]
    if len(rest) % rows.itemsize:
        raise CatalogError("the file is truncated: its last row is not whole; fetch it again")
    yield np.frombuffer(rest, rows)


def _skip_head(stream: IO[bytes]) -> None:
    place, window = 0, b""
    while STREAM_TAG not in window:
        chunk = stream.read(_CHUNK_BYTES)
        place += len(chunk)
        window = window[-len(STREAM_TAG) :] + chunk
    behind = len(window) - window.find(STREAM_TAG) - len(STREAM_TAG)
    stream.seek(place - behind)


def _decoded(stream: IO[bytes]) -> Iterator[bytes]:
    """Decode base64 up to the closing tag; four characters make three bytes."""
    rest = b""
    while True:
        chunk = stream.read(_CHUNK_BYTES)
        if not chunk:
            raise CatalogError("the file is truncated: it ends among its rows; fetch it again")
        text, tag, _ = (rest + chunk).partition(b"<")
        rest = text.translate(None, b" \r\n\t")
        whole = len(rest) - len(rest) % 4
        yield binascii.a2b_base64(rest[:whole], strict_mode=True)
        rest = rest[whole:]
        if tag:
            return


def column_of(rows: np.ndarray, k: int, field: Any) -> pa.Array:
    """Turn the cells of one column into an Arrow array with nulls."""
    lost = (rows["flags"][:, k // 8] >> (7 - k % 8)) & 1 == 1
    cells = rows[f"f{k}"]
    if field.datatype == "boolean":
        return pa.array(cells == b"T", mask=lost)
    if field.datatype in ("char", "unicodeChar"):
        return _text(cells, field.datatype, lost)
    return to_arrow(np.ma.MaskedArray(cells, lost) if cells.ndim == 1 else cells)


def _text(cells: np.ndarray, datatype: str, lost: np.ndarray) -> pa.Array:
    if datatype == "char":
        words = [cell.decode("ascii") for cell in cells.tolist()]
    else:
        # NumPy strips trailing zero bytes, of which the last may be half of a character.
        padded = (cell + bytes(len(cell) % 2) for cell in cells.tolist())
        words = [cell.decode("utf-16-be") for cell in padded]
    return pa.array(words, pa.string(), mask=lost)
