"""Numbers that surely mean gaps: taken when a model learns, and cell by cell when it is used."""

import json
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from skyfill.catalog import ColumnInfo, Role, Schema, Table, declare, write_table
from skyfill.classify import CatalogClassifier
from skyfill.cli import main
from skyfill.errors import CatalogError, SentinelWarning
from skyfill.impute import NetworkImputer, OneNetworkImputer
from skyfill.model import (
    classify_table,
    fill_table,
    load_model,
    save_model,
    train,
    train_classifier,
)
from skyfill.model.cells import cells_of
from skyfill.model.declared import cleaned, overridden, rejected_cells
from skyfill.network import learn_one_network
from skyfill.scale import train_file

QUICK = {"n_components": 1, "n_fits": 1}
NAMES = ("G", "BP", "J", "W1", "pm")


def stars(n=1000, seed=0):
    """Stars of many colors, with errors of 0.03 mag; a fifth of W1 is not there."""
    rng = np.random.default_rng(seed)
    color, G = rng.gamma(3, 0.5, n), rng.normal(16, 1.5, n)
    noise = rng.normal(0, 0.03, (n, 3))
    BP, J = G + 0.4 * color + noise[:, 0], G - 0.9 * color + noise[:, 1]
    W1 = G - 1.5 * color + noise[:, 2]
    columns = {"G": G, "BP": BP, "J": J, "W1": W1, "pm": rng.normal(0, 20, n)}
    return columns, rng.random(n) < 0.2, rng.random(n) < 0.2


def with_sentinels(lost, bad, columns, nothing=-999.0):
    W1 = np.where(lost, np.nan, np.where(bad, nothing, columns["W1"]))
    return Table.from_columns(columns | {"W1": W1})


@cache
def clean_model(**how):
    columns, lost, bad = stars()
    table = with_sentinels(lost, bad, columns, np.nan)
    return train(table, NAMES, **(QUICK | how))[0]


def numbers_of(model):
    return [np.asarray(each) for fit in model.network.fits for each in fit[:3]]


def test_sentinels_do_not_spoil_what_is_filled_in_other_rows():
    columns, lost, bad = stars()
    error = []
    for nothing in (-999.0, np.nan):
        table = with_sentinels(lost, bad, columns, nothing)
        W1 = fill_table(train(table, NAMES, **QUICK)[0], table).numbers("W1")[:, 0]
        error.append(np.sqrt(np.mean((W1 - columns["W1"])[lost & ~bad] ** 2)))
    assert error[0] == error[1]
    assert error[0] < 0.1


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 9), st.sampled_from([-999.0, -99.0, 99.99, 9999.0, 1e20]))
def test_a_table_with_gaps_for_its_sentinels_gives_the_same_model(seed, nothing):
    columns, lost, bad = stars(150, seed)
    one, other = (
        train(with_sentinels(lost, bad, columns, value), NAMES, **QUICK)[0]
        for value in (nothing, np.nan)
    )
    assert one.found == {"W1": (nothing,)}
    assert not other.found
    for a, b in zip(numbers_of(one), numbers_of(other), strict=True):
        assert_array_equal(a, b)


def test_a_classifier_learns_the_same_from_sentinels_and_from_gaps():
    columns, lost, bad = stars(300)
    kind = np.where(columns["G"] - columns["J"] > 1.2, "M", "G")
    imputer = NetworkImputer(1, n_fits=1, refine=None)
    small = CatalogClassifier("forest", n_trees=10, imputer=imputer, random_state=0)
    new = with_sentinels(*stars(50, 1)[1:], stars(50, 1)[0])
    found = []
    for nothing in (-999.0, np.nan):
        table = with_sentinels(lost, bad, columns, nothing).with_column("class", kind)
        field = with_sentinels(*stars(200, 2)[1:], stars(200, 2)[0], nothing)
        for more in ({}, {"field": field}):
            model = train_classifier(table, NAMES, "class", classifier=small, **more)[0]
            found.append(
                classify_table(model, new).numbers("sf_p_M", "sf_entropy", "sf_outlier_score")
            )
    assert_array_equal(found[0], found[2])
    assert_array_equal(found[1], found[3])


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.floats(-30, 60) | st.sampled_from([-999.0, -99.0, -9.99, 99.99, 9.99, 9999.0, 99.0]),
        min_size=1,
        max_size=12,
    ),
    st.lists(st.sampled_from([-999.0, 99.99, 15.0]), max_size=40),
)
def test_each_cell_is_judged_alone(values, others):
    model, table = clean_model(), Table.from_columns({"W1": [*values, *others]})
    together = rejected_cells(model, table).get("W1", np.zeros(len(table), bool))
    alone = [bool(rejected_cells(model, Table.from_columns({"W1": [value]}))) for value in values]
    assert together[: len(values)].tolist() == alone
    assert alone == [v in (-999, -99, -9.99, 99.99, 9999, 99) for v in values]
    # A file in which all numbers are whole has no other gaps.
    whole = [99, -999, 15, *map(int, others)]
    (marked,) = rejected_cells(model, Table.from_columns({"W1": whole})).values()
    assert marked[:3].tolist() == [True, True, False]
    # What was put in order once is so.
    again = cleaned(model, table)
    assert not rejected_cells(model, again)
    assert cleaned(model, again).arrow.equals(again.arrow)


