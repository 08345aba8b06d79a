"""Candidate lists: objects that probably belong to a class, ranked, and the evidence for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from skyfill.catalog import Table
from skyfill.errors import CatalogError, DataError
from skyfill.model import results
from skyfill.network import Cells
from skyfill.network.cells import as_cells

Array = NDArray[np.float64]
# Odds beyond a million to one count as a million to one.
FLOOR = 1e-6
# Evidence below this many bits is not listed.
LEAST_BITS = 0.05
N_NAMED = 3


def probability_of(table: Table, name: str, prefix: str = "") -> Array:
    """Return the probability of a class for each row of a table of results; NaN if it has none.

    `prefix` stands before the names of the results, see `results_prefix`.

    Examples
    --------
    >>> probability_of(Table.from_columns({"id": ["a"], "p_QSO": [0.9]}), "QSO")
    array([0.9])
    """
    columns = results.class_columns(table, prefix)
    group = results.results_prefix(table, prefix) + results.group_name(name)
    if name not in columns and group in table.names:
        columns[name] = group
    if name not in columns:
        known = ", ".join(columns)
        found = f"the classes are {known}" if known else "there are no probabilities"
        raise CatalogError(f"no class {name!r} in the results; {found} (see skyfill classify)")
    return np.asarray(table.numbers(columns[name])[:, 0])


class Candidates(NamedTuple):
    """Candidates, rank and probability behind the identifier, and their `rows` in the results."""

    table: Table
    rows: NDArray[np.int64]


class Selection:
    """Gather the candidates of a class from a table of results, batch by batch.

    Parameters
    ----------
    name : str
        The class.
    least : float
        The lowest probability of a candidate.
    prefix : str
        Before the names of the columns that are added, and of the results, if they have it.

    Examples
    --------
    >>> selection = Selection("QSO", 0.8)
    >>> selection.add(Table.from_columns({"id": ["a", "b", "c"], "p_QSO": [0.85, 0.2, 0.95]}))
    >>> table, rows = selection.ranked()
    >>> table.column("id").to_pylist(), rows
    (['c', 'a'], array([2, 0]))
    """

    def __init__(self, name: str, least: float, prefix: str = results.PREFIX) -> None:
        if not 0 < least <= 1:
            raise DataError(f"the least probability is {least:g}; it must lie between 0 and 1")
        self.name, self.least, self.prefix, self.n_rows = name, least, prefix, 0
        self._parts: list[pa.Table] = []
        self._rows: list[NDArray[np.int64]] = []

    def add(self, batch: Table) -> None:
        """Keep the candidates of a batch."""
        rows = np.flatnonzero(probability_of(batch, self.name, self.prefix) >= self.least)
        self._parts.append(batch.arrow.take(pa.array(rows)))
        self._rows.append(rows + self.n_rows)
        self.n_rows += len(batch)

    def ranked(self) -> Candidates:
        """Return the candidates, the most probable first; ties in the order of the results."""
        if not self._parts:
            raise DataError("there are no results to choose candidates from")
        arrow = pa.concat_tables(self._parts).combine_chunks()
        p = probability_of(Table(arrow), self.name, self.prefix)
        order = np.argsort(-p, kind="stable")
        table = Table(arrow.take(pa.array(order)))
        infos = results.candidate_infos(self.name)
        for (name, info), cells in zip(
            infos.items(), (np.arange(1, len(p) + 1), p[order]), strict=True
        ):
            table = table.with_column(self.prefix + name, cells, info)
        table = results.after_identifier(table, [self.prefix + name for name in infos])
        return Candidates(table, np.concatenate(self._rows)[order])


def evidence(
    classify: Callable[[Any], Array], X: ArrayLike | Cells, code: int, p: ArrayLike | None = None
) -> Array:
    """Measure the evidence in each seen value: the change of the odds when it is hidden.

    Parameters
    ----------
    classify : callable
        Probabilities of shape (n, classes) of a table with gaps, or of Cells where X has limits or
        errors, such as `Scorer.probabilities`.
    X : array of shape (n, p), or Cells
        NaN is a gap, which keeps its limits. A hidden value has none.
    code : int
        Index of the class.
    p : array of shape (n,), optional
        Its probability, if it is known already.

    Returns
    -------
    array of shape (n, p)
        log2 of the odds with the value minus log2 of the odds without it: positive where the value
        supports the class, negative where it contradicts it, NaN for gaps. Information that
        several values share is credited to none of them.

    Examples
    --------
    >>> def red(X):
    ...     p = np.where(np.isnan(X[:, 0]), 0.5, 0.8)
    ...     return np.column_stack([p, 1 - p])
    >>> evidence(red, [[1.0, 5.0]], 0)
    array([[2., 0.]])
    """
    cells = as_cells(X)

    def odds(known: Cells) -> Array:
        return _log_odds(classify(known.values if known.is_plain else known)[:, code])

    whole = odds(cells) if p is None else _log_odds(np.asarray(p, dtype=np.float64))
    bits = np.full(cells.values.shape, np.nan)
    for j, column in enumerate(cells.values.T):
        rows = np.flatnonzero(~np.isnan(column))
        if rows.size:
            hidden = cells.take(rows).hide(np.arange(len(cells.values.T)) == j)
            bits[rows, j] = whole[rows] - odds(hidden)
    return bits


def _log_odds(p: Array) -> Array:
    inside = np.clip(p, FLOOR, 1 - FLOOR)
    return np.asarray(np.log2(inside) - np.log2(1 - inside))


def name_evidence(bits: Array, names: Sequence[str], *, sign: int) -> list[str]:
    """Name for each row the features that support (1) or contradict (-1) its class most.

    Examples
    --------
    >>> name_evidence(np.array([[2.0, -0.5, 0.01]]), ["Color", "Std", "Mean"], sign=1)
    ['Color +2.0']
    """
    strength = np.where(np.isnan(bits), 0.0, bits) * sign
    found = []
    for row in strength:
        order = [j for j in np.argsort(-row, kind="stable")[:N_NAMED] if row[j] >= LEAST_BITS]
        found.append(", ".join(f"{names[j]} {sign * row[j]:+.1f}" for j in order))
    return found


def with_evidence(
    table: Table, bits: Array, names: Sequence[str], prefix: str = results.PREFIX
) -> Table:
    """Add the columns `evidence_for` and `evidence_against` to candidates."""
    infos = results.candidate_infos(with_evidence=True)
    for column, sign in zip(results.EVIDENCE, (1, -1), strict=True):
        words = name_evidence(bits, names, sign=sign)
        table = table.with_column(prefix + column, words, infos[column])
    return table
