"""How a column is stored in rows of fixed width: type, width, cells."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from skyfill.catalog.records import NUMBERS, Facts, stored_type
from skyfill.catalog.spool import Spool


@dataclass(frozen=True)
class Stored:
    """A column and the way it is stored.

    Parameters
    ----------
    field : pyarrow.Field
        The column.
    facts : Facts
        Of all its rows.
    kind : pyarrow.DataType
        Its type in the file.
    text_bytes : int
        Width of its cells if it is text.
    """

    field: pa.Field
    facts: Facts
    kind: pa.DataType
    text_bytes: int

    @property
    def item(self) -> pa.DataType:
        """Type of the elements of a cell."""
        return self.kind.value_type if pa.types.is_fixed_size_list(self.kind) else self.kind

    @property
    def repeat(self) -> int | None:
        """Number of elements of a cell; None where the column has no lists."""
        return self.kind.list_size if pa.types.is_fixed_size_list(self.kind) else None

    @property
    def cell(self) -> np.dtype:
        """Layout of the bytes of a cell."""
        if pa.types.is_string(self.kind):
            return np.dtype(f"S{self.text_bytes}")
        number = "S1" if pa.types.is_boolean(self.kind) else NUMBERS[self.item]
        return np.dtype(number if self.repeat is None else (number, (self.repeat,)))


def stored_columns(
    spool: Spool, *, needs_null_value: bool, text_bytes: Callable[[Facts], int]
) -> list[Stored]:
    """Decide how each column of a spool is stored."""
    return [
        Stored(
            field,
            facts,
            stored_type(field.type, facts, needs_null_value=needs_null_value),
            text_bytes(facts),
        )
        for field, facts in zip(spool.schema, spool.facts, strict=True)
    ]


def fill_rows(
    batch: pa.RecordBatch,
    stored: list[Stored],
    rows: np.dtype,
    encode: Callable[[Stored, pa.Array], np.ndarray],
) -> np.ndarray:
    """Encode a batch into rows whose cells are named f0, f1, ..."""
    filled = np.empty(batch.num_rows, rows)
    for k, column in enumerate(stored):
        filled[f"f{k}"] = encode(column, batch.column(k))
    return filled
