"""Independent univariate Gaussian mixtures: how Algorithm 1 fills its first tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import logsumexp, ndtr, ndtri

from skyfill.network._array import Array

MAX_COMPONENTS = 4
# A margin is as well described by this many values as by all of them.
MAX_VALUES = 20_000


class UnivariateMixture(NamedTuple):
    """A mixture of univariate Gaussians; all three arrays have shape (k,)."""

    weights: Array
    means: Array
    sds: Array

    @property
    def mean(self) -> float:
        """Mean of the mixture."""
        return float(self.weights @ self.means)

    @property
    def sd(self) -> float:
        """Standard deviation of the mixture."""
        apart = self.means - self.mean
        return float(np.sqrt(self.weights @ (self.sds**2 + apart**2)))

    def draw(self, shape: tuple[int, ...], rng: Generator) -> Array:
        """Draw values of a given shape."""
        kind = rng.choice(len(self.weights), size=shape, p=self.weights)
        return self.means[kind] + self.sds[kind] * rng.standard_normal(shape)

    def cdf(self, x: float) -> float:
        """Probability of a value below x."""
        return float(self.weights @ ndtr((x - self.means) / self.sds))

    def logpdf(self, x: Array) -> Array:
        """Log density at each value of an array of shape (n,)."""
        z = (x[:, None] - self.means) / self.sds
        scale = np.log(self.weights / (self.sds * np.sqrt(2 * np.pi)))
        return np.asarray(logsumexp(scale - z**2 / 2, axis=1))

    def quantile(self, level: float) -> float:
        """Value below which the share `level` (between 0 and 1) of the mixture lies."""
        from scipy.optimize import brentq  # takes long to import

        parts = self.means + self.sds * ndtri(level)
        low, high = float(parts.min()), float(parts.max())
        # The quantile lies between those of the components.
        if self.cdf(low) >= level or self.cdf(high) <= level:
            return low if self.cdf(low) >= level else high
        return float(brentq(lambda x: self.cdf(x) - level, low, high))

    def rescaled(self, center: float, scale: float) -> UnivariateMixture:
        """Return the mixture of ``center + scale * x``."""
        return UnivariateMixture(self.weights, center + scale * self.means, scale * self.sds)


def draw_univariate(X: Array, n_draws: int, rng: Generator) -> Array:
    """Fill the gaps of each column with draws from a Gaussian mixture of its seen values.

    Returns
    -------
    array of shape (n_draws, n, p)
    """
    out = np.repeat(X[None], n_draws, axis=0)
    for j, column in enumerate(X.T):
        lost = np.isnan(column)
        if lost.any():
            mixture = fit_univariate(column[~lost], rng)
            out[:, lost, j] = mixture.draw((n_draws, int(lost.sum())), rng)
    return out


def fit_univariate(
    seen: Array, rng: Generator, max_components: int = MAX_COMPONENTS
) -> UnivariateMixture:
    """Fit the mixture that BIC prefers to the values of a standardized column."""
    from sklearn.mixture import GaussianMixture

    if seen.size > MAX_VALUES:
        seen = rng.choice(seen, MAX_VALUES, replace=False)
    seed = int(rng.integers(2**31))
    most = min(max_components, np.unique(seen).size)
    fits = [
        GaussianMixture(k, init_params="k-means++", random_state=seed).fit(seen[:, None])
        for k in range(1, most + 1)
    ]
    best = min(fits, key=lambda fit: fit.bic(seen[:, None]))
    weights = best.weights_ / best.weights_.sum()
    return UnivariateMixture(weights, best.means_[:, 0], np.sqrt(best.covariances_[:, 0, 0]))
