"""Independent univariate Gaussian mixtures: the paper's baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skyfill.errors import DataError
from skyfill.impute._inputs import Array
from skyfill.impute.base import Imputer, Scale
from skyfill.network import Posterior
from skyfill.network.single.univariate import MAX_COMPONENTS, UnivariateMixture, fit_univariate

STRATEGIES = ("mean", "sample")


class GaussianMixtureImputer(Imputer):
    """Fill each column from a Gaussian mixture of its own seen values, whatever the others say.

    The baseline of Pichara & Protopapas (2013). The number of components is the one that BIC
    prefers. A Gaussian is never narrower than a thousandth of the column's standard deviation
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
            _fit_column(column, rng, self.max_components).rescaled(center, spread)
            for column, center, spread in zip(
                scale.standard(X).T, scale.center, scale.spread, strict=True
            )
        ]

    def _fill(self, X: Array) -> Array:
        if self.strategy == "sample":
            return np.asarray(self._draws(X, 1, self.random_state)[0])
        return np.broadcast_to([mixture.mean for mixture in self.mixtures_], X.shape)

    def posterior(self, X: Any) -> Posterior:
        """Mean and standard deviation of each cell; a seen cell is itself, with 0."""
        numbers = self._new_rows(X)
        lost = np.isnan(numbers)
        mean = np.where(lost, [mixture.mean for mixture in self.mixtures_], numbers)
        return Posterior(mean, np.where(lost, [mixture.sd for mixture in self.mixtures_], 0.0))

    def quantiles(self, X: Any, levels: Sequence[float]) -> Array:
        """Quantiles of each cell, of shape (len(levels), n, p); a seen cell is itself."""
        numbers = self._new_rows(X)
        of_columns = np.array([[m.quantile(level) for m in self.mixtures_] for level in levels])
        return np.where(np.isnan(numbers), of_columns[:, None, :], numbers)

    def interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each cell that holds the share `level` of its distribution."""
        low, high = self.quantiles(X, [0.5 - level / 2, 0.5 + level / 2])
        return low, high

    def sample(self, X: Any, n_draws: int = 1, *, random_state: Any = None) -> Array:
        """Draw completed tables, of shape (n_draws, n, p); seen cells stay as they are."""
        numbers = self._new_rows(X)
        return np.where(np.isnan(numbers), self._draws(numbers, n_draws, random_state), numbers)

    def logpdf(self, X_true: Any, X_gaps: Any) -> Array:
        """Log density of each gap of `X_gaps` at its true value; NaN for seen cells."""
        true, gaps = self._new_rows(X_true), self._new_rows(X_gaps)
        density = [m.logpdf(column) for m, column in zip(self.mixtures_, true.T, strict=True)]
        return np.where(np.isnan(gaps), np.transpose(density), np.nan)

    def _draws(self, X: Array, n_draws: int, random_state: Any) -> Array:
        rng = as_generator(random_state)
        columns = [mixture.draw((n_draws, len(X)), rng) for mixture in self.mixtures_]
        return np.stack(columns, axis=-1)


def _fit_column(column: Array, rng: np.random.Generator, max_components: int) -> UnivariateMixture:
    return fit_univariate(column[~np.isnan(column)], rng, max_components)


def as_generator(random_state: Any) -> np.random.Generator:
    """Give NumPy's generator for scikit-learn's `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31))
