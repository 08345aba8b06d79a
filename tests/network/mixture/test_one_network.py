"""One network with arcs, held as a mixture of one component."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skyfill.network import Cells, GaussianNetwork, learn_network, learn_one_network
from skyfill.network.mixture.one_network import refit
from tests.network.strategies import complete_table, lose

TRUE = GaussianNetwork(
    ["a", "b", "c", "d"],
    [[], ["a"], ["b"], []],
    [10.0, 1.0, -2.0, 5.0],
    [[], [1.5], [-0.5], []],
    [4.0, 1.0, 0.25, 1.0],
)
SCORES = ["k2", "bic"]


@pytest.fixture(scope="module")
def table():
    return lose(complete_table(TRUE, 800), 0.2)


@pytest.mark.parametrize("score", SCORES)
def test_it_fills_as_the_network_of_the_same_arcs_does(table, score):
    alone = learn_network(table, TRUE.names, score=score).network
    held = learn_one_network(table, TRUE.names, score=score).network
    assert set(held.arcs()) == set(alone.arcs)
    assert set(held.arcs().values()) == {1.0}
    for mine, other in zip(held.posterior(table), alone.posterior(table), strict=True):
        assert_allclose(mine, other, rtol=2e-3, atol=2e-3)


def test_columns_are_independent_given_their_parents(table):
    """With a - b - c and d alone, c depends on a through b only, and on d not at all."""
    network = learn_one_network(table, TRUE.names, score="bic").network
    rows = np.array([[9.0, 15.0, np.nan, 4.0], [12.0, 15.0, np.nan, 7.0]])
    first, second = network.posterior(rows).mean[:, 2]
    assert first == pytest.approx(second, abs=1e-9)


def test_the_components_of_a_network_are_its_regressions(table):
    network = learn_one_network(table, TRUE.names, score="bic").network
    (regressions,) = network.components()
    assert regressions.arcs == tuple(network.arcs())
    assert_allclose(regressions.joint().cov, network.fits[0].covs[0], rtol=1e-9, atol=1e-12)


def test_a_column_with_one_value_and_very_few_rows_are_no_obstacle():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=50), np.full(50, 7.0), rng.normal(size=50)])
    network = learn_one_network(X).network
    assert network.posterior([[1.0, np.nan, 1.0]]).mean[0, 1] == 7.0
    assert learn_one_network(X[:2]).network.arcs() == {}


def test_limits_and_errors_enter_the_parameters():
    """Half of a normal column is known to lie above 0 only: its mean is that of all rows."""
    rng = np.random.default_rng(1)
    x = rng.normal(0, 1, 3000)
    seen = np.where(x > 0, np.nan, x)
    X = np.column_stack([seen, 0.3 * rng.normal(size=3000)])
    lower = np.column_stack([np.where(x > 0, 0.0, np.nan), np.full(3000, np.nan)])
    blind = learn_one_network(X).network.posterior([[np.nan, 0.0]]).mean[0, 0]
    found = learn_one_network(Cells(X, lower)).network.posterior([[np.nan, 0.0]])
    assert blind < -0.7
    assert found.mean[0, 0] == pytest.approx(0.0, abs=0.08)
    assert found.sd[0, 0] == pytest.approx(1.0, abs=0.08)


def test_refitting_keeps_arcs_and_margins(table):
    network = learn_one_network(table, TRUE.names, score="bic").network
    again = refit(network, Cells(table[:400]))
    assert again.fits[0].parents == network.fits[0].parents
    assert again.margins is network.margins
    assert not np.array_equal(again.fits[0].covs, network.fits[0].covs)


def test_an_unknown_score_is_refused(table):
    with pytest.raises(ValueError, match="score must be one of k2, bic, not 'aic'"):
        learn_one_network(table, score="aic")


def test_links_that_are_in_every_resample_have_strength_1(table):
    found = learn_one_network(table, TRUE.names, score="bic", n_bootstraps=8).network
    assert found.strength[0, 1] == found.strength[1, 0] == 1.0
    assert found.strength[1, 2] == 1.0
    assert found.strength[3, :3].max() <= 0.5
    assert learn_one_network(table, TRUE.names, score="bic").network.strength is None
