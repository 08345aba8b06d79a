"""Catalogues in parts: every row once, in the batches of the whole file."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyfill.catalog import Table, write_table
from skyfill.scale.inputs import BATCH_ROWS, Part, open_source, plan_parts, read_in_batches


def test_parts_cover_every_row_once_whatever_the_row_groups(tmp_path):
    for k, (n, group) in enumerate([(0, 10), (1, 1), (200_000, 7_000), (150_000, 150_000)]):
        path = tmp_path / f"{k}.parquet"
        pq.write_table(pa.table({"x": np.arange(n)}), path, row_group_size=group)
        parts = plan_parts([path], part_rows=60_000)
        rows = [t.numbers("x")[:, 0] for part in parts for _, t in part.tables()]
        assert np.array_equal(np.concatenate([*rows, []]), np.arange(n))
        sizes = [len(table) for part in parts for _, table in part.tables()]
        assert sizes[:-1] == [BATCH_ROWS] * (len(sizes) - 1)


def test_a_batch_that_was_read_is_that_of_a_part(tmp_path):
    path = tmp_path / "a.csv"
    write_table(Table.from_columns({"x": np.arange(5.0)}), path)
    (batch,) = read_in_batches(path)
    (mine,), (theirs,) = batch.tables(), Part(str(path)).tables()
    assert mine[0] == theirs[0] == 0
    assert mine[1].arrow.equals(theirs[1].arrow)


def test_rows_are_counted_where_the_header_holds_their_number(tmp_path):
    for name, rows in {"a.parquet": 3, "b.fits": 2, "c.csv": None}.items():
        write_table(Table.from_columns({"x": np.arange(float(rows or 1))}), tmp_path / name)
        source = open_source(tmp_path / name)
        assert source.count_rows() == rows
        assert source.is_one_file
        assert source.checked_files == [tmp_path / name]
        assert source.table().names == ("x",)
