"""How many sources of a survey lie on a square arcsec: over its area, or around each object."""

import math

import numpy as np

from skyfill.errors import CatalogError
from skyfill.sky.sphere import ARCSEC, Floats, arcsec_of_chord, build_tree, search, unit_vectors

ARCSEC2_PER_DEG2 = 3600.0**2
WHOLE_SKY_DEG2 = 360.0**2 / math.pi
# Neighbors that a local density is measured with: its error is a tenth of it.
NEIGHBORS = 100
# Share of the objects that are near a border of the survey, before their neighbors are looked at.
NEAR_BORDER = 0.1


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

    It is measured by the distance to the hundredth neighbor. Where the survey ends within that
    circle, all neighbors lie to one side, and only the part of the circle that this leaves counts.

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
    there = unit_vectors(survey[0][seen], survey[1][seen])
    placed = np.isfinite(ra_deg) & np.isfinite(dec_deg)
    rank = min(n_neighbors, len(there))
    asked = unit_vectors(ra_deg[placed], dec_deg[placed])
    chord, aside = _neighborhoods(there, asked, rank) if len(asked) else (np.zeros(0), np.zeros(0))
    radius = np.maximum(arcsec_of_chord(chord), 1e-3)
    cap = 2 * math.pi * (1 - np.cos(radius * ARCSEC)) / ARCSEC**2
    density = np.full(len(ra_deg), np.nan)
    # Of the sources within the distance to the last of them, all but that one are a fair sample.
    covered = np.interp(aside, *_covered_shares(max(rank - 1, 1)))
    density[placed] = max(rank - 1, 0.5) / (np.maximum(cap, math.pi * radius**2 / 2) * covered)
    return np.where(placed, density, np.nanmean(density) if placed.any() else 1.0)


def _neighborhoods(there: Floats, asked: Floats, rank: int) -> tuple[Floats, Floats]:
    """Distance to the last of some neighbors, and how far the others lie aside of each position.

    The latter is the distance of their center from the position, in units of the former.
    """
    tree = build_tree(there, balanced=True)

    def work(part: Floats) -> tuple[Floats, Floats]:
        chord, rows = map(np.asarray, tree.query(part, k=np.arange(1, rank + 1)))
        center = there[rows[:, :-1]].sum(axis=1) / max(rank - 1, 1) - part
        center -= np.sum(center * part, axis=1, keepdims=True) * part
        last = chord[:, -1]
        return last, np.sqrt(np.sum(center**2, axis=1)) / np.maximum(last, 1e-12)

    chord, aside = search(work, asked)
    return chord, aside


def _covered_shares(n_sources: int) -> tuple[Floats, Floats]:
    """Mean covered share of a circle whose n sources have their center so far from its own.

    A straight border at any distance up to the radius is as likely; without a border, and around
    what a border makes of it, the center scatters as that of n sources in a circle does.
    """
    border = np.linspace(0, 1, 101)
    share = 1 - (np.arccos(border) - border * np.sqrt(1 - border**2)) / np.pi
    center = 2 / 3 * (1 - border**2) ** 1.5 / (np.pi * share)
    aside, variance = np.linspace(0, 0.6, 121)[:, None], 1 / (4 * n_sources)
    # Distances of a scattered center have the distribution of Rice (1945).
    rice = np.exp(-(aside**2 + center**2) / (2 * variance)) * np.i0(aside * center / variance)
    weight = NEAR_BORDER * rice / len(border)
    # The last one is a border that touches the circle from outside: none.
    weight[:, -1] += (1 - NEAR_BORDER) * rice[:, -1]
    return aside[:, 0], np.asarray((weight @ share) / weight.sum(axis=1))
