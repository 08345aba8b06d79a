"""What imputers share: the contract of scikit-learn around two methods, and distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skyfill.impute._inputs import Array, learnable_columns, part_of, validated
from skyfill.network import Posterior


class Imputer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base of imputers: it checks the input and leaves seen cells bit for bit as they are.

    A subclass stores its options in ``__init__`` and writes ``_fit(X)`` and ``_fill(X)``; both get
    float64 arrays with NaN for gaps, which they must not modify. What ``_fill`` returns for seen
    cells is ignored.
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from a table with gaps.

        Parameters
        ----------
        X : array of shape (n, p), or a table
            NaN, null and masked cells are gaps. Columns without any value are left out, with a
            warning, here and in all results.
        y : ignored
        """
        self._fit(self._first_rows(X))
        return self

    def transform(self, X: Any) -> Array:
        """Fill the gaps of new rows; seen cells stay bit for bit as they are.

        Returns
        -------
        array of shape (n, columns with values in the training set)
            Without NaN, even for a row or a column that consists of gaps only.
        """
        numbers = self._new_rows(X)
        lost = np.isnan(numbers)
        return np.where(lost, self._fill(numbers), numbers) if lost.any() else numbers.copy()

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Name the columns of results."""
        return super().get_feature_names_out(input_features)[self.kept_]

    def _first_rows(self, X: Any) -> Array:
        """Check the rows to learn from, and which columns have values."""
        numbers = validated(self, X, reset=True)
        self.kept_ = learnable_columns(numbers, getattr(self, "feature_names_in_", None))
        return np.asarray(part_of(numbers, self.kept_))

    def _new_rows(self, X: Any) -> Array:
        check_is_fitted(self)
        return np.asarray(part_of(validated(self, X, reset=False), self.kept_))

    def _fit(self, X: Array) -> None:
        raise NotImplementedError

    def _fill(self, X: Array) -> Array:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags


class DistributionImputer(Imputer):
    """Base of imputers that give every gap a distribution.

    A subclass also writes ``_posterior(X)``, ``_quantiles(X, levels)`` and
    ``_draws(X, n_draws, rng)``, for float64 arrays with NaN for gaps.
    """

    def posterior(self, X: Any) -> Posterior:
        """Mean and standard deviation of each cell; a seen cell is itself, with 0."""
        return self._posterior(self._new_rows(X))

    def quantiles(self, X: Any, levels: Sequence[float]) -> Array:
        """Quantiles of each cell, of shape (len(levels), n, p); a seen cell is itself."""
        return self._quantiles(self._new_rows(X), levels)

    def interval(self, X: Any, level: float = 0.9) -> tuple[Array, Array]:
        """Central interval of each cell that holds the share `level` of its distribution."""
        low, high = self.quantiles(X, [0.5 - level / 2, 0.5 + level / 2])
        return low, high

    def sample(self, X: Any, n_draws: int = 1, *, random_state: Any = None) -> Array:
        """Draw completed tables, of shape (n_draws, n, p); seen cells stay as they are."""
        return self._draws(self._new_rows(X), n_draws, as_generator(random_state))

    def _posterior(self, X: Array) -> Posterior:
        raise NotImplementedError

    def _quantiles(self, X: Array, levels: Sequence[float]) -> Array:
        raise NotImplementedError

    def _draws(self, X: Array, n_draws: int, rng: np.random.Generator) -> Array:
        raise NotImplementedError


def as_generator(random_state: Any) -> np.random.Generator:
    """Return NumPy's generator for scikit-learn's `random_state`."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


@dataclass(frozen=True, eq=False)
class Scale:
    """Center and spread of columns over their seen cells; a constant column is only centered.

    Examples
    --------
    >>> scale = Scale.of(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> scale.standard(np.array([[3.0, 6.0]]))
    array([[1., 1.]])
    """

    center: Array
    spread: Array

    @classmethod
    def of(cls, X: Array) -> Scale:
        """Measure the columns without overflow for huge values."""
        low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
        middle, reach = low / 2 + high / 2, high / 2 - low / 2
        reach[reach == 0] = 1.0
        Z = (X - middle) / reach
        spread = np.nanstd(Z, axis=0)
        spread[low == high] = 1.0
        return cls(middle + reach * np.nanmean(Z, axis=0), reach * spread)

    def standard(self, X: Array) -> Array:
        """Express values in standard units."""
        return (X - self.center) / self.spread

    def restored(self, Z: Array) -> Array:
        """Convert standard units to those of the table."""
        return self.center + self.spread * Z
