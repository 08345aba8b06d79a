"""How many sources of a survey lie on a square arcsec: over its area, or around each object."""

import math

import numpy as np

from skyfill.errors import CatalogError
from skyfill.sky.sphere import ARCSEC, Floats, arcsec_of_chord, build_tree, search, unit_vectors

ARCSEC2_PER_DEG2 = 3600.0**2
WHOLE_SKY_DEG2 = 360.0**2 / math.pi
# Neighbors that a local density is measured with: its error is a tenth of it.
NEIGHBORS = 100


def density_of_area(n_sources: int, area_deg2: float) -> float:
    """Count the sources per square arcsec of a survey that is uniform over its area.

    Examples
    --------
    >>> round(density_of_area(1296, 0.01), 12)
    0.01
    """
    if not 0 < area_deg2 <= WHOLE_SKY_DEG2 * (1 + 1e-6):
        raise CatalogError(
            f"an area of {area_deg2:g} square degrees; more than 0 and at most the whole sky, "
            f"{WHOLE_SKY_DEG2:.0f}, was expected"
        )
    return n_sources / (area_deg2 * ARCSEC2_PER_DEG2)


def local_density(
    ra_deg: Floats, dec_deg: Floats, survey: tuple[Floats, Floats], *, n_neighbors: int = NEIGHBORS
) -> Floats:
    """Count the sources of a survey per square arcsec around each position.

    It is measured by the distance to the hundredth neighbor. At the border of a survey, where half
    of that circle is empty, it is too low by up to a factor of two: give the area there.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> sources = rng.uniform(0, 1, 20_000), rng.uniform(-0.5, 0.5, 20_000)
    >>> there = local_density(np.array([0.5]), np.array([0.0]), sources)
    >>> bool(abs(there[0] * 3600**2 / 20_000 - 1) < 0.3)
    True
    """
    seen = np.isfinite(survey[0]) & np.isfinite(survey[1])
    if not seen.any():
        raise CatalogError("a survey without a single position has no density")
    tree = build_tree(unit_vectors(survey[0][seen], survey[1][seen]), balanced=True)
    placed = np.isfinite(ra_deg) & np.isfinite(dec_deg)
    rank = min(n_neighbors, int(seen.sum()))
    asked = unit_vectors(ra_deg[placed], dec_deg[placed])
    chord = np.zeros(0)
    if len(asked):
        chord = search(lambda part: tree.query(part, k=[rank]), asked)[0][:, 0]
    radius = np.maximum(arcsec_of_chord(chord), 1e-3)
    cap = 2 * math.pi * (1 - np.cos(radius * ARCSEC)) / ARCSEC**2
    density = np.full(len(ra_deg), np.nan)
    # Of the sources within the distance to the last of them, all but that one are a fair sample.
    density[placed] = max(rank - 1, 0.5) / np.maximum(cap, math.pi * radius**2 / 2)
    return np.where(placed, density, np.nanmean(density) if placed.any() else 1.0)
