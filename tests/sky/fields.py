"""Crowded fields, and pairs as Python sees them."""

import numpy as np

from skyfill.sky import Matches


def pairs_of(found: Matches) -> list[tuple[int, int]]:
    return list(zip(found.left.tolist(), found.right.tolist(), strict=True))


def scattered(n: int, seed: int, *, width: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    """Positions so dense that chains of neighbors within a few arcsec are common."""
    rng = np.random.default_rng(seed)
    return 80 + rng.uniform(0, width, n), -20 + rng.uniform(0, width, n)
