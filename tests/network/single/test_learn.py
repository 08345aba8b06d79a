import os
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skyfill.errors import ConvergenceWarning, DataError, RegularizationWarning
from skyfill.network import GaussianNetwork, learn_network
from skyfill.network.single.graph import topological_order, union
from skyfill.network.single.univariate import draw_univariate
from tests.network.strategies import complete_table, lose, make_network

SCORES = ["k2", "bic"]
# Strong arcs, one collider: (0, 1 -> 2), 2 -> 3, 4 alone.
TRUE = GaussianNetwork(
    ["a", "b", "c", "d", "e"],
    [[], [], ["a", "b"], ["c"], []],
    [0, 5, 0, -2, 100],
    [[], [], [1.0, -1.2], [0.9], []],
    [1.0, 0.5, 0.3, 0.2, 4.0],
)


def skeleton(network):
    return {frozenset(arc) for arc in network.arcs}


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("rate", [0.0, 0.2])
def test_mission_6_strong_arcs_are_found_despite_gaps(score, rate):
    X = lose(complete_table(TRUE, 3000), rate)
    found = learn_network(X, TRUE.names, score=score)
    assert found.converged
    assert skeleton(found.network) >= {frozenset("cd"), frozenset("bc")}
    assert not any("e" in arc for arc in found.network.arcs)
    want = TRUE.joint().cov
    scale = np.sqrt(np.diag(want))
    assert_allclose(
        found.network.joint().cov / np.outer(scale, scale), want / np.outer(scale, scale), atol=0.12
    )


def test_bic_finds_the_collider_with_its_directions():
    found = learn_network(lose(complete_table(TRUE, 3000), 0.2), TRUE.names, score="bic")
    assert set(found.network.arcs) == set(TRUE.arcs)


@pytest.mark.parametrize("score", SCORES)
def test_independent_columns_get_at_most_one_arc(score):
    """Scoring on the rows that happen to be seen finds dozens: that is the trap."""
    for seed in range(3):
        X = lose(np.random.default_rng(seed).normal(size=(5000, 14)), 0.1, seed)
        assert len(learn_network(X, score=score).network.arcs) <= 1


def test_mission_6_the_trace_records_every_round():
    X = lose(complete_table(make_network(8, 8), 1500), 0.3)
    found = learn_network(X, score="k2", rng=1)
    assert found.converged
    assert len(found.trace) >= 2
    assert found.trace[-1].n_arcs >= 1
    assert (
        found.trace[-1].score > found.trace[0].score
    )  # margins ignore the arcs, the network does not
    best = max(found.trace[1:], key=lambda step: step.score)
    assert best.loglik == pytest.approx(found.network.loglik(X).sum(), rel=1e-9)


def test_structural_em_never_lowers_its_score():
    X = lose(complete_table(make_network(9, 12), 400), 0.4)
    trace = learn_network(X, score="bic", max_parents=None, tol=0).trace
    scores = [step.score for step in trace]
    assert all(b >= a - 1e-6 * abs(a) for a, b in zip(scores, scores[1:], strict=False))


@pytest.mark.parametrize("score", SCORES)
def test_units_do_not_change_the_arcs(score):
    X = lose(complete_table(make_network(3, 6), 1000), 0.2)
    scale, shift = 10.0 ** np.arange(-3, 3), np.arange(6) * 100.0
    one = learn_network(X, score=score)
    other = learn_network(X * scale + shift, score=score)
    assert one.network.parents == other.network.parents
    cov = one.network.joint().cov * np.outer(scale, scale)
    assert_allclose(other.network.joint().cov, cov, rtol=1e-4, atol=1e-4 * np.abs(cov).min())


@pytest.mark.parametrize("score", SCORES)
def test_max_parents_is_kept(score):
    X = complete_table(make_network(5, 9), 800)
    found = learn_network(X, score=score, max_parents=1, n_completions=1)
    assert max(len(family) for family in found.network.parents) == 1
    nothing = learn_network(X, score=score, max_parents=0)
    assert nothing.network.arcs == ()


