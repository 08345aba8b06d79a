"""Law: what is written is read back, in every format."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.catalog import (
    ColumnInfo,
    Provenance,
    Role,
    Table,
    open_writer,
    read_batches,
    read_table,
    write_table,
)

from .strategies import EXTENSIONS, tables


def assert_same(found: Table, expected: Table) -> None:
    assert found.names == expected.names
    assert found.arrow.schema.types == expected.arrow.schema.types
    for name in expected.names:
        assert found.column(name).to_pylist() == expected.column(name).to_pylist()
        assert found.info(name) == expected.info(name)


@pytest.mark.parametrize("extension", EXTENSIONS)
@given(table=tables())
@settings(max_examples=60)
def test_a_table_comes_back_as_it_was(extension, table):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{extension}"
        write_table(table, path)
        found = read_table(path)
        assert_same(found, table)
        assert found.meta == table.meta
        assert found.reasons(table.names[0]).equals(table.reasons(table.names[0]))


@pytest.mark.parametrize("extension", ["parquet", "fits", "vot.gz", "ecsv"])
@given(table=tables(), batch_rows=st.integers(1, 4))
@settings(max_examples=25)
def test_batches_written_and_read_are_the_table(extension, table, batch_rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{extension}"
        with open_writer(path, table.arrow.schema) as writer:
            for batch in table.arrow.to_batches(max_chunksize=batch_rows):
                writer.write(batch)
        batches = list(read_batches(path, batch_rows=batch_rows))
        assert all(batch.num_rows <= batch_rows for batch in batches)
        if batches:
            assert_same(Table(pa.Table.from_batches(batches)), table)


@pytest.mark.parametrize("extension", EXTENSIONS)
@given(table=tables(), data=st.data())
@settings(max_examples=15)
def test_chosen_columns_come_in_the_order_asked_for(extension, table, data):
    names = data.draw(st.lists(st.sampled_from(table.names), min_size=1, unique=True))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table.{extension}"
        write_table(table, path)
        assert_same(read_table(path, columns=names), table.select(names))


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_provenance_and_limits_travel_along(extension, tmp_path):
    source = tmp_path / "source.csv"
    source.write_text("J\n1\n")
    table = Table.from_columns(
        {"J": [14.2, None], "J_limit": [None, 18.5]},
        info={
            "J": ColumnInfo("mag", "phot.mag;em.IR.J", "J magnitude", Role.FEATURE),
            "J_limit": ColumnInfo("mag", None, None, Role.LIMIT, "J"),
        },
    ).with_reasons("J", [None, "undetected"])
    path = tmp_path / f"out.{extension}"
    write_table(table, path, provenance=Provenance("skyfill é", [source], seed=7, model="m1"))
    found = read_table(path)
    assert_same(found, table)
    record = json.loads(found.meta["provenance"])
    assert record["command"] == "skyfill é"
    assert (record["seed"], record["model"]) == (7, "m1")
    # printf 'J\n1\n' | sha256sum
    sha256 = "e151b94d5f3e8a845b95ce5d886bf8ba244e8fd21b5204817f011e3b86f66da1"
    assert record["inputs"] == [{"file": str(source), "sha256": sha256}]


@pytest.mark.parametrize("extension", ["parquet", "fits", "vot"])
def test_vectors_of_numbers_keep_their_length(extension, tmp_path):
    table = Table.from_columns({"flux": [[1.0, 2.0], [3.0, 4.0]]})
    fixed = pa.array([[1.0, 2.0], [3.0, None]], pa.list_(pa.float64(), 2))
    table = table.drop(["flux"]).with_column("flux", fixed)
    write_table(table, tmp_path / f"t.{extension}")
    assert_same(read_table(tmp_path / f"t.{extension}"), table)


@pytest.mark.parametrize("extension", ["fits", "vot", "csv"])
def test_times_become_iso_text(extension, tmp_path):
    moments = pa.array([0, None], pa.timestamp("s"))
    write_table(Table.from_columns({"t": moments}), tmp_path / f"t.{extension}")
    found = read_table(tmp_path / f"t.{extension}").column("t").to_pylist()
    assert found == ["1970-01-01 00:00:00", None]


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_equal_tables_give_equal_bytes(extension, tmp_path):
    table = Table.from_columns({"id": ["a", "b"], "J": [1.5, None]})
    paths = [tmp_path / f"{name}.{extension}" for name in "ab"]
    for path in paths:
        write_table(table, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_reading_parquet_in_batches_keeps_only_the_batch(tmp_path):
    path = tmp_path / "t.parquet"
    rng = np.random.default_rng(1)
    batch = pa.RecordBatch.from_pydict({f"x{k}": rng.random(20_000) for k in range(8)})
    with open_writer(path, batch.schema) as writer:
        for _ in range(30):
            writer.write(batch)
    held = []
    for part in read_batches(path, batch_rows=20_000):
        held.append(pa.total_allocated_bytes())
        del part
    assert len(held) == 30
    assert held[-1] - held[4] < 2 * batch.nbytes
