"""Mixtures learned from limits and errors: truths of censoring, regression and deconvolution."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr
from scipy.stats import multivariate_normal, norm

from skyfill.errors import DataError
from skyfill.network import Cells, learn_mixture
from skyfill.network.mixture.fit import Plan, climb_mixture, maximize_mixture
from skyfill.network.mixture.maps import fit_censored_margin, fit_margin, identity_margin
from skyfill.network.mixture.mixture import Mixture, expect_parts, split
from skyfill.network.mixture.network import MixtureNetwork
from skyfill.network.mixture.rehearsal import miss, rehearse, rehearsed

ONE = {"n_components": 1, "margins": False, "n_fits": 1, "shrinkage": 1.0, "calibrate": False}


def one_gaussian(mean, cov, names=None):
    p = len(mean)
    maps = tuple(identity_margin(np.array([-1.0, 1.0])) for _ in range(p))
    fit = Mixture(np.ones(1), np.array([mean]), np.array([cov]), None, None)
    return MixtureNetwork(tuple(names or map(str, range(p))), maps, (fit,))


def censored(n=3000, limit=0.3, seed=0):
    """A regression of y on x, of which y above a limit is only known to lie there."""
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, n)
    y = 0.2 + 0.8 * x + rng.normal(0, 0.5, n)
    hidden = y > limit
    X = np.column_stack([x, np.where(hidden, np.nan, y)])
    lower = np.column_stack([np.full(n, np.nan), np.where(hidden, limit, np.nan)])
    return X, lower, np.column_stack([x, y])


def test_a_censored_column_is_fitted_as_tobit_regression_fits_it() -> None:
    X, lower, _ = censored()
    seen = ~np.isnan(X[:, 1])
    x, y = X[:, 0], X[:, 1]

    def loss(t):
        at, sd = t[0] + t[1] * x, np.exp(t[2])
        beyond = log_ndtr((at[~seen] - 0.3) / sd).sum()
        return -norm.logpdf(y[seen], at[seen], sd).sum() - beyond

    tobit = minimize(loss, [0.0, 0.5, 0.0]).x
    network = learn_mixture(
        Cells(X, lower=lower), **{**ONE, "shrinkage": 1e-6, "tol": 1e-7}
    ).network
    at = network.posterior(np.array([[0.0, np.nan], [1.0, np.nan]]))
    assert_allclose(at.mean[:, 1], [tobit[0], tobit[0] + tobit[1]], atol=0.01)
    assert_allclose(at.sd[:, 1], np.exp(tobit[2]), rtol=0.02)


def test_ignoring_the_limits_is_wrong_and_using_them_is_right() -> None:
    X, lower, truth = censored()
    hidden = np.isnan(X[:, 1])
    blind = learn_mixture(X, **ONE).network.posterior(X).mean[hidden, 1]
    known = learn_mixture(Cells(X, lower=lower), **ONE).network
    filled = known.posterior(Cells(X, lower=lower)).mean[hidden, 1]
    assert (blind - truth[hidden, 1]).mean() < -0.3
    assert abs((filled - truth[hidden, 1]).mean()) < 0.03


def test_errors_are_taken_out_of_the_distribution_that_is_learned() -> None:
    rng = np.random.default_rng(1)
    truth = rng.multivariate_normal([1.0, 2.0], [[1.0, 0.7], [0.7, 1.0]], 4000)
    errors = rng.uniform(0.2, 1.2, truth.shape)
    cells = Cells(truth + errors * rng.normal(size=truth.shape), errors=errors)
    network = learn_mixture(cells, **{**ONE, "shrinkage": 1e-6, "tol": 1e-7}).network
    at = network.posterior(np.array([[np.nan, np.nan], [2.0, np.nan]]))
    assert_allclose(at.mean, [[1.0, 2.0], [2.0, 2.7]], atol=0.06)
    assert_allclose(at.sd[0], [1.0, 1.0], atol=0.05)
    denoised = network.posterior(cells, denoise=True)
    assert ((denoised.mean - truth) ** 2).mean() < 0.6 * ((cells.values - truth) ** 2).mean()
    assert_allclose(((denoised.mean - truth) / denoised.sd).std(), 1.0, atol=0.03)
    assert_array_equal(network.posterior(cells).mean, cells.values)


def test_likelihood_of_limits_and_errors_is_the_closed_form() -> None:
    mean, cov = np.array([0.3, -0.5]), np.array([[1.0, 0.6], [0.6, 2.0]])
    network = one_gaussian(mean, cov)
    nan = np.nan
    cells = Cells(
        [[1.0, nan], [1.0, 0.4], [nan, nan]],
        lower=[[nan, 0.2], [nan, nan], [0.1, nan]],
        upper=[[nan, nan], [nan, nan], [0.9, nan]],
        errors=[[nan, nan], [0.5, 0.3], [nan, nan]],
    )
    slope = 0.6
    at, sd = mean[1] + slope * 0.7, np.sqrt(2.0 - 0.36)
    first = norm.logpdf(1.0, 0.3, 1.0) + log_ndtr((at - 0.2) / sd)
    second = multivariate_normal(mean, cov + np.diag([0.25, 0.09])).logpdf([1.0, 0.4])
    third = np.log(ndtr(0.6) - ndtr(-0.2))
    assert_allclose(network.loglik(cells), [first, second, third], rtol=1e-10)


def test_no_value_quantile_or_draw_contradicts_a_limit() -> None:
    X, lower, _ = censored(400)
    upper = np.where(np.isnan(lower), np.nan, 0.6)
    for sides in ({"lower": lower}, {"lower": lower, "upper": upper}):
        cells = Cells(X, **sides)
        network = learn_mixture(cells, n_components=2, n_fits=2).network
        limited = cells.is_limited
        found = [network.posterior(cells).mean, *network.quantiles(cells, [0.001, 0.5, 0.999])]
        for table in (*found, *network.draws(cells, 5, 0)):
            assert (table[limited] >= 0.3 - 1e-9).all()
            assert "upper" not in sides or (table[limited] <= 0.6 + 1e-9).all()
            assert_array_equal(table[~np.isnan(X)], X[~np.isnan(X)])


def test_moments_of_parts_sum_to_the_whole_with_limits() -> None:
    X, lower, _ = censored(500)
    errors = np.where(np.isnan(X), np.nan, 0.2)
    cells = Cells(X, lower=lower, errors=errors)
    mixture = Mixture(
        np.array([0.4, 0.6]),
        np.zeros((2, 2)) + [[0.1], [0.5]],
        np.array([np.eye(2)] * 2),
        None,
        None,
    )
    whole = expect_parts(split(cells), mixture, lambda f, i: list(map(f, i)))
    parts = [split(cells.take(slice(a, a + 100)))[0] for a in range(0, 500, 100)]
    summed = expect_parts(parts, mixture, lambda f, i: list(map(f, i)))
    for name in ("weight", "total", "cross", "gaps", "loglik"):
        assert_allclose(getattr(summed, name), getattr(whole, name), rtol=1e-9, atol=1e-9)


def test_the_likelihood_does_not_fall_by_more_than_the_accuracy_of_the_limits() -> None:
    X, lower, _ = censored(600)
    parts = split(Cells(X, lower=lower))
    plan = Plan(1, 1e-6, pooling=(1.0, 1.0))
    start = Mixture(np.ones(1), np.zeros((1, 2)), np.eye(2)[None], None, None)
    trace = []
    mixture = start
    for _ in range(30):
        moments = expect_parts(parts, mixture, lambda f, i: list(map(f, i)))
        trace.append(moments.loglik)
        mixture = maximize_mixture(moments, plan)
    assert np.diff(trace).min() > -1e-6 * abs(trace[-1])
    found = climb_mixture(
        lambda m: expect_parts(parts, m, lambda f, i: list(map(f, i))),
        start,
        plan,
        rng=np.random.default_rng(0),
        tol=1e-6,
        max_iter=200,
    )
    assert found.converged
    assert found.trace[-1] >= trace[-1] - 1e-3


def test_a_censored_map_is_that_of_the_whole_column() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0, 1, 20_000)
    limit = rng.normal(0.8, 0.3, values.size)  # a limit of its own for each
    seen = values < limit
    margin = fit_censored_margin(values[seen], limit[~seen], np.full((~seen).sum(), np.nan))
    at = np.linspace(-2, 1, 13)
    assert np.abs(margin.to_normal(at) - at).max() < 0.05
    assert np.abs(fit_margin(values[seen]).to_normal(at) - at).max() > 0.3
    mirrored = fit_censored_margin(-values[seen], np.full((~seen).sum(), np.nan), -limit[~seen])
    # The knots that are kept are not those of the mirror image.
    assert_allclose(mirrored.to_normal(-at), -margin.to_normal(at), atol=2e-3)


def test_a_rehearsal_hides_the_fainter_half_and_keeps_what_is_known() -> None:
    X, lower, _ = censored(1000)
    found = rehearse(Cells(X, lower=lower))
    seen = ~np.isnan(X[:, 1])
    hidden = seen & np.isnan(found.harder.values[:, 1])
    assert abs(hidden.sum() / seen.sum() - 0.5) < 0.01
    assert X[hidden, 1].min() >= found.harder.lower[hidden, 1].max()
    assert_array_equal(found.truth[hidden, 1], X[hidden, 1])
    good = learn_mixture(found.harder, **ONE).network
    bad = learn_mixture(found.harder.values, **ONE).network
    assert miss(good, found) < miss(bad, found)


def test_maps_of_a_rehearsal_do_not_know_what_is_hidden() -> None:
    X, lower, _ = censored(1000)
    found = rehearse(Cells(X, lower=lower))
    plan = Plan(1, 1.0, pooling=(1.0, 3.0))
    map_of_y = rehearsed("ranks", plan, found.harder).margins[1]
    assert map_of_y.x.max() <= np.nanmax(found.harder.values[:, 1])


def test_intervals_beyond_limits_are_as_wide_to_both_sides_and_hold_the_truth() -> None:
    X, lower, truth = censored(600)
    cells = Cells(X, lower=lower)
    network = learn_mixture(cells, n_components=1, n_fits=2).network
    levels = network.within_limits
    assert_allclose(levels + levels[:, ::-1], 1.0, atol=1e-9)
    assert_array_equal(levels[0], levels[1])
    low, high = network.quantiles(cells, [0.05, 0.95])[:, cells.is_limited]
    true = truth[cells.is_limited]
    assert 0.86 < ((low <= true) & (true <= high)).mean() < 0.94


def test_a_component_that_never_saw_a_column_takes_the_common_regression() -> None:
    rng = np.random.default_rng(0)
    bright, faint = rng.normal(12, 0.5, 300), rng.normal(17, 0.5, 300)
    x = np.concatenate([bright, faint])
    y = x - 1.0 + rng.normal(0, 0.1, 600)
    seen = np.arange(600) < 300
    X = np.column_stack([x, np.where(seen, y, np.nan)])
    lower = np.column_stack([np.full(600, np.nan), np.where(seen, np.nan, 13.0)])
    cells = Cells(X, lower=lower)
    network = learn_mixture(cells, n_components=2, n_fits=1, calibrate=False).network
    error = network.posterior(cells).mean[~seen, 1] - y[~seen]
    assert abs(error.mean()) < 0.3
    assert error.std() < 0.3


def test_two_limits_may_have_one_score() -> None:
    X = np.column_stack([np.random.default_rng(0).normal(size=200), np.full(200, 3.5)])
    network = learn_mixture(X, n_components=1, n_fits=1, calibrate=False).network
    lost = np.full((2, 2), np.nan)
    cells = Cells(lost, lower=[[99.0, 3.0], [-99.0, 3.5]], upper=[[100.0, 4.0], [-98.0, 9.0]])
    post = network.posterior(cells)
    assert np.isfinite(post.mean).all()
    assert_array_equal(post.mean[:, 1], 3.5)
    assert post.mean[0, 0] > X[:, 0].max()
    assert post.mean[1, 0] < X[:, 0].min()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"errors": [[-1.0, 1.0]]}, "errors must not be negative"),
        ({"lower": [[1.0]]}, "lower has the shape"),
        ({"upper": [[np.inf, 1.0]]}, "upper must be finite"),
        ({"lower": [[2.0, np.nan]], "upper": [[1.0, np.nan]]}, "the lower limit 2 is not below"),
    ],
)
def test_limits_that_make_no_sense_are_refused(given, words) -> None:
    with pytest.raises(DataError, match=words):
        Cells(np.array([[np.nan, 1.0]]), **given)


def test_a_constant_column_beside_limits_is_learned() -> None:
    X, lower, _ = censored(300)
    constant = np.full((300, 1), 3.5)
    cells = Cells(np.hstack([X, constant]), lower=np.hstack([lower, constant * np.nan]))
    network = learn_mixture(cells, n_components=2, n_fits=1, calibrate=False).network
    filled = network.posterior(cells).mean
    assert np.isfinite(filled).all()
    assert network.posterior(np.array([[0.0, 0.0, np.nan]])).mean[0, 2] == 3.5


def test_a_limit_far_beyond_everything_seen_is_not_contradicted() -> None:
    X, _, _ = censored(300)
    network = learn_mixture(X, n_components=2, n_fits=1).network
    far = Cells(np.array([[0.0, np.nan]]), lower=np.array([[np.nan, 1e4]]))
    found = [network.posterior(far).mean, *network.quantiles(far, [0.05]), *network.draws(far, 2)]
    assert all(table[0, 1] >= 1e4 for table in found)
