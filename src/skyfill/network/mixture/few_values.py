"""Tables with few rows and columns with few values: what is left to say of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skyfill.errors import SmallTableWarning
from skyfill.network._array import Array, check_names
from skyfill.network.mixture.margin import Identity, Margin
from skyfill.network.mixture.mixture import Mixture

# A column seen fewer times has no relation to others that could be learned from it; the intervals
# of one seen fewer times than the second number are widened by theory, too.
FEW_SEEN, SOME_SEEN = 3, 40
# Below these sizes users are warned: there the share of true values in 90 % intervals is off by
# 0.07 for a single table, and by 0.1 to 0.2 for a column (docs/benchmarks.md).
SMALL_TABLE, SMALL_COLUMN, LISTED = 40, 10, 5
# So that a value and its spread stay numbers.
LARGEST_WIDTH = 1e300


def warn_if_small(values: Array, names: Sequence[str] | None, stacklevel: int = 2) -> None:
    """Warn of a table with few rows, and of columns with few values."""
    names = check_names(names, values.shape[1])
    n_seen = (~np.isnan(values)).sum(axis=0)
    few = [f"{name} ({n})" for name, n in zip(names, n_seen, strict=True) if n < SMALL_COLUMN]
    text = ""
    if len(values) < SMALL_TABLE:
        text = (
            f"the table has {len(values)} rows; with fewer than {SMALL_TABLE} intervals are rough"
        )
    elif few:
        text = (
            f"columns with fewer than {SMALL_COLUMN} values, whose intervals are rough: "
            f"{', '.join(few[:LISTED])}{' ...' if len(few) > LISTED else ''}"
        )
    if text:
        warnings.warn(text, SmallTableWarning, stacklevel=stacklevel + 1)


def with_single_values(maps: tuple[Margin, ...], values: Array) -> tuple[Margin, ...]:
    """Take the spread of a column that was seen once to be as large as its value."""
    found = list(maps)
    for j in np.flatnonzero((~np.isnan(values)).sum(axis=0) == 1).tolist():
        value = float(np.nanmax(values[:, j]))
        width = min(max(abs(value), 1.0), LARGEST_WIDTH)
        found[j] = Identity(np.array([value, value + width]), np.arange(2.0))
    return tuple(found)


def isolate(mixture: Mixture, columns: NDArray[np.bool_]) -> Mixture:
    """Make columns standard normal and independent of all others: too little is known of them."""
    if not columns.any():
        return mixture
    apart = columns[:, None] | columns
    covs = np.where(apart, np.diag(columns.astype(np.float64)), mixture.covs)
    return mixture._replace(means=np.where(columns, 0.0, mixture.means), covs=covs)
