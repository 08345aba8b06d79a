"""Scores: closed forms, laws that hold for all of them, agreement with scoringrules."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from skyfill.evaluate import (
    covered,
    crps_draws,
    crps_gaussian,
    crps_point,
    crps_quantiles,
    log_score_gaussian,
    nrmse,
    pit_draws,
    pit_gaussian,
)

LEVELS = (np.arange(400) + 0.5) / 400
REAL = st.floats(-100, 100)


def by_quantiles(mean, sd, true):
    return crps_quantiles(mean + sd * norm.ppf(LEVELS)[:, None], LEVELS, np.atleast_1d(true))[0]


def by_draws(mean, sd, true):
    return crps_draws(mean + sd * norm.ppf(LEVELS)[:, None], np.atleast_1d(true))[0]


def by_formula(mean, sd, true):
    return crps_gaussian([mean], [sd], [true])[0]


# One Gaussian, told in three ways; (score, how exact).
WAYS = {
    "formula": (by_formula, 1e-12),
    "quantiles": (by_quantiles, 3e-3),
    "draws": (by_draws, 1e-2),
}
every_way = pytest.mark.parametrize(("crps", "within"), WAYS.values(), ids=WAYS)


@every_way
def test_crps_of_a_gaussian_at_its_mean(crps, within):
    assert crps(5.0, 2.0, 5.0) == pytest.approx(2 * (np.sqrt(2) - 1) / np.sqrt(np.pi), rel=within)


@every_way
@given(mean=REAL, sd=st.floats(0.1, 10), true=REAL)
def test_all_ways_to_tell_a_gaussian_agree_and_none_is_negative(crps, within, mean, sd, true):
    value = crps(mean, sd, true)
    assert value >= 0
    assert value == pytest.approx(crps_gaussian(mean, sd, true), abs=2 * within * sd)


@every_way
@given(shift=REAL, unit=st.floats(0.01, 100))
def test_units_rescale_crps(crps, within, shift, unit):
    assert crps(shift + unit, 2 * unit, shift) == pytest.approx(
        unit * crps(1.0, 2.0, 0.0), rel=1e-6
    )


@given(value=REAL, true=REAL)
def test_crps_of_a_point_is_the_absolute_error(value, true):
    error = abs(value - true)
    assert crps_point(value, true) == error
    assert crps_gaussian(value, 0.0, true) == error
    assert crps_draws([[value]], [true])[0] == error
    assert crps_draws([[value]] * 3, [true])[0] == pytest.approx(error)
    assert crps_quantiles([[value]] * 4, [0.1, 0.2, 0.6, 0.9], [true])[0] == pytest.approx(
        2 * error * _mean_level(value <= true)
    )


def _mean_level(above):
    """Mean of levels (or of their complements) that stand for 0.15, 0.25, 0.35 and 0.25."""
    level = 0.15 * 0.1 + 0.25 * 0.2 + 0.35 * 0.6 + 0.25 * 0.9
    return level if above else 1 - level


@given(st.lists(REAL, min_size=2, max_size=8), REAL)
def test_draws_are_scored_by_their_definition(draws, true):
    x = np.array(draws)
    pairs = np.abs(x[:, None] - x).sum() / (2 * len(x) * (len(x) - 1))
    truth = np.abs(x - true).mean() - pairs
    found = crps_draws(x[:, None], [true])[0]
    assert found == pytest.approx(truth, abs=1e-9)
    assert found >= -1e-9


SCORES = {"crps": crps_gaussian, "log score": log_score_gaussian}


@pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
@pytest.mark.parametrize(("shift", "stretch"), [(0.3, 1.0), (-0.3, 1.0), (0, 0.7), (0, 1.4)])
def test_no_other_gaussian_beats_the_true_one(score, shift, stretch):
    true = np.random.default_rng(0).normal(3, 2, 50_000)
    own, other = score(3.0, 2.0, true), score(3.0 + shift, 2.0 * stretch, true)
    gain = other - own
    assert gain.mean() > 4 * gain.std() / np.sqrt(len(true))


def test_few_draws_are_not_punished_for_being_few():
    rng = np.random.default_rng(0)
    true = rng.normal(size=40_000)
    found = crps_draws(rng.normal(size=(3, 40_000)), true)
    truth = crps_gaussian(0.0, 1.0, true).mean()
    assert found.mean() == pytest.approx(truth, abs=4 * found.std() / 200)


def test_log_score_is_minus_the_log_density():
    assert log_score_gaussian([1.0], [3.0], [2.5]) == pytest.approx(-norm(1, 3).logpdf(2.5))


def test_nrmse_by_hand():
    true = np.array([[0.0, 1.0], [2.0, 1.0], [4.0, np.nan], [6.0, 1.0]])
    mask = np.array([[True, True], [False, False], [True, False], [False, False]])
    filled = true + np.array([[3.0, 1.0], [9.0, 9.0], [4.0, 9.0], [9.0, 9.0]])
    found = nrmse(filled, true, mask)
    assert found[0] == pytest.approx(np.sqrt((9 + 16) / 2 / 5))
    assert np.isnan(found[1])  # a constant column has no scale


def test_column_means_have_an_nrmse_of_one():
    rng = np.random.default_rng(0)
    true = rng.normal(5, 3, (20_000, 3))
    mask = rng.random(true.shape) < 0.2
    filled = np.where(mask, true.mean(axis=0), true)
    np.testing.assert_allclose(nrmse(filled, true, mask), 1.0, atol=0.03)


def test_intervals_include_their_ends():
    assert covered([0.25, 0.75, 0.76], 0.5).tolist() == [True, True, False]


def test_an_atom_is_covered_as_often_as_the_level_says():
    rng = np.random.default_rng(0)
    atom = np.where(rng.random(40_000) < 0.7, 0.0, rng.normal(3, 1, 40_000))
    quantiles = np.quantile(atom, np.arange(1, 100) / 100)[:, None]
    pit = pit_draws(np.repeat(quantiles, atom.size, axis=1), atom, rng)
    for level in (0.5, 0.68, 0.9):
        assert covered(pit, level).mean() == pytest.approx(level, abs=0.01)


def uniform(values):
    """Kolmogorov's distance from uniform, in units where 1.95 is passed once in 1000."""
    ordered = np.sort(values)
    return np.abs(ordered - np.arange(1, len(ordered) + 1) / len(ordered)).max() * np.sqrt(
        len(ordered)
    )


