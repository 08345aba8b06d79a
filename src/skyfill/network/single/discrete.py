"""Small discrete networks, answered exactly by variable elimination (the paper's section 2.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skyfill.errors import DataError, GraphError
from skyfill.network._array import Array, check_names
from skyfill.network.single.graph import Parents, as_parents, find_node


class Factor(NamedTuple):
    """A table of non-negative numbers over some variables, one axis each."""

    over: tuple[int, ...]
    table: Array


@dataclass(frozen=True, eq=False)
class DiscreteNetwork:
    """A Bayesian network of discrete nodes with given probability tables.

    Parameters
    ----------
    names : sequence of str, or None
        One distinct name per node.
    parents : sequence of sequences of int or str
        The parents of each node, by index or by name.
    tables : sequence of arrays
        ``tables[j][a, b, ..., k]`` is the probability of level k of node j when its parents, in
        their order, have levels a, b, ...

    Examples
    --------
    >>> tables = [[0.8, 0.2], [[0.9, 0.1], [0.0, 1.0]]]
    >>> rain = DiscreteNetwork(["rain", "wet"], [[], ["rain"]], tables)
    >>> rain.query("rain", {"wet": 1}).round(4)
    array([0.2857, 0.7143])
    """

    names: tuple[str, ...]
    parents: Parents
    tables: tuple[Array, ...]

    def __init__(
        self,
        names: Sequence[str] | None,
        parents: Sequence[Sequence[int | str]],
        tables: Sequence[ArrayLike],
    ) -> None:
        object.__setattr__(self, "names", check_names(names, len(parents)))
        object.__setattr__(self, "parents", as_parents(parents, self.names))
        arrays = tuple(np.array(table, dtype=np.float64) for table in tables)
        if len(arrays) != len(self.names):
            raise DataError(f"{len(arrays)} tables for {len(self.names)} nodes")
        levels = [table.shape[-1] if table.ndim else 0 for table in arrays]
        for j, (name, table) in enumerate(zip(self.names, arrays, strict=True)):
            shape = (*(levels[k] for k in self.parents[j]), levels[j])
            _check_table(name, table, shape)
        object.__setattr__(self, "tables", arrays)

    def query(self, of: str, given: Mapping[str, int] | None = None) -> Array:
        """Probabilities of the levels of one node, given the levels of others."""
        target = find_node(of, self.names)
        evidence = {find_node(name, self.names): level for name, level in (given or {}).items()}
        if target in evidence:
            raise GraphError(f"both requested and given: {of}")
        factors = [
            _restrict(Factor((*family, j), table), evidence)
            for j, (family, table) in enumerate(zip(self.parents, self.tables, strict=True))
        ]
        # Contracting two factors at a time, the cheapest pair first, is variable elimination.
        operands: list[Any] = [part for over, table in factors for part in (table, list(over))]
        table = np.einsum(*operands, [target], optimize="greedy")
        if not table.sum() > 0:
            raise DataError(f"the evidence {dict(given or {})} has probability 0")
        return table / table.sum()


def _check_table(name: str, table: Array, shape: tuple[int, ...]) -> None:
    if table.shape != shape:
        raise DataError(f"table of node {name!r} has shape {table.shape}, expected {shape}")
    if not ((table >= 0).all() and np.allclose(table.sum(axis=-1), 1.0, atol=1e-9)):
        raise DataError(f"table of node {name!r}: every row must be probabilities with sum 1")


def _restrict(factor: Factor, evidence: Mapping[int, int]) -> Factor:
    """Take the slice of a factor that agrees with the evidence."""
    pick = tuple(evidence.get(v, slice(None)) for v in factor.over)
    over = tuple(v for v in factor.over if v not in evidence)
    levels = [(v, n) for v, n in zip(factor.over, factor.table.shape, strict=True) if v in evidence]
    if any(not 0 <= evidence[v] < n for v, n in levels):
        raise DataError(f"a level of the evidence does not exist: {dict(evidence)}")
    return Factor(over, np.asarray(factor.table[pick]))
