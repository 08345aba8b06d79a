import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skyfill.errors import GraphError
from skyfill.network import GaussianNetwork
from tests.network.strategies import networks

PAIR = GaussianNetwork(["i", "j"], [[], ["i"]], [1.0, 2.0], [[], [0.5]], [4.0, 3.0])


def test_reversing_one_arc_by_hand():
    # v_j' = 3 + 0.25 * 4 = 4, b_ij' = 0.5 * 4 / 4 = 0.5, v_i' = 4 * 3 / 4 = 3,
    # E[j] = 2.5, so i = 1 + 0.5 (j - 2.5) = -0.25 + 0.5 j.
    turned = PAIR.reverse_arc("i", "j")
    assert turned.arcs == (("j", "i"),)
    assert_allclose(turned.intercepts, [-0.25, 2.5])
    assert_allclose(turned.weights[0], [0.5])
    assert_allclose(turned.variances, [3.0, 4.0])


@given(networks(), st.randoms())
def test_mission_2_reversing_arcs_keeps_the_joint(network, random):
    mean, cov = network.joint()
    turned = network
    for _ in range(6):
        arcs = list(turned.arcs)
        if not arcs:
            return
        parent, child = random.choice(arcs)
        try:
            turned = turned.reverse_arc(parent, child)
        except GraphError as error:
            assert "another directed path" in str(error)  # noqa: PT017 - either outcome is right
            continue
        assert (child, parent) in turned.arcs
        assert (parent, child) not in turned.arcs
    new_mean, new_cov = turned.joint()
    scale = np.sqrt(np.diag(cov))
    assert_allclose((new_mean - mean) / scale, 0, atol=1e-9)
    assert_allclose((new_cov - cov) / np.outer(scale, scale), 0, atol=1e-9)


@given(networks(), st.randoms())
def test_mission_2_query_by_arc_reversal_equals_the_joint_gaussian_formula(network, random):
    names = random.sample(network.names, len(network))
    n_of = random.randint(1, len(names))
    n_given = random.randint(0, len(names) - n_of)
    of, given_names = names[:n_of], names[n_of : n_of + n_given]
    found = network.query(of, given_names)
    mean, cov = network.joint()
    o, g = ([network.names.index(name) for name in part] for part in (of, given_names))
    gain = np.linalg.solve(cov[np.ix_(g, g)], cov[np.ix_(g, o)]).T
    scale = np.sqrt(np.diag(cov))
    assert (found.of, found.given) == (tuple(of), tuple(given_names))
    assert_allclose(
        found.weights * scale[g] / scale[o][:, None], gain * scale[g] / scale[o][:, None], atol=1e-9
    )
    assert_allclose(found.intercepts / scale[o], (mean[o] - gain @ mean[g]) / scale[o], atol=1e-8)
    want = cov[np.ix_(o, o)] - gain @ cov[np.ix_(g, o)]
    assert_allclose(
        found.cov / np.outer(scale[o], scale[o]), want / np.outer(scale[o], scale[o]), atol=1e-9
    )


@given(networks(), st.randoms())
def test_a_marginal_is_a_block_of_the_joint(network, random):
    keep = random.sample(network.names, random.randint(1, len(network)))
    small = network.marginal(keep)
    place = [network.names.index(name) for name in keep]
    mean, cov = network.joint()
    assert small.names == tuple(keep)
    assert_allclose(small.joint().mean, mean[place], rtol=1e-9, atol=1e-8)
    assert_allclose(small.joint().cov, cov[np.ix_(place, place)], rtol=1e-9, atol=1e-8)


def test_barren_nodes_fall_off_without_changing_the_others():
    chain = GaussianNetwork(
        ["a", "b", "c"], [[], ["a"], ["b"]], [0, 0, 0], [[], [2.0], [3.0]], [1, 1, 1]
    )
    small = chain.marginal(["a", "b"])
    assert small.parents == ((), (0,))
    assert small.weights == ((), (2.0,))
    assert small.variances == (1.0, 1.0)


def test_impossible_reversals_name_the_reason():
    triangle = GaussianNetwork(
        ["a", "b", "c"], [[], ["a"], ["a", "b"]], [0] * 3, [[], [1], [1, 1]], [1] * 3
    )
    with pytest.raises(GraphError, match="another directed path leads from a to c"):
        triangle.reverse_arc("a", "c")
    with pytest.raises(GraphError, match="there is no arc c -> a"):
        triangle.reverse_arc("c", "a")


def test_mission_7_the_papers_five_node_example():
    """P(F5 | F1, F3, F4) of F4 -> F1, F4 -> F5, F2 -> F5, F5 -> F3, by hand.

    All intercepts 0, noise variances 1, F1 = F4, F5 = F2 + F4, F3 = F5 (plus noise): given F4, F5
    is N(F4, 2); F3 then measures it with variance 1. So the precision is 1/2 + 1 = 3/2, and the
    mean (F4 / 2 + F3) / (3/2) = F4 / 3 + 2 F3 / 3. F1 adds nothing once F4 is known.
    """
    network = GaussianNetwork(
        ["F1", "F2", "F3", "F4", "F5"],
        [["F4"], [], ["F5"], [], ["F2", "F4"]],
        [0] * 5,
        [[1], [], [1], [], [1, 1]],
        [1] * 5,
    )
    found = network.query(of=["F5"], given=["F1", "F3", "F4"])
    assert_allclose(found.weights, [[0, 2 / 3, 1 / 3]], atol=1e-12)
    assert_allclose(found.cov, [[2 / 3]])
    post = network.condition({"F1": 0.3, "F3": 1.5, "F4": -0.6}, of=["F5"])
    assert_allclose(post.mean, [0.8])
