"""Periods: known ones found, the power and its significance those of astropy and of theory."""

import numpy as np
import pytest
from astropy.timeseries import LombScargle
from astropy.timeseries.periodograms.lombscargle import _statistics
from hypothesis import given
from hypothesis import strategies as st

from skyfill.lightcurve import FEATURES
from skyfill.lightcurve.curve import Curve, Star
from skyfill.lightcurve.period import gather_points, log_false_alarm, search_periods
from skyfill.lightcurve.periodogram import (
    Grid,
    choose_grid,
    highest_peaks,
    power_at,
    power_spectrum,
)
from tests.lightcurve.curves import eclipses, epochs, nights, sawtooth, star_of


def sine(period, amplitude=0.3):
    return lambda time: amplitude * np.sin(2 * np.pi * time / period)


def white(rng, *sizes, days=100.0):
    curves = [Curve(epochs(rng, n, days), rng.normal(size=n), np.ones(n)) for n in sizes]
    return Star(tuple(curves))


@pytest.mark.parametrize("period", [0.137, 0.6113, 3.7, 41.0, 333.0])
@pytest.mark.parametrize("times", [epochs, nights])
def test_the_period_of_a_sinusoid_is_found(period, times):
    star = star_of(sine(period), np.random.default_rng(0), times=times)
    assert FEATURES["period"].compute(star) == pytest.approx(period, rel=2e-3)
    assert FEATURES["period_series"].compute(star) == pytest.approx(period, rel=2e-3)
    assert FEATURES["series_order"].compute(star) == 1
    assert FEATURES["period_snr"].compute(star) > 20
    assert FEATURES["period_log_fap"].compute(star) < -50


@given(n=st.integers(20, 200), seed=st.integers(0, 10**6), days=st.floats(1, 3000))
def test_the_power_is_astropys(n, seed, days):
    rng = np.random.default_rng(seed)
    time = epochs(rng, n, days)
    curve = Curve(time, rng.normal(size=n), rng.uniform(0.5, 2, n))
    points = gather_points(Star((curve,)))
    grid = Grid(0.2 / days, 5, 2000)
    power = power_spectrum(points, grid)
    some = rng.integers(len(power), size=20)
    exact = LombScargle(time, curve.value, curve.error).power(grid.frequency[some], method="chi2")
    assert power[some] == pytest.approx(exact, abs=1e-4)
    assert [power_at(points, f) for f in grid.frequency[some]] == pytest.approx(exact, abs=1e-7)


def test_bands_add_what_each_removes_from_chi_squared():
    star = white(np.random.default_rng(1), 40, 70)
    removed = total = 0.0
    for curve in star.curves:
        power = LombScargle(curve.time, curve.value, curve.error).power(0.77, method="chi2")
        scatter = np.sum((curve.value - np.mean(curve.value)) ** 2)
        removed, total = removed + power * scatter, total + scatter
    assert power_at(gather_points(star), 0.77) == pytest.approx(removed / total, abs=1e-9)


def test_two_bands_find_what_one_alone_does_not():
    found = []
    for seed in range(20):
        star = star_of(sine(0.7431, 0.04), np.random.default_rng(seed), noise=0.07, n=80)
        alone = Star(star.curves[:1])
        hits = [abs(FEATURES["period"].compute(s) / 0.7431 - 1) < 0.01 for s in (alone, star)]
        found.append(hits)
    one, both = np.sum(found, axis=0)
    assert both > one


@pytest.mark.parametrize("power", [0.02, 0.1, 0.3, 0.6, 0.99])
def test_the_false_alarm_probability_of_one_band_is_baluevs(power):
    time = epochs(np.random.default_rng(2), 100, 50.0)
    width = 10 * np.sqrt(4 * np.pi * np.var(time))
    expected = _statistics.fap_baluev(power, 10, time, time, np.ones(100))
    assert log_false_alarm(power, 100, 1, width=width) == pytest.approx(
        np.log10(expected), abs=1e-9
    )


@pytest.mark.parametrize("sizes", [(100,), (60, 80), (40, 40, 60)])
def test_the_false_alarm_probability_of_white_noise_is_uniform(sizes):
    rng = np.random.default_rng(3)
    logs = [FEATURES["period_log_fap"].compute(white(rng, *sizes)) for _ in range(300)]
    for chance in (0.05, 0.1, 0.3):
        assert np.mean(10 ** np.array(logs) < chance) == pytest.approx(chance, abs=0.06)


