"""Rows with errors, gaps and a limit, all components side by side, against plain linear algebra."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, norm, truncnorm

from skyfill.network.cells import Cells
from skyfill.network.mixture.gap_kernels import NEGLIGIBLE
from skyfill.network.mixture.mixture import Mixture, expect_mixture, in_blocks, sort_rows
from skyfill.network.mixture.weighing import weigh

N, P, K = 60, 5, 9  # more components than stand in one block


def mixture():
    """Components so alike that none falls behind: those are not followed up beyond limits."""
    rng = np.random.default_rng(1)
    roots = np.eye(P) + 0.2 * rng.normal(size=(K, P, P))
    weights = rng.dirichlet(np.ones(K))
    means = 0.4 * rng.normal(size=(K, P))
    return Mixture(weights, means, roots @ roots.transpose(0, 2, 1), None, None)


def table():
    """Exact and noisy values, gaps, and a limit in a cell of every other row."""
    rng = np.random.default_rng(2)
    X, lower = rng.normal(size=(N, P)), np.full((N, P), np.nan)
    errors = rng.uniform(0.01, 1.0, (N, P)) * (rng.random((N, P)) < 0.6)
    X[rng.random((N, P)) < 0.3] = np.nan
    X[::2, 1], lower[::2, 1], errors[::2, 1] = np.nan, 0.4, 0.0
    return Cells(X, lower, errors=errors)


def dense(cells, r, mean, cov):
    """Log density of a row, and mean and covariance of its true values."""
    x, seen = cells.values[r], ~np.isnan(cells.values[r])
    noise = np.where(seen, np.nan_to_num(cells.errors[r]), 0.0) ** 2
    total = (cov + np.diag(noise))[np.ix_(seen, seen)]
    loglik = multivariate_normal(mean[seen], total).logpdf(x[seen]) if seen.any() else 0.0
    gain = np.linalg.solve(total, cov[seen]).T
    m, C = mean + gain @ (x - mean)[seen], cov - gain @ cov[seen]
    limit = cells.lower[r, 1]
    if not np.isnan(limit):
        a = (limit - m[1]) / np.sqrt(C[1, 1])
        pull = C[:, 1] / C[1, 1]
        inside = truncnorm(a, np.inf, m[1], np.sqrt(C[1, 1]))
        loglik += norm.logsf(a)
        m, C = (
            m + pull * (inside.mean() - m[1]),
            C - np.outer(pull, pull) * (C[1, 1] - inside.var()),
        )
    return loglik, m, C


@pytest.fixture(scope="module")
def truth():
    """Responsibilities (n, k), means (n, k, p) and covariances; the log-likelihood."""
    cells, known = table(), mixture()
    pairs = zip(known.means, known.covs, strict=True)
    found = [[dense(cells, r, *pair) for r in range(N)] for pair in pairs]
    logs = np.array([[one[0] for one in row] for row in found]).T + np.log(known.weights)
    loglik = np.logaddexp.reduce(logs, axis=1)
    m, C = (np.array([[one[i] for one in row] for row in found]).swapaxes(0, 1) for i in (1, 2))
    return np.exp(logs - loglik[:, None]), m, C, loglik


def test_what_components_say_of_lost_cells_is_what_linear_algebra_says(truth):
    cells, (resp, m, C, loglik) = table(), truth
    part = sort_rows(cells)
    found = weigh(part, in_blocks([mixture()]), denoise=True)
    assert_allclose(found.loglik, loglik, atol=1e-12)
    assert_allclose(found.resp[:, :K], resp, atol=1e-12)
    # Of a limited cell the distribution without its own limit is given.
    free = np.isnan(cells.lower[part.row_of, part.column_of])
    row, column = part.row_of[free], part.column_of[free]
    matters = resp[row] > NEGLIGIBLE
    sd = np.sqrt(C[row, :, column, column])
    assert_allclose(found.mean[free, :K][matters], m[row, :, column][matters], atol=1e-11)
    assert_allclose(found.sd[free, :K][matters], sd[matters], rtol=1e-9)


def test_expected_moments_are_those_of_linear_algebra(truth):
    resp, m, C, loglik = truth
    share = np.where(resp > NEGLIGIBLE, resp, 0.0)
    found, away = expect_mixture(sort_rows(table()), mixture()), m - mixture().means
    assert_allclose(found.loglik, loglik.sum(), rtol=1e-12)
    assert_allclose(found.weight, share.sum(axis=0), rtol=1e-12)
    assert_allclose(found.total, np.einsum("nk,nkp->kp", share, away), atol=1e-10)
    second = C + away[..., :, None] * away[..., None, :]
    assert_allclose(found.cross, np.einsum("nk,nkpq->kpq", share, second), atol=1e-10)
