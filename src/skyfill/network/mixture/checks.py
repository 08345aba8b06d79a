"""What a mixture read from a file must fulfil before it is used; else ValueError."""

from __future__ import annotations

import numpy as np

from skyfill.network.mixture.mixture import Mixture

# Bounds that no learned mixture comes near, so that nothing overflows when it is used.
MAX_SCORE, LEAST_VARIANCE = 1e6, 1e-10


def check_mixture(mixture: Mixture, p: int, title: str) -> None:
    """Check weights, means, covariances and gap rates of a mixture of `p` columns."""
    weights, means, covs, rates = mixture[:4]
    k = len(weights)
    if (weights.shape, means.shape, covs.shape) != ((k,), (k, p), (k, p, p)) or not k:
        raise ValueError(f"{title}: weights, means and covariances do not belong together")
    if not (weights > 0).all() or abs(weights.sum() - 1) > 1e-6:
        raise ValueError(f"{title}: the weights must be positive, with sum 1")
    if rates is not None and (rates.shape != (k, p) or not ((rates > 0) & (rates < 1)).all()):
        raise ValueError(f"{title}: the gap rates must lie between 0 and 1")
    if np.abs(means).max() > MAX_SCORE or np.abs(covs).max() > MAX_SCORE:
        raise ValueError(f"{title}: means or covariances beyond {MAX_SCORE:g}")
    if not np.allclose(covs, covs.transpose(0, 2, 1), rtol=1e-9, atol=1e-12):
        raise ValueError(f"{title}: a covariance matrix must be symmetric")
    if np.linalg.eigvalsh(covs).min() < LEAST_VARIANCE:
        raise ValueError(f"{title}: a component has no spread in some direction")
