"""A .csv file is plain: other programs read it without being told, to the same values."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from astropy.io import ascii as astropy_text
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyfill.catalog import ColumnInfo, Role, Table, inspect_file, read_table, write_table
from skyfill.catalog.filled_names import (
    before_info,
    filled_info,
    gap_info,
    is_filled_part,
    known_by_name,
)

FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30)
FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)
LINES = st.text('ab ,";\n#-1.', max_size=8)


def bits(values):
    return np.asarray(values, np.float64).view(np.int64).tolist()


@given(values=FLOATS, kind=st.sampled_from([pa.float64(), pa.float32()]))
@FOLDER
def test_every_reader_finds_the_same_floats(tmp_path, values, kind):
    with np.errstate(over="ignore"):
        x = pa.array(np.array(values, kind.to_pandas_dtype()), from_pandas=True)
    x = pa.array(np.nan_to_num(x.to_numpy(), posinf=1.5, neginf=-1.5), kind)
    path = tmp_path / "t.csv"
    write_table(Table.from_columns({"id": [f"s{i}" for i in range(len(x))], "x": x}), path)
    wanted = bits(x.to_numpy().astype(np.float64))
    assert bits(pd.read_csv(path)["x"]) == wanted
    assert bits(pl.read_csv(path)["x"].to_numpy()) == wanted
    assert bits(astropy_text.read(path, format="csv", fast_reader=False)["x"]) == wanted
    assert bits(read_table(path).column("x").to_numpy()) == wanted


@given(values=st.lists(st.integers(0, 300), min_size=1, max_size=9))
@FOLDER
def test_whole_numbers_stay_floats_and_integers_stay_integers(tmp_path, values):
    write_table(Table.from_columns({"x": np.array(values) / 1.0, "n": values}), tmp_path / "t.csv")
    for table in (pd.read_csv(tmp_path / "t.csv"), pl.read_csv(tmp_path / "t.csv")):
        assert [str(table[name].dtype).lower() for name in ("x", "n")] == ["float64", "int64"]
    kinds = read_table(tmp_path / "t.csv").arrow.schema.types
    assert kinds == [pa.float64(), pa.int64()]


@given(cells=st.lists(st.none() | WORDS | LINES, min_size=1, max_size=6))
@FOLDER
def test_text_with_commas_quotes_and_line_breaks_comes_back(tmp_path, cells):
    """An empty text and no text are one and the same in plain CSV."""
    cells = [cell or None for cell in cells]
    table = Table.from_columns({"name": ["star", *cells], "x": [1.5] * (len(cells) + 1)})
    write_table(table, tmp_path / "t.csv")
    found = pd.read_csv(tmp_path / "t.csv", dtype=str, keep_default_na=False)["name"]
    assert [cell or None for cell in found] == ["star", *cells]
    found = pl.read_csv(tmp_path / "t.csv", infer_schema=False)["name"]
    assert [cell or None for cell in found] == ["star", *cells]
    assert read_table(tmp_path / "t.csv").column("name").to_pylist() == ["star", *cells]


def test_the_file_is_one_line_of_names_and_rows(tmp_path):
    info = {"J": ColumnInfo("mag", "phot.mag", "Magnitude", Role.FEATURE)}
    columns = {
        "source_id": [1234567890123456789, None],
        "code": ["007", "a,b"],
        "J": [14.0, None],
        "is_bright": [True, False],
        "note": ["", 'a "star"'],
    }
    write_table(Table.from_columns(columns, info=info), tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == (
        "source_id,code,J,is_bright,note\n"
        '1234567890123456789,"007",14.0,True,""\n'
        ',"a,b",,False,"a ""star"""\n'
    )
    write_table(Table.from_columns(columns, info=info), tmp_path / "t.tsv")
    assert (tmp_path / "t.tsv").read_text().splitlines()[0] == "source_id\tcode\tJ\tis_bright\tnote"
    found = read_table(tmp_path / "t.csv")
    assert found.arrow.to_pydict() == columns | {"note": [None, 'a "star"']}
    assert read_table(tmp_path / "t.tsv").arrow.to_pydict() == found.arrow.to_pydict()
    assert found.info("J") == ColumnInfo()


def test_identifiers_of_19_digits_survive_pandas_where_it_is_told(tmp_path):
    columns = {"id": [1234567890123456789, None], "x": [1.5, 2.5]}
    write_table(Table.from_columns(columns), tmp_path / "t.csv")
    frame = pd.read_csv(tmp_path / "t.csv", dtype={"id": "Int64"})
    assert frame["id"][0] == 1234567890123456789
    assert int(pd.read_csv(tmp_path / "t.csv")["id"][0]) != 1234567890123456789
    assert pl.read_csv(tmp_path / "t.csv")["id"].to_list() == [1234567890123456789, None]


