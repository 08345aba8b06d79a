"""Eight tables as people have them, by three lines of the shell and one that fills."""

import json

import astropy.table
import numpy as np
import pandas as pd
import polars as pl

from tests.first_hour.conftest import shell
from tests.first_hour.make_tables import make_table


def numbers(column):
    return np.ma.filled(np.ma.asarray(column).astype(float), np.nan)


def test_four_commands_need_no_terminal_and_leave_nothing_behind(hour):
    # Exit codes, processes and what was printed are looked at by the fixture.
    made = {"m.skyfill", "out.csv", "filled.csv", "page.html"}
    mine = {hour.table.train.name, hour.table.fresh.name, "lock", "tmp", "table.pickle"}
    commands = ("train", "classify", "impute", "report")
    logs = {f"{command}.{end}" for command in commands for end in ("out", "err")}
    assert {path.name for path in hour.folder.iterdir()} == made | mine | logs
    assert hour.page.read_text().startswith("<!doctype html>")
    assert all(len(line) <= 300 for command in commands for line in hour.said(command).splitlines())


def test_the_features_are_those_that_an_astronomer_would_take(hour):
    columns = hour.stated["columns"].items()
    taken = [name for name, verdict in columns if verdict["role"] == "feature"]
    assert sorted(taken) == sorted(hour.table.features)


def test_a_class_that_nobody_knows_is_no_class(hour):
    assert sorted(hour.stated["classes"]) == sorted(set(hour.table.classes))


def test_every_object_gets_a_class_and_three_programs_read_the_same_numbers(hour):
    by_pandas = pd.read_csv(hour.classified)
    by_polars = pl.read_csv(hour.classified, infer_schema_length=None)
    by_astropy = astropy.table.Table.read(hour.classified, format="ascii.csv")
    assert list(by_pandas) == by_polars.columns == by_astropy.colnames
    floats = [column for column in by_pandas if by_pandas[column].dtype == float]
    assert {"sf_entropy", *hour.table.features} <= set(floats)
    for column in floats:
        bits = by_pandas[column].to_numpy()
        np.testing.assert_array_equal(by_polars[column].cast(pl.Float64).to_numpy(), bits)
        np.testing.assert_array_equal(numbers(by_astropy[column]), bits)
    shares = by_pandas[[column for column in by_pandas if column.startswith("sf_p_")]]
    assert len(shares) == len(hour.table.classes)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-6)


def test_the_stated_quality_is_that_on_fresh_rows(hour):
    out, truth = pd.read_csv(hour.classified), hour.table.classes
    right = out["sf_class"].to_numpy(str) == truth
    p = np.select([truth == c for c in set(truth)], [out[f"sf_p_{c}"] for c in set(truth)])
    stated = hour.stated["quality"]["classes"]["methods"][0]
    for key, values in (("accuracy", right.astype(float)), ("log_loss", -np.log(p))):
        error = np.hypot(stated[key]["error"], values.std() / np.sqrt(len(values)))
        assert abs(stated[key]["value"] - values.mean()) < 3 * error, key


def test_gaps_are_filled_however_they_are_written_and_nothing_else_is(hour):
    filled = pd.read_csv(hour.filled)
    for feature, gaps in hour.table.missing.items():
        values, true = filled[feature].to_numpy(float), hour.table.true[feature]
        np.testing.assert_array_equal(values[~gaps], true[~gaps])
        assert np.isfinite(values).all(), feature
        if gaps.any():
            marked = filled[f"{feature}_gap"].notna().to_numpy()
            assert (marked == gaps).all(), feature
            assert (filled[f"{feature}_sd"][gaps] > 0).all(), feature
            # A model that has learned from -999 or 99.999 fills with the likes of them.
            width = np.ptp(true)
            assert values[gaps].min() > true.min() - width, feature
            assert values[gaps].max() < true.max() + width, feature


def test_without_a_class_the_stated_error_of_filled_values_is_that_of_gaps(tmp_path):
    table = make_table("votable", tmp_path)
    shell(tmp_path, "train", table.train.name, "-o", "m.skyfill", "--json")
    words = ("m.skyfill", table.fresh.name, "-o", "filled.csv", "--quantiles", "0.05,0.95")
    shell(tmp_path, "impute", *words)
    filled = pd.read_csv(tmp_path / "filled.csv")
    found = json.loads((tmp_path / "train.out").read_text())["quality"]["filling"]
    stated = {each["name"]: each for each in found["features"]}
    # Here each feature lacks by itself, as the values lack that were hidden to state the error.
    fair = [name for name in table.features if table.missing[name].any()]
    for name in fair:
        gaps, one = table.missing[name], stated[name]
        true = table.true[name][gaps]
        low, high = (filled[f"{name}_q{level}"][gaps] for level in (5, 95))
        inside = ((low <= true) & (true <= high)).mean()
        error = np.hypot(one["inside_90_error"], np.sqrt(0.9 * 0.1 / gaps.sum()))
        assert abs(one["inside_90"] - inside) < 3 * error, name
        # The stated one is of models that know three quarters of the rows, and has long tails.
        ratio = np.sqrt(((filled[name][gaps] - true) ** 2).mean()) / one["error"]
        assert 0.5 < ratio < 2, name
