"""Independent univariate Gaussian mixtures: how Algorithm 1 fills its first tables."""

import numpy as np
from numpy.random import Generator

from skyfill.network._array import Array

MAX_COMPONENTS = 4
# A margin is as well described by this many values as by all of them.
MAX_VALUES = 20_000


def draw_margins(X: Array, n_draws: int, rng: Generator) -> Array:
    """Fill the gaps of each column with draws from a Gaussian mixture of its seen values.

    Returns
    -------
    array of shape (n_draws, n, p)
    """
    out = np.repeat(X[None], n_draws, axis=0)
    for j, column in enumerate(X.T):
        lost = np.isnan(column)
        if lost.any():
            out[:, lost, j] = _draw_mixture(column[~lost], (n_draws, int(lost.sum())), rng)
    return out


def _draw_mixture(seen: Array, shape: tuple[int, int], rng: Generator) -> Array:
    """Draw from the mixture of up to four Gaussians that BIC prefers."""
    from sklearn.mixture import GaussianMixture

    if seen.size > MAX_VALUES:
        seen = rng.choice(seen, MAX_VALUES, replace=False)
    seed = int(rng.integers(2**31))
    most = min(MAX_COMPONENTS, np.unique(seen).size)
    fits = [
        GaussianMixture(k, init_params="k-means++", random_state=seed).fit(seen[:, None])
        for k in range(1, most + 1)
    ]
    best = min(fits, key=lambda fit: fit.bic(seen[:, None]))
    kind = rng.choice(best.n_components, size=shape, p=best.weights_ / best.weights_.sum())
    means, variances = best.means_[:, 0], best.covariances_[:, 0, 0]
    return means[kind] + np.sqrt(variances[kind]) * rng.standard_normal(shape)
