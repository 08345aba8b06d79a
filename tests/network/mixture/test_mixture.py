import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import kstest, multivariate_normal, norm

from skyfill.errors import DataError
from skyfill.network import MixtureNetwork, fit_parameters, learn_mixture
from skyfill.network.mixture.fit import WEIGHT_PRIOR, Plan, maximize_mixture, project
from skyfill.network.mixture.maps import identity_margin
from skyfill.network.mixture.mixture import Mixture, expect_mixture, sort_rows
from tests.network.strategies import lose

PLAIN = identity_margin(np.array([-1.0, 1.0]))


def random_mixture(rng, k, p, gaps=False):
    roots = rng.normal(size=(k, p, p)) * 0.5
    covs = roots @ roots.transpose(0, 2, 1) + 0.3 * np.eye(p)
    rates = rng.uniform(0.1, 0.9, (k, p)) if gaps else None
    return Mixture(rng.dirichlet(np.ones(k)), rng.normal(0, 2, (k, p)), covs, rates, None)


def make_model(seed, p=4, fits=2, gaps=False):
    rng = np.random.default_rng(seed)
    mixtures = tuple(random_mixture(rng, rng.integers(1, 11), p, gaps) for _ in range(fits))
    return MixtureNetwork(tuple(f"n{j}" for j in range(p)), (PLAIN,) * p, mixtures)


def by_formula(mixture, x):
    """Log density of the seen part, responsibilities, and every component's posterior."""
    lost, seen = np.isnan(x), ~np.isnan(x)
    logs, posts = [], []
    for k in range(len(mixture.weights)):
        mean, cov = mixture.means[k], mixture.covs[k]
        value = np.log(mixture.weights[k])
        if mixture.gap_rates is not None:
            value += np.log(np.where(lost, mixture.gap_rates[k], 1 - mixture.gap_rates[k])).sum()
        if seen.any():
            value += multivariate_normal(mean[seen], cov[np.ix_(seen, seen)]).logpdf(x[seen])
        gain = np.linalg.solve(cov[np.ix_(seen, seen)], cov[np.ix_(seen, lost)])
        logs.append(value)
        posts.append(
            (
                mean[lost] + (x[seen] - mean[seen]) @ gain,
                cov[np.ix_(lost, lost)] - cov[np.ix_(lost, seen)] @ gain,
            )
        )
    total = logsumexp(logs)
    return total, np.exp(np.array(logs) - total), posts


@st.composite
def cases(draw):
    seed = draw(st.integers(0, 9999))
    model = make_model(seed, gaps=draw(st.booleans()))
    X = np.random.default_rng(seed).normal(0, 2, (draw(st.integers(1, 12)), 4))
    rate = draw(st.sampled_from([0.0, 0.3, 0.8, 1.0]))
    return model, np.where(np.random.default_rng(seed + 1).random(X.shape) < rate, np.nan, X)


@given(cases())
def test_likelihood_responsibilities_and_posterior_are_those_of_the_formulas(case):
    model, X = case
    post, resp, loglik = model.posterior(X), model.responsibilities(X), model.loglik(X)
    for r, x in enumerate(X):
        lost = np.isnan(x)
        parts = [by_formula(fit, x) for fit in model.fits]
        assert loglik[r] == pytest.approx(
            logsumexp([part[0] for part in parts]) - np.log(2), abs=1e-8
        )
        assert_allclose(resp[r], np.concatenate([part[1] for part in parts]) / 2, atol=1e-9)
        mean = sum(w * m for part in parts for w, (m, _) in zip(part[1], part[2], strict=True)) / 2
        square = (
            sum(
                w * (m**2 + np.diag(c))
                for part in parts
                for w, (m, c) in zip(part[1], part[2], strict=True)
            )
            / 2
        )
        assert_allclose(post.mean[r, lost], mean, atol=2e-3)
        assert_allclose(post.sd[r, lost], np.sqrt(square - mean**2), atol=5e-3)
        assert (post.mean[r, ~lost] == x[~lost]).all()
        assert (post.sd[r, ~lost] == 0).all()


@given(cases())
def test_one_look_tells_what_the_single_questions_tell(case):
    model, X = case
    found = model.look(X, responsibilities=True)
    assert_allclose(found.posterior, model.posterior(X), rtol=0)
    assert_allclose(found.responsibilities, model.responsibilities(X), rtol=0)
    without = replace(model, fits=tuple(fit._replace(gap_rates=None) for fit in model.fits))
    assert_allclose(found.seen, without.loglik(X), rtol=1e-10, atol=1e-10)
    assert model.look(X).responsibilities is None


