"""A table with gaps that several tests share, and how HATS catalogues are read back."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.scale.hats import hats_files, open_hats, stored_schema

INFO = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "I")}


def make_table(n, seed=0):
    rng = np.random.default_rng(seed)
    v = rng.normal(18, 1, n)
    i = np.where(rng.random(n) < 0.3, np.nan, v - 0.8 + rng.normal(0, 0.2, n))
    return Table.from_columns({"id": np.arange(n), "V": v, "I": i}, info=INFO)


def explained_table(n=400, seed=0):
    table = make_table(n, seed)
    gaps = np.isnan(table.numbers("I")[:, 0])
    return table.with_reasons("I", ["unmatched" if gap else None for gap in gaps])


def read_hats_table(path):
    """Read a whole HATS catalogue, in its order of rows, without the index."""
    opened = open_hats(path)
    schema = stored_schema(opened)
    tables = [pq.read_table(file, partitioning=None) for file in hats_files(opened)]
    arrow = pa.concat_tables(tables, promote_options="default").select(list(opened.columns))
    fields = [f.with_metadata(schema.field(f.name).metadata) for f in arrow.schema]
    described = pa.schema(fields, metadata=schema.metadata)
    return Table.from_arrow(pa.Table.from_arrays(arrow.columns, schema=described))
