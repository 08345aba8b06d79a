"""Which features matter: for the other features, and for the class."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skyfill.network import Cells, MixtureNetwork
from skyfill.network.summary import pooled_cov

Array = NDArray[np.float64]
# Objects on which the importance for the class is measured.
N_OBJECTS = 400
LEAST_PROBABILITY = 1e-6


class Classifies(Protocol):
    """What a scorer must provide."""

    def probabilities(self, X: Cells) -> Array:
        """Class probabilities of rows with gaps."""


def importance_for_features(network: MixtureNetwork) -> Array:
    """Share of the other features' variance that each feature alone explains, on average.

    Examples
    --------
    >>> from skyfill.network import learn_mixture
    >>> V = np.random.default_rng(0).normal(18, 1, 100)
    >>> network = learn_mixture(np.column_stack([V, V - 1]), n_components=1, n_fits=1).network
    >>> bool(importance_for_features(network).min() > 0.9)
    True
    """
    cov = pooled_cov(network)
    sd = np.sqrt(np.diag(cov))
    shares = np.square(cov / np.outer(sd, sd))
    return np.asarray((shares.sum(axis=0) - 1) / max(len(cov) - 1, 1))


def importance_for_classes(
    scorer: Classifies, cells: Cells, *, n_objects: int = N_OBJECTS
) -> Array:
    """Change of the class probabilities, in bits, when a feature is removed.

    The mean over objects that have the feature of the Kullback-Leibler divergence of the
    probabilities without it from those with it; 0 for a feature that no object has.

    Parameters
    ----------
    scorer : Scorer
        Gives class probabilities of rows with gaps.
    cells : Cells
        What is known of n objects.
    n_objects : int
        Largest number of rows to use, spread evenly over the table.

    Returns
    -------
    array of shape (p,)
    """
    n = len(cells)
    cells = cells.take(np.unique(np.linspace(0, n - 1, min(n_objects, n)).astype(int)))
    full = np.maximum(scorer.probabilities(cells), LEAST_PROBABILITY)
    out = np.zeros(cells.values.shape[1])
    for j in range(len(out)):
        have = ~np.isnan(cells.values[:, j])
        if have.any():
            without = cells.take(have).hide(np.arange(len(out)) == j)
            bare = np.maximum(scorer.probabilities(without), LEAST_PROBABILITY)
            out[j] = np.mean((full[have] * np.log2(full[have] / bare)).sum(axis=1))
    return np.maximum(out, 0.0)
