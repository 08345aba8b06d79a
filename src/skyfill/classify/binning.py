"""Columns as small integers for boosting, and the cuts of its trees back in the columns' units.

scikit-learn bins by itself, but with weighted rows it sorts every column once per bin, which takes
several times as long as growing the trees.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.forest import FlatForest

Array = NDArray[np.float64]
# As many as scikit-learn's boosting keeps apart.
MOST_BINS = 255


@dataclass(frozen=True, eq=False)
class Bins:
    """Edges of the bins of every column; a value on an edge lies below it.

    Examples
    --------
    >>> bins = find_bins(np.array([[1.0], [3.0], [np.nan]]))
    >>> bins.codes(np.array([[0.5], [2.0], [2.1], [np.nan]])).T
    array([[ 0.,  0.,  1., nan]])
    """

    edges: tuple[Array, ...]

    def codes(self, table: Array) -> Array:
        """Give the bin of every value, NaN for gaps."""
        codes = np.empty(table.shape)
        for j, edges in enumerate(self.edges):
            codes[:, j] = np.searchsorted(edges, table[:, j])
        codes[np.isnan(table)] = np.nan
        return codes

    def restore(self, forest: FlatForest) -> FlatForest:
        """Give trees for values from trees that were grown on codes."""
        threshold = forest.threshold.copy()
        for j, edges in enumerate(self.edges):
            # A cut above all codes parts values from gaps, also in the units of the column.
            cut = (forest.feature == j) & (threshold < len(edges))
            threshold[cut] = edges[np.floor(threshold[cut]).astype(np.intp)]
        return replace(forest, threshold=threshold)


def find_bins(table: Array) -> Bins:
    """Part every column into bins: its values where they are few, else equally many rows each."""
    return Bins(tuple(_edges(column[~np.isnan(column)]) for column in table.T))


def _edges(seen: Array) -> Array:
    values = np.unique(seen)
    if len(values) <= MOST_BINS:
        # Halves first: the sum of two large values may overflow.
        return np.asarray(values[:-1] / 2 + values[1:] / 2)
    shares = np.arange(1, MOST_BINS) / MOST_BINS
    return np.unique(np.quantile(seen, shares, method="averaged_inverted_cdf"))
