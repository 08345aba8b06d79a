"""Calibration: intervals hold what they say, also those of a model that is too sure of itself."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq
from scipy.stats import norm, t

from skyfill.network import MixtureNetwork, learn_mixture
from skyfill.network.mixture import learn
from skyfill.network.mixture.calibration import STEPS, fit_levels, uncertain_levels
from skyfill.network.mixture.gap_kernels import find_score
from skyfill.network.mixture.maps import identity_margin
from skyfill.network.mixture.mixture import Mixture
from skyfill.network.mixture.network import BySpread

COV = np.array([[1.0, 0.9, 0.5], [0.9, 1.0, 0.4], [0.5, 0.4, 1.0]])


def gaussian(spread=1.0, noise=0.0):
    """The true network, with its spread and the noise of its second column changed."""
    margins = tuple(identity_margin(np.array([-1.0, 1.0])) for _ in range(3))
    cov = spread**2 * (COV + np.diag([0.0, noise, 0.0]))
    fit = Mixture(np.ones(1), np.zeros((1, 3)), cov[None], None, None)
    return MixtureNetwork(("a", "b", "c"), margins, (fit,))


def rows(n, seed=0):
    return np.random.default_rng(seed).multivariate_normal(np.zeros(3), COV, n)


def calibrated(model, X):
    columns, shifts = fit_levels(lambda rows, rng: model, X, np.random.default_rng(1))
    return replace(model, calibration=columns, by_spread=shifts)


def coverage(model, level, column=0):
    truth = rows(20_000, seed=2)
    X = truth.copy()
    X[:, column] = np.nan
    low, high = model.quantiles(X, [0.5 - level / 2, 0.5 + level / 2])[:, :, column]
    return np.mean((low <= truth[:, column]) & (truth[:, column] <= high))


def test_the_true_model_is_left_as_it_is() -> None:
    model = calibrated(gaussian(), rows(20_000))
    assert np.abs(model.calibration - STEPS).max() < 0.05
    assert np.abs(model.by_spread.levels - STEPS).max() < 0.06


@pytest.mark.parametrize("level", [0.5, 0.9])
@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_intervals_of_a_model_that_is_overconfident_or_underconfident_are_corrected(
    spread: float, level: float
) -> None:
    bad = gaussian(spread)
    assert abs(coverage(bad, level) - level) > 0.09
    assert abs(coverage(calibrated(bad, rows(20_000)), level) - level) < 0.03


def test_faults_that_depend_on_what_is_known_are_mended_by_spread() -> None:
    bad = gaussian(noise=0.5)  # too careful where b is told by a; nearly right where it is not
    good = calibrated(bad, rows(20_000))
    plain = replace(good, by_spread=None)
    assert abs(coverage(good, 0.5, 1) - 0.5) < abs(coverage(plain, 0.5, 1) - 0.5)


def test_levels_rise_and_keep_their_ends() -> None:
    X = rows(800)
    X[np.random.default_rng(3).random(X.shape) < 0.3] = np.nan
    X = X[~np.isnan(X).all(axis=1)]
    columns = calibrated(gaussian(0.7), X).calibration
    assert (np.diff(columns) >= 0).all()
    assert (columns[:, 0] == 0).all()
    assert (columns[:, -1] == 1).all()


def test_quantiles_never_cross_whatever_the_calibration() -> None:
    rng = np.random.default_rng(4)
    wild = [np.sort(rng.random((k, STEPS.size)), axis=1) for k in (3, 2)]
    by_spread = BySpread(np.array([0.1, 0.5]), wild[1])
    model = replace(gaussian(), calibration=wild[0], by_spread=by_spread)
    found = model.quantiles([[0.3, np.nan, np.nan]], np.linspace(0.05, 0.95, 19))
    assert (np.diff(found[:, 0], axis=0) >= 0).all()


@settings(max_examples=60)
@given(
    st.lists(st.floats(-4, 4), min_size=1, max_size=5),
    st.floats(0.01, 2.0),
    st.floats(0.001, 0.999),
)
def test_scores_are_the_quantiles_of_the_mixture(
    means: list[float], sd: float, level: float
) -> None:
    mean, resp = np.array(means), np.full(len(means), 1 / len(means))
    sds = np.full(len(means), sd)
    ends = np.array([mean.min() - 8 * sd, mean.max() + 8 * sd])
    found = find_score(level, ends, resp, mean, sds)
    assert norm.cdf(found, mean, sd).mean() == pytest.approx(level, abs=1e-8)
    exact = brentq(lambda x: norm.cdf(x, mean, sd).mean() - level, *ends)
    flat = norm.pdf(exact, mean, sd).mean() < 1e-4
    assert flat or found == pytest.approx(exact, abs=1e-4)


def test_without_calibration_the_fits_are_the_same_and_quantiles_those_of_the_mixture():
    X = np.random.default_rng(3).normal(size=(250, 2))
    X[::4, 1] = np.nan
    options = {"n_components": 2, "shrinkage": 5.0, "n_fits": 2, "rng": 1}
    with_levels = learn_mixture(X, **options).network
    without = learn_mixture(X, calibrate=False, **options).network
    assert with_levels.calibration is not None
    assert (without.calibration, without.by_spread) == (None, None)
    for one, other in zip(with_levels.fits, without.fits, strict=True):
        np.testing.assert_array_equal(one.covs, other.covs)


def test_intervals_of_small_tables_include_the_uncertainty_of_parameters() -> None:
    rng = np.random.default_rng(0)
    held = []
    for _ in range(12):
        X = rng.multivariate_normal(np.zeros(3), 0.5 + 0.5 * np.eye(3), 260)
        lost = rng.random(X.shape) < 0.2
        lost[lost.all(axis=1)] = False
        cells = np.where(lost, np.nan, X)
        network = learn_mixture(cells[:60], n_components=1, n_fits=1, rng=0).network
        low, high = network.quantiles(cells[60:], [0.05, 0.95])
        held.append(((low <= X[60:]) & (X[60:] <= high))[lost[60:]].mean())
    assert 0.87 < np.mean(held) < 0.93


def test_levels_of_a_mean_are_those_of_the_t_distribution() -> None:
    # Of n values with a mean alone to fit, the next lies at mean + t s sqrt(1 + 1/n), where s has
    # the divisor n - 1: textbook theory.
    (levels,) = uncertain_levels(np.array([5]), 1)
    steps = np.linspace(0, 1, levels.size)
    wanted = norm.cdf(t(4).ppf(steps) * np.sqrt(5 / 4) * np.sqrt(1 + 1 / 5))
    assert_allclose(levels, wanted, atol=1e-12)


def test_levels_are_those_of_as_many_fits_of_the_same_sizes_as_are_averaged(monkeypatch) -> None:
    # Fewer fits, or fits that are all alike, make narrower averages: intervals would hold too much.
    seen = []

    def spy(fit, cells, rng):
        seen.append(fit(cells, rng))
        return fit_levels(fit, cells, rng)

    monkeypatch.setattr(learn, "fit_levels", spy)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)) + 6 * rng.integers(4, size=(400, 1)) * np.array([[1.0, -1.0]])
    network = learn_mixture(X, n_fits=5, shrinkage=2.0, rng=0).network
    sizes = [len(fit.weights) for fit in network.fits]
    assert len(set(sizes)) > 1
    assert [len(fit.weights) for fit in seen[0].fits] == sizes


def test_some_fits_are_evenly_chosen() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) + 6 * rng.integers(4, size=(300, 1)) * np.array([[1.0, -1.0]])
    learned = learn_mixture(X, n_fits=5, shrinkage=2.0, calibrate=False, rng=0)
    sizes = [len(fit.weights) for fit in learned.network.fits]
    for n_fits, places in ((1, [0]), (3, [0, 2, 4]), (9, [0, 1, 2, 3, 4])):
        few = learn.fit_alike(learned.network, learn.as_cells(X), learned.plan, rng, n_fits)
        assert [len(fit.weights) for fit in few.fits] == [sizes[i] for i in places]