@given(cases())
def test_quantiles_hold_what_they_promise(case):
    model, X = case
    low, middle, high = model.quantiles(X, [0.05, 0.5, 0.95])
    assert_array_equal(model.quantiles(X, [0.95], column=0)[0, :, 0], high[:, 0])
    seen = ~np.isnan(X)
    assert (low[seen] == X[seen]).all()
    assert (low <= middle).all()
    assert (middle <= high).all()
    for r, x in enumerate(X):
        for i, j in enumerate(np.flatnonzero(np.isnan(x))):
            below = sum(
                w * norm.cdf(high[r, j], m[i], np.sqrt(c[i, i]))
                for fit in model.fits
                for _, weights, posts in [by_formula(fit, x)]
                for w, (m, c) in zip(weights, posts, strict=True)
            )
            assert below / len(model.fits) == pytest.approx(0.95, abs=1e-3)


def test_draws_follow_the_posterior_jointly():
    model = make_model(5, fits=1)
    x = np.array([[0.5, np.nan, np.nan, -1.0]])
    draws = model.draws(x, 100_000, rng=0)[:, 0]
    assert (draws[:, [0, 3]] == [0.5, -1.0]).all()
    _, weights, posts = by_formula(model.fits[0], x[0])
    mean = sum(w * m for w, (m, _) in zip(weights, posts, strict=True))
    second = sum(w * (c + np.outer(m, m)) for w, (m, c) in zip(weights, posts, strict=True))
    assert_allclose(draws[:, 1:3].mean(axis=0), mean, atol=0.03)
    assert_allclose(np.cov(draws[:, 1:3].T), second - np.outer(mean, mean), atol=0.06)


def test_the_pit_of_true_values_is_uniform():
    model = make_model(2, fits=1)
    truth = model.draws(np.full((3000, 4), np.nan), 1, rng=1)[0]
    pit = model.pit(lose(truth, 0.4), truth)
    assert kstest(pit[~np.isnan(pit)], "uniform").pvalue > 1e-3


@given(st.integers(0, 999))
def test_moments_of_parts_sum_to_the_whole(seed):
    rng = np.random.default_rng(seed)
    mixture = random_mixture(rng, 3, 4)
    Z = lose(rng.normal(size=(30, 4)), 0.3, seed)
    whole = expect_mixture(sort_rows(Z), mixture)
    both = expect_mixture(sort_rows(Z[:11]), mixture) + expect_mixture(sort_rows(Z[11:]), mixture)
    assert both.n == whole.n
    for name in ("weight", "total", "cross", "gaps", "loglik"):
        assert_allclose(getattr(both, name), getattr(whole, name), rtol=1e-9, atol=1e-9)
    assert whole.weight.sum() == pytest.approx(30)
    with pytest.raises(ValueError, match="different origins"):
        whole + expect_mixture(sort_rows(Z), random_mixture(rng, 3, 4))


@settings(max_examples=25)
@given(st.integers(0, 999))
def test_em_never_lowers_the_penalized_likelihood(seed):
    rng = np.random.default_rng(seed)
    Z = lose(rng.normal(size=(120, 3)) + 3 * rng.integers(0, 2, (120, 1)), 0.3, seed)
    plan = Plan(2, 0.0)
    part, trace = sort_rows(Z), []
    means = np.array([[0.0, 0.5, 0.0], [3.0, 2.5, 3.0]])
    mixture = Mixture(np.array([0.5, 0.5]), means, np.repeat(np.eye(3)[None], 2, 0), None, None)
    for _ in range(30):
        moments = expect_mixture(part, mixture)
        trace.append(moments.loglik + WEIGHT_PRIOR * np.log(mixture.weights).sum())
        mixture = maximize_mixture(moments, plan)
    assert (np.diff(trace) >= -1e-6 * np.abs(trace[:-1])).all()


def test_one_component_without_margins_is_one_gaussian_by_em():
    rng = np.random.default_rng(1)
    X = lose(rng.multivariate_normal([5, -3, 100], [[4, 1, 2], [1, 1, 0.5], [2, 0.5, 9]], 800), 0.3)
    options = {"n_components": 1, "shrinkage": 0.0, "margins": False, "n_fits": 1, "tol": 1e-10}
    mixture = learn_mixture(X, max_iter=1000, **options).network
    single = fit_parameters(X, [[], [0], [0, 1]], tol=1e-10, max_iter=1000).network
    post, want = mixture.posterior(X), single.posterior(X)
    assert_allclose(post.mean, want.mean, atol=5e-3)
    assert_allclose(post.sd, want.sd, atol=5e-3)


