"""K nearest neighbors (Troyanskaya et al. 2001)."""

from __future__ import annotations

import numpy as np

from skyfill.impute._inputs import Array
from skyfill.impute.base import Imputer, Scale


class NeighborsImputer(Imputer):
    """Fill a gap with the weighted mean of the nearest training rows that have the value.

    Distances are Euclidean over the columns that both rows have, in standard units; weights are
    inverse distances (Troyanskaya et al. 2001, Bioinformatics 17, 520). A row that shares no seen
    column with any other gets column means.

    Parameters
    ----------
    n_neighbors : int
        The authors found 10 to 20 to be best.

    Attributes
    ----------
    scale_ : Scale
        Center and spread of the columns.
    neighbors_ : sklearn.impute.KNNImputer
        The search in standard units; it keeps the training set.

    Examples
    --------
    >>> rows = [[1.0, 10.0], [2.0, 20.0], [9.0, 90.0]]
    >>> NeighborsImputer(1).fit(rows).transform([[2.1, float("nan")]])
    array([[ 2.1, 20. ]])
    """

    def __init__(self, n_neighbors: int = 15) -> None:
        self.n_neighbors = n_neighbors

    def _fit(self, X: Array) -> None:
        from sklearn.impute import KNNImputer

        self.scale_ = Scale.of(X)
        search = KNNImputer(n_neighbors=self.n_neighbors, weights="distance")
        self.neighbors_ = search.fit(self.scale_.standard(X))

    def _fill(self, X: Array) -> Array:
        found = np.asarray(self.neighbors_.transform(self.scale_.standard(X)))
        return self.scale_.restored(found)
