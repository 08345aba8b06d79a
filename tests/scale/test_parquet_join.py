"""Row groups joined byte by byte: the same file as pyarrow's own writer makes."""

import io
import os
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.scale.parquet_join import JoinedFile, write_groups, writer_options

KINDS = {
    "number": lambda rng, n: pa.array(rng.normal(size=n), mask=rng.random(n) < 0.3),
    "count": lambda rng, n: pa.array(rng.integers(0, 2**60, n)),
    "word": lambda rng, n: pa.array(rng.choice(["", "QSO", "é" * 30], n), mask=rng.random(n) < 0.3),
    "flag": lambda rng, n: pa.array(rng.random(n) < 0.5),
    "list": lambda rng, n: pa.array([rng.normal(size=2).tolist() for _ in range(n)]),
    "nothing": lambda rng, n: pa.nulls(n, pa.float64()),
}


def table(rng, n, kinds, n_columns):
    arrays = [KINDS[kinds[j % len(kinds)]](rng, n) for j in range(n_columns)]
    names = [f"column {j}" for j in range(n_columns)]
    return pa.table(arrays, names).replace_schema_metadata({"provenance": "by hand"})


def joined(tables, schema=None, per_part=1):
    """Bytes of a file that is joined of parts with some row groups each."""
    schema = schema or tables[0].schema
    with TemporaryDirectory() as name:
        folder = Path(name)
        whole = JoinedFile(folder / "whole")
        for start in range(0, len(tables), per_part):
            some = tables[start : start + per_part]
            write_groups(some, schema, folder / "part")
            assert whole.add(folder / "part") == sum(map(len, some))
        whole.close(schema)
        return (folder / "whole").read_bytes()


def written(tables):
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, tables[0].schema, **writer_options(tables[0].schema)) as writer:
        for each in tables:
            writer.write_table(each)
    return sink.getvalue()


@given(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 50), min_size=1, max_size=20),
    st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=6),
    st.integers(1, 20),
    st.integers(1, 5),
)
@settings(max_examples=50)
def test_joined_row_groups_are_the_file_that_pyarrow_writes(
    seed, sizes, kinds, n_columns, per_part
):
    rng = np.random.default_rng(seed)
    tables = [table(rng, n, kinds, n_columns) for n in sizes]
    assert joined(tables, per_part=per_part) == written(tables)


def test_another_reader_understands_the_file(tmp_path):
    rng = np.random.default_rng(0)
    tables = [table(rng, n, ["number", "word", "count"], 6) for n in (40, 3, 500)]
    (tmp_path / "joined.parquet").write_bytes(joined(tables))
    found = polars.read_parquet(tmp_path / "joined.parquet")
    assert found.equals(polars.from_arrow(pa.concat_tables(tables)))


def test_no_rows_make_a_file_with_columns():
    empty = table(np.random.default_rng(0), 0, ["number", "word"], 2)
    for tables in ([], [empty]):
        found = pq.read_table(io.BytesIO(joined(tables, empty.schema)))
        assert found.equals(empty)
        assert found.schema.metadata == {b"provenance": b"by hand"}


@pytest.mark.parametrize("n_bytes", [0, 5, 100])
def test_a_part_that_was_not_written_to_its_end_is_noticed(n_bytes, tmp_path):
    rows = table(np.random.default_rng(0), 50, ["number"], 2)
    write_groups([rows], rows.schema, tmp_path / "part")
    os.truncate(tmp_path / "part", n_bytes)
    with pytest.raises(ValueError, match="not a Parquet file that was written to its end"):
        JoinedFile(tmp_path / "whole").add(tmp_path / "part")
