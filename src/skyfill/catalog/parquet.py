"""Parquet: the format for computing; only the columns and row groups needed are read."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.column_info import described, text
from skyfill.catalog.ecsv_header import header_infos
from skyfill.catalog.format_contract import BatchWriter, Scan, chosen

KIND = "Parquet file"
_BUFFER_BYTES = 1 << 18
# astropy keeps units and descriptions as YAML under this key, and masks in separate columns.
_ASTROPY_KEY = b"table_meta_yaml"


def scan(path: Path, columns: Sequence[str] | None, batch_rows: int) -> Scan:
    """Open a Parquet file; only the pages of `columns` are read."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        metadata = file.metadata
        schema, masks = _from_astropy(file.schema_arrow)
    names = chosen([name for name in schema.names if name not in masks.values()], columns)
    fields = [schema.field(name) for name in names]
    read = names + [masks[name] for name in names if name in masks]
    schema = pa.schema(fields, metadata=schema.metadata)

    def batches() -> Generator[pa.RecordBatch]:
        # By default, pyarrow keeps everything it has read until the file is closed.
        how: dict[str, Any] = {"pre_buffer": False, "buffer_size": _BUFFER_BYTES}
        with pq.ParquetFile(path, metadata=metadata, **how) as file:
            for batch in file.iter_batches(batch_size=batch_rows, columns=read):
                # In order, with nulls where a mask of astropy is set.
                columns = [_column(batch, name, masks.get(name)) for name in names]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return Scan(schema, batches())


@contextmanager
def writer(stream: IO[bytes], schema: pa.Schema, path: Path) -> Iterator[BatchWriter]:
    """Write Parquet with one row group per batch."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(stream, schema) as file:
        yield BatchWriter(file.write_batch)


def _column(batch: pa.RecordBatch, name: str, mask: str | None) -> pa.Array:
    column = batch.column(name)
    return column if mask is None else pc.if_else(batch.column(mask), None, column)


def _from_astropy(schema: pa.Schema) -> tuple[pa.Schema, dict[str, str]]:
    """Read units and descriptions of a file that astropy wrote, and find its masks."""
    metadata = dict(schema.metadata or {})
    if _ASTROPY_KEY not in metadata:
        return schema, {}
    for name, info in header_infos(text(metadata.pop(_ASTROPY_KEY)).splitlines()).items():
        index = schema.get_field_index(name)
        if index >= 0:
            schema = schema.set(index, described(schema.field(index), info))
    masks = {name: f"{name}.mask" for name in schema.names if f"{name}.mask" in schema.names}
    return schema.with_metadata(metadata), masks
