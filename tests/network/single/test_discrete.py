from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skyfill.errors import DataError, GraphError
from skyfill.network import DiscreteNetwork

PERIODOGRAM = DiscreteNetwork(
    ["periodic", "faulty", "report", "peak", "passes"],
    [[], [], ["faulty"], ["periodic", "faulty"], ["peak", "periodic"]],
    [
        [0.9, 0.1],
        [0.95, 0.05],
        [[0.98, 0.02], [0.3, 0.7]],
        [[[0.99, 0.01], [0.4, 0.6]], [[0.05, 0.95], [0.02, 0.98]]],
        [[[1.0, 0.0], [1.0, 0.0]], [[0.9, 0.1], [0.2, 0.8]]],
    ],
)


def by_enumeration(network, of, given_levels):
    """Sum the full joint table: no elimination at all."""
    sizes = [table.shape[-1] for table in network.tables]
    total = np.zeros(sizes[network.names.index(of)])
    for levels in product(*(range(size) for size in sizes)):
        if any(levels[network.names.index(name)] != level for name, level in given_levels.items()):
            continue
        p = 1.0
        for j, table in enumerate(network.tables):
            p *= table[(*(levels[k] for k in network.parents[j]), levels[j])]
        total[levels[network.names.index(of)]] += p
    return total / total.sum()


def test_mission_7_the_papers_periodogram_example_by_hand():
    # P(peak) = .9 (.95 .01 + .05 .6) + .1 (.95 .95 + .05 .98) = .03555 + .09515 = .1307
    assert_allclose(PERIODOGRAM.query("peak"), [0.8693, 0.1307])
    # P(periodic | peak) = .09515 / .1307; a bad engineering report explains the peak away.
    assert_allclose(PERIODOGRAM.query("periodic", {"peak": 1})[1], 0.09515 / 0.1307)
    doubt = PERIODOGRAM.query("periodic", {"peak": 1, "report": 1})[1]
    assert doubt < 0.09515 / 0.1307
    sure = PERIODOGRAM.query("periodic", {"peak": 1, "report": 1, "passes": 1})[1]
    assert sure > doubt


@st.composite
def discrete_networks(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    p = draw(st.integers(1, 6))
    sizes = rng.integers(2, 4, p)
    parents = [
        rng.choice(j, rng.integers(0, min(j, 2) + 1), replace=False).tolist() for j in range(p)
    ]
    tables = [
        rng.dirichlet(np.ones(sizes[j]), tuple(sizes[k] for k in parents[j])) for j in range(p)
    ]
    return DiscreteNetwork(None, parents, tables)


@given(discrete_networks(), st.randoms())
def test_variable_elimination_agrees_with_enumeration(network, random):
    names = random.sample(network.names, len(network.names))
    known = {
        name: random.randrange(network.tables[network.names.index(name)].shape[-1])
        for name in names[1 : 1 + random.randint(0, len(names) - 1)]
    }
    assert_allclose(
        network.query(names[0], known), by_enumeration(network, names[0], known), rtol=1e-9
    )


@pytest.mark.parametrize(
    ("work", "error", "message"),
    [
        (lambda: DiscreteNetwork(["a"], [[]], [[0.5, 0.6]]), DataError, "sum 1"),
        (lambda: DiscreteNetwork(["a"], [[]], [[[0.5, 0.5]]]), DataError, "has shape"),
        (lambda: DiscreteNetwork(["a"], [[0]], [[[1.0]]]), GraphError, "close a cycle"),
        (lambda: DiscreteNetwork(["a", "b"], [[], []], [[1.0]]), DataError, "1 tables for 2"),
        (lambda: PERIODOGRAM.query("period"), GraphError, "is called 'period'"),
        (
            lambda: PERIODOGRAM.query("peak", {"peak": 1}),
            GraphError,
            "and given: peak",
        ),
        (lambda: PERIODOGRAM.query("peak", {"report": 2}), DataError, "does not exist"),
        (lambda: PERIODOGRAM.query("peak", {"report": -1}), DataError, "does not exist"),
        (lambda: PERIODOGRAM.query("peak", {"passes": 1, "periodic": 0, "faulty": 0}), None, ""),
        (lambda: PERIODOGRAM.query("faulty", {"passes": 1, "peak": 0}), DataError, "probability 0"),
    ],
)
def test_impossible_networks_and_questions(work, error, message):
    if error is None:
        assert work() == pytest.approx([0, 1])
    else:
        with pytest.raises(error, match=message):
            work()
