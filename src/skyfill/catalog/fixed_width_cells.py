"""Cells of rows of fixed width: big-endian numbers and padded text, as in FITS and VOTable."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.errors import CatalogError

# The numbers that both formats know.
NUMBERS = {
    pa.uint8(): ">u1",
    pa.int16(): ">i2",
    pa.int32(): ">i4",
    pa.int64(): ">i8",
    pa.float32(): ">f4",
    pa.float64(): ">f8",
}


def number_cells(column: pa.Array, kind: pa.DataType, null: Any) -> np.ndarray:
    """Encode numbers (or fixed-size lists of them) as big-endian cells, with `null` for gaps."""
    if pa.types.is_fixed_size_list(kind):
        return _list_cells(column, kind)
    cells = pc.fill_null(column.cast(kind), pa.scalar(null, kind))
    return np.asarray(cells.to_numpy(zero_copy_only=False), NUMBERS[kind])


def _list_cells(column: pa.Array, kind: pa.DataType) -> np.ndarray:
    rows = column.take(pa.array(np.arange(len(column))))  # drops the offset of a slice
    width, item = kind.list_size, kind.value_type
    lost = float("nan") if pa.types.is_floating(item) else None
    if lost is None and (rows.null_count or rows.flatten().null_count):
        raise CatalogError(f"a list of {item} has no value for gaps; write Parquet")
    cells = np.full((len(rows), width), lost or 0, NUMBERS[item])
    seen = pc.is_valid(rows).to_numpy(zero_copy_only=False)
    inner = rows.flatten() if lost is None else pc.fill_null(rows.flatten(), lost)
    cells[seen] = inner.to_numpy(zero_copy_only=False).reshape(-1, width)
    return cells


def text_cells(column: pa.Array, width: int, *, empty: str = "") -> np.ndarray:
    """Encode ASCII text as cells of `width` bytes; a gap is all NUL."""
    words = pc.if_else(pc.equal(column, ""), empty, column) if empty else column
    padded = pc.ascii_rpad(pc.fill_null(words, ""), width=width, padding="\0")
    # The buffer starts at the first cell, because a compute function made the array.
    return np.frombuffer(padded.buffers()[2] or b"", f"S{width}", len(column))


def escape(cell: str) -> str:
    r"""Write text as printable ASCII that does not end in a blank.

    Examples
    --------
    >>> escape("é ")
    '\\xe9\\x20'
    """
    plain = cell.encode("unicode_escape").decode()
    return plain[:-1] + "\\x20" if plain.endswith(" ") else plain


def unescape(cell: str) -> str:
    """Undo `escape`.

    Examples
    --------
    >>> unescape(escape("é "))
    'é '
    """
    return cell.encode("ascii").decode("unicode_escape")


def escaped(column: pa.Array) -> pa.Array:
    """Apply `escape` to every cell."""
    return pa.array([None if cell is None else escape(cell) for cell in column.to_pylist()])
