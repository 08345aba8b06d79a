"""How many matches chance alone would make: the same match at shifted positions."""

from dataclasses import dataclass

import numpy as np

from skyfill.sky.matching import Keep, match_positions
from skyfill.sky.offset import Offset, shifted
from skyfill.sky.sphere import Floats

__all__ = ["Chance", "count_chance_matches"]

SHIFT_ARCSEC = 60.0


@dataclass(frozen=True)
class Chance:
    """Expected number of chance matches.

    Attributes
    ----------
    mean, error : float
        Mean over the shifts and its standard error.
    counts : tuple of int
        Objects matched at each shift.
    shift_arcsec : float
        How far the positions were shifted.
    """

    mean: float
    error: float
    counts: tuple[int, ...]
    shift_arcsec: float

    def __str__(self) -> str:
        return f"{self.mean:.1f} +- {self.error:.1f}"


def count_chance_matches(
    left: tuple[Floats, Floats],
    right: tuple[Floats, Floats],
    radius_arcsec: float,
    *,
    keep: Keep = "symmetric",
    n_shifts: int = 4,
) -> Chance:
    """Match positions that were shifted in several directions, where no true pair is left.

    The shift is 60 arcsec, or 20 radii where that is more: far enough to lose the true pairs, near
    enough to meet the same density of stars. It counts objects, so that of the pairs of
    ``keep="all"`` each left row counts once.

    Parameters
    ----------
    left, right : pairs of arrays (ra_deg, dec_deg)
    n_shifts : int
        Directions, evenly spaced from north through east.

    Examples
    --------
    >>> here = np.array([10.0]), np.array([0.0])
    >>> count_chance_matches(here, here, 1.0).mean
    0.0
    """
    step = max(SHIFT_ARCSEC, 20 * radius_arcsec)
    counts = []
    for angle in np.arange(n_shifts) * 2 * np.pi / n_shifts:
        away = shifted(*left, Offset(step * np.sin(angle), step * np.cos(angle), 0))
        found = match_positions(*away, *right, radius_arcsec, keep=keep)
        counts.append(len(np.unique(found.left)))
    return Chance(float(np.mean(counts)), _standard_error(counts), tuple(counts), step)


def _standard_error(counts: list[int]) -> float:
    """Spread between shifts; for a single shift that of a Poisson count."""
    if len(counts) == 1:
        return float(np.sqrt(counts[0]))
    return float(np.std(counts, ddof=1) / np.sqrt(len(counts)))
