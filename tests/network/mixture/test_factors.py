"""Factor analysers: covariances of a few factors and each column's own noise."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.decomposition import FactorAnalysis

from skyfill.network import learn_mixture
from skyfill.network.mixture.factors import fit_factors
from skyfill.network.mixture.fit import WEIGHT_PRIOR, Plan, climb_mixture, maximize_mixture
from skyfill.network.mixture.mixture import Mixture, expect_parts, split
from skyfill.network.mixture.plan_choice import ARCS
from skyfill.threads import map_threads
from tests.network.strategies import lose


def clumps(n, p, k, q, seed=0):
    """Rows of k clumps, each along q directions of its own."""
    rng = np.random.default_rng(seed)
    kind, means = rng.integers(k, size=n), rng.normal(size=(k, p))
    loads = rng.normal(size=(k, p, q))
    X = means[kind] + np.einsum("npq,nq->np", loads[kind], rng.normal(size=(n, q)))
    return X + 0.5 * rng.normal(size=X.shape)


def misfit(cov, found):
    """Twice the negative log-likelihood per row of a covariance, under another, up to constants."""
    return np.linalg.slogdet(found)[1] + np.trace(np.linalg.solve(found, cov), axis1=-2, axis2=-1)


def test_one_factor_of_three_columns_is_spearmans():
    # A loading is the root of the product of two covariances over the third.
    cov = np.array([[1.0, 0.56, 0.40], [0.56, 1.0, 0.35], [0.40, 0.35, 1.0]])
    loads = np.sqrt([0.56 * 0.40 / 0.35, 0.56 * 0.35 / 0.40, 0.40 * 0.35 / 0.56])
    found = fit_factors(cov[None], 1, rounds=3000)
    assert_allclose(found.noise[0], 1 - loads**2, atol=1e-6)
    assert_allclose(found.covs[0], cov, atol=1e-6)


def test_it_agrees_with_scikit_learn():
    X = clumps(2000, 8, 1, 2)
    theirs = FactorAnalysis(2, tol=1e-10, max_iter=5000, svd_method="lapack").fit(X)
    ours = fit_factors(np.cov(X.T, bias=True)[None], 2, rounds=2000)
    assert_allclose(ours.covs[0], theirs.get_covariance(), atol=2e-4)
    assert_allclose(ours.noise[0], theirs.noise_variance_, atol=2e-4)


@settings(max_examples=25)
@given(st.integers(0, 999), st.integers(1, 3))
def test_no_round_makes_the_fit_worse(seed, n_factors):
    cov = np.cov(clumps(40, 7, 2, 2, seed).T)[None]
    noise = np.random.default_rng(seed).uniform(0.01, 3.0, (1, 7))
    misfits = [misfit(cov, fit_factors(cov, n_factors, noise, rounds)[0]) for rounds in range(8)]
    assert (np.diff(np.ravel(misfits)) <= 1e-10).all()


@settings(max_examples=15)
@given(st.integers(0, 999), st.integers(1, 2), st.sampled_from([0.1, 0.4]))
def test_the_likelihood_never_falls(seed, n_factors, rate):
    X = lose(clumps(150, 6, 2, 2, seed), rate, seed)
    plan, parts = Plan(2, 0.0, "factors", n_factors=n_factors), split(X)
    heights = []

    def expect(mixture):
        moments = expect_parts(parts, mixture, map_threads)
        # Weights are estimated with extra rows, which are part of what is climbed.
        heights.append(moments.loglik + WEIGHT_PRIOR * np.log(mixture.weights).sum())
        return moments

    start = Mixture(
        np.ones(2) / 2, np.ones((2, 6)) * [[-1], [1]], np.stack([np.eye(6)] * 2), None, None
    )
    rng = np.random.default_rng(0)
    climb_mixture(expect, start, plan, rng=rng, tol=1e-7, max_iter=60)
    assert (np.diff(heights) >= -1e-9 * np.abs(heights[:-1])).all()
    assert heights[-1] > heights[0]


def test_wide_tables_get_factors_and_more_components():
    X = lose(clumps(1000, 24, 12, 2), 0.1)
    options = {"n_fits": 1, "calibrate": False, "margins": False, "shrinkage": 5.0}
    full, best = (learn_mixture(X, arcs=arcs, **options) for arcs in ("full", "none"))
    assert best.plan.arcs == "factors"
    assert best.plan.n_components > full.plan.n_components
    assert dict(best.trials)[best.plan] > dict(full.trials)[full.plan] + 1.0
    fresh = lose(clumps(2000, 24, 12, 2)[1000:], 0.1)
    means = [found.network.loglik(fresh).mean() for found in (full, best)]
    assert means[1] > means[0] + 1.0
    # The covariances are what they say they are.
    covs = best.network.fits[0].covs
    assert_allclose(fit_factors(covs, best.plan.n_factors, rounds=2000).covs, covs, atol=1e-3)


def test_narrow_tables_are_not_asked():
    X = lose(clumps(100, 6, 2, 2), 0.1)
    learn = partial(learn_mixture, X, n_components=1, shrinkage=5.0, n_fits=1, calibrate=False)
    assert learn().trials == ()
    assert {plan.arcs for plan, _ in learn(arcs="auto").trials} == set(ARCS)
    asked = learn(arcs="factors", n_factors=2)
    assert (asked.plan.arcs, asked.plan.n_factors) == ("factors", 2)


@pytest.mark.parametrize("p", [1, 2])
def test_one_or_two_columns_can_have_a_factor(p):
    X = clumps(100, p, 1, 1)
    found = learn_mixture(X, arcs="factors", n_components=1, n_fits=1)
    assert found.plan.n_factors == 1
    assert np.isfinite(found.network.posterior(lose(X, 0.5)).mean).all()


def test_an_m_step_without_a_step_before_is_a_factor_model():
    X = clumps(400, 6, 1, 1)
    moments = expect_parts(
        split(X), Mixture(np.ones(1), np.zeros((1, 6)), np.eye(6)[None], None, None), map_threads
    )
    found = maximize_mixture(moments, Plan(1, 0.0, "factors", n_factors=1))
    assert_allclose(found.covs[0], np.cov(X.T, bias=True), atol=0.15)
