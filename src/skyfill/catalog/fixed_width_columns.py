"""Columns of rows of fixed width, as in FITS and VOTable: type, width, and batches that wait.

The header states the width of a text column, above the rows that settle it. So batches wait in a
temporary file until all of them have been seen.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.arrays import number_dtype
from skyfill.catalog.fixed_width_cells import NUMBERS, escape
from skyfill.errors import CatalogError

# Integers of FITS and VOTable. A column that does not fit, or leaves no value to stand for null,
# takes the next wider type, and finally text.
_INTEGERS = (pa.uint8(), pa.int16(), pa.int32(), pa.int64())
_IN_MEMORY_BYTES = 1 << 28
# Printable ASCII that does not end in a blank: what a FITS cell holds without loss.
_PLAIN_TEXT = r"^([ -~]*[!-~])?$"


@dataclass(frozen=True)
class Extent:
    """What must be known about all rows of a column before the first one can be written.

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

    def __add__(self, other: "Extent") -> "Extent":
        return Extent(
            self.n_null + other.n_null,
            min((x for x in (self.low, other.low) if x is not None), default=None),
            max((x for x in (self.high, other.high) if x is not None), default=None),
            self.is_plain and other.is_plain,
            max(self.width, other.width),
            max(self.width_escaped, other.width_escaped),
            max(self.width_utf16, other.width_utf16),
        )


@dataclass(frozen=True)
class StoredColumn:
    """A column and how it is stored.

    Parameters
    ----------
    field : pyarrow.Field
        The column.
    extent : Extent
        Of all its rows.
    kind : pyarrow.DataType
        Its type in the file.
    text_bytes : int
        Width of its cells, if it is text.
    """

    field: pa.Field
    extent: Extent
    kind: pa.DataType
    text_bytes: int

    @property
    def item(self) -> pa.DataType:
        """Type of the elements of a cell."""
        return self.kind.value_type if pa.types.is_fixed_size_list(self.kind) else self.kind

    @property
    def repeat(self) -> int | None:
        """Number of elements of a cell; None if the cells are not lists."""
        return self.kind.list_size if pa.types.is_fixed_size_list(self.kind) else None

    @property
    def cell(self) -> np.dtype:
        """Layout of the bytes of a cell."""
        if pa.types.is_string(self.kind):
            return np.dtype(f"S{self.text_bytes}")
        number = "S1" if pa.types.is_boolean(self.kind) else NUMBERS[self.item]
        return np.dtype(number if self.repeat is None else (number, (self.repeat,)))


class Spool:
    """Takes batches, measures their columns, returns the batches.

    Dates and times become ISO text.

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"n": [1, None]})
    >>> with open_spool(batch.schema, Path("."), "FITS") as spool:
    ...     spool.write(batch)
    ...     spool.extents[0].n_null, [b.num_rows for b in spool.batches()]
    (1, [2])
    """

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        kinds = [pa.string() if pa.types.is_temporal(f.type) else f.type for f in schema]
        self.schema = schema
        self.n_rows = 0
        self.extents = [Extent() for _ in schema]
        self._kept = pa.schema([f.with_type(k) for f, k in zip(schema, kinds, strict=True)])
        self._file = file
        self._sink = pa.ipc.new_stream(file, self._kept)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""
        columns = [c.cast(f.type) for c, f in zip(batch.columns, self._kept, strict=True)]
        self.extents = [e + _extent(c) for e, c in zip(self.extents, columns, strict=True)]
        self.n_rows += batch.num_rows
        self._sink.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._kept))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return all batches; nothing can be written afterward."""
        self._sink.close()
        self._file.seek(0)
        with pa.ipc.open_stream(self._file) as reader:
            yield from reader

    def stored_columns(
        self, *, needs_null_value: bool, text_bytes: Callable[[Extent], int]
    ) -> list[StoredColumn]:
        """Decide how each column is stored; see `stored_type`."""
        return [
            StoredColumn(
                f, e, stored_type(f.type, e, needs_null_value=needs_null_value), text_bytes(e)
            )
            for f, e in zip(self.schema, self.extents, strict=True)
        ]


@contextmanager
def open_spool(schema: pa.Schema, folder: Path, format_name: str) -> Iterator[Spool]:
    """Open a spool; beyond a quarter of a gigabyte it continues in a file in `folder`."""
    for field in schema:
        _check_storable(field, format_name)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, dir=str(folder)) as file:
        yield Spool(file, schema)


def _check_storable(field: pa.Field, format_name: str) -> None:
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


def _extent(column: pa.Array) -> Extent:
    if pa.types.is_integer(column.type):
        low, high = pc.min_max(column).as_py().values()
        digits = max(len(str(low)), len(str(high)))
        return Extent(column.null_count, low, high, width=digits, width_utf16=digits)
    if pa.types.is_string(column.type):
        return _text_extent(column)
    return Extent(column.null_count)


def _text_extent(column: pa.Array) -> Extent:
    width = pc.max(pc.binary_length(column)).as_py() or 1
    if pc.all(pc.match_substring_regex(column, _PLAIN_TEXT)).as_py() is not False:
        doubled = pc.replace_substring(column, "\\", "\\\\")
        escaped = pc.max(pc.binary_length(doubled)).as_py() or 1
        return Extent(column.null_count, width=width, width_escaped=escaped, width_utf16=width)
    cells = [cell for cell in column.to_pylist() if cell is not None]
    return Extent(
        column.null_count,
        is_plain=False,
        width=width,
        width_escaped=max(len(escape(cell)) for cell in cells),
        width_utf16=max(len(cell.encode("utf-16-be")) // 2 for cell in cells),
    )


def stored_type(kind: pa.DataType, extent: Extent, *, needs_null_value: bool) -> pa.DataType:
    """Choose the type of a column in the file.

    Parameters
    ----------
    kind : pyarrow.DataType
        Of the column.
    extent : Extent
        Of all its rows.
    needs_null_value : bool
        Whether one of the integers must stand for null (FITS).

    Examples
    --------
    >>> stored_type(pa.int8(), Extent(low=-3, high=5), needs_null_value=True)
    DataType(int16)
    """
    if not pa.types.is_integer(kind):
        return pa.string() if pa.types.is_temporal(kind) else kind
    needs_null = needs_null_value and extent.n_null > 0
    for stored in _INTEGERS:
        is_wide_enough = np.can_cast(number_dtype(kind), number_dtype(stored))
        if is_wide_enough and not (needs_null and null_value(stored, extent) is None):
            return stored
    if kind == pa.uint64() and (extent.high or 0) < 2**63 - 1:
        return pa.int64()
    return pa.string()


def null_value(kind: pa.DataType, extent: Extent) -> int | None:
    """Find an unused integer for null: the lowest or else the highest of its type.

    Examples
    --------
    >>> null_value(pa.int16(), Extent(n_null=1, low=-32768, high=5))
    32767
    """
    limits = np.iinfo(number_dtype(kind))
    if extent.low is None or extent.low > limits.min:
        return int(limits.min)
    return int(limits.max) if extent.high is not None and extent.high < limits.max else None


def encode_batch(
    batch: pa.RecordBatch,
    stored: list[StoredColumn],
    rows: np.dtype,
    encode: Callable[[StoredColumn, pa.Array], np.ndarray],
) -> np.ndarray:
    """Encode a batch into rows whose cells are named f0, f1, ..."""
    filled = np.empty(batch.num_rows, rows)
    for k, column in enumerate(stored):
        filled[f"f{k}"] = encode(column, batch.column(k))
    return filled
