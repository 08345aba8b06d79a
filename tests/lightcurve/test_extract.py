"""The table of features: units, reasons of gaps, counts of dropped epochs."""

import astropy.units
import numpy as np
import pytest

from skyfill.catalog import Role, read_table, write_table
from skyfill.datasets import simulate_field
from skyfill.errors import DataError
from skyfill.lightcurve import (
    FEATURES,
    About,
    choose_features,
    collect,
    empty_table,
    extract_features,
    from_table,
)

ABOUT = About(bands=("B", "R"))


def numbers(rng, n):
    return np.column_stack([rng.uniform(0, 100, n), rng.normal(18, 0.1, n), np.full(n, 0.1)])


@pytest.fixture(scope="module")
def field():
    return from_table(simulate_field(6, light_curves=True).light_curves)


def test_macho14_are_the_fourteen_of_the_paper(field):
    table = extract_features(field, "macho14")
    assert table.names_with(Role.FEATURE) == (
        "car_sigma", "mean", "car_tau", "sigma", "eta", "con", "stetson_l", "cusum", "color",
        "period", "period_snr", "stetson_k_ac", "n_above_4", "n_below_4",
    )  # fmt: skip
    assert np.isfinite(table.numbers(*table.names_with(Role.FEATURE))).all()
    assert len(table) == 6
    assert table.info("mean").description.endswith("; band blue")


def test_all_features_of_both_bands_survive_every_format(field, tmp_path):
    table = extract_features(field, "all")
    assert {"mean_blue", "mean_red", "period", "phase_21_red"} <= set(table.names)
    for name in ("f.fits", "f.parquet", "f.vot", "f.ecsv"):
        write_table(table, tmp_path / name)
        back = read_table(tmp_path / name)
        features = table.names_with(Role.FEATURE)
        assert np.array_equal(back.numbers(*features), table.numbers(*features), equal_nan=True)
        assert back.info("car_sigma_red").unit is not None


@pytest.mark.parametrize("feature", FEATURES.values(), ids=FEATURES)
def test_every_feature_is_described(feature):
    assert len(feature.description) > 5
    assert feature.name in FEATURES
    if feature.unit:
        astropy.units.Unit(feature.unit.format(value="mag"))
        astropy.units.Unit(feature.unit.format(value="nJy"))


def test_what_cannot_be_computed_is_a_gap_with_a_reason():
    rng = np.random.default_rng(0)
    ids = ["full"] * 80 + ["one band"] * 40 + ["few"] * 2 + ["constant"] * 20
    bands = ["B", "R"] * 40 + ["B"] * 40 + ["B", "R"] + ["B", "R"] * 10
    values = numbers(rng, len(ids))
    values[-20:, 1] = 17
    table = extract_features(collect(ids, bands, values, ABOUT), "all")
    gaps = {
        name: table.reasons(name).to_pylist() for name in ("color", "period", "eta_B", "mean_R")
    }
    assert gaps["color"] == [None, "rejected", None, None]
    assert gaps["period"] == [None, None, "rejected", "rejected"]
    assert gaps["eta_B"] == [None, None, "rejected", "rejected"]
    assert gaps["mean_R"] == [None, "rejected", None, None]
    for name in table.names_with(Role.FEATURE):
        lost = np.isnan(table.numbers(name)[:, 0])
        assert [reason is not None for reason in table.reasons(name).to_pylist()] == lost.tolist()


def test_dropped_epochs_are_counted():
    values = np.array(
        [[1, 18, 0.1], [1, 18.5, 0.2], [2, np.nan, 0.1], [3, 18, 0.0], [4, 18.1, -1],
         [5, 18.2, 0.1], [6, 18.1, 0.1], [7, 40, 0.1], [np.inf, 18, 0.1], [8, 18.2, 0.1],
         [9, 18.1, 0.1]]
    )  # fmt: skip
    curves = collect(["x"] * 11, None, values, About())
    table = extract_features(curves, "mean", clip=20)
    counts = [
        table.column(f"n_{name}")[0].as_py() for name in ("points", "bad", "duplicated", "clipped")
    ]
    assert counts == [5, 4, 1, 1]
    assert table.column("mean")[0].as_py() == pytest.approx((18 + 18.2 + 18.1 + 18.2 + 18.1) / 5)
    unclipped = extract_features(curves, "mean")
    assert unclipped.column("n_clipped")[0].as_py() == 0


def test_without_errors_features_that_need_them_are_gaps():
    rng = np.random.default_rng(1)
    curves = collect(["x"] * 50, None, numbers(rng, 50), About(has_errors=False))
    table = extract_features(curves, "all")
    missing = {name for name in table.names_with(Role.FEATURE) if table.column(name).null_count}
    two = {name for name, feature in FEATURES.items() if feature.n_bands == 2}
    assert missing - two == {"weighted_mean", "mean_error", "excess_sigma", "chi2", "stetson_k"}


def test_a_list_of_names_is_a_set_and_a_wrong_name_is_explained():
    assert [f.name for f in choose_features(["eta", "con", "eta"]).features] == ["eta", "con"]
    with pytest.raises(DataError, match="no feature 'etta'; did you mean 'eta'.*macho14 and all"):
        choose_features("mean,etta")


def test_the_first_band_alone_or_every_band():
    rng = np.random.default_rng(2)
    curves = collect(["x"] * 60, ["B", "R"] * 30, numbers(rng, 60), ABOUT)
    first = extract_features(curves, choose_features("mean,color", every_band=False))
    every = extract_features(curves, choose_features("macho14", every_band=True))
    assert first.names_with(Role.FEATURE) == ("mean", "color")
    assert {"mean_B", "mean_R", "car_tau_R", "color"} <= set(every.names)


def test_the_table_without_rows_has_the_same_columns(field):
    chosen = choose_features("all")
    empty = empty_table(field.about, chosen)
    assert len(empty) == 0
    assert empty.arrow.schema.equals(
        extract_features(field, chosen).arrow.schema, check_metadata=True
    )
