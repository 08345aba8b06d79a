"""The damped random walk: its likelihood against dense algebra, its parameters against truth."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from skyfill.lightcurve import FEATURES
from skyfill.lightcurve.car import fit_car, log_likelihood_at
from skyfill.lightcurve.curve import Curve, Star
from tests.lightcurve.curves import damped_walk, epochs


def curve_of(sigma, tau, seed=0, *, n=500, days=2700.0, noise=0.03):
    rng = np.random.default_rng(seed)
    time, error = epochs(rng, n, days), noise * rng.uniform(0.7, 1.3, n)
    return Curve(time, 18 + damped_walk(time, sigma, tau, rng) + error * rng.normal(size=n), error)


def log_likelihood(curve, sigma, tau):
    """Compute the log likelihood at the mean that maximizes it, and that mean."""
    center = curve.value.mean()
    about = (curve.time, curve.value - center, curve.error)
    found = log_likelihood_at(*about, 2 * np.log(sigma), np.log(tau))
    return found[0], center + found[1]


def test_a_single_point_is_at_the_mean_so_that_only_the_normalization_is_left():
    curve = Curve(np.zeros(1), np.array([18.0]), np.array([3.0]))
    found, mean = log_likelihood(curve, sigma=4.0, tau=2.0)
    assert (mean, found) == (18.0, pytest.approx(-0.5 * np.log(2 * np.pi * (16 + 9))))


@pytest.mark.parametrize("tau", [0.01, 3.0, 200.0, 1e5])
@pytest.mark.parametrize("sigma", [1e-3, 0.05, 2.0])
def test_the_likelihood_is_that_of_the_joint_gaussian(sigma, tau):
    curve = curve_of(0.05, 50.0, n=60)
    found, mean = log_likelihood(curve, sigma, tau)
    lag = np.abs(curve.time[:, None] - curve.time)
    cov = 0.5 * tau * sigma**2 * np.exp(-lag / tau) + np.diag(curve.error**2)
    assert found == pytest.approx(
        multivariate_normal(np.full(60, mean), cov).logpdf(curve.value), rel=1e-8
    )
    weights = np.linalg.solve(cov, np.ones(60))
    assert mean == pytest.approx(weights @ curve.value / weights.sum(), rel=1e-9)


@pytest.mark.parametrize("tau", [1.0, 30.0, 1000.0])
def test_the_likelihood_is_celerites(tau):
    celerite2 = pytest.importorskip("celerite2", reason="celerite2 is in the extra `compare`")
    curve, sigma = curve_of(0.03, 100.0), 0.04
    found, mean = log_likelihood(curve, sigma, tau)
    term = celerite2.terms.RealTerm(a=0.5 * tau * sigma**2, c=1 / tau)
    process = celerite2.GaussianProcess(term, mean=mean)
    process.compute(curve.time, diag=curve.error**2)
    assert abs(found - process.log_likelihood(curve.value)) < 1e-8 * abs(found)


@pytest.mark.parametrize("tau", [20.0, 100.0])
def test_median_parameters_of_many_curves_are_the_true_ones(tau):
    sigma = 0.2 / np.sqrt(tau / 2)
    fits = [fit_car(curve_of(sigma, tau, seed)) for seed in range(200)]
    assert np.median([fit.tau for fit in fits]) == pytest.approx(tau, rel=0.15)
    assert np.median([fit.sigma for fit in fits]) == pytest.approx(sigma, rel=0.15)
    assert np.mean([fit.flag == 0 for fit in fits]) > 0.95
    assert all(fit.tau != 100 for fit in fits)


def test_a_baseline_of_five_tau_biases_tau_low_and_says_so_now_and_then():
    tau, sigma = 500.0, 0.2 / np.sqrt(250.0)
    fits = [fit_car(curve_of(sigma, tau, seed)) for seed in range(200)]
    ratio = np.median([fit.tau for fit in fits]) / tau
    assert 0.4 < ratio < 0.75  # Kozlowski (2017): tau needs a baseline of more than ten times tau
    assert np.median([fit.sigma for fit in fits]) == pytest.approx(sigma, rel=0.15)
    assert np.mean([fit.flag & 1 for fit in fits]) > 0.2


def test_no_other_start_finds_a_higher_likelihood():
    for seed in range(10):
        curve = curve_of(0.05, 10.0 * 4**seed / 4**4, seed, n=200)
        best = fit_car(curve).log_likelihood
        for log_tau in np.linspace(-3, 9, 25):
            for log_sigma in np.linspace(-7, 1, 17):
                other = log_likelihood(curve, np.exp(log_sigma), np.exp(log_tau))[0]
                assert other < best + 0.01


def test_white_noise_leaves_tau_unconstrained_on_both_sides():
    rng = np.random.default_rng(3)
    flags = []
    for _ in range(30):
        time, error = epochs(rng, 300), rng.uniform(0.02, 0.05, 300)
        flags.append(fit_car(Curve(time, 18 + error * rng.normal(size=300), error)).flag)
    assert np.mean(np.array(flags) == 3) > 0.8


def test_points_without_errors_count_as_exact():
    curve = curve_of(0.05, 50.0, n=400, noise=0.0001)
    bare = Curve(curve.time, curve.value, np.ones(400), has_errors=False)
    assert fit_car(bare).tau == pytest.approx(fit_car(curve).tau, rel=0.02)


def test_the_gain_over_white_noise_tells_a_walk_from_noise():
    rng = np.random.default_rng(4)
    walk = FEATURES["car_gain"].compute(Star((curve_of(0.05, 50.0),)))
    time, error = epochs(rng, 500), np.full(500, 0.03)
    noise = Curve(time, 18 + 0.2 * rng.normal(size=500), error)
    assert walk > 0.3
    assert abs(FEATURES["car_gain"].compute(Star((noise,)))) < 0.02
