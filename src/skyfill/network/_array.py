"""The array types of this room, and the door through which tables of numbers enter it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.errors import DataError

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Rng = int | np.random.Generator | None


def as_table(X: ArrayLike, n_columns: int | None = None) -> Array:
    """View `X` as a read-only C-contiguous float64 table; copy only where its layout differs.

    Kernels get read-only arrays: they are compiled once, for that type, and cannot write to
    the caller's data.
    """
    table = np.ascontiguousarray(X, dtype=np.float64).view()
    if table.ndim != 2:
        raise DataError(f"expected a table (rows x columns), got an array of shape {table.shape}")
    if n_columns is not None and table.shape[1] != n_columns:
        raise DataError(f"the table has {table.shape[1]} columns, the network {n_columns}")
    table.flags.writeable = False
    return table


def check_finite(X: Array, names: Sequence[str]) -> None:
    """Refuse infinite cells: they are neither values nor gaps."""
    for j, name in enumerate(names):
        row = np.flatnonzero(np.isinf(X[:, j]))
        if row.size:
            raise DataError(
                f"column {name!r} is infinite in {row.size} rows, first in row {row[0]}; "
                "declare infinity as a gap (NaN) or remove the rows"
            )


def check_names(names: Sequence[str] | None, n_columns: int) -> tuple[str, ...]:
    """Return one distinct name per column; number the columns where no names are given."""
    if names is None:
        return tuple(f"x{j}" for j in range(n_columns))
    names = tuple(str(name) for name in names)
    if len(names) != n_columns:
        raise DataError(f"{len(names)} names for {n_columns} columns")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"duplicate column names: {', '.join(twice)}; every column needs its own")
    return names


def check_seen(X: Array, names: tuple[str, ...]) -> IntArray:
    """Count the seen cells of each column; refuse infinite ones and columns without any."""
    check_finite(X, names)
    n_seen = (~np.isnan(X)).sum(axis=0)
    for name, count in zip(names, n_seen, strict=True):
        if count == 0:
            raise DataError(
                f"column {name!r} has no value in {len(X)} rows; drop it or join a catalog that "
                "measures it"
            )
    return n_seen
