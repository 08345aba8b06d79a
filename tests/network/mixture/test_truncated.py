"""Gaussians within limits: closed forms, integration, and Gibbs sampling."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import dblquad, quad
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal, norm, truncnorm

from skyfill.network.mixture.truncated_kernels import (
    draw_windows,
    log_tail,
    propagate,
    quantile,
    through_window,
)

INF = math.inf


def propagated(cov, low, high, noise=None):
    c = len(low)
    S, mean, tau, nu = np.empty((c, c)), np.empty(c), np.empty(c), np.empty(c)
    cavity, noise = np.empty((2, c)), np.zeros(c) if noise is None else np.asarray(noise)
    value = propagate(
        np.asarray(cov), np.asarray(low), np.asarray(high), noise, S, mean, tau, nu, cavity
    )
    return value, mean, S


@given(st.floats(-300, 30))
def test_tails_agree_with_scipy(z: float) -> None:
    log_p, ratio = log_tail(z)
    assert_allclose(log_p, norm.logcdf(z), rtol=1e-9, atol=1e-14)
    assert_allclose(ratio, np.exp(norm.logpdf(z) - norm.logcdf(z)), rtol=1e-8)


@given(st.floats(1e-12, 1 - 1e-12))
def test_quantiles_agree_with_scipy(level: float) -> None:
    assert_allclose(quantile(level), ndtri(level), rtol=3e-7, atol=3e-7)


@given(st.floats(-3, 3), st.floats(0.1, 4), st.floats(-8, 8), st.floats(0.01, 6))
def test_a_window_has_the_moments_of_a_truncated_normal(mean, var, low, width) -> None:
    sd = math.sqrt(var)
    for a, b in ((low, INF), (-INF, low), (low, low + width)):
        log_p, inside, spread = through_window(mean, var, a, b, 0.0)
        if log_p < -30:
            continue
        truth = truncnorm((a - mean) / sd, (b - mean) / sd, loc=mean, scale=sd)
        # From the side where the window lies: no digits are lost in the difference.
        up = a + b > 2 * mean
        p = (
            norm.sf(a, mean, sd) - norm.sf(b, mean, sd)
            if up
            else norm.cdf(b, mean, sd) - norm.cdf(a, mean, sd)
        )
        assert_allclose(log_p, np.log(p), rtol=1e-6, atol=1e-9)
        assert_allclose(inside, truth.mean(), rtol=1e-6, atol=1e-6)
        assert_allclose(spread, truth.var(), rtol=1e-4, atol=1e-6)


def test_a_soft_limit_agrees_with_integration() -> None:
    mean, var, low, width = 0.3, 1.7, 1.1, 0.6

    def density(x, power=0):
        return x**power * norm.pdf(x, mean, math.sqrt(var)) * ndtr((x - low) / width)

    z, one, two = (quad(density, -12, 12, args=(k,))[0] for k in range(3))
    log_p, inside, spread = through_window(mean, var, low, INF, width**2)
    assert_allclose([log_p, inside, spread], [np.log(z), one / z, two / z - (one / z) ** 2])


@pytest.mark.parametrize("rho", [-0.8, 0.0, 0.5, 0.8])
def test_two_limits_agree_with_integration(rho: float) -> None:
    cov, low = np.array([[1.0, rho], [rho, 1.0]]), np.array([0.4, -0.3])
    joint = multivariate_normal([0, 0], cov)

    def moment(f):
        ends = (low[0], 9.0, lambda x: low[1], lambda x: 9.0)
        return dblquad(lambda y, x: f(x, y) * joint.pdf([x, y]), *ends, epsabs=1e-9)[0]

    z = moment(lambda x, y: 1.0)
    first = np.array([moment(lambda x, y: x), moment(lambda x, y: y)]) / z
    sd = np.sqrt(
        [
            moment(lambda x, y: x * x) / z - first[0] ** 2,
            moment(lambda x, y: y * y) / z - first[1] ** 2,
        ]
    )
    value, mean, S = propagated(cov, low, [INF, INF])
    assert abs(value - np.log(z)) < 0.01
    assert np.abs((mean - first) / sd).max() < 0.02
    assert np.abs(np.sqrt(np.diag(S)) / sd - 1).max() < 0.04


@pytest.mark.parametrize("c", [2, 3, 5, 8])
def test_several_limits_agree_with_gibbs(c: int) -> None:
    rng = np.random.default_rng(c)
    A = rng.normal(size=(c, 2 * c))
    cov = A @ A.T / (2 * c)
    low = rng.normal(0, 0.7, c) * np.sqrt(np.diag(cov))
    _, mean, S = propagated(cov, low, [INF] * c)
    precision, n = np.linalg.inv(cov), 4000
    x = np.tile(np.maximum(mean, low + 1e-3), (n, 1))
    kept = []
    for sweep in range(150):
        for i in range(c):
            var = 1 / precision[i, i]
            at = x[:, i] - var * (x @ precision[i])
            p = ndtr((at - low[i]) / math.sqrt(var))
            x[:, i] = at - math.sqrt(var) * ndtri(np.maximum(rng.random(n) * p, 1e-300))
        if sweep >= 30:
            kept.append(x.copy())
    found = np.concatenate(kept)
    assert np.abs((mean - found.mean(axis=0)) / found.std(axis=0)).max() < 0.02
    assert np.abs(np.sqrt(np.diag(S)) / found.std(axis=0) - 1).max() < 0.03


def test_independent_limits_are_exact() -> None:
    low, high = np.array([0.5, -INF, -0.2]), np.array([INF, -1.0, 0.7])
    value, mean, S = propagated(np.diag([1.0, 4.0, 0.25]), low, high)
    apart = [
        through_window(0.0, v, a, b, 0.0) for v, a, b in zip([1, 4, 0.25], low, high, strict=True)
    ]
    assert_allclose(value, sum(one[0] for one in apart))
    assert_allclose(mean, [one[1] for one in apart])
    assert_allclose(np.diag(S), [one[2] for one in apart])


def test_draws_lie_within_hard_limits_and_have_the_moments() -> None:
    cov, low = np.array([[1.0, 0.6], [0.6, 1.0]]), np.array([0.5, 1.0])
    states, x = np.array([7, 8], np.uint64), np.empty(2)
    found = np.empty((4000, 2))
    for row in found:
        draw_windows(np.linalg.inv(cov), low, np.full(2, INF), np.zeros(2), low + 0.5, states, x)
        row[:] = x
    assert (found >= low).all()
    _, mean, S = propagated(cov, low, [INF, INF])
    assert np.abs(found.mean(axis=0) - mean).max() < 0.05
    assert np.abs(found.std(axis=0) - np.sqrt(np.diag(S))).max() < 0.05
