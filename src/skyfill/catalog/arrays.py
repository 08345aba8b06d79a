"""Convert values of any kind to Arrow arrays, in which every gap is null."""

import math
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.errors import CatalogError

# What Arrow reads as a number, as an expression that both Python and Arrow understand.
NUMBER_PATTERN = (
    r"^\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*$"
    r"|^\s*[+-]?([nN][aA][nN]|[iI][nN][fF]([iI][nN][iI][tT][yY])?)\s*$"
)


def to_arrow(values: Any) -> pa.Array:
    """Convert NumPy (also masked) arrays, lists and Arrow arrays to one Arrow array.

    NaN becomes null; foreign byte order, fixed-width strings and dictionaries become plain types;
    arrays with more than one axis become fixed-size lists.

    Examples
    --------
    >>> to_arrow(np.array([1.5, np.nan])).null_count
    1
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if not isinstance(values, pa.Array):
        values = _from_sequence(values)
    if isinstance(values, pa.ChunkedArray):  # combine_chunks keeps chunks beyond 2 GB of text
        raise CatalogError("a text column exceeds 2 GB; read the file in batches")
    return normalized(values)


def normalized(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Convert an array to its plain type, with null for NaN.

    Examples
    --------
    >>> normalized(pa.array(["a", "a"]).dictionary_encode()).type
    DataType(string)
    """
    plain = plain_type(array.type)
    if plain != array.type:
        array = array.cast(plain)
    return null_for_nan(array) if pa.types.is_floating(plain) else array


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a `Table` keeps a column of type `kind`."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_decimal(kind) or pa.types.is_null(kind):
        return pa.float64()
    return kind


def number_dtype(kind: pa.DataType) -> np.dtype[Any]:
    """Return the type that numbers of an Arrow type have in NumPy; pyarrow would ask pandas.

    Examples
    --------
    >>> number_dtype(pa.int16())
    dtype('int16')
    """
    return np.dtype(str(kind))


def null_for_nan(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Replace NaN by null; an array without NaN is returned unchanged."""
    # The sum is NaN if any term is: the fastest way to find that none is.
    if not math.isnan(pc.sum(array).as_py() or 0.0):
        return array
    return pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)


def to_numbers(array: pa.Array | pa.ChunkedArray, name: str) -> np.ndarray:
    """Return a column as float64 with NaN for null; an error names the first cell of text.

    Examples
    --------
    >>> to_numbers(pa.array([1, None]), "x")
    array([ 1., nan])
    """
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    if pa.types.is_string(array.type):
        array = pc.utf8_trim_whitespace(array)
    try:
        numbers = array.cast(pa.float64(), safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise CatalogError(_not_a_number(array, name)) from None
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)


def _from_sequence(values: Any) -> pa.Array:
    if not isinstance(values, np.ndarray):
        try:
            return pa.array(values)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            raise CatalogError(f"values of mixed types do not form a column: {error}") from None
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    data = np.ascontiguousarray(np.ma.getdata(values))
    if data.ndim > 1:
        return _from_rows(data, mask)
    return _from_vector(data, mask)


def _from_vector(data: np.ndarray, mask: np.ndarray | None) -> pa.Array:
    if data.dtype.kind == "S":
        data = np.char.decode(data, "utf-8", "replace")
    if data.dtype.kind == "U":
        data = data.astype(object)
    if not data.dtype.isnative:
        data = data.astype(data.dtype.newbyteorder("="))
    return pa.array(data, mask=mask)


def _from_rows(data: np.ndarray, mask: np.ndarray | None) -> pa.Array:
    """Merge all axes but the first, because Arrow keeps no shape."""
    width = int(np.prod(data.shape[1:]))
    flat = _from_vector(data.reshape(-1), None if mask is None else mask.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(normalized(flat), width)


def _not_a_number(array: pa.Array | pa.ChunkedArray, name: str) -> str:
    if not pa.types.is_string(array.type):
        return f"column {name!r} of type {array.type} does not hold numbers; choose another column"
    cells = enumerate(array.to_pylist())
    row, cell = next((i, c) for i, c in cells if c is not None and not is_number(c))
    if is_number(cell.replace(",", "")):
        return (
            f"column {name!r}, row {row + 1}: {cell!r} is a number with a comma; write decimal "
            "points, and no separators between thousands"
        )
    is_limit = cell.strip()[:1] in ("<", ">")
    how = f'limits (columns.{name}.limits = "signs")' if is_limit else "a sentinel of the column"
    return (
        f"column {name!r}, row {row + 1}: {cell!r} is not a number; correct it, or declare it "
        f"as {how}"
    )


def is_number(cell: str) -> bool:
    """Check whether a text is a number.

    Examples
    --------
    >>> is_number(" 1e5 "), is_number("1_000"), is_number("")
    (True, False, False)
    """
    return re.search(NUMBER_PATTERN, cell) is not None
