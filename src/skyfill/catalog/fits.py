"""FITS: the first table of the file; rows are read and written in pieces."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from skyfill.catalog.column_info import described
from skyfill.catalog.file_io import is_gzipped, open_bytes
from skyfill.catalog.fits_cells import decode, decode_lists
from skyfill.catalog.fits_header import FitsTable, find_table
from skyfill.catalog.fits_write import writer
from skyfill.catalog.format_contract import Scan, chosen
from skyfill.catalog.table import with_facts
from skyfill.errors import CatalogError

__all__ = ["KIND", "scan", "writer"]

KIND = "FITS table"


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
    """Find out that a file is truncated before any of its rows is used."""
    expected, found = table.start + table.n_rows * table.rows.itemsize, os.path.getsize(path)
    if found < expected and not is_gzipped(path):
        raise CatalogError(
            f"the file is truncated: {table.n_rows} rows end at byte {expected}, the file at "
            f"byte {found}; fetch it again"
        )


def _batches(
    path: Path, table: FitsTable, kept: list[int], batch_rows: int
) -> Iterator[pa.RecordBatch]:
    names = [table.columns[k].name for k in kept]
    with open_bytes(path) as stream:
        heap = _heap(stream, table) if any(table.columns[k].code in "PQ" for k in kept) else b""
        stream.seek(table.start)
        for done in range(0, table.n_rows, batch_rows):
            n_rows = min(batch_rows, table.n_rows - done)
            data = stream.read(n_rows * table.rows.itemsize)
            if len(data) < n_rows * table.rows.itemsize:
                raise CatalogError(f"the file is truncated after row {done}; fetch it again")
            rows = np.frombuffer(data, table.rows, n_rows)
            yield pa.RecordBatch.from_arrays(_decoded(table, kept, rows, heap), names=names)


def _heap(stream: IO[bytes], table: FitsTable) -> bytes:
    start, end = table.heap
    stream.seek(start)
    return stream.read(max(0, end - start))


def _decoded(table: FitsTable, kept: list[int], rows: np.ndarray, heap: bytes) -> list[pa.Array]:
    arrays = []
    for k in kept:
        column, cells = table.columns[k], np.ascontiguousarray(rows[f"f{k}"])
        is_list = column.code in "PQ"
        arrays.append(decode_lists(column, cells, heap) if is_list else decode(column, cells))
    return arrays
