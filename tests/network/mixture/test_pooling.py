"""Regressions of components that are drawn to common ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skyfill.network.mixture.pooling import maximize_pooled
from skyfill.network.moments import Moments


def tables(sizes, p, seed=0):
    """Rows of several components, each with a mean and correlations of its own."""
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=(n, p)) @ (np.eye(p) + 0.3 * rng.normal(size=(p, p))) + rng.normal(size=p)
        for n in sizes
    ]


def moments_of(parts, origin=0.5):
    k, p = len(parts), parts[0].shape[1]
    moved = [part - origin for part in parts]
    counts = np.array([float(len(part)) for part in parts])
    total = np.array([part.sum(axis=0) for part in moved])
    cross = np.array([part.T @ part for part in moved])
    gaps = np.zeros((k, p))
    return Moments(int(counts.sum()), np.full((k, p), origin), counts, total, cross, gaps, 0.0)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_without_pooling_each_component_keeps_its_own_mean_and_covariance(p):
    parts = tables([40, 90, 200], p)
    means, covs = maximize_pooled(moments_of(parts), 0.0, np.zeros(p))
    assert_allclose(means, [part.mean(axis=0) for part in parts], atol=1e-6)
    wanted = [np.atleast_2d(np.cov(part.T, bias=True)) for part in parts]
    assert_allclose(covs, wanted, rtol=1e-6, atol=1e-6)


def test_with_strong_pooling_all_components_have_the_regression_of_all_rows():
    # The same plane in every component, seen with noise: the common slope is that of all rows,
    # weighed by the inverse variances, which are equal here.
    rng = np.random.default_rng(1)
    x = [rng.normal(size=n) for n in (30, 60)]
    parts = [np.stack([a, 2 * a + 1 + rng.normal(size=len(a))], axis=1) for a in x]
    pooled = np.concatenate(parts)
    slope, start = np.polyfit(pooled[:, 0], pooled[:, 1], 1)
    means, covs = maximize_pooled(moments_of(parts), 1.0, np.array([0.0, 1e9]))
    own = covs[:, 0, 1] / covs[:, 0, 0]
    assert_allclose(own[0], own[1], rtol=1e-6)
    assert_allclose(own, slope, rtol=0.02)
    assert_allclose(means[:, 1] - own * means[:, 0], start, atol=0.02)


def test_a_component_of_no_rows_takes_the_regression_of_the_others():
    parts = tables([300], 2)
    alone = maximize_pooled(moments_of(parts), 1.0, np.ones(2))[1][0]
    means, covs = maximize_pooled(moments_of([*parts, parts[0][:0]]), 1.0, np.ones(2))
    assert np.isfinite(means).all()
    assert_allclose(covs[1, 0, 1] / covs[1, 0, 0], alone[0, 1] / alone[0, 0], rtol=0.01)