def test_columns_never_seen_together_get_no_arc_between_them():
    X = complete_table(TRUE, 2000)
    X[::2, 0] = np.nan
    X[1::2, 2] = np.nan
    found = learn_network(X, TRUE.names, score="bic")
    assert frozenset("ac") not in skeleton(found.network)
    assert np.isfinite(found.network.posterior(X).mean).all()


SCRIPT = """
import sys, hashlib, numpy as np
from skyfill.network import learn_network
rng = np.random.default_rng(0)
X = rng.normal(size=(17000, 6)) @ rng.normal(size=(6, 6))  # three chunks of rows
X[rng.random(X.shape) < 0.2] = np.nan
for score in ("k2", "bic"):
    how = {"n_completions": 2, "n_orders": 2, "n_bins": 3, "max_iter": 4, "tol": 1e-3}
    net = learn_network(X, score=score, **how).network
    filled = net.posterior(X)
    text = repr((net.parents, net.intercepts, net.weights, net.variances)).encode()
    print(score, hashlib.sha256(text + filled.mean.tobytes() + filled.sd.tobytes()).hexdigest())
"""


def test_the_same_seed_gives_the_same_network_bit_for_bit_on_one_thread_or_several():
    said = {
        threads: subprocess.run(
            [sys.executable, "-W", "ignore", "-c", SCRIPT],
            env={**os.environ, "SKYFILL_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "3")
    }
    assert len(said["1"].split()) == 4
    assert said["1"] == said["3"]


def test_mission_8_margins_keep_seen_cells_and_draw_clumps_apart():
    rng = np.random.default_rng(0)
    clumps = np.concatenate([rng.normal(-5, 0.5, 3000), rng.normal(5, 0.5, 3000)])
    X = clumps[rng.permutation(6000)][:, None].copy()
    X[:1000] = np.nan
    out = draw_univariate(X, 3, np.random.default_rng(1))
    assert (out[:, 1000:] == X[1000:]).all()
    drawn = out[:, :1000].ravel()
    assert (np.abs(drawn) > 2).mean() > 0.99
    assert (drawn > 0).mean() == pytest.approx(0.5, abs=0.05)
    assert not np.array_equal(out[0], out[1])


def test_the_union_of_graphs_of_one_order_has_all_arcs_and_no_cycle():
    both = union([((), (0,), ()), ((), (), (0, 1))])
    assert both == ((), (0,), (0, 1))
    assert topological_order(both) == (0, 1, 2)


def test_few_rows_are_announced_and_still_give_a_network():
    X = np.random.default_rng(0).normal(size=(12, 20))
    for score in SCORES:
        with pytest.warns(RegularizationWarning, match="12 rows for 20 columns"):
            found = learn_network(X, score=score, max_parents=2)
        assert np.isfinite(found.network.joint().cov).all()


def test_a_column_twice_is_regularized_and_announced():
    X = complete_table(TRUE, 300)[:, [0, 1, 2, 2]]
    with pytest.warns(RegularizationWarning, match="singular covariance"):
        found = learn_network(X, score="bic")
    assert np.isfinite(found.network.loglik(X)).all()


def test_rounds_that_do_not_converge_warn():
    X = lose(complete_table(TRUE, 200), 0.3)
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 iterations"):
        assert not learn_network(X, score="k2", max_iter=1).converged


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"score": "aic"}, ValueError, "score must be one of k2, bic, not 'aic'"),
        ({"n_bins": 1}, ValueError, "n_bins must be at least 2"),
        ({"n_orders": 0}, ValueError, "n_orders must be at least 1"),
        ({"max_parents": -1}, ValueError, "max_parents must be at least 0"),
        ({"names": ["a", "a", "b"]}, DataError, "duplicate column names"),
    ],
)
def test_impossible_options_are_refused(options, error, message):
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(error, match=message):
        learn_network(X, **options)


def test_two_rows_are_too_few():
    with pytest.raises(DataError, match="2 rows are too few"):
        learn_network([[0.0, 1.0], [1.0, 0.0]])
