"""Sentinels are found and shown; what is unmistakable is told from what may be a value."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.catalog import Role, Table, declare, find_suspects, read_table
from skyfill.catalog.column_summary import ColumnSummary, summarize_column
from skyfill.catalog.sentinels import find_unmistakable
from skyfill.catalog.usual_values import find_usual, is_customary
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


def unmistakable(values):
    return {s.value: s.count for s in find_unmistakable(summarize_column(pa.array(values)))}


RNG = np.random.default_rng(9)
TEMPERATURES = RNG.lognormal(8.7, 0.2, 1000).round()
FLUXES = np.append(RNG.lognormal(3, 2, 1000), RNG.normal(0, 2, 300)).round(4)
MOTIONS = np.append(RNG.standard_t(2, 3000) * 8, [-1512.42]).round(3)


@pytest.mark.parametrize(
    ("measured", "sentinels"),
    [
        (MAGNITUDES, [99.99] * 2),
        (MAGNITUDES, [-99.0] * 2),
        (MAGNITUDES, [99.999] * 9 + [-999.0] * 3 + [-99.0] * 2),
        (MAGNITUDES.astype("f4"), [99.999] * 3),
        (ERRORS, [9.999] * 2),
        (ERRORS, [-9.99] * 2 + [99.0] * 2),
        (TEMPERATURES, [-999.0] * 2),
        (TEMPERATURES.astype(int), [-9999] * 2),
        (FLUXES, [-9999.0] * 2),
        (FLUXES, [1e20] * 2 + [-9999.0] * 5),
        (MOTIONS, [-999.0] * 60),
        (MAGNITUDES - 17, [-99.0] * 2),
        (RNG.poisson(4, 1000), [-99] * 2 + [9999] * 2),
        (RNG.uniform(0, 90, 1000).round(1), [99.9] * 80),
        (TEMPERATURES.astype("i2"), [-(2**15)] * 2),
    ],
)
def test_unmistakable_sentinels_are_found(measured, sentinels):
    values = np.append(measured, np.array(sentinels, measured.dtype))
    assert unmistakable(values) == Counter(sentinels)


@pytest.mark.parametrize(
    "values",
    [
        MAGNITUDES,
        np.append(MAGNITUDES, [99.99]),  # one row may be anything
        np.append(TEMPERATURES, [-999.0]),
        np.append(RNG.poisson(30, 1000), [99, 99, 99]),
        np.append(RNG.poisson(300, 1000), [999] * 50).astype(float),
        np.minimum(RNG.poisson(90, 1000), 99),
        np.arange(10000) % 9998 + 2,
        RNG.choice([*range(1, 14), 99], 1000),  # codes
        np.append(RNG.choice(7, 500), [-99] * 90),  # too few others to judge by
        np.append(RNG.uniform(1, 4, 300), [9.0] * 9),  # distances
        np.append(RNG.uniform(1, 4, 300), [9.9] * 9),
        np.append(RNG.uniform(1, 4, 300), [-9.0] * 9),
        np.log10(RNG.lognormal(-22, 4, 3000)).round(2),
        np.append(RNG.normal(-9.5, 2, 5000).round(2), [-9.99] * 30),
        np.append(RNG.standard_t(2, 3000) * 8, [-999.0]),  # one fast star
        np.append(MOTIONS, [999.0]),
        np.append(RNG.uniform(0, 100, 3000).round(1), [99.9] * 500),  # percentages that end there
        np.append(RNG.uniform(0, 100, 3000).round(1), [99.9] * 500 + [100.0] * 40),
        np.append(RNG.uniform(50, 99.8, 300).round(1), [99.9] * 3),
        np.append(RNG.normal(0, 120, 3000).round(1), [-99.9] * 30),  # velocities
        np.minimum(RNG.lognormal(2, 2.5, 300), 999.9).round(3),  # periods up to a limit
        np.minimum(RNG.lognormal(8, 2, 1000).round(), 32767),  # saturated
        [5.0, np.nan] * 50,
        [None, None],
    ],
)
def test_what_may_be_measured_is_not_unmistakable(values):
    assert unmistakable(values) == {}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(-2000, 2000).map(lambda x: round(x, 2)), min_size=1, max_size=60),
    st.lists(st.sampled_from([-999.0, -99.0, -9.99, 99.99, 99.0, 9999.0, 9.0]), max_size=40),
    st.randoms(use_true_random=False),
)
def test_the_judgment_does_not_depend_on_the_order_and_is_made_once(values, more, random):
    whole = [*values, *more]
    found = unmistakable(whole)
    assert all(is_customary(value) and count > 1 for value, count in found.items())
    random.shuffle(whole)
    assert unmistakable(whole) == found
    # What is left holds nothing unmistakable any more.
    assert unmistakable([value for value in whole if value not in found]) == {}


@given(st.floats(width=32) | st.integers(-(10**12), 10**12).map(float) |
       st.sampled_from([-9.99, 99.999, 999.9999, 9.9, 9.0, -9999.0, 1e20]))  # fmt: skip
def test_the_usual_kind_is_a_part_of_what_is_customary(value):
    (usual,) = find_usual(pa.array([value]), is_whole=False)
    assert not usual or is_customary(value)
    assert usual or not is_customary(value) or abs(value) < 9.95 or not abs(value) < 1e15


def test_what_a_role_does_not_allow_is_only_proposed():
    values = summarize_column(pa.array(np.append(MAGNITUDES, [99.99] * 3)))
    for role in Role:
        (found,) = find_suspects(values, role)
        assert found.unmistakable == (role in (Role.FEATURE, Role.ERROR))
