"""Draw a whole population from counts per class."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.random import Generator

from skyfill.datasets.field.population import CLASSES, Population, concatenate
from skyfill.datasets.field.stars import draw_be_stars, draw_binaries, draw_still
from skyfill.datasets.field.variables import (
    draw_cepheids,
    draw_long_period,
    draw_quasars,
    draw_rr_lyrae,
)

_DRAW: dict[str, Callable[[int, Generator], Population]] = {
    "NV": draw_still,
    "QSO": draw_quasars,
    "BE": draw_be_stars,
    "CEPH": draw_cepheids,
    "RRL": draw_rr_lyrae,
    "EB": draw_binaries,
    "LPV": draw_long_period,
}
# Shares of the objects that a MACHO-like survey of the LMC records.
FRACTIONS = {
    "NV": 0.9805,
    "QSO": 0.0010,
    "BE": 0.0015,
    "CEPH": 0.0010,
    "RRL": 0.0050,
    "EB": 0.0030,
    "LPV": 0.0080,
}


def draw_counts(n: int, fractions: Mapping[str, float], rng: Generator) -> dict[str, int]:
    """Draw how many of n objects belong to each class."""
    shares = np.array([fractions.get(name, 0.0) for name in CLASSES])
    counts = rng.multinomial(n, shares / shares.sum())
    return dict(zip(CLASSES, counts.tolist(), strict=True))


def draw_population(counts: Mapping[str, int], rng: Generator) -> Population:
    """Draw objects of every class and shuffle them."""
    parts = [_DRAW[name](counts.get(name, 0), rng) for name in CLASSES]
    population = concatenate(parts)
    return population.take(rng.permutation(len(population)))
