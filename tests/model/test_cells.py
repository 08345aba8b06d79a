"""What a table says of its cells: by its roles and reasons, or by arrays given by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.catalog import ColumnInfo, Role, Schema, Table
from skyfill.classify import CatalogClassifier
from skyfill.errors import CatalogError, ModelError
from skyfill.impute import NetworkImputer
from skyfill.model import (
    Filling,
    cells_of,
    describe_model,
    fill_table,
    load_model,
    save_model,
    train,
    train_classifier,
)
from skyfill.model.cells import count_cells
from skyfill.model.training import untrained
from skyfill.network import Cells

NAN = np.nan


def survey(n=600, seed=0, noise=0.1, edge=0.05):
    """Two bands; the second is seen down to a limit that varies a little from field to field."""
    rng = np.random.default_rng(seed)
    v = rng.normal(17.5, 1.0, n)
    true = v - 0.5 + rng.normal(0, 0.1, n)
    k = true + rng.normal(0, noise, n)
    limit = 17.0 + rng.normal(0, edge, n)
    seen = k < limit
    covered = rng.random(n) < 0.9
    reasons = np.select([~covered, seen], ["uncovered", "seen"], "undetected")
    # Of every other source that was not detected there is no record at all.
    reasons = np.where((reasons == "undetected") & (np.arange(n) % 2 == 0), "unmatched", reasons)
    columns = {
        "V": v,
        "K": np.where(reasons == "seen", k, NAN),
        "e_K": np.where(reasons == "seen", noise, NAN),
        "K_limit": np.where(reasons == "undetected", limit, NAN),
    }
    info = {
        "V": ColumnInfo("mag", "phot.mag;em.opt.V", role=Role.FEATURE),
        "K": ColumnInfo("mag", "phot.mag;em.IR.K", role=Role.FEATURE),
        "e_K": ColumnInfo("mag", role=Role.ERROR, of="K"),
        "K_limit": ColumnInfo("mag", role=Role.LIMIT, of="K"),
    }
    table = Table.from_columns(columns, info=info)
    return table.with_reasons("K", [None if r == "seen" else r for r in reasons]), true


def by_hand(table):
    """The cells of `survey`, from the rules on paper."""
    X, reasons = table.numbers("V", "K"), np.array(table.reasons("K").to_pylist())
    stated = table.numbers("K_limit")[:, 0]
    lower = np.full(X.shape, NAN)
    lower[:, 1] = np.where(reasons == "unmatched", np.nanmedian(stated), stated)
    error = table.numbers("e_K")[:, 0]
    k = X[:, 1]
    width = np.median(error[k >= np.sort(k[~np.isnan(k)])[-round(0.1 * (~np.isnan(k)).sum())]])
    errors = np.full(X.shape, NAN)
    errors[:, 1] = np.where(np.isnan(lower[:, 1]), error, width)
    return Cells(X, lower, errors=errors)


@pytest.fixture(scope="module")
def fitted():
    return train(survey()[0], ["V", "K"], errors="on", n_components=1, n_fits=1)[0]


def test_a_table_with_reasons_gives_what_arrays_given_by_hand_give():
    table, _ = survey()
    found, wanted = cells_of(untrained(table, ["V", "K"], errors="on"), table)[0], by_hand(table)
    assert_array_equal(found.values, wanted.values)
    assert_array_equal(found.lower, wanted.lower)
    assert_array_equal(found.errors, wanted.errors)
    assert found.upper is None


def test_limits_of_fluxes_are_upper_limits_and_depths_lie_on_the_faint_side():
    flux = np.concatenate([np.arange(1.0, 101.0), [NAN, NAN]])
    info = {"flux": ColumnInfo("mJy", "phot.flux.density", role=Role.FEATURE)}
    table = Table.from_columns({"flux": flux}, info=info)
    table = table.with_reasons("flux", [None] * 100 + ["unmatched", "uncovered"])
    cells, _, _ = cells_of(untrained(table, ["flux"]), table)
    assert cells.lower is None
    assert_allclose(cells.upper[100:, 0], [np.quantile(flux[:100], 0.02), NAN])


def test_a_stated_limit_needs_no_reason_and_rejected_values_have_none():
    info = {
        "J": ColumnInfo("mag", role=Role.FEATURE),
        "lim": ColumnInfo("mmag", role=Role.LIMIT, of="J"),
    }
    columns = {"J": [14.0, 15.0, None, None, None], "lim": [None, 16e3, 16e3, 16e3, None]}
    table = Table.from_columns(columns, info=info)
    table = table.with_reasons("J", [None, None, None, "rejected", "undetected"])
    cells, _, _ = cells_of(untrained(table, ["J"]), table)
    depth = np.quantile([14.0, 15.0], 0.98)
    assert_allclose(cells.lower[:, 0], [NAN, NAN, 16.0, NAN, depth])
    assert cells.is_limited[:, 0].tolist() == [False, False, True, False, True]


@pytest.mark.parametrize("ucd", ["phot.color;em.opt.V;em.opt.I", "src.var.amplitude", None])
def test_of_a_color_or_a_period_that_was_not_measured_nothing_is_known(ucd):
    table = Table.from_columns({"x": [1.0, 2.0, None]}, info={"x": ColumnInfo("mag", ucd)})
    table = table.with_reasons("x", [None, None, "unmatched"])
    assert untrained(table, ["x"]).detections == ()


def test_errors_count_where_they_make_one_percent_of_a_variance():
    large, small = survey(noise=0.2)[0], survey(noise=0.02)[0]
    assert [d.errors for d in untrained(large, ["V", "K"]).detections] == [False, True]
    assert not any(d.errors for d in untrained(small, ["V", "K"]).detections)
    assert [d.errors for d in untrained(small, ["V", "K"], errors="on").detections][1]
    assert not any(d.errors for d in untrained(large, ["V", "K"], errors="off").detections)
    with pytest.raises(CatalogError, match="no feature has any"):
        untrained(large.drop(["e_K"]), ["V", "K"], errors="on")
    with pytest.raises(CatalogError, match="limits must be one of"):
        untrained(large, ["V", "K"], limits="on")


def test_without_limits_and_errors_a_model_has_values_and_gaps_alone():
    table = survey()[0]
    assert untrained(table, ["V", "K"], limits="off", errors="off").detections == ()
    only_errors = untrained(table, ["V", "K"], limits="off", errors="on")
    assert not cells_of(only_errors, table)[0].is_limited.any()


def test_cells_are_counted_by_what_is_known_of_them():
    cells = Cells([[1.0, NAN], [2.0, NAN], [NAN, 3.0]], [[NAN, 5.0], [NAN, NAN], [NAN, NAN]],
                  errors=[[0.1, NAN], [NAN, NAN], [NAN, NAN]])  # fmt: skip
    assert count_cells(cells) == ((2, 1, 0, 1), (1, 0, 1, 1))
    table = survey()[0]
    counts = untrained(table, ["V", "K"], errors="on").detections[1].counts
    reasons = table.reasons("K").to_pylist()
    assert counts.seen == counts.noisy == reasons.count(None)
    assert counts.limited == reasons.count("undetected") + reasons.count("unmatched")
    assert counts.unknown == reasons.count("uncovered")


def test_what_a_model_wrote_beside_filled_values_is_no_error_of_theirs(fitted):
    table = survey(60, seed=1)[0]
    done = fill_table(fitted, table, Filling(denoise=True)).drop(["e_K"])
    cells, _, _ = cells_of(fitted, done)
    assert not cells.is_noisy.any()


def test_batches_of_a_table_give_the_same_as_the_whole(fitted):
    table = survey(300, seed=2)[0]
    whole = fill_table(fitted, table, Filling((0.05, 0.95), denoise=True))
    parts = [Table(table.arrow.slice(i, 7)) for i in range(0, 300, 7)]
    done = [fill_table(fitted, part, Filling((0.05, 0.95), denoise=True)) for part in parts]
    for name in ("K", "K_sd", "K_q5", "K_q95", "K_denoised", "K_denoised_sd"):
        found = np.concatenate([part.numbers(name) for part in done])
        assert_array_equal(found, whole.numbers(name))


def test_a_filled_value_respects_its_limit_and_keeps_its_reason(fitted):
    table, true = survey(400, seed=3)
    done = fill_table(fitted, table, Filling((0.05, 0.5, 0.95)))
    reasons = np.array(table.reasons("K").to_pylist())
    limited = np.isin(reasons, ["undetected", "unmatched"])
    filled, limits = done.numbers("K")[:, 0], cells_of(fitted, table)[0].lower[:, 1]
    # The limit is soft: what lies within its width may have been missed.
    assert (filled[limited] > limits[limited] - fitted.detections[1].width).all()
    assert np.abs((filled - true)[limited].mean()) < 0.02
    assert done.column("K_was").to_pylist() == table.reasons("K").to_pylist()
    is_gap = np.isnan(table.numbers("K")[:, 0])
    assert_array_equal(np.array(done.reasons("K").to_pylist()) == "filled", is_gap)


def test_a_hard_limit_is_never_contradicted():
    table = survey(noise=1e-6)[0].drop(["e_K"])
    model = train(table, ["V", "K"], n_components=1, n_fits=1)[0]
    assert model.detections[1].width == 0
    new = survey(300, seed=4, noise=1e-6)[0].drop(["e_K"])
    done = fill_table(model, new, Filling((0.01, 0.99), n_draws=3))
    cells, _, _ = cells_of(model, new)
    limited = cells.is_limited[:, 1]
    for name in ("K", "K_q1", "K_q99", "K_draw1", "K_draw2", "K_draw3"):
        assert (done.numbers(name)[limited, 0] >= cells.lower[limited, 1]).all()


@pytest.mark.parametrize("errors", ["off", "auto"])
def test_a_limit_is_hard_unless_it_is_declared_soft(errors):
    table = survey(noise=0.4)[0]
    model = train(table, ["V", "K"], errors=errors, n_components=1, n_fits=1)[0]
    assert [detection.errors for detection in model.detections] == [False, errors == "auto"]
    assert [detection.width for detection in model.detections] == [0.0, 0.0]
    done = fill_table(model, table, Filling((0.01, 0.99), n_draws=3))
    cells = cells_of(model, table)[0]
    limited = cells.is_limited[:, 1]
    assert limited.sum() > 50
    for name in ("K", "K_q1", "K_q99", "K_draw1", "K_draw2", "K_draw3"):
        assert (done.numbers(name)[limited, 0] >= cells.lower[limited, 1]).all()


def radio(n=400, seed=0, unit="mJy"):
    """Magnitudes, and fluxes over less than a decade, with upper limits."""
    rng = np.random.default_rng(seed)
    V = rng.normal(18, 1, n)
    flux = np.exp(-0.4 * (V - 18) + 0.2 * rng.normal(size=n))
    faint = flux < 0.8
    table = Table.from_columns(
        {
            "V": V,
            "S": np.where(faint, np.nan, flux),
            "S_limit": np.where(faint, 0.8, np.nan),
        },
        info={
            "V": ColumnInfo(unit="mag"),
            "S": ColumnInfo(unit=unit),
            "S_limit": ColumnInfo(unit=unit, role=Role.LIMIT, of="S"),
        },
    )
    return table, flux


@pytest.mark.parametrize(
    ("unit", "kinds"),
    [("mJy", [False, True]), (None, [False, True]), ("mag", [False, False])],
)
def test_a_flux_is_mapped_by_its_logarithm_and_the_summary_says_so(unit, kinds, tmp_path):
    table = radio(unit=unit)[0]
    model = train(table, ["V", "S"], n_components=1, n_fits=1)[0]
    assert model.network.logarithmic.tolist() == kinds
    named = [name for name, is_one in zip(["V", "S"], kinds, strict=True) if is_one]
    assert describe_model(model)["logarithmic"] == named
    save_model(model, tmp_path / "a.skyfill")
    again = load_model(tmp_path / "a.skyfill")
    assert again.network.logarithmic.tolist() == kinds
    filled = [fill_table(each, table).numbers("S") for each in (model, again)]
    assert_array_equal(*filled)
    if named:
        assert (filled[0] > 0).all()


def test_a_declared_depth_acts_or_is_refused():
    u = np.where(np.arange(60) % 5 == 0, 99.0, np.linspace(22, 26, 60))
    table = Table.from_columns({"u": u, "g": np.linspace(21, 25, 60)})
    facts = {"depth": 26.4, "unit": "mag"}
    acts = Schema.from_dict({"u": {**facts, "undetected": [99.0]}})
    model = train(acts.apply(table), ["u", "g"], rules=acts, n_components=1, n_fits=1)[0]
    assert model.detections[0].counts.limited == 12
    for more in ({}, {"sentinels": [99.0]}):
        rules = Schema.from_dict({"u": {**facts, **more}})
        with pytest.raises(CatalogError, match=r"depth 26\.4 has no effect.*undetected = \[99"):
            train(rules.apply(table), ["u", "g"], rules=rules, n_components=1, n_fits=1)


def test_a_classifier_maps_the_same_columns_by_their_logarithms():
    table = radio()[0]
    label = np.where(table.numbers("V")[:, 0] > 18, "faint", "bright").tolist()
    table = table.with_column("class", label)
    small = CatalogClassifier("forest", n_trees=3, imputer=NetworkImputer(1, n_fits=1))
    for field in (None, table):
        model = train_classifier(table, ["V", "S"], "class", classifier=small, field=field)[0]
        assert model.network.logarithmic.tolist() == [False, True]


def test_denoised_values_lie_nearer_to_the_truth_and_seen_cells_stay_bit_for_bit(fitted):
    table, true = survey(400, seed=5)
    done = fill_table(fitted, table, Filling(denoise=True))
    seen = ~np.isnan(table.numbers("K")[:, 0])
    assert_array_equal(done.numbers("K")[seen], table.numbers("K")[seen])
    assert_array_equal(np.isnan(done.numbers("K_denoised")[:, 0]), ~seen)
    assert "V_denoised" not in done.names
    denoised = done.numbers("K_denoised")[seen, 0] - true[seen]
    # V predicts K as well as K was measured: together they are better by the square root of 2.
    assert np.sqrt((denoised**2).mean()) == pytest.approx(0.1 / np.sqrt(2), rel=0.1)
    assert (np.abs(denoised) < 1.96 * done.numbers("K_denoised_sd")[seen, 0]).mean() > 0.9


def test_a_model_without_errors_cannot_denoise():
    table = survey()[0]
    model = train(table, ["V", "K"], errors="off", limits="off", n_components=1, n_fits=1)[0]
    with pytest.raises(ModelError, match="nothing can be denoised"):
        fill_table(model, table, Filling(denoise=True))


def test_a_saved_model_keeps_sides_depths_widths_and_levels(fitted, tmp_path):
    save_model(fitted, tmp_path / "a.skyfill")
    again = load_model(tmp_path / "a.skyfill")
    assert again.detections == fitted.detections
    assert again.identifier == fitted.identifier
    table = survey(100, seed=6)[0]
    before, after = (fill_table(model, table, Filling((0.1,))) for model in (fitted, again))
    assert before.arrow.equals(after.arrow)
    assert_array_equal(again.network.within_limits, fitted.network.within_limits)
