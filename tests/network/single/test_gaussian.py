import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import kstest, multivariate_normal

from skyfill.errors import DataError, GraphError
from skyfill.network import GaussianNetwork
from skyfill.network.single.posterior import Joint, expect, find_gaps
from tests.network.strategies import (
    complete_table,
    lose,
    make_network,
    networks,
    networks_with_tables,
)

WALK = GaussianNetwork(["a", "b", "c"], [[], ["a"], ["b"]], [0] * 3, [[], [1], [1]], [1, 1, 1])


def by_formula(network, x):
    """Posterior of one row's gaps from the joint Gaussian, as DESIGN.md states it."""
    mean, cov = network.joint()
    lost, seen = np.isnan(x), ~np.isnan(x)
    gain = np.linalg.solve(cov[np.ix_(seen, seen)], cov[np.ix_(seen, lost)])
    post_mean = mean[lost] + (x[seen] - mean[seen]) @ gain
    return post_mean, cov[np.ix_(lost, lost)] - cov[np.ix_(lost, seen)] @ gain


def test_middle_of_a_random_walk_is_the_mean_of_its_neighbors_with_variance_one_half():
    post = WALK.posterior([[1.0, np.nan, 4.0]])
    assert_allclose(post.mean, [[1.0, 2.5, 4.0]], rtol=1e-15)
    assert_allclose(post.sd, [[0.0, np.sqrt(0.5), 0.0]], rtol=1e-15)


def test_the_joint_of_a_random_walk_has_covariance_min_i_j():
    mean, cov = WALK.joint()
    assert_allclose(mean, 0)
    assert_allclose(cov, [[1, 1, 1], [1, 2, 2], [1, 2, 3]])


def test_mission_1_the_likelihood_factorizes_over_the_nodes():
    network = make_network(3, 6)
    X = complete_table(network, 20)
    by_nodes = np.zeros(20)
    for j, family in enumerate(network.parents):
        mean = network.intercepts[j] + X[:, list(family)] @ np.array(network.weights[j])
        v = network.variances[j]
        by_nodes += -0.5 * (np.log(2 * np.pi * v) + (X[:, j] - mean) ** 2 / v)
    assert_allclose(network.loglik(X), by_nodes, rtol=1e-12)


@given(networks())
def test_loglik_of_complete_rows_is_that_of_scipy(network):
    X = complete_table(network, 5)
    mean, cov = network.joint()
    assert_allclose(network.loglik(X), multivariate_normal(mean, cov).logpdf(X), rtol=1e-8)


@given(networks_with_tables())
def test_posterior_and_its_covariance_are_those_of_the_joint_gaussian(case):
    network, X = case
    post = network.posterior(X)
    for x, mean, sd in zip(X, *post, strict=True):
        lost = np.isnan(x)
        want_mean, want_cov = by_formula(network, x)
        assert_allclose(mean[lost], want_mean, rtol=1e-8, atol=1e-8)
        assert_allclose(sd[lost], np.sqrt(np.diag(want_cov)), rtol=1e-8)
        assert_allclose(network.posterior_cov(x), want_cov, rtol=1e-8, atol=1e-9)


@given(networks_with_tables())
def test_seen_cells_come_back_bit_for_bit_with_sd_zero(case):
    network, X = case
    seen = ~np.isnan(X)
    post = network.posterior(X)
    assert (post.mean[seen] == X[seen]).all()
    assert (post.sd[seen] == 0).all()
    assert (post.sd[~seen] > 0).all()
    draws = network.draws(X, 3, rng=0)
    assert all((table[seen] == X[seen]).all() for table in draws)
    assert not np.isnan(draws).any()


@given(networks_with_tables())
def test_log_p_of_all_is_log_p_of_seen_plus_log_p_of_lost_given_seen(case):
    network, X = case
    filled = network.draws(X, 1, rng=1)[0]
    for x, y, total, seen_part in zip(
        X, filled, network.loglik(filled), network.loglik(X), strict=True
    ):
        lost = np.isnan(x)
        rest = 0.0
        if lost.any():
            rest = multivariate_normal(*by_formula(network, x)).logpdf(y[lost])
        assert total == pytest.approx(seen_part + rest, rel=1e-7, abs=1e-7)


def test_a_row_without_any_seen_cell_has_likelihood_one_and_the_marginal_posterior():
    X = np.full((3, 3), np.nan)
    assert_allclose(WALK.loglik(X), 0.0, atol=1e-12)
    post = WALK.posterior(X)
    assert_allclose(post.mean, 0.0, atol=1e-12)
    assert_allclose(post.sd, np.sqrt([[1, 2, 3]] * 3))


