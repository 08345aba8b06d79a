"""Continuous columns cut into quantile bins, which are estimated from the seen cells."""

import numpy as np
from numpy.typing import NDArray

from skyfill.network._array import Array
from skyfill.network.k2 import Codes, as_codes


def quantile_edges(X: Array, n_bins: int) -> list[Array]:
    """Inner edges of `n_bins` bins with equal numbers of seen cells; ties merge bins."""
    inner = np.arange(1, n_bins) / n_bins
    return [np.unique(np.nanquantile(column, inner)) for column in X.T]


def cut(X: Array, edges: list[Array]) -> Codes:
    """Codes of a complete table."""
    columns: list[NDArray[np.int64]] = [
        np.searchsorted(edge, column, side="left") for column, edge in zip(X.T, edges, strict=True)
    ]
    return as_codes(np.stack(columns, axis=1), [len(edge) + 1 for edge in edges])
