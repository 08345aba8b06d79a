"""Models that are changed in meaning, with the right identifier: refused before they are used."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skyfill.classify.class_calibration import Calibration
from skyfill.errors import ModelError
from skyfill.model import load_model, save_model
from skyfill.network.mixture.gap_kernels import interpolate
from skyfill.network.mixture.limited_kernels import add_normal
from skyfill.network.mixture.margin import Identity
from skyfill.network.mixture.margin_kernels import Maps, value_at
from skyfill.network.mixture.margin_moments import LADDER, add_component, margin_moments
from skyfill.network.mixture.network import BySpread

MODEL = load_model(Path(__file__).parent.parent / "model_files" / "version-2.skyfill")
NETWORK, SCORER = MODEL.network, MODEL.scorer
STEPS = np.linspace(0.0, 1.0, 41)


def with_network(**parts):
    network = replace(NETWORK, **parts)
    return replace(MODEL, network=network, scorer=replace(SCORER, network=network))


def with_spreads(knots, levels):
    return with_network(by_spread=BySpread(np.array(knots, float), np.array(levels, float)))


def with_scorer(**parts):
    return replace(MODEL, scorer=replace(SCORER, **parts))


def with_weights(*weights):
    pairs = zip(SCORER.members, weights, strict=True)
    return with_scorer(members=tuple(member._replace(weight=weight) for member, weight in pairs))


def with_rule(**parts):
    return with_scorer(rule=replace(SCORER.rule, **parts))


def with_refinement(**parts):
    refined = load_model(Path(__file__).parent.parent / "model_files" / "version-5.skyfill")
    return replace(refined, refinement=replace(refined.refinement, **parts))


FORGED = {
    "forests with falling levels": (
        with_refinement(levels=np.tile(STEPS[::-1], (3, 1))),
        "levels of the calibration must rise",
    ),
    "forests with other levels": (
        with_refinement(levels=np.tile(STEPS[::2], (3, 1))),
        "do not belong to the calibration",
    ),
    "forests of huge columns": (with_refinement(unit=np.full(3, 1e200)), "columns beyond"),
    "no spreads": (with_spreads([], np.empty((0, 41))), "two spreads or more"),
    "one spread": (with_spreads([1], [STEPS]), "two spreads or more"),
    "falling spreads": (with_spreads([2, 1], [STEPS, STEPS]), "which rise"),
    "endless spreads": (with_spreads([0, 1e300], [STEPS, STEPS]), "spreads beyond"),
    "other levels": (with_spreads([1, 2], [STEPS[::2]] * 2), "do not belong"),
    "levels beyond 1": (with_spreads([1, 2], [2 * STEPS] * 2), "from 0 to 1"),
    "falling levels": (with_spreads([1, 2], [STEPS[::-1]] * 2), "from 0 to 1"),
    "no levels": (
        with_network(calibration=None, by_spread=BySpread(np.arange(2.0), np.empty((2, 0)))),
        "do not belong",
    ),
    "too many levels": (
        with_network(calibration=np.tile(np.linspace(0, 1, 1 << 16), (4, 1)), by_spread=None),
        "calibration has the wrong shape",
    ),
    "weights that are no numbers": (with_weights(*[float("nan")] * 3), "weights of the trees"),
    "shares of 5": (with_scorer(shares=np.array([5.0, 5.0])), "with sum 1"),
    "a prior of 5": (with_scorer(prior=np.array([5.0, 5.0])), "with sum 1"),
    "slopes that fall": (
        with_scorer(calibration=replace(SCORER.calibration, slopes=np.array([-1.0, 1.0]))),
        "slopes",
    ),
    "odds whose slopes fall": (
        with_scorer(calibration=Calibration("odds", np.array([-1.0, 1.0]), np.zeros(2))),
        "slopes",
    ),
    "a rule without bounds": (with_rule(center=np.full(5, 1e308)), "outlier rule"),
    "a rule with a negative spread": (with_rule(spread=np.full(5, -1.0)), "outlier rule"),
}


@pytest.mark.parametrize(("model", "message"), FORGED.values(), ids=FORGED)
def test_a_forged_model_is_refused(tmp_path, model, message):
    save_model(model, tmp_path / "m.skyfill")
    with pytest.raises(ModelError, match=f"damaged .*{message}"):
        load_model(tmp_path / "m.skyfill")


def test_the_model_that_they_were_made_of_is_good(tmp_path):
    save_model(MODEL, tmp_path / "m.skyfill")
    assert load_model(tmp_path / "m.skyfill").identifier == MODEL.identifier


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300])
def test_no_number_leads_a_kernel_outside_its_tables(value):
    # Next to a table stands NaN: it would be found in the result.
    steps = np.full(3 * 41, np.nan)[41:82]
    # A slope of 0 shows which entries were read; NaN times 0 stays NaN.
    steps[:] = 0.5
    found = interpolate(steps, value)
    assert np.isnan(found) or found == 0.5
    line = Identity(np.arange(2.0), np.arange(2.0))
    entries = margin_moments(line)[0]
    table = np.full((3 * len(entries), 2), np.nan)[len(entries) : 2 * len(entries)]
    table[:] = 0.5
    for sd in (0.001, 1.0, 1e300, value):
        parts = add_component((1.0, value, sd), table, LADDER, 0.0, 0.0)
        assert not np.isfinite(value * sd) or parts[0] == pytest.approx(0.5)
    knots = np.full(9, np.nan)
    knots[3:6] = 1.0
    maps = Maps(np.array([3, 6]), knots, knots, np.zeros((1, 2)))
    assert np.isnan(value) or not np.isfinite(value) or value_at(maps, 0, value) == 1.0
    guard = np.full(24, 1e9)
    mass = guard[8:16]
    mass[:] = 0.0
    add_normal(1.0, 0.0, value, 1.0, 0.0, 1.0, mass)
    assert (guard[:8] == 1e9).all()
    assert (guard[16:] == 1e9).all()


def test_the_identifier_covers_kinds_of_margins_and_shapes_of_arrays():
    margin = NETWORK.margins[0]
    linear = with_network(margins=(Identity(margin.x, margin.z), *NETWORK.margins[1:]))
    assert linear.identifier != MODEL.identifier
    assert linear.earlier_identifier == MODEL.earlier_identifier
    flat = with_network(calibration=NETWORK.calibration.ravel())
    assert flat.identifier != MODEL.identifier


def test_a_model_of_too_many_components_is_refused_until_the_limit_is_raised(tmp_path, monkeypatch):
    fit, k = NETWORK.fits[0], 3000
    many = fit._replace(
        weights=np.full(k, 1 / k),
        means=np.repeat(fit.means[:1], k, axis=0),
        covs=np.repeat(fit.covs[:1], k, axis=0),
        gap_rates=None if fit.gap_rates is None else np.repeat(fit.gap_rates[:1], k, axis=0),
        parents=None,
    )
    large = replace(MODEL, network=replace(NETWORK, fits=(many,)), scorer=None)
    save_model(large, tmp_path / "m.skyfill")
    with pytest.raises(ModelError, match=r"3000 components, more than 2000; .*components=3000"):
        load_model(tmp_path / "m.skyfill")
    monkeypatch.setenv("SKYFILL_LIMITS", "components=3000")
    assert len(load_model(tmp_path / "m.skyfill").network.fits[0].weights) == k