@pytest.mark.parametrize("share", [True, False])
def test_shared_patterns_and_a_factorization_per_row_give_the_same(share):
    network = make_network(5, 10)
    few = lose(complete_table(network, 12), 0.4)
    X = np.repeat(few, 40, axis=0) if share else few
    assert (find_gaps(X, network.names).ids.size > 0) == share
    one_by_one = [network.posterior(row[None]) for row in X]
    assert_allclose(
        network.posterior(X).mean, np.concatenate([p.mean for p in one_by_one]), rtol=1e-10
    )
    assert_allclose(network.posterior(X).sd, np.concatenate([p.sd for p in one_by_one]), rtol=1e-10)
    assert_allclose(network.loglik(X), [network.loglik(row[None])[0] for row in X], rtol=1e-10)


def test_more_than_64_columns_keep_their_patterns_apart():
    network = make_network(2, 70)
    X = complete_table(network, 400)
    X[::2, 69] = np.nan
    X[1::2, 5] = np.nan
    post = network.posterior(X)
    for row in (0, 1):
        assert_allclose(post.mean[row][np.isnan(X[row])], by_formula(network, X[row])[0], rtol=1e-9)


@given(networks_with_tables(), st.randoms())
def test_the_order_of_rows_does_not_matter(case, random):
    network, X = case
    order = random.sample(range(len(X)), len(X))
    assert_allclose(network.posterior(X[order]).mean, network.posterior(X).mean[order], rtol=1e-12)
    assert_allclose(network.loglik(X[order]), network.loglik(X)[order], rtol=1e-12)


def test_draws_have_the_posterior_mean_and_covariance():
    network = make_network(7, 6)
    x = lose(complete_table(network, 1, seed=3), 0.6, seed=3)
    lost = np.isnan(x[0])
    draws = network.draws(x, 200_000, rng=4)[:, 0, lost]
    mean, cov = by_formula(network, x[0])
    assert lost.sum() >= 2
    error = np.sqrt(np.diag(cov) / len(draws))
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * error).all()
    spread = np.sqrt(np.outer(np.diag(cov), np.diag(cov)) * 2 / len(draws))
    assert (np.abs(np.cov(draws.T) - cov) < 5 * spread).all()


def test_the_pit_of_true_values_is_uniform():
    network = make_network(11, 8)
    X = complete_table(network, 4000, seed=1)
    gaps = lose(X, 0.3, seed=2)
    post = network.posterior(gaps)
    lost = np.isnan(gaps)
    z = (X[lost] - post.mean[lost]) / post.sd[lost]
    assert kstest(z, "norm").pvalue > 1e-3


@given(networks_with_tables())
def test_moments_of_parts_sum_to_the_whole_and_carry_the_conditional_covariance(case):
    network, X = case
    mean, cov = network.joint()
    joint = Joint.from_cov(mean, cov)
    whole = expect(find_gaps(X, network.names), joint)
    cut = len(X) // 2
    if cut:
        parts = [expect(find_gaps(part, network.names), joint) for part in (X[:cut], X[cut:])]
        both = parts[0] + parts[1]
        assert both.n == whole.n
        assert_allclose(both.cross, whole.cross, rtol=1e-9, atol=1e-9)
        assert_allclose(both.loglik, whole.loglik, rtol=1e-9, atol=1e-9)
    filled = network.posterior(X).mean - mean
    want = filled.T @ filled
    for x in X:
        lost = np.flatnonzero(np.isnan(x))
        want[np.ix_(lost, lost)] += by_formula(network, x)[1]
    assert_allclose(whole.cross, want, rtol=1e-7, atol=1e-7)
    assert_allclose(whole.total, filled.sum(axis=0), rtol=1e-7, atol=1e-7)
    assert_allclose(whole.loglik, network.loglik(X).sum(), rtol=1e-8, atol=1e-8)


def test_moments_about_different_origins_do_not_add():
    X = np.zeros((4, 2))
    gaps = find_gaps(X, ("a", "b"))
    one = expect(gaps, Joint.from_cov(np.zeros(2), np.eye(2)))
    other = expect(gaps, Joint.from_cov(np.ones(2), np.eye(2)))
    with pytest.raises(ValueError, match="different origins"):
        one + other


