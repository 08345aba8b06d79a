"""M-step of factor analysers: covariances of a few common factors and each column's own noise.

A full covariance of p columns has p (p + 1) / 2 numbers, so that wide tables afford few components.
``L L^T + diag(noise)`` with q columns in L has about p (q + 1): mixtures of factor analysers
(Ghahramani & Hinton 1996). The rest of the program sees the covariance that they imply. Filling and
EM work on the few lost cells of a row with the inverse covariance, once per component, at hand:
Woodbury's identity would save nothing there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skyfill.network._array import Array

# Rounds of an M-step, which goes on where the one before ended; and of a first one.
ROUNDS, FIRST_ROUNDS = 5, 30
# Least noise of a column, in normal scores.
LEAST_NOISE = 1e-4


class Factors(NamedTuple):
    """Covariances of k components made of factors, and the noise in them."""

    covs: Array  # (k, p, p)
    noise: Array  # (k, p)


def fit_factors(
    covs: Array, n_factors: int, noise: Array | None = None, rounds: int | None = None
) -> Factors:
    """Fit factors to expected covariances; from the noise of a step before, never to a worse fit.

    Given the noise the best loadings are known: the first eigenvectors of the covariance in units
    of the noise. Given these loadings EM (Rubin & Thayer 1982) makes the noise what they leave of
    each variance, and leaves the loadings as they are. Neither lowers the likelihood.

    Parameters
    ----------
    covs : array of shape (k, p, p)
        Positive definite.
    n_factors : int
        Less than p.
    noise : array of shape (k, p), optional
        To start from; by default what each column has beside all others.
    rounds : int, optional

    Examples
    --------
    >>> loads = np.array([[0.9], [0.8], [0.7], [0.6]])
    >>> cov = loads @ loads.T + np.diag([0.2, 0.4, 0.6, 0.8])
    >>> found = fit_factors(cov[None], 1, rounds=500)
    >>> np.allclose(found.covs, cov, atol=1e-4), found.noise.round(3).tolist()
    (True, [[0.2, 0.4, 0.6, 0.8]])
    """
    if rounds is None:
        rounds = FIRST_ROUNDS if noise is None else ROUNDS
    diagonal = np.einsum("kjj->kj", covs)
    if noise is None:
        noise = 1.0 / np.einsum("kjj->kj", np.linalg.inv(covs))
    noise = np.maximum(noise, LEAST_NOISE)
    for _ in range(rounds):
        loads = _loadings(covs, noise, n_factors)
        noise = np.maximum(diagonal - (loads**2).sum(axis=2), LEAST_NOISE)
    loads = _loadings(covs, noise, n_factors)
    found = loads @ loads.transpose(0, 2, 1)
    np.einsum("kjj->kj", found)[:] += noise
    return Factors(found, noise)


def _loadings(covs: Array, noise: Array, n_factors: int) -> Array:
    """Best loadings for a given noise, of shape (k, p, q)."""
    root = np.sqrt(noise)
    values, axes = np.linalg.eigh(covs / (root[:, :, None] * root[:, None, :]))
    size = np.sqrt(np.maximum(values[:, -n_factors:] - 1.0, 0.0))
    return np.asarray(root[:, :, None] * axes[:, :, -n_factors:] * size[:, None, :])
