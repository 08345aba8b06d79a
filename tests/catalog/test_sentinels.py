"""Sentinels are found and shown; only declared ones become gaps."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.catalog import Role, Table, declare, find_suspects, read_table
from skyfill.catalog.column_summary import ColumnSummary, summarize_column
from skyfill.errors import CatalogError

MAGNITUDES = np.random.default_rng(1).normal(17, 2, 1000).round(3)
ERRORS = np.abs(np.random.default_rng(2).normal(0.05, 0.02, 1000)).round(3) + 0.001


def suspects(values, role=Role.OTHER, name=""):
    found = find_suspects(summarize_column(pa.array(values)), role, name)
    return {s.value: s.count for s in found}


@pytest.mark.parametrize(
    "sentinel", [-99.0, 99.0, 99.999, -999.0, 999.9999, -9999.0, 1e20, 99.99, np.inf, -np.inf]
)
def test_customary_sentinels_among_magnitudes_are_found(sentinel):
    assert suspects(np.append(MAGNITUDES, [sentinel] * 7)) == {sentinel: 7}


def test_two_sentinels_in_one_column_are_both_found():
    assert suspects(np.append(MAGNITUDES, [99.999, -99, -99])) == {-99.0: 2, 99.999: 1}


def test_errors_of_nine_and_of_zero_are_found():
    values = np.append(ERRORS, [9.999, 9.999, 0.0])
    assert suspects(values, Role.ERROR) == {0.0: 1, 9.999: 2}


def test_a_float32_sentinel_is_shown_as_it_was_typed():
    assert suspects(np.append(MAGNITUDES, 99.999).astype("f4")) == {99.999: 1}


@pytest.mark.parametrize(
    "values",
    [
        MAGNITUDES,
        np.arange(1000),
        np.arange(-999, 1000),
        [0, 1] * 50,
        [1, 2, 3, 9] * 50,
        np.linspace(0, 99, 100),
        np.random.default_rng(3).exponential(30, 1000),
        np.random.default_rng(4).integers(0, 4, 1000),
        [5.0] * 100,
        [None, None],
    ],
)
def test_ordinary_columns_are_not_suspected(values):
    assert suspects(values) == {}


def test_a_repeated_extreme_that_lies_apart_is_found():
    assert suspects(np.append(MAGNITUDES, [50.0] * 20)) == {50.0: 20}


def test_the_only_negative_value_is_found():
    counts = np.random.default_rng(5).integers(0, 500, 1000)
    assert suspects(np.append(counts, [-1] * 30)) == {-1: 30}


def test_words_that_mean_nothing_are_found():
    assert suspects(["RRL", "N/A", "-99", "--", "Cepheid"]) == {"N/A": 1, "-99": 1, "--": 1}


def test_text_among_numbers_is_found():
    assert suspects(["14.2", "15.1", "bright"]) == {"bright": 1}


@given(st.lists(st.none() | st.sampled_from([-99.0, 0.0, 1.5, 2.5, 99.999]) | st.floats(10, 20)),
       st.integers(0, 50))  # fmt: skip
def test_summaries_of_parts_add_to_that_of_the_whole(values, cut):
    whole = pa.array(values, pa.float64())
    assert (
        summarize_column(whole[:cut]) + summarize_column(whole[cut:])
        == summarize_column(whole) + ColumnSummary()
    )


@given(st.lists(st.sampled_from("abc") | st.text(max_size=3)), st.integers(0, 50))
def test_summaries_of_texts_add_too(values, cut):
    whole = pa.array(values, pa.string())
    assert (
        summarize_column(whole[:cut]) + summarize_column(whole[cut:])
        == summarize_column(whole) + ColumnSummary()
    )


def test_a_rare_null_word_is_counted_among_many_texts():
    batches = [pa.array([f"star{i}" for i in range(k, k + 3000)] + ["N/A"]) for k in (0, 3000)]
    whole = sum(map(summarize_column, batches), ColumnSummary())
    assert whole.has_more_words
    assert [(s.value, s.count) for s in find_suspects(whole)] == [("N/A", 2)]


def test_nothing_is_converted_before_it_is_declared(tmp_path):
    (tmp_path / "t.csv").write_text("J\n14.2\n99.999\n")
    table = read_table(tmp_path / "t.csv")
    assert table.column("J").to_pylist() == [14.2, 99.999]
    assert table.names == ("J",)


def test_declared_sentinels_become_rejected_gaps():
    table = Table.from_columns({"J": [14.2, 99.999, None, -99]}).with_reasons(
        "J", [None, None, "uncovered", None]
    )
    table = declare(table, {"J": [99.999, -99]})
    assert table.column("J").to_pylist() == [14.2, None, None, None]
    assert table.reasons("J").to_pylist() == [None, "rejected", "uncovered", "rejected"]


@pytest.mark.parametrize(
    ("values", "sentinels", "expected"),
    [
        (np.array([1.5, 99.999], "f4"), [99.999], [1.5, None]),
        (np.array([1, -99], "i2"), [-99, 1.5, 1e9, float("inf")], [1, None]),
        (np.array([1, 2], "u1"), [-99], [1, 2]),
        (["x", "N/A"], ["N/A"], ["x", None]),
        ([1.5, float("inf")], [float("inf")], [1.5, None]),
    ],
)
def test_sentinels_are_compared_in_the_type_of_the_column(values, sentinels, expected):
    table = declare(Table.from_columns({"x": values}), {"x": sentinels})
    assert table.column("x").to_pylist() == expected


def test_a_sentinel_of_the_wrong_kind_is_refused():
    with pytest.raises(CatalogError, match="column 'x' of type double cannot hold .* 'N/A'"):
        declare(Table.from_columns({"x": [1.5]}), {"x": ["N/A"]})


def test_values_that_are_measured_are_not_suspected():
    distances = np.append(np.random.default_rng(6).uniform(0.2, 4, 300), [9.0, 9.9])
    assert suspects(distances) == {}
    shares = np.random.default_rng(7).integers(0, 40, 500) / 1000  # points that do something
    assert suspects(np.append(shares, np.zeros(3000))) == {}


def test_fluxes_of_zero_are_found_also_beside_another_sentinel():
    fluxes = np.random.default_rng(8).lognormal(2, 0.3, 500) + 1
    assert suspects(np.append(fluxes, np.zeros(300)), name="flux") == {0.0: 300}
    assert suspects(np.append(fluxes, np.zeros(300)), name="share") == {}
    both = np.concatenate([fluxes, np.zeros(300), np.full(70, -1.0)])
    assert suspects(both, name="flux") == {0.0: 300, -1.0: 70}