@pytest.mark.parametrize("learn", [None, learn_one_network])
def test_a_model_of_a_clean_table_does_not_use_sentinels(learn):
    model = clean_model() if learn is None else clean_model_of_one()
    columns, lost, bad = stars(seed=3)
    table = with_sentinels(lost, bad, columns)
    done = fill_table(model, table)
    W1, reasons = done.numbers("W1")[:, 0], done.column("W1_was").to_pylist()
    assert W1.min() > 0
    assert reasons == ["rejected" if b and not x else None for b, x in zip(bad, lost, strict=True)]
    marked = [word == "filled" for word in done.column("W1_gap").to_pylist()]
    assert marked == (bad | lost).tolist()
    given_up = fill_table(model, with_sentinels(lost, bad, columns, np.nan))
    assert_array_equal(done.numbers("W1", "W1_sd"), given_up.numbers("W1", "W1_sd"))
    # Batches have the columns of the whole.
    for part in (done.arrow.schema, fill_table(model, Table(table.arrow.slice(0, 0))).arrow.schema):
        assert part.equals(given_up.arrow.schema)


@cache
def clean_model_of_one():
    columns, lost, bad = stars()
    table, how = with_sentinels(lost, bad, columns, np.nan), {"score": "bic", "margins": False}
    return train(table, NAMES, learn=learn_one_network, **how)[0]


def test_a_single_sentinel_is_a_value_in_training_and_a_gap_where_a_model_is_used():
    columns, *_ = stars(200)
    columns["W1"][3] = -999.0
    model = train(Table.from_columns(columns), NAMES, **QUICK)[0]
    assert not model.found
    one = Table.from_columns({"W1": [-999.0]})
    assert not rejected_cells(model, one)  # it is a value of the training set
    assert rejected_cells(clean_model(), one)


def test_what_is_declared_wins():
    columns, lost, bad = stars()
    table = with_sentinels(lost, bad, columns)
    keep = Schema.from_toml("columns.W1.sentinels = []")
    model = train(table, NAMES, rules=keep, **QUICK)[0]
    assert not model.found
    assert not rejected_cells(model, table)
    assert not rejected_cells(overridden(clean_model(), keep), table)
    errors = Table.from_columns(
        {"e_W1": [99.99]}, info={"e_W1": ColumnInfo(role=Role.ERROR, of="W1")}
    )
    assert rejected_cells(overridden(clean_model(), keep), errors)
    keep = Schema.from_toml("columns.e_W1.sentinels = []")
    assert not rejected_cells(overridden(clean_model(), keep), errors)
    beyond = Schema.from_toml("columns.W1.undetected = [-999]")
    declared = beyond.apply(table)
    model = train(declared, NAMES, rules=beyond, **QUICK)[0]
    assert not model.found
    assert fill_table(model, table).column("W1_was").to_pylist().count("undetected") == sum(
        bad & ~lost
    )


@pytest.mark.parametrize("nothing", [-999.0, 9.999, 99.0])
def test_a_sentinel_among_errors_is_a_missing_error(nothing):
    columns, lost, bad = stars()
    columns["W1"][lost] = np.nan
    e_W1 = np.where(bad, nothing, np.random.default_rng(1).uniform(0.5, 0.9, 1000).round(3))
    info = {"e_W1": ColumnInfo(role=Role.ERROR, of="W1")}
    one, other = (Table.from_columns(columns | {"e_W1": e}, info=info)
                  for e in (e_W1, np.where(bad, np.nan, e_W1)))  # fmt: skip
    models = [train(table, NAMES, errors="on", **QUICK)[0] for table in (one, other)]
    assert [model.found for model in models] == [{"e_W1": (nothing,)}, {}]
    for a, b in zip(*map(numbers_of, models), strict=True):
        assert_array_equal(a, b)
    for model in models:
        errors = cells_of(model, Table(one.arrow.slice(0, 50)))[0].errors[:, 3]
        assert np.isnan(errors[bad[:50]]).all() or nothing == 9.999


