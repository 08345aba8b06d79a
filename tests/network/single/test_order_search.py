"""The search over orders of the columns, and graphs that follow an order."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.network import learn_network
from skyfill.network.single import k2
from skyfill.network.single.bic import prune
from skyfill.network.single.graph import bounded_union, follow_order, has_path, topological_order
from skyfill.network.single.order_search import order_gain, promising_families, search_order
from skyfill.network.single.parameters import as_network
from tests.network.strategies import complete_table, lose, make_network


@pytest.fixture(scope="module")
def codes():
    X = complete_table(make_network(4, 5), 400)
    return k2.cut(X, k2.quantile_edges(X, 3))


def test_the_gain_of_an_order_is_the_sum_of_its_best_families_by_hand(codes):
    order, families = [3, 0, 4, 2, 1], promising_families([codes], 2)
    total = 0.0
    for at, child in enumerate(order):
        before = order[:at]
        sets = [(), *((a,) for a in before)]
        sets += [(a, b) for a in before for b in before if a < b]
        scores = [k2.k2_score(codes.columns.T, child, s, codes.levels) for s in sets]
        total += max(scores) - scores[0]
    assert order_gain(families, order) == pytest.approx(total)


def test_no_order_of_five_columns_is_better_than_the_one_found(codes):
    families = promising_families([codes], 3)
    starts = [np.random.default_rng(seed).permutation(5).tolist() for seed in range(4)]
    found = search_order([codes], 3, starts)
    best = max(order_gain(families, order) for order in permutations(range(5)))
    assert sorted(found) == list(range(5))
    assert order_gain(families, found) == pytest.approx(best)


def test_several_tables_count_as_one_with_the_sum_of_their_scores(codes):
    one, two = (promising_families([codes] * n, 2) for n in (1, 2))
    order = [2, 1, 0, 4, 3]
    assert order_gain(two, order) == pytest.approx(2 * order_gain(one, order))


@given(st.integers(0, 10_000), st.permutations(range(6)))
def test_turned_arcs_follow_the_order_and_lose_no_dependence(seed, order):
    graph = make_network(seed % 50, 6).parents
    turned = follow_order(graph, order)
    place = {node: at for at, node in enumerate(order)}
    assert all(place[k] < place[j] for j, family in enumerate(turned) for k in family)
    links = {frozenset((j, k)) for j, family in enumerate(graph) for k in family}
    assert links <= {frozenset((j, k)) for j, family in enumerate(turned) for k in family}
    # A network with these arcs can hold the joint Gaussian of the old one exactly.
    joint = make_network(seed % 50, 6).joint()
    again = as_network(tuple("abcdef"), turned, *joint).joint()
    np.testing.assert_allclose(again.cov, joint.cov, rtol=1e-7, atol=1e-9)


def test_a_graph_that_follows_the_order_stays_as_it_is():
    graph = ((), (0,), (0, 1))
    assert follow_order(graph, [0, 1, 2]) == graph
    assert follow_order(((), (0,), (1,)), [2, 1, 0]) == ((1,), (2,), ())


def test_a_bounded_union_keeps_the_parents_that_most_graphs_have():
    graphs = [((), (), (), (0, 1)), ((), (), (), (1, 2)), ((), (), (), (1, 2))]
    assert bounded_union(graphs, 2)[3] == (1, 2)
    assert bounded_union(graphs, None)[3] == (0, 1, 2)


def test_arcs_without_a_coefficient_are_dropped_and_others_kept():
    """In the chain 0 -> 1 -> 2 with correlations 0.8, 2 does not depend on 0 given 1."""
    cov = np.array([[1.0, 0.8, 0.64], [0.8, 1.0, 0.8], [0.64, 0.8, 1.0]])
    price = np.full((3, 3), 0.5 * np.log(1000))
    assert prune(cov, 1000, ((), (0,), (0, 1)), price) == ((), (0,), (1,))
    assert prune(cov, 5, ((), (0,), (1,)), 10 * price) == ((), (), ())


def test_max_parents_holds_for_the_union_of_all_completed_tables():
    X = lose(complete_table(make_network(5, 9), 800), 0.2)
    found = learn_network(X, max_parents=2, n_completions=4).network
    assert max(len(family) for family in found.parents) <= 2


def test_the_algorithm_as_printed_finds_strong_arcs_and_more():
    true = make_network(3, 6)
    X = lose(complete_table(true, 1500), 0.1)
    printed, ours = (learn_network(X, orders=orders).network for orders in ("own", "shared"))
    assert topological_order(printed.parents)
    assert len(printed.arcs) >= len(ours.arcs)
    strong = {frozenset(arc) for arc in ours.arcs}
    assert strong <= {frozenset(arc) for arc in printed.arcs}
    assert not any(has_path(printed.parents, j, k) for j in range(6) for k in printed.parents[j])


def test_an_unknown_kind_of_orders_is_refused():
    with pytest.raises(ValueError, match="orders must be one of shared, own, not 'many'"):
        learn_network(np.random.default_rng(0).normal(size=(30, 3)), orders="many")
