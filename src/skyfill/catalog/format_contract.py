"""What the module of a format provides: a scan to read, and a writer of batches."""

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from skyfill.catalog.arrays import normalized
from skyfill.catalog.file_io import reading
from skyfill.catalog.table import nearest, normalized_schema, refuse_repeated_names
from skyfill.errors import CatalogError
from skyfill.limits import check_limit


@dataclass(frozen=True)
class Scan:
    """A file opened for reading: its schema, and its rows in batches.

    The file is open from the first batch to the last, or until the scan is closed: by `close`, or
    at the end of a ``with`` block.

    Parameters
    ----------
    schema : pyarrow.Schema
        With the metadata of `ColumnInfo` and of the table.
    batches : generator of pyarrow.RecordBatch
        To be read once.
    notes : tuple of str
        What is unusual about the file, which is read all the same.
    """

    schema: pa.Schema
    batches: Generator[pa.RecordBatch]
    notes: tuple[str, ...] = ()

    def close(self) -> None:
        """Close the file, whether or not all batches have been read."""
        self.batches.close()

    def __enter__(self) -> "Scan":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@dataclass(frozen=True)
class BatchWriter:
    """A file opened for writing.

    Parameters
    ----------
    write : callable
        Appends the rows of a record batch.
    """

    write: Callable[[pa.RecordBatch], None]


def plain_scan(path: Path, kind: str, scan: Scan) -> Scan:
    """Normalize the scan of a format, and name the file in every error."""
    n_columns = len(scan.schema)
    check_limit("columns", n_columns, f"the table has {n_columns} columns", CatalogError)
    refuse_repeated_names(scan.schema.names)
    schema = normalized_schema(scan.schema)
    return Scan(schema, _plain_batches(path, kind, scan.batches, schema), scan.notes)


def chosen(names: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """Check the requested columns; without a request, return all of them."""
    if columns is None:
        return list(names)
    for name in columns:
        if name not in names:
            raise CatalogError(f"no column {name!r}; {nearest(name, names)}")
    return list(columns)


def sliced(batch: pa.RecordBatch, batch_rows: int) -> Generator[pa.RecordBatch]:
    """Split a batch into parts of at most `batch_rows` rows."""
    for start in range(0, batch.num_rows, batch_rows):
        yield batch.slice(start, batch_rows)


def _plain_batches(
    path: Path, kind: str, batches: Generator[pa.RecordBatch], schema: pa.Schema
) -> Generator[pa.RecordBatch]:
    with closing(batches):
        while True:
            # Only errors of the reader are due to the file, not those of the caller in between.
            with reading(path, kind):
                batch = next(batches, None)
                if batch is None:
                    return
                columns = [normalized(column) for column in batch.columns]
                plain = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield plain