def two_kinds(n, seed=0):
    """Two kinds of objects: opposite slopes, a skewed column and an atom."""
    rng = np.random.default_rng(seed)
    kind = rng.random(n) < 0.5
    a = rng.normal(size=n)
    b = np.where(kind, 2 * a + 3, -2 * a - 3) + rng.normal(0, 0.3, n)
    c = np.exp(0.8 * a + rng.normal(0, 0.2, n))
    d = np.where(rng.random(n) < 0.4, 0.0, np.abs(b) + rng.normal(0, 0.3, n))
    return np.column_stack([a, b, c, d])


def test_a_mixture_fills_what_one_gaussian_cannot():
    truth = two_kinds(3000, seed=1)
    X = lose(truth, 0.2, seed=2)
    found = learn_mixture(lose(two_kinds(2000), 0.2), n_fits=3)
    assert found.plan.n_components >= 2
    one = learn_mixture(lose(two_kinds(2000), 0.2), n_components=1, margins=False, n_fits=1)
    lost = np.isnan(X)
    for column in (0, 2):  # b leaves the sign of a open; c is an exponential of it
        errors = [
            np.abs(model.network.posterior(X).mean - truth)[lost[:, column], column].mean()
            for model in (found, one)
        ]
        assert errors[0] < 0.8 * errors[1]
    low, high = found.network.quantiles(X, [0.05, 0.95])
    inside = (truth >= low) & (truth <= high)
    assert inside[lost[:, 0], 0].mean() == pytest.approx(0.9, abs=0.04)
    assert inside[lost[:, 1], 1].mean() == pytest.approx(0.9, abs=0.04)
    assert (found.network.draws(X, 20, 0)[:, lost[:, 3], 3] == 0).mean() == pytest.approx(
        0.4, abs=0.05
    )


def test_informative_gaps_win_where_faint_objects_lack_a_band_and_do_not_lose_elsewhere():
    rng = np.random.default_rng(3)
    bright = rng.normal(18, 2, 3000)
    X = np.column_stack([bright + rng.normal(0, s, 3000) for s in (0.3, 0.3, 0.5)])
    faint = X.copy()
    faint[faint[:, 1] > 19, 1] = np.nan
    faint[rng.random(3000) < 0.3, 0] = np.nan
    scores = dict(learn_mixture(faint, n_components=4, shrinkage=5.0, gaps="auto", n_fits=1).trials)
    by_kind = {plan.informative: score for plan, score in scores.items()}
    assert by_kind[True] > by_kind[False] + 0.05
    assert learn_mixture(
        faint, n_components=4, shrinkage=5.0, gaps="auto", n_fits=1
    ).plan.informative
    at_random = lose(X, 0.2, seed=4)
    scores = dict(
        learn_mixture(at_random, n_components=4, shrinkage=5.0, gaps="auto", n_fits=1).trials
    )
    by_kind = {plan.informative: score for plan, score in scores.items()}
    assert by_kind[True] > by_kind[False] - 0.02


@pytest.mark.parametrize("arcs", ["shared", "own"])
def test_components_with_arcs_are_networks(arcs):
    X = lose(two_kinds(800), 0.1)
    model = learn_mixture(
        X, list("abcd"), n_components=3, shrinkage=5.0, arcs=arcs, n_fits=2
    ).network
    strength = model.arcs()
    assert max(strength.values()) <= 1 + 1e-9
    assert any({"a", "c"} == set(arc) for arc in strength)
    if arcs == "shared":
        assert all(fit.parents[0] == fit.parents[1] for fit in model.fits)
    for network, cov in zip(model.components(0), model.fits[0].covs, strict=True):
        assert_allclose(network.joint().cov, cov, rtol=1e-6, atol=1e-8)
    assert np.isfinite(model.posterior(X).mean).all()


def test_projecting_on_a_complete_graph_changes_nothing():
    cov = random_mixture(np.random.default_rng(0), 1, 4).covs[0]
    assert_allclose(project(cov, ((), (0,), (0, 1), (0, 1, 2))), cov)
    assert_allclose(project(cov, ((), (), (), ())), np.diag(np.diag(cov)))


def test_full_components_are_networks_too():
    model = make_model(3)
    assert_allclose(model.components(1)[0].joint().cov, model.fits[1].covs[0], rtol=1e-8)
    assert model.arcs() == {}