def test_counts_of_99_and_values_near_those_seen_are_no_gaps():
    rng = np.random.default_rng(0)
    columns = {"n": rng.poisson(20, 300), "m": rng.poisson(20, 300).astype(float)}
    model = train(Table.from_columns(columns), ["n", "m"], **QUICK)[0]
    new = Table.from_columns({"n": [99, -99, 9999, None], "m": [999.0, -99.0, 9999.0, 99.0]})
    assert {name: cells.tolist() for name, cells in rejected_cells(model, new).items()} == {
        "n": [False, True, True, False],
        "m": [False, True, True, False],
    }


def test_an_error_in_percent_says_nothing_of_sentinels():
    table = Table.from_columns(
        {"G": [16.0, 17.0], "e_G": [5.0, 999.0]},
        info={"G": ColumnInfo("mag"), "e_G": ColumnInfo("%", role=Role.ERROR, of="G")},
    )
    columns, lost, bad = stars()
    known = with_sentinels(lost, bad, columns, np.nan).with_info("G", unit="mag")
    model = train(known, NAMES, **QUICK)[0]
    assert rejected_cells(model, table) == {}


def test_units_of_a_table_are_respected():
    columns, *_ = stars()
    table = Table.from_columns(columns, info={"G": ColumnInfo("mag")})
    model = train(table, NAMES, **QUICK)[0]
    mmag = Table.from_columns({"G": [9999.0, 99999.0, -999.0]}, info={"G": ColumnInfo("mmag")})
    assert rejected_cells(model, mmag)["G"].tolist() == [False, True, True]


def test_what_was_found_is_in_the_file_of_a_model(tmp_path):
    columns, lost, bad = stars(200)
    model = train(with_sentinels(lost, bad, columns), NAMES, **QUICK)[0]
    save_model(model, tmp_path / "m.skyfill")
    again = load_model(tmp_path / "m.skyfill")
    assert again.found == {"W1": (-999.0,)}
    assert again.identifier == model.identifier
    done = CliRunner().invoke(main, ["show", str(tmp_path / "m.skyfill"), "--json"])
    facts = json.loads(done.stdout)
    assert (facts["found"], facts["declared"]) == ({"W1": [-999.0]}, {})


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
def test_a_file_of_any_size_gives_what_a_table_in_memory_gives(tmp_path, kind):
    columns, lost, bad = stars(2000)
    for nothing in (99.999, np.nan):
        table = with_sentinels(lost, bad, columns, nothing)
        arrow = table.arrow.cast(pa.schema([(name, kind) for name in table.names]))
        write_table(Table(arrow), tmp_path / f"{nothing}.parquet")
    models = [
        train_file(tmp_path / f"{nothing}.parquet", NAMES, sample_rows=500, **QUICK).model
        for nothing in (99.999, np.nan)
    ]
    assert models[0].found == {"W1": (99.999,)}
    for a, b in zip(*map(numbers_of, models), strict=True):
        assert_array_equal(a, b)
    assert models[0].network.support.ends.max() < 60


@pytest.mark.parametrize("imputer", [NetworkImputer(1, n_fits=1, refine=None), OneNetworkImputer()])
def test_an_imputer_changes_no_value_and_warns_once(imputer):
    columns, lost, bad = stars(300)
    table = with_sentinels(lost, bad, columns)
    n_bad = int((bad & ~lost).sum())
    with pytest.warns(SentinelWarning, match=f"^{n_bad} cells of -999 in W1 surely") as said:
        fitted = imputer.fit(table)
    assert len(said) == 1
    assert (fitted.transform(table)[bad & ~lost, 3] == -999).all()
    fitted = imputer.fit(with_sentinels(lost, bad, columns, np.nan))
    with pytest.warns(SentinelWarning, match=f"^{n_bad} cells of -999 in W1 surely") as said:
        filled = fitted.transform(table)
    assert len(said) == 1
    assert (filled[bad & ~lost, 3] == -999).all()


