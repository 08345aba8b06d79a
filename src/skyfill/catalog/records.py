"""Rows of fixed width in big-endian bytes, which FITS and VOTable share."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.errors import CatalogError

# FITS and VOTable know these numbers and no others; an integer that finds no place here, or no
# value that can stand for null, goes into the next wider one and at last into text.
_INTEGERS = (pa.uint8(), pa.int16(), pa.int32(), pa.int64())
NUMBERS = {
    pa.uint8(): ">u1",
    pa.int16(): ">i2",
    pa.int32(): ">i4",
    pa.int64(): ">i8",
    pa.float32(): ">f4",
    pa.float64(): ">f8",
}
# Printable ASCII that does not end in a blank: what a FITS cell holds without loss.
_PLAIN_TEXT = r"^([ -~]*[!-~])?$"


@dataclass(frozen=True)
class Facts:
    """What must be known of a whole column before its first row can be written.

    Parameters
    ----------
    n_null : int
        Rows without a value.
    low, high : int, optional
        Range of an integer column.
    is_plain : bool
        Whether all its text is printable ASCII.
    width, width_escaped, width_utf16 : int
        Longest text in bytes, with escapes, and in 16-bit units.
    """

    n_null: int = 0
    low: int | None = None
    high: int | None = None
    is_plain: bool = True
    width: int = 1
    width_escaped: int = 1
    width_utf16: int = 1

    def __add__(self, other: "Facts") -> "Facts":
        return Facts(
            self.n_null + other.n_null,
            min((x for x in (self.low, other.low) if x is not None), default=None),
            max((x for x in (self.high, other.high) if x is not None), default=None),
            self.is_plain and other.is_plain,
            max(self.width, other.width),
            max(self.width_escaped, other.width_escaped),
            max(self.width_utf16, other.width_utf16),
        )


def facts_of(column: pa.Array) -> Facts:
    """Gather the facts of one batch of a column; those of two batches add."""
    if pa.types.is_integer(column.type):
        low, high = pc.min_max(column).as_py().values()
        digits = max(len(str(low)), len(str(high)))
        return Facts(column.null_count, low, high, width=digits, width_utf16=digits)
    if pa.types.is_string(column.type):
        return _text_facts(column)
    return Facts(column.null_count)


def _text_facts(column: pa.Array) -> Facts:
    width = pc.max(pc.binary_length(column)).as_py() or 1
    if pc.all(pc.match_substring_regex(column, _PLAIN_TEXT)).as_py() is not False:
        doubled = pc.replace_substring(column, "\\", "\\\\")
        escaped = pc.max(pc.binary_length(doubled)).as_py() or 1
        return Facts(column.null_count, width=width, width_escaped=escaped, width_utf16=width)
    cells = [cell for cell in column.to_pylist() if cell is not None]
    return Facts(
        column.null_count,
        is_plain=False,
        width=width,
        width_escaped=max(len(escape(cell)) for cell in cells),
        width_utf16=max(len(cell.encode("utf-16-be")) // 2 for cell in cells),
    )


def storable(column: pa.Array) -> pa.Array:
    """Give dates and times as ISO text; other types stay."""
    return column.cast(pa.string()) if pa.types.is_temporal(column.type) else column


def check_storable(field: pa.Field, format_name: str) -> None:
    """Refuse types that rows of fixed width cannot hold."""
    kind = field.type
    if pa.types.is_fixed_size_list(kind):
        kind = kind.value_type if kind.value_type in NUMBERS else None
    scalars = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    others = (pa.types.is_string, pa.types.is_temporal)
    if kind is None or not any(is_kind(kind) for is_kind in scalars + others):
        raise CatalogError(
            f"column {field.name!r} of type {field.type} cannot be written as {format_name}; "
            f"drop it or write Parquet"
        )


def stored_type(kind: pa.DataType, facts: Facts, *, needs_null_value: bool) -> pa.DataType:
    """Choose the type in the file for a column.

    Parameters
    ----------
    kind : pyarrow.DataType
        Of the column.
    facts : Facts
        Of all its rows.
    needs_null_value : bool
        Whether a gap in an integer column takes one of the integers (FITS).

    Examples
    --------
    >>> stored_type(pa.int8(), Facts(low=-3, high=5), needs_null_value=True)
    DataType(int16)
    """
    if not pa.types.is_integer(kind):
        return pa.string() if pa.types.is_temporal(kind) else kind
    wide_enough = (t for t in _INTEGERS if _holds(t, kind))
    null_taken = needs_null_value and facts.n_null > 0
    for stored in wide_enough:
        if not null_taken or null_value(stored, facts) is not None:
            return stored
    if kind == pa.uint64() and (facts.high or 0) < 2**63 - 1:
        return pa.int64()
    return pa.string()


def null_value(kind: pa.DataType, facts: Facts) -> int | None:
    """Find an integer that the column does not use: the lowest, or else the highest, of its type.

    Examples
    --------
    >>> null_value(pa.int16(), Facts(n_null=1, low=-32768, high=5))
    32767
    """
    lowest, highest = _range(kind)
    if facts.low is None or facts.low > lowest:
        return lowest
    return highest if facts.high is not None and facts.high < highest else None


def _range(kind: pa.DataType) -> tuple[int, int]:
    limits = np.iinfo(kind.to_pandas_dtype())
    return int(limits.min), int(limits.max)


def _holds(stored: pa.DataType, kind: pa.DataType) -> bool:
    low, high = _range(kind)
    stored_low, stored_high = _range(stored)
    return stored_low <= low and high <= stored_high


def number_cells(column: pa.Array, kind: pa.DataType, null: Any) -> np.ndarray:
    """Give numbers (or fixed-size lists of them) as big-endian cells with `null` for gaps."""
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
    """Give ASCII text as cells of `width` bytes; a gap is all NUL."""
    words = pc.if_else(pc.equal(column, ""), empty, column) if empty else column
    padded = pc.ascii_rpad(pc.fill_null(words, ""), width=width, padding="\0")
    # The buffer starts at the first cell because a compute function made the array.
    return np.frombuffer(padded.buffers()[2] or b"", f"S{width}", len(column))


def escape(cell: str) -> str:
    r"""Write text in printable ASCII that does not end in a blank.

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
