"""Rows of one object, which a classifier must not learn from and be judged on at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog import Role, Table, with_guessed_roles

Codes = NDArray[np.intp]
# Rows with fewer values may be equal by chance.
LEAST_VALUES = 3
# A column with fewer values per row names fields or classes, not objects.
LEAST_OBJECTS = 0.2


class Groups(NamedTuple):
    """Which rows are of one object.

    `codes` is equal for these; `column` holds their identifier, None where only equal rows tell.
    """

    codes: Codes
    column: str | None

    @property
    def n_repeated(self) -> int:
        """Rows of objects that have a row already."""
        return len(self.codes) - len(np.unique(self.codes))


def find_groups(table: Table, names: Sequence[str], column: str | None = None) -> Groups:
    """Find rows of one object: by a column, by an identifier, or by equal values of features.

    Parameters
    ----------
    table : Table
    names : sequence of str
        Features.
    column : str, optional
        Rows with the same value there belong together, and no others.

    Examples
    --------
    >>> table = Table.from_columns({"id": ["a", "b", "a"], "J": [14.2, 15.0, 14.3]})
    >>> find_groups(table, ["J"])
    Groups(codes=array([0, 1, 0]), column='id')
    """
    if column is not None:
        return Groups(_codes_of(table, column), column)
    equal, known = _equal_rows(table.numbers(*names)), with_guessed_roles(table)
    for name in known.names_with(Role.IDENTIFIER):
        codes = _codes_of(table, name)
        if len(np.unique(codes)) > LEAST_OBJECTS * len(codes):
            return Groups(_joined(codes, equal), name)
    return Groups(equal, None)


def _codes_of(table: Table, name: str) -> Codes:
    """Give equal values of a column one number, and every row without a value its own."""
    column = table.column(name).combine_chunks()
    codes = column.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    alone = column.is_null().to_numpy(zero_copy_only=False)
    return np.where(alone, len(codes) + np.arange(len(codes)), np.nan_to_num(codes)).astype(np.intp)


def _equal_rows(X: NDArray[np.float64]) -> Codes:
    codes = np.unique(np.nan_to_num(X, nan=np.inf), axis=0, return_inverse=True)[1].ravel()
    few = (~np.isnan(X)).sum(axis=1) < min(LEAST_VALUES, max(X.shape[1], 2))
    return np.where(few, len(codes) + np.arange(len(codes)), codes).astype(np.intp)


def _joined(one: Codes, two: Codes) -> Codes:
    """Join groups that share a row."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    _, left = np.unique(one, return_inverse=True)
    _, right = np.unique(two, return_inverse=True)
    n, m = int(left.max(initial=-1)) + 1, int(right.max(initial=-1)) + 1
    links = coo_array((np.ones(len(left)), (left, n + right)), shape=(n + m, n + m))
    return np.asarray(connected_components(links, directed=False)[1][left], dtype=np.intp)
