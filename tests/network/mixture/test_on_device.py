"""Mixtures on a GPU, or on an imitation of one, say what they say on the processor."""

import numpy as np
import pytest

from skyfill.device import gpu_for, using
from skyfill.network.cells import Cells
from skyfill.network.mixture import on_device
from skyfill.network.mixture.beyond import with_support
from skyfill.network.mixture.fit import Plan, fit_mixture
from skyfill.network.mixture.maps import fit_margin, identity_margin
from skyfill.network.mixture.mixture import Mixture, expect_mixture, sort_rows
from skyfill.network.mixture.network import MixtureNetwork
from tests.devices import DEVICES

P = 4


def mixture(rng, k, *, informative=False):
    roots = rng.normal(size=(k, P, P)) + 2 * np.eye(P)
    rates = rng.uniform(0.1, 0.6, (k, P)) if informative else None
    weights = rng.dirichlet(np.ones(k))
    covs = roots @ roots.transpose(0, 2, 1) / 8
    return Mixture(weights, rng.normal(0, 1, (k, P)), covs, rates, None)


def table(rng, n=40):
    """A table with gaps: one row complete, one empty, a column with an atom, a constant column."""
    X = rng.normal(size=(n, P)) @ rng.normal(size=(P, P))
    X[:, 1] = np.where(X[:, 1] < 0, 0.0, np.exp(X[:, 1]))
    X[:, 3] = 7.0
    X[rng.random(X.shape) < 0.3] = np.nan
    X[0], X[1] = [0.5, 0.0, -1.0, 7.0], np.nan
    return X


def network(rng, X, *, informative=False):
    seen = [x[~np.isnan(x)] for x in X.T]
    margins = [fit_margin(seen[0]), fit_margin(seen[1]), identity_margin(seen[2])]
    fits = tuple(mixture(rng, k, informative=informative) for k in (3, 2))
    return MixtureNetwork(tuple("abcd"), (*margins, fit_margin(seen[3])), fits)


@pytest.mark.parametrize("name", DEVICES)
def test_gaps_beyond_what_was_learned_are_widened_alike(name):
    rng = np.random.default_rng(8)
    X = table(rng)
    model = with_support(network(rng, X), Cells(X), 0.5)
    far = np.where(rng.random(X.shape) < 0.5, 4 * X, X)
    assert (model.distances(Cells(far)) > 0).any()
    expected, quantiles = model.posterior(far), model.quantiles(far, [0.1, 0.9])
    draws = model.draws(far, 3, 0)
    with using(name):
        found = model.posterior(far)
        assert np.allclose(model.quantiles(far, [0.1, 0.9]), quantiles, atol=1e-9)
        assert np.allclose(model.draws(far, 3, 0), draws, atol=1e-9)
    assert np.allclose(found.sd, expected.sd, atol=1e-9)


@pytest.mark.parametrize("informative", [False, True])
@pytest.mark.parametrize("name", DEVICES)
def test_posterior_likelihood_and_responsibilities_agree(name, informative):
    rng = np.random.default_rng(1)
    X = table(rng)
    model = network(rng, X, informative=informative)
    expected, loglik = model.look(X, responsibilities=True), model.loglik(X)
    with using(name):
        found = model.look(X, responsibilities=True)
        assert np.allclose(model.loglik(X), loglik, atol=1e-9)
        assert np.allclose(model.responsibilities(X), expected.responsibilities, atol=1e-12)
    assert np.allclose(found.posterior.mean, expected.posterior.mean, atol=1e-9)
    assert np.allclose(found.posterior.sd, expected.posterior.sd, atol=1e-9)
    assert np.array_equal(found.posterior.mean[~np.isnan(X)], X[~np.isnan(X)])
    assert np.allclose(found.seen, expected.seen, atol=1e-9)
    assert np.allclose(found.responsibilities, expected.responsibilities, atol=1e-12)


@pytest.mark.parametrize("name", DEVICES)
def test_single_precision_is_close(name):
    rng = np.random.default_rng(2)
    X = table(rng)
    model = network(rng, X)
    expected = model.look(X).posterior
    with using(name):
        margins = (model.margins, model._knots, model._moments)
        device = gpu_for(1, 1)
        there = on_device.load_mixture(device, model.fits, *margins, dtype=np.float32)
        found = there.look(Cells(X))
    scale = np.nanstd(X, axis=0) + 1e-9
    assert np.abs((found["mean"] - expected.mean) / scale).max() < 1e-3
    assert np.abs((found["sd"] - expected.sd) / scale).max() < 1e-3


