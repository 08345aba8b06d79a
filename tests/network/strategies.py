"""Random networks and tables with gaps."""

import numpy as np
from hypothesis import strategies as st

from skyfill.network import GaussianNetwork


def make_network(seed, p, max_parents=3):
    rng = np.random.default_rng(seed)
    order = rng.permutation(p)
    parents = [()] * p
    for place, node in enumerate(order):
        k = rng.integers(0, min(place, max_parents) + 1)
        parents[node] = tuple(int(i) for i in rng.choice(order[:place], k, replace=False))
    weights = [rng.uniform(-1.5, 1.5, len(family)) for family in parents]
    return GaussianNetwork(
        [f"n{i}" for i in range(p)], parents, rng.normal(0, 3, p), weights, rng.uniform(0.2, 2, p)
    )


def complete_table(network, n, seed=0):
    rng = np.random.default_rng(seed)
    return network.draws(np.full((n, len(network)), np.nan), 1, rng)[0]


def lose(X, rate, seed=0):
    """Lose cells at random, but never a row's last value."""
    rng = np.random.default_rng(seed)
    lost = rng.random(X.shape) < rate
    lost[lost.all(axis=1), 0] = False
    return np.where(lost, np.nan, X)


@st.composite
def networks(draw, max_nodes=12, min_nodes=2):
    p = draw(st.integers(min_nodes, max_nodes))
    return make_network(draw(st.integers(0, 2**32 - 1)), p)


@st.composite
def networks_with_tables(draw, max_nodes=8):
    network = draw(networks(max_nodes))
    n = draw(st.integers(1, 40))
    rate = draw(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    X = complete_table(network, n, draw(st.integers(0, 999)))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    return network, np.where(rng.random(X.shape) < rate, np.nan, X)
