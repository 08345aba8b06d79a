"""Directed acyclic graphs as tuples of parent indices: ``parents[child] = (parent, ...)``."""

from collections import Counter
from collections.abc import Sequence

from skyfill.errors import GraphError

Parents = tuple[tuple[int, ...], ...]


def as_parents(parents: Sequence[Sequence[int | str]], names: Sequence[str]) -> Parents:
    """Turn parents given by name or index into indices; refuse what is not a DAG."""
    if len(parents) != len(names):
        raise GraphError(f"parents are given for {len(parents)} nodes, but there are {len(names)}")
    graph = tuple(tuple(find_node(parent, names) for parent in family) for family in parents)
    for child, family in enumerate(graph):
        if len(set(family)) < len(family):
            raise GraphError(f"node {names[child]!r} names the same parent twice")
    topological_order(graph, names)
    return graph


def find_node(node: int | str, names: Sequence[str]) -> int:
    """Index of a node given by name or index; GraphError where there is none."""
    if isinstance(node, str):
        if node not in names:
            raise GraphError(f"no node is called {node!r}; the nodes are {', '.join(names)}")
        return names.index(node)
    if not 0 <= node < len(names):
        raise GraphError(f"parent {node} is not one of the {len(names)} nodes")
    return int(node)


def topological_order(parents: Parents, names: Sequence[str] | None = None) -> tuple[int, ...]:
    """Order the nodes so that parents come before children, smaller indices first."""
    order: list[int] = []
    placed: set[int] = set()
    waiting = list(range(len(parents)))
    while waiting:
        ready = [i for i in waiting if placed.issuperset(parents[i])]
        if not ready:
            label = [str(names[i]) if names else str(i) for i in _cycle(parents, waiting)]
            raise GraphError(f"the arcs close a cycle: {' <- '.join(label)}; remove one of them")
        order += ready
        placed.update(ready)
        waiting = [i for i in waiting if i not in placed]
    return tuple(order)


def _cycle(parents: Parents, waiting: Sequence[int]) -> list[int]:
    """Walk from child to parent among nodes that all wait for one another, until one repeats."""
    walk = [waiting[0]]
    while True:
        step = next(k for k in parents[walk[-1]] if k in waiting)
        if step in walk:
            return [*walk[walk.index(step) :], step]
        walk.append(step)


def children_of(parents: Parents, node: int) -> tuple[int, ...]:
    """List the children of a node."""
    return tuple(child for child, family in enumerate(parents) if node in family)


def has_path(parents: Parents, start: int, end: int) -> bool:
    """Whether a directed path leads from `start` to `end`."""
    reached, frontier = {start}, [start]
    while frontier:
        for child in children_of(parents, frontier.pop()):
            if child not in reached:
                reached.add(child)
                frontier.append(child)
    return end in reached


def union(graphs: Sequence[Parents]) -> Parents:
    """Unite the arcs of graphs that are consistent with one order."""
    return tuple(tuple(sorted(set().union(*families))) for families in zip(*graphs, strict=True))


def bounded_union(graphs: Sequence[Parents], most: int | None) -> Parents:
    """Unite arcs, but keep only the `most` parents of a node that most graphs have."""

    def kept(families: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        counts = Counter(parent for family in families for parent in family)
        ranked = sorted(counts, key=lambda parent: (-counts[parent], parent))
        return tuple(sorted(ranked[:most]))

    return tuple(kept(families) for families in zip(*graphs, strict=True))


def follow_order(parents: Parents, order: Sequence[int]) -> Parents:
    """Turn arcs around until all lead forward in an order; no independence is added.

    Each turned arc gives both of its nodes the parents of the other (Shachter & Kenley 1989), so
    that the result may have more arcs.
    """
    families = [set(family) for family in parents]
    rest = set(range(len(parents)))
    for node in reversed(order):
        # The node must have no child among those that come before it.
        while children := [k for k in rest if node in families[k]]:
            graph = tuple(tuple(family) for family in families)
            place = topological_order(graph)
            # No other directed path can lead to the child that comes first.
            child = min(children, key=place.index)
            families[child] = (families[child] - {node}) | families[node]
            families[node] = families[child] | {child}
        rest.discard(node)
    return tuple(tuple(sorted(family)) for family in families)


def n_arcs(parents: Parents) -> int:
    """Count the arcs."""
    return sum(len(family) for family in parents)
