"""The column mean: what every other imputer must beat."""

from __future__ import annotations

import numpy as np

from skyfill.impute._inputs import Array
from skyfill.impute.base import Imputer, Scale


class MeanImputer(Imputer):
    """Fill gaps with the mean of the column's seen values in the training set.

    Attributes
    ----------
    mean_ : array of shape (p,)

    Examples
    --------
    >>> MeanImputer().fit([[1.0], [3.0]]).transform([[float("nan")]])
    array([[2.]])
    """

    def _fit(self, X: Array) -> None:
        self.mean_ = Scale.of(X).center

    def _fill(self, X: Array) -> Array:
        return np.broadcast_to(self.mean_, X.shape)