def test_a_gap_in_the_only_column_is_a_row(tmp_path):
    write_table(Table.from_columns({"x": [1.5, None, 2.5]}), tmp_path / "t.csv")
    assert len(pd.read_csv(tmp_path / "t.csv")) == len(pl.read_csv(tmp_path / "t.csv")) == 3
    assert read_table(tmp_path / "t.csv").column("x").to_pylist() == [1.5, None, 2.5]


def test_a_csv_file_with_an_ecsv_header_is_still_read(tmp_path):
    table = Table.from_columns({"J": [14.2]}, info={"J": ColumnInfo("mag")})
    write_table(table, tmp_path / "t.ecsv")
    (tmp_path / "t.ecsv").rename(tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").info("J").unit == "mag"


def written(columns, path):
    write_table(Table.from_columns(columns), path)
    return read_table(path)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_what_a_model_wrote_beside_values_is_known_by_names_and_words(name, tmp_path):
    columns = {"V": [1.5, 2.5, 3.5], "V_sd": [None, 0.1, 0.2], "V_q16": [None, 2.0, 3.0],
               "V_draw1": [None, 2.0, 3.0], "V_denoised": [1.4, None, None],
               "V_gap": [None, "filled", "filled"], "V_was": [None, "undetected", None],
               "V_x": [1.0, 2.0, 3.0], "e_V": [0.1, None, None]}  # fmt: skip
    found = written(columns, tmp_path / name)
    assert known_by_name(Table.from_columns(columns)).arrow.equals(found.arrow, check_metadata=True)
    parts = ["V_sd", "V_q16", "V_draw1", "V_denoised"]
    assert [each for each in found.names if is_filled_part(found, each)] == parts
    assert found.info("V_gap") == gap_info("V")
    assert found.info("V_was") == before_info("V")
    assert found.info("V_sd") == filled_info(ColumnInfo(), "V", "sd")
    assert found.info("V_x") == found.info("e_V") == ColumnInfo()
    # A column that the table did not have.
    del columns["V_was"]
    columns |= {"V_gap": ["filled"] * 3, "V_sd": [0.1] * 3}
    assert written(columns, tmp_path / name).info("V_gap") == gap_info("V", is_absent=True)


def test_columns_of_the_user_stay_what_they_are(tmp_path):
    lone = {"V": [1.5, 2.5], "V_sd": [0.1, 0.2], "e_V": [0.1, 0.2]}
    assert all(info == ColumnInfo() for info in map(written(lone, tmp_path / "t.csv").info, lone))
    reasons = written(lone | {"V_gap": [None, "undetected"]}, tmp_path / "t.csv")
    assert reasons.info("V_gap") == gap_info("V")
    assert reasons.info("V_sd") == ColumnInfo()
    both = written(lone | {"V_gap": [None, "filled"], "V_was": [5, 7]}, tmp_path / "t.csv")
    assert is_filled_part(both, "V_sd")
    assert both.info("V_was") == ColumnInfo()
    assert both.column("V_was").to_pylist() == [5, 7]
    for words in (["deep", "filled"], [1, 2]):
        assert written(lone | {"V_gap": words}, tmp_path / "t.csv").info("V_gap") == ColumnInfo()


def test_a_table_without_a_gap_is_known_where_nothing_was_to_be_filled(tmp_path):
    none = [None, None]
    found = written(
        {"V": [1.5, 2.5], "V_sd": none, "V_gap": none, "V_was": none}, tmp_path / "t.csv"
    )
    assert is_filled_part(found, "V_sd")
    assert found.column("V_gap").type == found.column("V_was").type == pa.string()
    assert found.reasons("V").to_pylist() == none


def test_bytes_are_written_for_every_slice_of_rows(tmp_path):
    n = (1 << 14) + 5
    write_table(Table.from_columns({"n": np.arange(n), "x": np.arange(n) / 7}), tmp_path / "t.csv")
    found = pl.read_csv(io.BytesIO((tmp_path / "t.csv").read_bytes()))
    assert found["n"].to_list() == list(range(n))
    assert bits(found["x"].to_numpy()) == bits(np.arange(n) / 7)


def test_inspect_takes_no_spread_of_filled_values_for_errors(tmp_path):
    n = 40
    columns = {"V": np.linspace(14, 18, n), "V_sd": [0.1] + [None] * (n - 1)}
    columns |= {"V_gap": ["filled"] + [None] * (n - 1), "V_was": [None] * n}
    write_table(Table.from_columns(columns), tmp_path / "t.csv")
    found = inspect_file(tmp_path / "t.csv")
    assert [column.n_without_error for column in found.columns] == [0] * 4
