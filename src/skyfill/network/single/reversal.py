"""Arc reversal, marginals and queries on the graph (Shachter & Kenley 1989)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from skyfill.errors import GraphError
from skyfill.network._array import Array
from skyfill.network.single.graph import children_of, has_path

if TYPE_CHECKING:
    from skyfill.network.single.gaussian import GaussianNetwork


class Regression(NamedTuple):
    """``of = intercepts + weights @ given`` with residual covariance `cov`."""

    of: tuple[str, ...]
    given: tuple[str, ...]
    intercepts: Array  # (of,)
    weights: Array  # (of, given)
    cov: Array  # (of, of)


def reverse_arc(network: GaussianNetwork, i: int, j: int) -> GaussianNetwork:
    """Turn the arc i -> j around; both nodes end with the union of their parents."""
    names = network.names
    if i not in network.parents[j]:
        raise GraphError(f"there is no arc {names[i]} -> {names[j]}")
    without = tuple(
        tuple(k for k in family if not (child == j and k == i))
        for child, family in enumerate(network.parents)
    )
    if has_path(without, i, j):
        raise GraphError(
            f"another directed path leads from {names[i]} to {names[j]}: reversing the arc would "
            "close a cycle; reverse the arcs of that path first"
        )
    b = network._coefficients
    shared = sorted(set(network.parents[i]) | set(network.parents[j]) - {i})
    b_ji, (v_i, v_j) = b[j, i], (network.variances[i], network.variances[j])
    v_new = v_j + b_ji**2 * v_i
    gain = b_ji * v_i / v_new
    a_j = network.intercepts[j] + b_ji * network.intercepts[i]
    b_j = b[j, shared] + b_ji * b[i, shared]
    nodes = {
        j: (shared, a_j, b_j, v_new),
        i: (
            [*shared, j],
            network.intercepts[i] - gain * a_j,
            [*(b[i, shared] - gain * b_j), gain],
            v_i * v_j / v_new,
        ),
    }
    return _replace(network, nodes)


def _replace(
    network: GaussianNetwork, nodes: dict[int, tuple[list[int], float, Array | list[float], float]]
) -> GaussianNetwork:
    """Exchange some nodes' (parents, intercept, weights, variance)."""
    old = zip(network.parents, network.intercepts, network.weights, network.variances, strict=True)
    rows = [nodes.get(k, row) for k, row in enumerate(old)]
    parents, intercepts, weights, variances = zip(*rows, strict=True)
    return type(network)(network.names, parents, intercepts, weights, variances)


def _drop_leaf(network: GaussianNetwork, leaf: int) -> GaussianNetwork:
    """Delete a node without children: it is summed out at no cost."""
    keep = [k for k in range(len(network)) if k != leaf]
    shift = {old: new for new, old in enumerate(keep)}
    return type(network)(
        [network.names[k] for k in keep],
        [[shift[parent] for parent in network.parents[k]] for k in keep],
        [network.intercepts[k] for k in keep],
        [network.weights[k] for k in keep],
        [network.variances[k] for k in keep],
    )


def _sum_out(network: GaussianNetwork, name: str) -> GaussianNetwork:
    """Make a node a leaf by reversing its arcs, nearest child first, and delete it."""
    node = network.names.index(name)
    while children := children_of(network.parents, node):
        # No other directed path can lead to the child that comes first in the order.
        network = reverse_arc(network, node, min(children, key=network.order.index))
    return _drop_leaf(network, node)


def _reduce(network: GaussianNetwork, keep: tuple[str, ...]) -> GaussianNetwork:
    """Sum out all other nodes; in reverse order, so that barren nodes simply fall off."""
    for name in [network.names[k] for k in reversed(network.order)]:
        if name not in keep:
            network = _sum_out(network, name)
    return network


def marginal(network: GaussianNetwork, keep: tuple[str, ...]) -> GaussianNetwork:
    """Network over the kept nodes alone, in the order given."""
    for name in keep:
        network.index(name)
    small = _reduce(network, keep)
    place = [small.index(name) for name in keep]
    return type(network)(
        keep,
        [[small.names[parent] for parent in small.parents[k]] for k in place],
        [small.intercepts[k] for k in place],
        [small.weights[k] for k in place],
        [small.variances[k] for k in place],
    )


def query(network: GaussianNetwork, of: tuple[str, ...], given: tuple[str, ...]) -> Regression:
    """Regression of `of` on `given`: reduce, bring the evidence first, read it off."""
    small = marginal(network, (*given, *of))
    n_given = len(given)
    for node in reversed([k for k in small.order if k >= n_given]):
        # Later query nodes have no evidence below them any more, so the nearest child is safe.
        while evidence := [k for k in children_of(small.parents, node) if k < n_given]:
            small = reverse_arc(small, node, min(evidence, key=small.order.index))
    n_of, b = len(of), small._coefficients
    intercepts, weights = np.zeros(n_of), np.zeros((n_of, n_given))
    root = np.zeros((n_of, n_of))
    for node in (k for k in small.order if k >= n_given):
        row, to_query = node - n_given, b[node, n_given:]
        intercepts[row] = small.intercepts[node] + to_query @ intercepts
        weights[row] = b[node, :n_given] + to_query @ weights
        root[row] = to_query @ root
        root[row, row] = np.sqrt(small.variances[node])
    return Regression(of, given, intercepts, weights, root @ root.T)
