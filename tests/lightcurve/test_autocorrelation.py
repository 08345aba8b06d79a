"""Slotted autocorrelation: alternating values, sinusoids, white noise."""

import numpy as np
import pytest

from skyfill.lightcurve import FEATURES
from skyfill.lightcurve.autocorrelation import autocorrelate, sum_pairs
from skyfill.lightcurve.curve import Curve, Star


def star_of(time, value):
    return Star((Curve(time, value, np.ones(len(time))),))


def test_pairs_fall_into_the_slot_to_which_their_distance_rounds():
    sums, pairs = sum_pairs(np.array([0.0, 1.0, 2.4]), np.array([1.0, 2.0, 3.0]), 1.0)
    assert pairs.tolist() == [0, 2, 1]
    assert sums.tolist() == [0, 2 + 6, 3]


def test_alternating_values_alternate_at_every_lag():
    star = star_of(np.arange(100.0), np.tile([1.0, -1.0], 50))
    found = autocorrelate(star.curves[0])
    assert found.slot == pytest.approx(1)
    assert found.pairs[:3].tolist() == [99, 98, 97]
    assert found.value[:95] == pytest.approx(np.tile([-1.0, 1.0], 48)[:95])
    # Lag k has 100 - k pairs; more than 16 of them make a correlation of one four errors wide.
    assert FEATURES["n_above_4"].compute(star) == 41
    assert FEATURES["n_below_4"].compute(star) == 42
    assert FEATURES["acf_length"].compute(star) == pytest.approx(1)
    assert FEATURES["stetson_k_ac"].compute(star) == pytest.approx(1, abs=1e-4)


def test_white_noise_has_hardly_a_significant_lag():
    rng = np.random.default_rng(0)
    counts = []
    for _ in range(50):
        star = star_of(np.sort(rng.uniform(0, 1000, 300)), rng.normal(size=300))
        counts.append([FEATURES[name].compute(star) for name in ("n_above_4", "n_below_4")])
    assert np.mean(counts) < 0.5


def test_a_slow_sinusoid_is_correlated_for_a_fifth_of_its_period():
    rng = np.random.default_rng(1)
    time = np.sort(rng.uniform(0, 1000, 500))
    star = star_of(time, np.sin(2 * np.pi * time / 200))
    # cos(2 pi x) falls to 1 / e at x = 0.19.
    assert FEATURES["acf_length"].compute(star) == pytest.approx(0.19 * 200, abs=5)
    assert FEATURES["n_above_4"].compute(star) > 100
    assert FEATURES["n_below_4"].compute(star) > 100
