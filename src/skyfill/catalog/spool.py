"""Batches that wait in a temporary file until the whole column is known."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa

from skyfill.catalog.records import Facts, check_storable, facts_of, storable

_IN_MEMORY_BYTES = 1 << 28


class Spool:
    """Takes batches, gathers the facts of their columns, gives the batches back.

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"n": [1, None]})
    >>> with open_spool(batch.schema, Path("."), "FITS") as spool:
    ...     spool.write(batch)
    ...     spool.facts[0].n_null, [b.num_rows for b in spool.batches()]
    (1, [2])
    """

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        kinds = [pa.string() if pa.types.is_temporal(f.type) else f.type for f in schema]
        self.schema = schema
        self.n_rows = 0
        self.facts = [Facts() for _ in schema]
        self._plain = pa.schema([f.with_type(k) for f, k in zip(schema, kinds, strict=True)])
        self._file = file
        self._sink = pa.ipc.new_stream(file, self._plain)

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a batch."""
        columns = [storable(column) for column in batch.columns]
        found = map(facts_of, columns)
        self.facts = [old + new for old, new in zip(self.facts, found, strict=True)]
        self.n_rows += batch.num_rows
        self._sink.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._plain))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Give all batches back; nothing can be written afterwards."""
        self._sink.close()
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)


@contextmanager
def open_spool(schema: pa.Schema, folder: Path, format_name: str) -> Iterator[Spool]:
    """Open a spool that keeps what exceeds a quarter of a gigabyte in a file in `folder`."""
    for field in schema:
        check_storable(field, format_name)
    with tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, dir=str(folder)) as file:
        yield Spool(file, schema)
