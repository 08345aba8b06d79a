"""Arc reversal, marginals and queries on the graph (Shachter & Kenley 1989)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skyfill.errors import GraphError
from skyfill.network._array import Array
from skyfill.network.single.graph import Parents, children_of, has_path, topological_order


class Nodes(NamedTuple):
    """The nodes of a network, with the meaning and order of its arguments."""

    names: tuple[str, ...]
    parents: Parents
    intercepts: tuple[float, ...]
    weights: tuple[Sequence[float] | Array, ...]
    variances: tuple[float, ...]

    @property
    def coefficients(self) -> Array:
        """The matrix B of ``x = a + B x + noise``."""
        matrix = np.zeros((len(self.names), len(self.names)))
        for child, (family, row) in enumerate(zip(self.parents, self.weights, strict=True)):
            matrix[child, list(family)] = row
        return matrix

    @property
    def order(self) -> tuple[int, ...]:
        """The nodes, parents before children."""
        return topological_order(self.parents)


class Regression(NamedTuple):
    """``of = intercepts + weights @ given`` with residual covariance `cov`."""

    of: tuple[str, ...]
    given: tuple[str, ...]
    intercepts: Array  # (of,)
    weights: Array  # (of, given)
    cov: Array  # (of, of)


def reverse_arc(nodes: Nodes, i: int, j: int) -> Nodes:
    """Turn the arc i -> j around; both nodes end with the union of their parents."""
    names = nodes.names
    if i not in nodes.parents[j]:
        raise GraphError(f"there is no arc {names[i]} -> {names[j]}")
    without = tuple(
        tuple(k for k in family if not (child == j and k == i))
        for child, family in enumerate(nodes.parents)
    )
    if has_path(without, i, j):
        raise GraphError(
            f"another directed path leads from {names[i]} to {names[j]}: reversing the arc would "
            "close a cycle; reverse the arcs of that path first"
        )
    b = nodes.coefficients
    shared = sorted(set(nodes.parents[i]) | set(nodes.parents[j]) - {i})
    b_ji, (v_i, v_j) = b[j, i], (nodes.variances[i], nodes.variances[j])
    v_new = v_j + b_ji**2 * v_i
    gain = b_ji * v_i / v_new
    a_j = nodes.intercepts[j] + b_ji * nodes.intercepts[i]
    b_j = b[j, shared] + b_ji * b[i, shared]
    a_i, b_i = nodes.intercepts[i] - gain * a_j, [*(b[i, shared] - gain * b_j), gain]
    changed = {j: (shared, a_j, b_j, v_new), i: ([*shared, j], a_i, b_i, v_i * v_j / v_new)}
    rows = [changed.get(k, row) for k, row in enumerate(zip(*nodes[1:], strict=True))]
    return Nodes(names, *zip(*rows, strict=True))


def _pick(nodes: Nodes, keep: list[int]) -> Nodes:
    """Take some nodes in a new order; those left out are parents of none of them."""
    place = {old: new for new, old in enumerate(keep)}
    picked = Nodes(*(tuple(values[k] for k in keep) for values in nodes))  # type: ignore[arg-type]
    moved = tuple(tuple(place[parent] for parent in family) for family in picked.parents)
    return picked._replace(parents=moved)


def _sum_out(nodes: Nodes, name: str) -> Nodes:
    """Make a node a leaf by reversing its arcs, nearest child first, and delete it."""
    node = nodes.names.index(name)
    while children := children_of(nodes.parents, node):
        # No other directed path can lead to the child that comes first in the order.
        nodes = reverse_arc(nodes, node, min(children, key=nodes.order.index))
    return _pick(nodes, [k for k in range(len(nodes.names)) if k != node])


def marginal(nodes: Nodes, keep: tuple[str, ...]) -> Nodes:
    """Nodes of a network over the kept ones alone, in the order given."""
    # In reverse order, so that barren nodes simply fall off.
    for name in [nodes.names[k] for k in reversed(nodes.order)]:
        if name not in keep:
            nodes = _sum_out(nodes, name)
    return _pick(nodes, [nodes.names.index(name) for name in keep])


def query(nodes: Nodes, of: tuple[str, ...], given: tuple[str, ...]) -> Regression:
    """Regression of `of` on `given`: reduce, bring the evidence first, read it off."""
    small = marginal(nodes, (*given, *of))
    n_given = len(given)
    for node in reversed([k for k in small.order if k >= n_given]):
        # Later query nodes have no evidence below them any more, so the nearest child is safe.
        while evidence := [k for k in children_of(small.parents, node) if k < n_given]:
            small = reverse_arc(small, node, min(evidence, key=small.order.index))
    n_of, b = len(of), small.coefficients
    intercepts, weights = np.zeros(n_of), np.zeros((n_of, n_given))
    root = np.zeros((n_of, n_of))
    for node in (k for k in small.order if k >= n_given):
        row, to_query = node - n_given, b[node, n_given:]
        intercepts[row] = small.intercepts[node] + to_query @ intercepts
        weights[row] = b[node, :n_given] + to_query @ weights
        root[row] = to_query @ root
        root[row, row] = np.sqrt(small.variances[node])
    return Regression(of, given, intercepts, weights, root @ root.T)