def test_condition_answers_what_if():
    model = make_model(4)
    post = model.condition({"n0": 1.0}, of=["n2", "n1"])
    row = model.posterior([[1.0, np.nan, np.nan, np.nan]])
    assert_allclose(post.mean, row.mean[0, [2, 1]])
    assert len(model.condition({"n0": 1.0}).mean) == 3
    with pytest.raises(DataError, match="no column is called 'z'"):
        model.condition({"z": 1.0})


SCRIPT = """
import hashlib, numpy as np
from skyfill.network import learn_mixture
rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 5)) @ rng.normal(size=(5, 5))
X[rng.random(X.shape) < 0.2] = np.nan
model = learn_mixture(X, n_components=3, shrinkage="auto", n_fits=2).network
parts = (model.posterior(X).mean, model.posterior(X).sd, model.draws(X, 2, 0), model.loglik(X))
print(hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest())
"""


def test_the_same_seed_gives_the_same_mixture_on_one_thread_or_several():
    said = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "SKYFILL_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(said) == 1
    assert len(said.pop().strip()) == 64


def never_together(rng):
    X = rng.normal(size=(200, 3))
    X[:100, 0] = np.nan
    X[100:, 1] = np.nan
    return X


def seen_five_times(rng):
    X = rng.normal(size=(200, 3))
    X[5:, 1] = np.nan
    return X


@pytest.mark.parametrize(
    "make",
    [
        never_together,
        seen_five_times,
        lambda rng: np.full((50, 3), 7.0),
        lambda rng: rng.normal(size=(60, 40)),
        lambda rng: rng.normal(size=(100, 2)) * [1e300, 1e-300],
        lambda rng: rng.integers(0, 3, (100, 3)).astype(float),
        lambda rng: rng.normal(size=(1, 3)),
        lambda rng: np.repeat(rng.normal(size=(40, 1)), 3, axis=1),
    ],
    ids=[
        "never together",
        "five values",
        "identical",
        "wide",
        "huge",
        "integers",
        "one row",
        "copies",
    ],
)
def test_hard_tables_give_finite_values(make):
    X = make(np.random.default_rng(0))
    model = learn_mixture(X, n_fits=2).network
    new = lose(X, 0.5)
    for row in (new, np.full((2, X.shape[1]), np.nan)):
        post = model.posterior(row)
        assert np.isfinite(post.mean).all()
        assert np.isfinite(post.sd).all()
        assert np.isfinite(model.quantiles(row, [0.1, 0.9])).all()
        assert np.isfinite(model.draws(row, 2, 0)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"arcs": "some"}, "arcs must be one of"),
        ({"gaps": "maybe"}, "gaps must be one of"),
        ({"n_components": 0}, "n_components must be a whole number of at least 1"),
        ({"n_fits": 0}, "n_fits must be a whole number of at least 1"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        learn_mixture(np.random.default_rng(0).normal(size=(50, 2)), **options)


def test_impossible_questions_are_refused():
    model = make_model(1)
    with pytest.raises(DataError, match="between 0 and 1"):
        model.quantiles(np.zeros((1, 4)), [0.5, 1.0])
    with pytest.raises(DataError, match="infinite"):
        model.posterior([[np.inf, 0, 0, np.nan]])
    with pytest.raises(DataError, match="3 columns, the network 4"):
        model.loglik(np.zeros((2, 3)))
    with pytest.raises(DataError, match="has no value in 5 rows"):
        learn_mixture(np.full((5, 2), np.nan))


def test_an_empty_table_has_no_moments() -> None:
    mixture = Mixture(np.ones(1), np.zeros((1, 2)), np.eye(2)[None], None, None)
    moments = expect_mixture(sort_rows(np.empty((0, 2))), mixture)
    assert moments.n == 0
    assert moments.weight.sum() == 0


@pytest.mark.parametrize("seen", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_a_column_seen_once_or_twice_is_learned_although_folds_lack_it(seen, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 3))
    kept = rng.choice(300, seen, replace=False)
    values = X[kept, 2]
    X[:, 2] = np.nan
    X[kept, 2] = values
    network = learn_mixture(X, n_fits=1, rng=seed).network
    filled = network.posterior(X).mean[:, 2]
    np.testing.assert_array_equal(filled[kept], values)
    if seen == 1:
        np.testing.assert_allclose(filled, values[0], rtol=1e-12)
    else:
        assert values.min() <= np.median(filled) <= values.max()