@given(networks(max_nodes=8, min_nodes=3))
def test_condition_is_a_slice_of_the_posterior(network):
    x = complete_table(network, 1)[0]
    given_names, of = network.names[:1], network.names[:0:-1]
    small = network.condition({network.names[0]: x[0]}, of=of)
    row = np.concatenate([x[:1], np.full(len(x) - 1, np.nan)])
    mean, cov = by_formula(network, row)
    assert small.names == of
    assert given_names[0] not in network.condition({network.names[0]: x[0]}).names
    assert_allclose(small.mean, mean[::-1], rtol=1e-9, atol=1e-9)
    assert_allclose(small.cov, cov[::-1, ::-1], rtol=1e-9, atol=1e-9)


def test_inputs_are_never_written_to_and_may_be_read_only_or_of_another_layout():
    network = make_network(1, 5)
    X = lose(complete_table(network, 50), 0.3)
    before = X.copy()
    want = network.posterior(X).mean
    assert np.array_equal(X, before, equal_nan=True)
    frozen = X.copy()
    frozen.flags.writeable = False
    assert np.array_equal(network.posterior(frozen).mean, want)
    assert np.array_equal(network.posterior(np.asfortranarray(X)).mean, want)
    assert np.array_equal(network.posterior(X.tolist()).mean, want)
    assert X.flags.writeable


def test_empty_tables_come_back_empty():
    post = WALK.posterior(np.empty((0, 3)))
    assert post.mean.shape == post.sd.shape == (0, 3)
    assert WALK.loglik(np.empty((0, 3))).shape == (0,)
    assert WALK.draws(np.empty((0, 3)), 2, 0).shape == (2, 0, 3)
    assert WALK.posterior_cov([1.0, 2.0, 3.0]).shape == (0, 0)


def test_networks_are_values():
    same = GaussianNetwork(WALK.names, WALK.parents, WALK.intercepts, WALK.weights, WALK.variances)
    assert same == WALK
    assert hash(same) == hash(WALK)
    with pytest.raises(AttributeError):
        WALK.names = ()
    assert WALK.arcs == (("a", "b"), ("b", "c"))
    WALK.joint().cov[:] = 0  # a copy: the network does not change
    assert WALK.joint().cov[0, 0] == 1


def test_to_networkx_keeps_arcs_weights_and_variances():
    graph = WALK.to_networkx()
    assert list(graph.edges(data="weight")) == [("a", "b", 1.0), ("b", "c", 1.0)]
    assert graph.nodes["c"]["variance"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((["a", "a"], [[], []], [0, 0], [[], []], [1, 1]), DataError, "duplicate column names: a"),
        ((["a"], [[], []], [0, 0], [[], []], [1, 1]), DataError, "1 names for 2 columns"),
        ((["a", "b"], [["b"], ["a"]], [0, 0], [[1], [1]], [1, 1]), GraphError, "close a cycle: a"),
        ((["a", "b"], [[], ["c"]], [0, 0], [[], [1]], [1, 1]), GraphError, "is called 'c'"),
        ((["a", "b"], [[], [7]], [0, 0], [[], [1]], [1, 1]), GraphError, "parent 7 is not"),
        ((["a", "b"], [[], [0, 0]], [0, 0], [[], [1, 1]], [1, 1]), GraphError, "parent twice"),
        ((["a", "b"], [[], [0]], [0, 0], [[], []], [1, 1]), DataError, "weights of 'b'"),
        ((["a", "b"], [[], [0]], [0, 0], [[]], [1, 1]), DataError, "weights are given for 1"),
        ((["a", "b"], [[], [0]], [0, 0], [[], [1]], [1, 0]), DataError, "must be positive"),
        ((["a", "b"], [[], [0]], [0, 0], [[], [np.inf]], [1, 1]), DataError, "must be finite"),
    ],
)
def test_what_is_not_a_network_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        GaussianNetwork(*arguments)


def test_tables_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match="2 columns, the network 3"):
        WALK.posterior(np.zeros((4, 2)))
    with pytest.raises(DataError, match="expected a table"):
        WALK.loglik(np.zeros(3))
    with pytest.raises(DataError, match=r"'b' is infinite in 1 rows, first in row 2"):
        WALK.posterior([[0, 0, 0], [0, np.nan, 0], [0, np.inf, 0]])
    with pytest.raises(DataError, match="infinite"):
        WALK.posterior_cov([0, -np.inf, np.nan])
    with pytest.raises(GraphError, match="both requested and given: a"):
        WALK.condition({"a": 1.0}, of=["a"])
    with pytest.raises(GraphError, match="no node is called 'z'"):
        WALK.query(["z"], ["a"])
    with pytest.raises(DataError, match="singular"):
        Joint.from_cov(np.zeros(2), np.ones((2, 2)))
