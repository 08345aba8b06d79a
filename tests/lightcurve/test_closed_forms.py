"""Features with a formula: curves of eight points, computed by hand."""

import numpy as np
import pytest

from skyfill.lightcurve import FEATURES
from skyfill.lightcurve.curve import Curve, Star
from skyfill.lightcurve.order import count_runs
from skyfill.lightcurve.two_bands import pair_epochs
from tests.lightcurve.curves import EIGHT

# Mean 13, deviations -3 -1 -2 0 2 1 3 0, whose squares sum to 28.
BY_HAND = {
    "mean": 13,
    "median": 13,
    "sigma": 2,
    "amplitude": 3,
    "percentile_amplitude": (15.65 - 10.35) / 2,
    "iqr": 14.25 - 11.75,
    "mad": 1.5,
    "skewness": 0,
    "kurtosis": 7 / 30 * (9 * 24.5 / 3.5**2 - 21),
    "percentile_skewness": 0,
    "extremes_skewness": 0,
    "beyond_1_sigma": 2 / 8,
    "percentile_ratio_20": (13.2 - 12.8) / 5.3,
    "percentile_ratio_50": 2.5 / 5.3,
    "eta": 27 / 28,
    "eta_e": (10 / 7) ** 2 * 16.5 / 28,
    "con": 0,
    "cusum": 6 / 16,
    "max_slope": 2,
    "linear_trend": 36 / 87.875,
    "trend_share": 36**2 / 87.875 / 28,
    "weighted_mean": 60.5 / 5,
    "mean_error": 1.5,
    "excess_sigma": np.sqrt(4 - 2.5),
    "chi2": 13.45 / 7,
    "stetson_k": 9 / np.sqrt(8 * 13.45),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_eight_points_give_what_was_computed_by_hand(name):
    assert FEATURES[name].compute(Star((EIGHT,))) == pytest.approx(BY_HAND[name], abs=1e-12)


def test_skewness_of_seven_zeros_and_an_eight_is_the_root_of_eight():
    value = np.array([0.0, 0, 0, 8, 0, 0, 0, 0])
    star = Star((Curve(np.arange(8.0), value, np.ones(8)),))
    assert FEATURES["skewness"].compute(star) == pytest.approx(np.sqrt(8))
    assert FEATURES["extremes_skewness"].compute(star) == pytest.approx(1)


def test_four_high_points_in_a_row_are_two_runs_of_three():
    value = np.zeros(30)
    value[10:14] = 1
    star = Star((Curve(np.arange(30.0), value, np.ones(30)),))
    assert FEATURES["con"].compute(star) == pytest.approx(2 / 28)


@pytest.mark.parametrize(
    ("value", "runs"),
    [([5, 5, -5, 5, 5], 0), ([5, 5, 5], 1), ([-5, -5, -5, -5, -5], 3), ([5, 5, 1, 5, 5, 5], 1)],
)
def test_runs_are_on_one_side(value, runs):
    assert count_runs(np.array(value, float), 0.0, 2.0) == runs


def test_white_noise_has_the_ratios_that_theory_says():
    rng = np.random.default_rng(1)
    n = 20_000
    star = Star((Curve(np.arange(float(n)), rng.normal(size=n), np.ones(n)),))
    expected = {"eta": 2, "stetson_k": np.sqrt(2 / np.pi), "beyond_1_sigma": 0.3173, "chi2": 1,
                "mad": 0.6745, "skewness": 0, "kurtosis": 0}  # fmt: skip
    for name, truth in expected.items():
        assert FEATURES[name].compute(star) == pytest.approx(truth, abs=0.05), name


def test_stetson_k_of_a_sinusoid_is_root_eight_over_pi():
    time = np.arange(10_000) * 0.0123
    star = Star((Curve(time, np.sin(2 * np.pi * time), np.ones(10_000)),))
    assert FEATURES["stetson_k"].compute(star) == pytest.approx(np.sqrt(8) / np.pi, abs=1e-4)


def test_equal_pairs_give_stetson_j_and_l_by_hand():
    time, value, error = np.arange(4.0), np.array([1.0, -1, 1, -1]), np.full(4, 0.5)
    star = Star((Curve(time, value + 18, error), Curve(time + 0.02, value + 17, error)))
    j = 2 * np.sqrt(4 / 3)  # residuals of two errors, 4 / 3 for the mean that was fitted
    assert FEATURES["stetson_j"].compute(star) == pytest.approx(j)
    assert FEATURES["stetson_l"].compute(star) == pytest.approx(j / 0.798)
    assert FEATURES["band_correlation"].compute(star) == pytest.approx(1)
    assert FEATURES["band_angle"].compute(star) == pytest.approx(np.pi / 4)
    assert FEATURES["color"].compute(star) == pytest.approx(1)
    assert FEATURES["color_median"].compute(star) == pytest.approx(1)
    assert FEATURES["sigma_ratio"].compute(star) == pytest.approx(1)


def test_bands_in_opposition_have_a_negative_j():
    time, value, error = np.arange(4.0), np.array([1.0, -1, 1, -1]), np.ones(4)
    star = Star((Curve(time, value, error), Curve(time, -value, error)))
    assert FEATURES["stetson_j"].compute(star) == pytest.approx(-np.sqrt(4 / 3))


def test_the_color_of_fluxes_is_in_magnitudes():
    time, error = np.arange(2.0), np.ones(2)
    star = Star((Curve(time, np.full(2, 10.0), error), Curve(time, np.full(2, 100.0), error)), True)
    assert FEATURES["color"].compute(star) == pytest.approx(2.5)
    below = Star((Curve(time, np.full(2, -1.0), error), star.curves[1]), is_flux=True)
    assert np.isnan(FEATURES["color"].compute(below))


def test_epochs_are_paired_once_with_their_nearest():
    first, second = np.array([0.0, 1.0, 2.0, 5.0]), np.array([0.04, 0.95, 1.02, 3.0, 5.3])
    i, j = pair_epochs(first, second, 0.1)
    assert i.tolist() == [0, 1]
    assert j.tolist() == [0, 2]
