"""Baselines: the column mean, k nearest neighbors, and independent mixtures (the paper's)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skyfill.errors import DataError
from skyfill.impute._inputs import Array
from skyfill.impute.base import DistributionImputer, Imputer, Scale, as_generator
from skyfill.network import Posterior
from skyfill.network.single.univariate import MAX_COMPONENTS, fit_univariate

STRATEGIES = ("mean", "sample")


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


class GaussianMixtureImputer(DistributionImputer):
    """Fill each column from a Gaussian mixture of its own seen values, ignoring all others.

    The baseline of Pichara & Protopapas (2013). The number of components is chosen by
    BIC. A Gaussian is never narrower than a thousandth of the column's standard deviation
    (of 1 for a constant column).

    Parameters
    ----------
    strategy : {"mean", "sample"}
        What `transform` fills in: the mean of the mixture, or a draw from it.
    max_components : int
        Most Gaussians per column.
    random_state : int, RandomState or None
        Seed of the fit and, for "sample", of the draws.

    Attributes
    ----------
    mixtures_ : list of UnivariateMixture
        One per column: weights, means and standard deviations.

    Examples
    --------
    >>> rows = [[0.0], [0.2], [0.4], [10.0], [10.2], [10.4]]
    >>> imputer = GaussianMixtureImputer(random_state=0).fit(rows)
    >>> len(imputer.mixtures_[0].weights)
    2
    >>> imputer.transform([[float("nan")]]).round(3)
    array([[5.2]])
    """

    def __init__(
        self,
        strategy: str = "mean",
        *,
        max_components: int = MAX_COMPONENTS,
        random_state: Any = None,
    ) -> None:
        self.strategy = strategy
        self.max_components = max_components
        self.random_state = random_state

    def _fit(self, X: Array) -> None:
        if self.strategy not in STRATEGIES:
            raise DataError(f"strategy must be one of {STRATEGIES}, not {self.strategy!r}")
        rng = as_generator(self.random_state)
        scale = Scale.of(X)
        self.mixtures_ = [
            fit_univariate(column[~np.isnan(column)], rng, self.max_components).rescaled(
                center, spread
            )
            for column, center, spread in zip(
                scale.standard(X).T, scale.center, scale.spread, strict=True
            )
        ]

    def _fill(self, X: Array) -> Array:
        if self.strategy == "sample":
            return np.asarray(self._draws(X, 1, as_generator(self.random_state))[0])
        return np.broadcast_to([mixture.mean for mixture in self.mixtures_], X.shape)

    def _posterior(self, X: Array) -> Posterior:
        lost = np.isnan(X)
        mean = np.where(lost, [mixture.mean for mixture in self.mixtures_], X)
        return Posterior(mean, np.where(lost, [mixture.sd for mixture in self.mixtures_], 0.0))

    def _quantiles(self, X: Array, levels: Sequence[float]) -> Array:
        of_columns = np.array([[m.quantile(level) for m in self.mixtures_] for level in levels])
        return np.where(np.isnan(X), of_columns[:, None, :], X)

    def _draws(self, X: Array, n_draws: int, rng: np.random.Generator) -> Array:
        columns = [mixture.draw((n_draws, len(X)), rng) for mixture in self.mixtures_]
        return np.where(np.isnan(X), np.stack(columns, axis=-1), X)

    def logpdf(self, X_true: Any, X_gaps: Any) -> Array:
        """Log density of each gap of `X_gaps` at its true value; NaN for seen cells."""
        true, gaps = self._new_rows(X_true), self._new_rows(X_gaps)
        density = [m.logpdf(column) for m, column in zip(self.mixtures_, true.T, strict=True)]
        return np.where(np.isnan(gaps), np.transpose(density), np.nan)