def test_a_classifier_of_arrays_warns_once():
    columns, lost, bad = stars(300)
    X = with_sentinels(lost, bad, columns).numbers(*NAMES)
    y = np.where(columns["G"] - columns["J"] > 1.2, "M", "G")
    small = CatalogClassifier("forest", n_trees=5, imputer=NetworkImputer(1, n_fits=1, refine=None))
    with pytest.warns(SentinelWarning, match="cells of -999 in x3") as said:
        small.fit(X, y)
    assert len(said) == 1
    small.fit(np.where(X == -999, np.nan, X), y)
    with pytest.warns(SentinelWarning, match="cells of -999 in x3") as said:
        small.predict(X)
    assert len(said) == 1


def test_a_column_of_the_user_with_the_name_of_reasons_is_no_obstacle():
    columns, lost, bad = stars(200)
    table = with_sentinels(lost, bad, columns).with_column("W1_gap", np.arange(200.0))
    model = train(table, NAMES, **QUICK)[0]
    assert cleaned(model, table).column("W1_gap").equals(table.column("W1_gap"))
    assert cells_of(model, table)[0].values[bad & ~lost, 3].size
    assert np.isnan(cells_of(model, table)[0].values[bad, 3]).all()


def test_a_foreign_column_of_reasons_does_not_stop_a_warning(tmp_path):
    columns = {name: values[:200] for name, values in stars(seed=1)[0].items()}
    columns["W1"] = np.where(np.arange(200) % 3 == 0, columns["W1"].mean(), columns["W1"])
    table = Table.from_columns(columns | {"W1_gap": np.arange(200) % 7})
    with pytest.raises(CatalogError, match="W1_gap"):
        declare(table, {"W1": [columns["W1"][0]]})
    write_table(table, tmp_path / "t.parquet")
    save_model(clean_model(), tmp_path / "m.skyfill")
    words = ["impute", tmp_path / "m.skyfill", tmp_path / "t.parquet", "--prefix", "sf_"]
    done = CliRunner().invoke(main, [*map(str, words), "-o", str(tmp_path / "o.parquet")])
    assert done.exit_code == 0, done.output
    assert "in W1 may stand for no value" in done.stderr


def test_sixty_columns_make_one_short_line(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(18, 1, (200, 60)).round(3)
    X[::10], X[1:10:2, ::2] = -999.0, 500.0
    columns = {f"a_long_name_of_a_column_{j}": x for j, x in enumerate(X.T)}
    write_table(Table.from_columns(columns), tmp_path / "t.csv")
    words = ["train", tmp_path / "t.csv", "-o", tmp_path / "m.skyfill", "--components", 1]
    words += ["--fits", 1, "--refine", "off", "--json"]
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)["input"]
    (line,) = (line for line in done.stderr.splitlines() if "gaps (" in line)
    start = "1200 cells of -999 in a_long_name_of_a_column_0, a_long_name_of_a_column_1"
    assert line.startswith(f"guessed: {start}")
    assert line.endswith(" more are gaps (200 rows read)")
    (warning,) = (line for line in done.stderr.splitlines() if "warning:" in line)
    assert warning.startswith("warning: 500.0 × 5 in a_long_name_of_a_column_0; ")
    assert max(len(line), len(warning)) < 300
    # The lists are whole for programs.
    assert all(name in said["warned"][0] for name in [*columns][::2])
    assert any(all(name in line for name in columns) for line in said["guessed"])
    assert len(json.loads(done.stdout)["found"]) == 60


def test_declared_values_and_found_ones_are_gaps_for_the_same_reason():
    columns, lost, bad = stars(200)
    table = with_sentinels(lost, bad, columns)
    model = train(table, NAMES, **QUICK)[0]
    assert cleaned(model, table).arrow.equals(declare(table, {"W1": [-999]}).arrow)


def test_a_page_shows_no_sentinel(tmp_path):
    columns, lost, bad = stars(200)
    table = with_sentinels(lost, bad, columns).with_column("id", np.arange(200))
    write_table(table, tmp_path / "t.parquet")
    save_model(clean_model(), tmp_path / "m.skyfill")
    words = ["report", tmp_path / "m.skyfill", tmp_path / "t.parquet", "-o", tmp_path / "p.html"]
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    assert "-999" not in (tmp_path / "p.html").read_text()
