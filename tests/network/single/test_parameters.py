import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skyfill.errors import ConvergenceWarning, DataError, GraphError, RegularizationWarning
from skyfill.network import fit_parameters
from skyfill.network.single.m_step_kernels import whiten_nodes
from skyfill.network.single.posterior import Joint, expect, find_gaps
from tests.network.strategies import complete_table, lose, make_network, networks


@given(networks(max_nodes=8), st.integers(0, 99))
def test_mission_4_without_gaps_the_parameters_are_least_squares(network, seed):
    X = complete_table(network, 60, seed)
    fit = fit_parameters(X, network.parents)
    assert fit.converged
    for j, family in enumerate(network.parents):
        design = np.column_stack([np.ones(60), X[:, list(family)]])
        solution, *_ = np.linalg.lstsq(design, X[:, j])
        residual = X[:, j] - design @ solution
        assert_allclose(fit.network.intercepts[j], solution[0], rtol=1e-6, atol=1e-6)
        assert_allclose(fit.network.weights[j], solution[1:], rtol=1e-6, atol=1e-6)
        assert_allclose(fit.network.variances[j], np.mean(residual**2), rtol=1e-6)


@given(networks(max_nodes=8))
def test_the_best_network_for_the_covariance_of_a_network_is_that_network(network):
    precision, cov = np.zeros((len(network), len(network))), network.joint().cov
    families = np.array([k for family in network.parents for k in family], dtype=np.int64)
    bounds = np.cumsum([0, *map(len, network.parents)])
    log_det = whiten_nodes(cov, bounds, families, 1e-9, precision)
    assert_allclose(precision @ cov, np.eye(len(network)), atol=1e-8)
    assert_allclose(log_det, np.linalg.slogdet(cov)[1], atol=1e-8)


def test_parents_that_determine_one_another_are_left_to_the_slow_way():
    cov = np.array([[1.0, 1.0 - 1e-10, 0.5], [1.0 - 1e-10, 1.0, 0.5], [0.5, 0.5, 1.0]])
    bounds, families = np.array([0, 0, 0, 2]), np.array([0, 1])
    assert np.isnan(whiten_nodes(cov, bounds, families, 1e-9, np.zeros((3, 3))))