@pytest.mark.parametrize("atoms", [False, True])
def test_pit_of_the_true_distribution_is_uniform(atoms):
    rng = np.random.default_rng(0)
    draws, true = rng.normal(size=(9, 20_000)), rng.normal(size=20_000)
    if atoms:
        draws, true = np.maximum(draws, 0), np.maximum(true, 0)
    assert uniform(pit_draws(draws, true, rng)) < 1.95


def test_pit_of_a_gaussian_is_uniform_when_right_and_not_when_narrow():
    true = np.random.default_rng(0).normal(3, 2, 20_000)
    assert uniform(pit_gaussian(3.0, 2.0, true)) < 1.95
    assert uniform(pit_gaussian(3.0, 1.0, true)) > 5


@given(st.lists(REAL, min_size=3, max_size=9), REAL)
def test_scoringrules_agrees(draws, true):
    rules = pytest.importorskip("scoringrules", reason="scoringrules is not installed")
    x = np.array(draws)
    assert crps_draws(x[:, None], [true])[0] == pytest.approx(
        float(rules.crps_ensemble(true, x, estimator="fair")), abs=1e-9
    )
    # Wide: the log density of scoringrules loses digits where the density underflows.
    assert crps_gaussian(draws[0], 20.0, true) == pytest.approx(
        float(rules.crps_normal(true, draws[0], 20.0)), abs=1e-9
    )
    assert log_score_gaussian(draws[0], 20.0, true) == pytest.approx(
        float(rules.logs_normal(true, draws[0], 20.0)), abs=1e-9
    )
