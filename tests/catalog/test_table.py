"""The table: columns that know what they are, and never change."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.catalog import ColumnInfo, Reason, Role, Table
from skyfill.catalog.arrays import is_number
from skyfill.errors import CatalogError


@pytest.fixture
def table():
    return Table.from_columns(
        {"id": ["a", "b", "c"], "J": [14.2, np.nan, 15.1], "n": [1, None, 3]},
        info={"J": ColumnInfo(unit="mag", role=Role.FEATURE)},
        meta={"citation": "Jones 2017"},
    )


def test_nan_becomes_null_and_null_becomes_nan(table):
    assert table.column("J").null_count == 1
    np.testing.assert_array_equal(table.numbers("J", "n"), [[14.2, 1], [np.nan, np.nan], [15.1, 3]])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([1.5, 2.5], ">f8"), [1.5, 2.5]),
        (np.ma.MaskedArray([1, 2], [False, True]), [1, None]),
        (np.array(["a", "bc"]), ["a", "bc"]),
        (np.array([b"a", b"bc"]), ["a", "bc"]),
        (np.array(["a", None], object), ["a", None]),
        (pa.chunked_array([["x"], ["y"]]), ["x", "y"]),
        (pa.array(["x", "x"]).dictionary_encode(), ["x", "x"]),
        (np.float16([1.5, np.nan]), [1.5, None]),
        (np.array([[1.0, np.nan], [3.0, 4.0]]), [[1.0, None], [3.0, 4.0]]),
    ],
)
def test_values_of_any_kind_become_plain_columns(values, expected):
    assert Table.from_columns({"x": values}).column("x").to_pylist() == expected


def test_changes_leave_the_original_as_it_was(table):
    before = table.arrow
    changed = table.with_info("J", role=Role.LABEL, unit=None).with_column("n", ["x", "y", "z"])
    changed = changed.with_meta(note="new").drop(["id"])
    assert table.arrow is before
    assert changed.names == ("J", "n")
    assert changed.info("J") == ColumnInfo(role=Role.LABEL)
    assert changed.meta == {"citation": "Jones 2017", "note": "new"}
    assert table.info("J").unit == "mag"


def test_a_replaced_column_keeps_its_place_and_what_is_known_of_it(table):
    changed = table.with_column("J", [1, 2, 3])
    assert changed.names == table.names
    assert changed.info("J") == table.info("J")


def test_metadata_of_others_stays(table):
    field = table.arrow.schema.field("J").with_metadata({"unit": "mag", "survey": "2MASS"})
    arrow = table.arrow.cast(table.arrow.schema.set(1, field))
    changed = Table(arrow).with_info("J", unit="Jy")
    assert changed.arrow.schema.field("J").metadata == {b"survey": b"2MASS", b"unit": b"Jy"}


def test_reasons_live_in_a_companion_column(table):
    table = table.with_reasons("J", [None, Reason.UNDETECTED, None])
    assert table.reasons("J").to_pylist() == [None, "undetected", None]
    assert table.info("J_gap") == ColumnInfo(role=Role.REASON, of="J")
    assert table.names_with(Role.REASON) == ("J_gap",)
    assert table.reasons("n").to_pylist() == [None, None, None]
    again = table.with_reasons("J", ["rejected", None, None])
    assert again.names == table.names


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (lambda t: t.column("j"), r"no column 'j'; did you mean 'J'\?"),
        (lambda t: t.column("zzz"), "no column 'zzz'; the columns are id, J, n"),
        (lambda t: t.select(["J", "K"]), "no column 'K'"),
        (lambda t: t.numbers("id"), "column 'id', row 1: 'a' is not a number"),
        (lambda t: t.with_info("J", role="star"), "no role 'star'; the roles are identifier"),
        (lambda t: t.with_column("x", [1]), "column 'x' has 1 values, the table 3 rows"),
        (lambda t: t.with_reasons("J", ["lost"] * 3), "column 'J': no reason 'lost'"),
        (lambda t: t.with_column("x", [1, "a", None]), "mixed types"),
        (lambda t: Table.from_columns({"a": [1], "b": [1, 2]}), "columns differ in length"),
        (lambda t: Table.from_columns({"a": [1]}, info={"b": ColumnInfo()}), "no column 'b'"),
        (lambda t: Table.from_columns({}).column("J"), "the table has no columns"),
    ],
)
def test_mistakes_are_named(table, task, message):
    with pytest.raises(CatalogError, match=message):
        task(table)


def test_an_arrow_table_of_another_program_is_taken_over():
    arrow = pa.table(
        {"x": pa.array([1.5, float("nan")]), "k": pa.array(["a", "b"], "large_string")}
    )
    table = Table.from_arrow(arrow.replace_schema_metadata({"pandas": "{}", "other": "kept"}))
    assert table.column("x").to_pylist() == [1.5, None]
    assert table.arrow.schema.field("k").type == pa.string()
    assert table.arrow.schema.metadata == {b"other": b"kept"}


@pytest.mark.parametrize("cell", ["1_000", "bright", "", "0x10", "1,5"])
def test_what_no_catalog_writes_for_a_number_is_text(cell):
    table = Table.from_columns({"J": [" 14.2 ", None, cell]})
    with pytest.raises(CatalogError, match="column 'J', row 3"):
        table.numbers("J")


def test_booleans_and_texts_of_numbers_are_numbers():
    table = Table.from_columns({"flag": [True, None], "text": ["1.5", "07"]})
    np.testing.assert_array_equal(table.numbers("flag", "text"), [[1, 1.5], [np.nan, 7]])


@given(st.text("0123456789.eE+-naif xX_", max_size=6))
def test_a_text_is_a_number_where_arrow_reads_it_as_one(cell):
    try:
        pa.scalar(cell.strip()).cast(pa.float64())
        reads = True
    except pa.ArrowInvalid:
        reads = False
    assert is_number(cell) is reads


def test_a_table_goes_to_astropy_and_back_with_gaps_units_and_ucds():
    info = {"J": ColumnInfo("mag", "phot.mag;em.IR.J", "J magnitude")}
    columns = {"id": ["a", None], "J": [14.2, None], "n": [1, None], "good": [True, None]}
    table = Table.from_columns(columns, info=info)
    there = table.to_astropy()
    assert str(there["J"].unit) == "mag"
    assert there["J"].mask.tolist() == [False, True]
    again = Table.from_astropy(there)
    assert again.arrow.to_pydict() == table.arrow.to_pydict()
    assert again.info("J") == table.info("J")


def test_a_table_goes_to_pandas_and_back_with_gaps_and_large_numbers():
    pytest.importorskip("pandas")
    table = Table.from_columns({"id": [2**53 + 1, None], "J": [14.2, None], "s": ["a", None]})
    frame = table.to_pandas()
    assert frame["J"].isna().tolist() == [False, True]
    assert Table.from_pandas(frame).arrow.to_pydict() == table.arrow.to_pydict()