@pytest.mark.parametrize("informative", [False, True])
@pytest.mark.parametrize("name", DEVICES)
def test_expected_moments_agree_in_batches_of_any_size(name, informative, monkeypatch):
    rng = np.random.default_rng(3)
    Z, start = table(rng), mixture(rng, 3, informative=informative)
    expected = expect_mixture(sort_rows(Z), start)
    with using(name):
        device = gpu_for(1, 1)
        for rows in (64, 17):
            monkeypatch.setattr(on_device, "ROWS_AT_ONCE", rows)
            found = on_device.expect_on_device(
                device, on_device.load_scores(device, Cells(Z)), start
            )
            assert found.n == expected.n
            for part in ("weight", "total", "cross", "gaps", "loglik"):
                assert np.allclose(getattr(found, part), getattr(expected, part), atol=1e-8), part


@pytest.mark.parametrize("name", DEVICES)
def test_em_takes_the_same_steps(name):
    rng = np.random.default_rng(4)
    Z = table(rng)[:, :3]
    plan = Plan(2, 1.0)
    expected = fit_mixture(Z, plan, np.random.default_rng(0), max_iter=4)
    with using(name):
        found = fit_mixture(Z, plan, np.random.default_rng(0), max_iter=4)
    assert np.allclose(found.trace, expected.trace, atol=1e-8)
    assert np.allclose(found.params.covs, expected.params.covs, atol=1e-8)


def uncertain(rng, X):
    """Limits of most gaps, from one side or both, hard and soft; errors of some values."""
    gap, kind = np.isnan(X), rng.integers(5, size=X.shape)
    lower = np.where(gap & np.isin(kind, (1, 3)), rng.normal(0, 0.7, X.shape), np.nan)
    upper = np.where(gap & (kind == 2), rng.normal(0, 0.7, X.shape), np.nan)
    upper = np.where(gap & (kind == 3), lower + rng.uniform(0.2, 1, X.shape), upper)
    errors = np.where(rng.random(X.shape) < 0.4, rng.uniform(0, 0.5, X.shape), np.nan)
    return Cells(X, lower, upper, errors)


@pytest.mark.parametrize("informative", [False, True])
@pytest.mark.parametrize("name", DEVICES)
def test_limits_and_errors_agree(name, informative):
    rng = np.random.default_rng(5)
    X = table(rng, 60)
    model, cells = network(rng, X, informative=informative), uncertain(rng, X)
    assert cells.is_limited.sum(axis=1).max() > 1
    expected = model.look(cells, responsibilities=True, denoise=True)
    loglik = model.loglik(cells)
    with using(name):
        found = model.look(cells, responsibilities=True, denoise=True)
        assert np.allclose(model.loglik(cells), loglik, atol=1e-7)
    assert np.allclose(found.responsibilities, expected.responsibilities, atol=1e-7)
    assert np.allclose(found.seen, expected.seen, atol=1e-7)
    assert np.allclose(found.posterior.mean, expected.posterior.mean, atol=1e-6)
    assert np.allclose(found.posterior.sd, expected.posterior.sd, atol=1e-6)


@pytest.mark.parametrize("name", DEVICES)
def test_quantiles_agree(name):
    rng = np.random.default_rng(8)
    X = table(rng, 30)
    model, levels = network(rng, X), (0.05, 0.5, 0.95)
    for cells in (Cells(X), uncertain(rng, X)):
        expected = model.quantiles(cells, levels)
        with using(name):
            assert np.allclose(model.quantiles(cells, levels), expected, atol=1e-6)


@pytest.mark.parametrize("name", DEVICES)
def test_expected_moments_within_limits_agree(name):
    rng = np.random.default_rng(7)
    scores, start = uncertain(rng, table(rng)), mixture(rng, 3)
    expected = expect_mixture(sort_rows(scores), start)
    with using(name):
        device = gpu_for(1, 1)
        there = on_device.load_scores(device, scores)
        found = on_device.expect_on_device(device, there, start)
    for part in ("weight", "total", "cross", "gaps", "loglik"):
        assert np.allclose(getattr(found, part), getattr(expected, part), atol=1e-7), part


@pytest.mark.parametrize("name", DEVICES)
def test_draws_use_the_same_random_numbers(name):
    rng = np.random.default_rng(6)
    X = table(rng)
    model = network(rng, X)
    expected = model.draws(X, 3, 0)
    with using(name):
        assert np.allclose(model.draws(X, 3, 0), expected, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("denoise", [False, True])
@pytest.mark.parametrize("name", DEVICES)
def test_draws_within_limits_use_the_same_random_numbers(name, denoise):
    rng = np.random.default_rng(9)
    X = table(rng, 30)
    model = network(rng, X)
    some = uncertain(rng, X)
    plain = (np.arange(len(X)) % 3 == 0)[:, None]
    known = [np.where(plain, np.nan, a) for a in (some.lower, some.upper, some.errors)]
    cells = Cells(X, *known)
    expected = model.draws(cells, 3, 0, denoise=denoise)
    with using(name):
        found = model.draws(cells, 3, 0, denoise=denoise)
    assert np.allclose(found, expected, atol=1e-6)
    assert not np.isnan(found).any()
