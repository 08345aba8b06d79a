"""Shifted positions: remove a systematic offset between two catalogues, count chance matches."""

from dataclasses import dataclass

import numpy as np

from skyfill.sky.matching import Keep, Matches, match_positions
from skyfill.sky.sphere import Floats, Rows

# A million pairs fix the shift to a hundredth of the scatter; more would only cost time.
_MOST_PAIRS = 1_000_000
_MOST_ROUNDS = 50
_SETTLED_ARCSEC = 1e-6
_CHANCE_SHIFT_ARCSEC = 60.0


@dataclass(frozen=True)
class Offset:
    """Shift that brings one catalogue onto the other.

    Attributes
    ----------
    ra_cosdec_arcsec, dec_arcsec : float
        Added to the positions of the shifted catalogue, along the sky.
    n_pairs : int
        Pairs from whose median it comes; 0 where no shift stood out and none is applied.
    """

    ra_cosdec_arcsec: float
    dec_arcsec: float
    n_pairs: int

    def __str__(self) -> str:
        if not self.n_pairs:
            return "none found"
        return (
            f"{self.ra_cosdec_arcsec:+.3f} arcsec in RA cos(dec), {self.dec_arcsec:+.3f} arcsec "
            f"in Dec ({self.n_pairs} pairs)"
        )


def fit_offset(
    fixed: tuple[Floats, Floats],
    moving: tuple[Floats, Floats],
    radius_arcsec: float,
    *,
    within_arcsec: float = 30.0,
) -> Offset:
    """Measure the shift that brings the positions `moving` onto the positions `fixed`.

    Among all pairs within `within_arcsec`, chance pairs spread evenly over the possible shifts
    and true pairs pile up at one. From there, the median of the pairs within the radius of the
    current shift is taken until it no longer changes.

    Parameters
    ----------
    fixed, moving : pairs of arrays (ra_deg, dec_deg)
    radius_arcsec : float
        About the largest separation of true pairs after the shift has been removed.
    within_arcsec : float
        Largest shift to look for.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> ra, dec = rng.uniform(10, 11, 300), rng.uniform(-1, 1, 300)
    >>> round(fit_offset((ra, dec + 2 / 3600), (ra, dec), 1.0).dec_arcsec, 6)
    2.0
    """
    reach = within_arcsec + radius_arcsec
    rows = _thinned(match_positions(*fixed, *moving, reach, keep="best"))
    if not len(rows) or radius_arcsec <= 0:
        return Offset(0.0, 0.0, 0)
    stars = fixed[0][rows], fixed[1][rows]
    shifts = _shifts(stars, moving, match_positions(*stars, *moving, reach, keep="all"))
    peak = _peak(shifts, radius_arcsec, within_arcsec)
    if peak is None:
        return Offset(0.0, 0.0, 0)
    return _settle(shifts, peak, radius_arcsec)


def shifted(ra_deg: Floats, dec_deg: Floats, offset: Offset) -> tuple[Floats, Floats]:
    """Move positions along the sky by an offset; NaN stays NaN.

    Examples
    --------
    >>> ra, dec = shifted(np.array([10.0]), np.array([60.0]), Offset(1800.0, 0.0, 1))
    >>> ra.round(3), dec.round(1)
    (array([11.]), array([60.]))
    """
    from astropy import units as u
    from astropy.coordinates.angles import offset_by

    length = np.hypot(offset.ra_cosdec_arcsec, offset.dec_arcsec)
    direction = np.arctan2(offset.ra_cosdec_arcsec, offset.dec_arcsec)
    if length == 0:
        return ra_deg, dec_deg
    lon, lat = offset_by(ra_deg * u.deg, dec_deg * u.deg, direction * u.rad, length * u.arcsec)
    return lon.to_value(u.deg), lat.to_value(u.deg)


def _thinned(found: Matches) -> Rows:
    """Choose evenly among the rows with candidates, to limit the number of pairs."""
    n_pairs = int(found.n_candidates.sum())
    return found.left[:: 1 + n_pairs // _MOST_PAIRS]


def _shifts(fixed: tuple[Floats, Floats], moving: tuple[Floats, Floats], pairs: Matches) -> Floats:
    """Measure the offset of each pair in arcsec along the sky, fixed minus moving."""
    from astropy import units as u
    from astropy.coordinates import SkyCoord

    start = SkyCoord(*(angles[pairs.right] * u.deg for angles in moving))
    end = SkyCoord(*(angles[pairs.left] * u.deg for angles in fixed))
    return np.stack([part.to_value(u.arcsec) for part in start.spherical_offsets_to(end)], axis=1)


def _peak(shifts: Floats, radius: float, within: float) -> Floats | None:
    """Find where the shifts pile up; None if they do not."""
    n_cells = min(2 * int(np.ceil(within / radius)) + 1, 1001)
    edges = np.linspace(-within - radius / 2, within + radius / 2, n_cells + 1)
    votes, _, _ = np.histogram2d(shifts[:, 0], shifts[:, 1], bins=edges)
    background = np.mean(votes)
    if votes.max() < background + 5 * np.sqrt(background) + 2:
        return None
    cell = np.unravel_index(np.argmax(votes), votes.shape)
    return np.array([(edges[k] + edges[k + 1]) / 2 for k in cell])


def _settle(shifts: Floats, shift: Floats, radius: float) -> Offset:
    for _ in range(_MOST_ROUNDS):
        near = shifts[np.hypot(*(shifts - shift).T) <= radius]
        last, shift = shift, np.median(near, axis=0) if len(near) else shift
        if np.max(np.abs(shift - last)) < _SETTLED_ARCSEC:
            break
    return Offset(float(shift[0]), float(shift[1]), len(near))


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
    """Count the matches of positions shifted in several directions, all of which are by chance.

    The shift is 60 arcsec or 20 radii, whichever is more: far enough to lose all true pairs, near
    enough to see the same density of stars. Objects are counted: with ``keep="all"`` each left
    row counts once.

    Parameters
    ----------
    left, right : pairs of arrays (ra_deg, dec_deg)
    n_shifts : int
        Number of directions, evenly spaced from north through east.

    Examples
    --------
    >>> here = np.array([10.0]), np.array([0.0])
    >>> count_chance_matches(here, here, 1.0).mean
    0.0
    """
    step = max(_CHANCE_SHIFT_ARCSEC, 20 * radius_arcsec)
    counts = []
    for angle in np.arange(n_shifts) * 2 * np.pi / n_shifts:
        away = shifted(*left, Offset(step * np.sin(angle), step * np.cos(angle), 0))
        found = match_positions(*away, *right, radius_arcsec, keep=keep)
        counts.append(len(np.unique(found.left)))
    return Chance(float(np.mean(counts)), _standard_error(counts), tuple(counts), step)


def _standard_error(counts: list[int]) -> float:
    """Compute the error from the spread between shifts; from Poisson statistics for one shift."""
    if len(counts) == 1:
        return float(np.sqrt(counts[0]))
    return float(np.std(counts, ddof=1) / np.sqrt(len(counts)))
