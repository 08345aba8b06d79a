"""What a method says about hidden cells: a value, a Gaussian, draws or quantiles; one class each.

All answer the same questions; the answer is None where a method has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from skyfill.evaluate import scores
from skyfill.evaluate.hide import Hidden
from skyfill.evaluate.scores import Array

# Even levels: quantiles at these are like draws.
LEVELS = np.arange(1, 100) / 100
N_DRAWS = 100


class Prediction(Protocol):
    """The questions; arrays have shape (cells,)."""

    def crps(self, true: Array) -> Array:
        """CRPS of each cell."""

    def log_score(self, true: Array) -> Array | None:
        """Minus the log density of each cell, where the distribution has one."""

    def pit(self, true: Array, rng: np.random.Generator) -> Array | None:
        """Probability integral transform of each cell."""


@dataclass(frozen=True, eq=False)
class PointPrediction:
    """A value and nothing else."""

    value: Array

    def crps(self, true: Array) -> Array:
        """CRPS of each cell: the absolute error."""
        return scores.crps_point(self.value, true)

    def log_score(self, true: Array) -> None:
        """Give none."""

    def pit(self, true: Array, rng: np.random.Generator) -> None:
        """Give none."""


@dataclass(frozen=True, eq=False)
class GaussianPrediction:
    """A mean and a standard deviation."""

    mean: Array
    sd: Array

    def crps(self, true: Array) -> Array:
        """CRPS of each cell."""
        return scores.crps_gaussian(self.mean, self.sd, true)

    def log_score(self, true: Array) -> Array:
        """Minus the log density of each cell."""
        return scores.log_score_gaussian(self.mean, self.sd, true)

    def pit(self, true: Array, rng: np.random.Generator) -> Array:
        """Probability integral transform of each cell."""
        return scores.pit_gaussian(self.mean, self.sd, true)


@dataclass(frozen=True, eq=False)
class DrawsPrediction:
    """Draws of shape (m, cells)."""

    draws: Array

    def crps(self, true: Array) -> Array:
        """CRPS of each cell."""
        return scores.crps_draws(self.draws, true)

    def log_score(self, true: Array) -> None:
        """Give none."""

    def pit(self, true: Array, rng: np.random.Generator) -> Array:
        """Probability integral transform of each cell."""
        return scores.pit_draws(self.draws, true, rng)


@dataclass(frozen=True, eq=False)
class QuantilePrediction:
    """Quantiles of shape (k, cells) at levels of shape (k,), and the log score where known."""

    quantiles: Array
    levels: Array
    minus_log_density: Array | None = None

    def crps(self, true: Array) -> Array:
        """CRPS of each cell."""
        return scores.crps_quantiles(self.quantiles, self.levels, true)

    def log_score(self, true: Array) -> Array | None:
        """Minus the log density of each cell, where it was given."""
        return self.minus_log_density

    def pit(self, true: Array, rng: np.random.Generator) -> Array:
        """Probability integral transform of each cell."""
        return scores.pit_draws(self.quantiles, true, rng)


def predict_cells(
    imputer: Any, hidden: Hidden, *, true: Array, filled: Array | None = None
) -> Prediction:
    """Ask a fitted imputer for the most that it can say about hidden cells.

    That is the first that it has of ``quantiles(X, levels)`` (with ``logpdf(X_true, X)``),
    ``posterior(X)`` (a mean and a standard deviation), ``sample(X, n_draws, random_state=)`` and
    ``transform(X)``.

    Parameters
    ----------
    imputer : fitted imputer
    hidden : Hidden
        The table with more gaps, of shape (n, p), and which cells were hidden.
    true : array of shape (n, p)
        The table before; only its densities are asked for.
    filled : array of shape (n, p), optional
        What ``transform`` gave, if it was called already.

    Examples
    --------
    >>> from skyfill.impute import MeanImputer
    >>> imputer = MeanImputer().fit([[1.0], [3.0]])
    >>> hidden = Hidden(np.array([[np.nan]]), np.array([[True]]))
    >>> predict_cells(imputer, hidden, true=np.array([[5.0]]))
    PointPrediction(value=array([2.]))
    """
    X, mask = hidden
    if hasattr(imputer, "quantiles"):
        quantiles = imputer.quantiles(X, LEVELS)[:, mask]
        density = -imputer.logpdf(true, X)[mask] if hasattr(imputer, "logpdf") else None
        return QuantilePrediction(quantiles, LEVELS, density)
    if hasattr(imputer, "posterior"):
        mean, sd = imputer.posterior(X)[:2]
        return GaussianPrediction(mean[mask], sd[mask])
    if hasattr(imputer, "sample"):
        return DrawsPrediction(imputer.sample(X, N_DRAWS, random_state=0)[:, mask])
    return PointPrediction(np.asarray(imputer.transform(X) if filled is None else filled)[mask])