def test_mission_5_em_meets_the_closed_form_for_monotone_gaps():
    """Anderson (1957): x always seen, y lost in some rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(3, 2, 400)
    y = 1 - 0.7 * x + rng.normal(0, 0.5, 400)
    y[x > 3.5] = np.nan  # lost depending on what is seen
    seen = ~np.isnan(y)
    slope, intercept = np.polyfit(x[seen], y[seen], 1)
    noise = np.mean((y[seen] - intercept - slope * x[seen]) ** 2)
    fit = fit_parameters(np.column_stack([x, y]), [[], [0]], tol=1e-14, max_iter=5000)
    mean, cov = fit.network.joint()
    assert mean == pytest.approx([x.mean(), y[seen].mean() + slope * (x.mean() - x[seen].mean())])
    assert cov[1, 1] == pytest.approx(noise + slope**2 * x.var(), rel=1e-5)
    assert fit.network.weights[1] == pytest.approx([slope], rel=1e-5)
    assert cov[1, 1] > 1.5 * np.var(y[seen])  # dropping rows, or filling means, gives far less


@pytest.mark.filterwarnings("ignore::skyfill.errors.ConvergenceWarning")  # 200 steps tell enough
@settings(max_examples=40)
@given(st.integers(0, 999), st.sampled_from([0.1, 0.4, 0.7]))
def test_mission_5_the_likelihood_never_falls(seed, rate):
    network = make_network(seed, 6)
    X = lose(complete_table(network, 80, seed), rate, seed)
    fit = fit_parameters(X, network.parents, tol=1e-9, max_iter=200)
    steps = np.diff(fit.trace)
    assert (steps >= -1e-9 * np.abs(fit.trace[:-1])).all()
    assert fit.trace[-1] == pytest.approx(fit.network.loglik(X).sum(), rel=1e-9)


def test_mission_5_variances_are_not_too_small():
    """Without the conditional covariance of the gaps in the moments they would be."""
    network = make_network(21, 8)
    X = lose(complete_table(network, 20_000), 0.4)
    fit = fit_parameters(X, network.parents, tol=1e-8, max_iter=2000)
    assert_allclose(fit.network.variances, network.variances, rtol=0.06)
    joint = Joint(*fit.network._joint)
    moments = expect(find_gaps(np.ascontiguousarray(X), network.names), joint)
    # At the fixed point of EM every node's expected regression gives back its parameters.
    for j, family in enumerate(network.parents):
        members = [*family, j]
        block = moments.cov[np.ix_(members, members)]
        noise = 1 / np.linalg.inv(block)[-1, -1]
        assert noise == pytest.approx(fit.network.variances[j], rel=1e-3)


@settings(max_examples=25)
@given(st.integers(0, 999))
def test_units_and_column_order_do_not_matter(seed):
    network = make_network(seed, 5)
    X = lose(complete_table(network, 60, seed), 0.3, seed)
    fit = fit_parameters(X, network.parents, tol=1e-8, max_iter=3000)
    scale, shift = np.array([1e-6, 1, 1e3, 2, 1e8]), np.array([0, 50, -7, 1e3, 1e9])
    other = fit_parameters(X * scale + shift, network.parents, tol=1e-8, max_iter=3000)
    mean, cov = fit.network.joint()
    want = np.sqrt(np.diag(cov)) * scale
    assert_allclose(
        other.network.joint().mean, mean * scale + shift, atol=1e-4 * want.max(), rtol=1e-6
    )
    assert_allclose(
        other.network.joint().cov / np.outer(want, want),
        cov * np.outer(scale, scale) / np.outer(want, want),
        atol=1e-4,
    )
    seen = (~np.isnan(X)).sum(axis=0)
    assert other.trace[-1] + seen @ np.log(scale) == pytest.approx(fit.trace[-1], abs=1e-3)
    order = np.random.default_rng(seed).permutation(5)
    place = np.argsort(order)
    parents = [[int(place[k]) for k in network.parents[j]] for j in order]
    moved = fit_parameters(X[:, order], parents, tol=1e-8, max_iter=3000)
    assert_allclose(moved.network.joint().mean, mean[order], rtol=1e-5, atol=1e-5)
    assert_allclose(moved.network.joint().cov, cov[np.ix_(order, order)], rtol=1e-4, atol=1e-5)


def test_rows_in_another_order_give_the_same_parameters():
    network = make_network(4, 6)
    X = lose(complete_table(network, 300), 0.3)
    fit = fit_parameters(X, network.parents)
    other = fit_parameters(X[::-1], network.parents)
    assert_allclose(other.network.joint().cov, fit.network.joint().cov, rtol=1e-8)


def table(**changes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    for column, values in changes.items():
        X[:, int(column[1:])] = values
    return X


@pytest.mark.parametrize(
    ("X", "parents", "error", "message"),
    [
        (table(c1=np.nan), [[], [], []], DataError, "column 'x1' has no value in 30 rows"),
        (table(c2=4.5), [[], [], []], DataError, "column 'x2' is constant: 4.5 in all 30 rows"),
        (table(c0=np.inf), [[], [], []], DataError, "column 'x0' is infinite in 30 rows"),
        (table(), [[1], [2], [0]], GraphError, "close a cycle"),
        (table(), [[], []], GraphError, "parents are given for 2 nodes, but there are 3"),
        (table()[:3], [[], [0], [0, 1]], DataError, "3 rows cannot determine node 'x2'"),
        (table()[:, 0], [[]], DataError, "expected a table"),
    ],
)
def test_tables_that_cannot_be_learned_from_are_refused(X, parents, error, message):
    with pytest.raises(error, match=message):
        fit_parameters(X, parents)


def test_duplicate_names_are_refused():
    with pytest.raises(DataError, match="duplicate column names: a"):
        fit_parameters(table(), [[], [], []], ["a", "a", "b"])


def test_a_singular_covariance_is_regularized_and_announced():
    X = table()
    X[:, 1] = 2 * X[:, 0] + 1
    with pytest.warns(RegularizationWarning, match="singular covariance at x1, x2"):
        fit = fit_parameters(X, [[], [0], [0, 1]])
    assert fit.network.weights[1][0] == pytest.approx(2.0, rel=1e-6)
    X[3, 1] = np.nan
    filled = fit.network.posterior(X)
    assert filled.mean[3, 1] == pytest.approx(2 * X[3, 0] + 1, rel=1e-3)


def test_a_fit_that_does_not_converge_warns():
    X = lose(complete_table(make_network(1, 6), 60), 0.6)
    with pytest.warns(ConvergenceWarning, match="did not converge in 2 steps"):
        fit = fit_parameters(X, make_network(1, 6).parents, max_iter=2, tol=0)
    assert not fit.converged
    assert len(fit.trace) == 3


def test_huge_and_tiny_values_are_learned_from():
    rng = np.random.default_rng(3)
    x = rng.normal(size=200)
    X = np.column_stack([1e300 * x, 1e-300 * (x + rng.normal(0, 0.1, 200))])
    fit = fit_parameters(X[:, ::-1] * [1e150, 1e-150], [[], [0]])
    assert np.isfinite(fit.network.variances).all()