def test_regular_sampling_ends_the_search_at_its_nyquist_frequency():
    time = np.arange(200) * 0.5
    value = np.sin(2 * np.pi * time / 1.7)
    star = Star((Curve(time, value, np.ones(200)),))
    assert search_periods(star).grid.frequency[-1] == pytest.approx(1.0, abs=0.02)
    assert FEATURES["period"].compute(star) == pytest.approx(1.7, rel=1e-3)


def test_the_grid_follows_baseline_and_sampling():
    rng = np.random.default_rng(4)
    nightly = choose_grid(
        np.concatenate([np.arange(300.0), np.arange(300) + 0.01]), np.array([0, 300, 600])
    )
    assert nightly.step == pytest.approx(0.2 / 299.01)
    assert nightly.frequency[0] == pytest.approx(1 / 299.01)
    assert nightly.frequency[-1] == pytest.approx(
        10, rel=1e-3
    )  # the other band's minute does not count
    dense = choose_grid(np.cumsum(rng.uniform(0.009, 0.011, 5000)), np.array([0, 5000]))
    assert 45 < dense.frequency[-1] < 56


@pytest.mark.parametrize("period", [0.41, 1.2345, 3.7])
def test_a_binary_is_found_at_its_true_period(period):
    star = star_of(eclipses(period), np.random.default_rng(5))
    assert FEATURES["period"].compute(star) == pytest.approx(period / 2, rel=2e-3)
    assert FEATURES["period_series"].compute(star) == pytest.approx(period, rel=2e-3)
    assert FEATURES["double_gain"].compute(star) > 0.3
    assert FEATURES["odd_share"].compute(star) > 0.1


def test_a_pulsating_star_does_not_gain_from_twice_its_period():
    star = star_of(sawtooth(0.5432), np.random.default_rng(6))
    assert FEATURES["period_series"].compute(star) == pytest.approx(0.5432, rel=1e-3)
    assert FEATURES["double_gain"].compute(star) < 0.1
    assert FEATURES["rise_time"].compute(star) == pytest.approx(0.8, abs=0.1)
    assert FEATURES["amplitude_ratio_21"].compute(star) == pytest.approx(0.46, abs=0.1)


def test_fourier_terms_of_a_known_series_come_back():
    def signal(time):
        turns = 2 * np.pi * time / 2.5
        return 0.3 * np.cos(turns + 1) + 0.15 * np.cos(2 * turns + 0.5) + 0.06 * np.cos(3 * turns)

    star = star_of(signal, np.random.default_rng(7), noise=0.001)
    assert FEATURES["fourier_amplitude"].compute(star) == pytest.approx(0.3, abs=2e-3)
    assert FEATURES["amplitude_ratio_21"].compute(star) == pytest.approx(0.5, abs=0.01)
    assert FEATURES["amplitude_ratio_31"].compute(star) == pytest.approx(0.2, abs=0.01)
    assert FEATURES["phase_21"].compute(star) == pytest.approx((0.5 - 2) % (2 * np.pi), abs=0.03)
    assert FEATURES["phase_31"].compute(star) == pytest.approx(-3 % (2 * np.pi), abs=0.05)
    assert FEATURES["fourier_ratio"].compute(star) == pytest.approx(1 / 0.7, rel=0.01)
    assert FEATURES["phase_lag"].compute(star) == pytest.approx(0, abs=0.02)
    assert FEATURES["fold_left"].compute(star) < 1e-3


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.integers(0, 4))
def test_peaks_are_the_highest_maxima_that_keep_their_distance(power, apart):
    heights = np.array(power)
    found = highest_peaks(heights, apart, 3)
    is_peak = [
        (k == 0 or heights[k] >= heights[k - 1])
        and (k == len(heights) - 1 or heights[k] > heights[k + 1])
        for k in range(len(heights))
    ]
    assert all(is_peak[k] for k in found)
    assert list(heights[found]) == sorted(heights[found], reverse=True)
    assert all(abs(a - b) > apart for a in found for b in found if a != b)
    if any(is_peak):
        assert heights[found[0]] == max(h for h, peak in zip(heights, is_peak, strict=True) if peak)
