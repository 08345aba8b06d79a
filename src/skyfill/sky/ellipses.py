"""Uncertain positions: circles and ellipses of error as covariances along the sky."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from skyfill.errors import CatalogError
from skyfill.sky.sphere import Floats


@dataclass(frozen=True)
class Sources:
    """Positions of one catalogue with their errors.

    Parameters
    ----------
    ra_deg, dec_deg : arrays of shape (n,)
        A row where either is NaN has no counterparts and is no counterpart.
    cov : array of shape (n, 3)
        Variance to the east, covariance, variance to the north, in square arcsec; see `circles`
        and `ellipses`.
    """

    ra_deg: Floats
    dec_deg: Floats
    cov: Floats

    def __len__(self) -> int:
        return len(self.ra_deg)

    @property
    def variance(self) -> Floats:
        """Largest variance in any direction, in square arcsec."""
        east, both, north = self.cov.T
        return np.asarray((east + north) / 2 + np.hypot((east - north) / 2, both))


def circles(sigma_arcsec: ArrayLike) -> Floats:
    """Covariances of circular errors.

    Parameters
    ----------
    sigma_arcsec : array of shape (n,)
        Standard deviation along each of the two directions. A radius that holds 68 % of the true
        positions is 1.515 of it, one that holds 90 % is 2.146.

    Examples
    --------
    >>> circles([2.0])
    array([[4., 0., 4.]])
    """
    sigma = _positive(sigma_arcsec, "position error")
    return np.stack([sigma**2, np.zeros_like(sigma), sigma**2], axis=1)


def ellipses(major_arcsec: ArrayLike, minor_arcsec: ArrayLike, angle_deg: ArrayLike) -> Floats:
    """Covariances of elliptical errors.

    Parameters
    ----------
    major_arcsec, minor_arcsec : arrays of shape (n,)
        Standard deviations along the two axes.
    angle_deg : array of shape (n,)
        Position angle of the first axis, from north through east.

    Examples
    --------
    >>> ellipses([2.0], [1.0], [90.0]).round(12)
    array([[4., 0., 1.]])
    """
    major = _positive(major_arcsec, "first axis of the position error")
    minor = _positive(minor_arcsec, "second axis of the position error")
    angle = np.radians(np.asarray(angle_deg, dtype=np.float64))
    _check(np.isfinite(angle), angle, "angle of the position error", "a number of degrees")
    sin, cos = np.sin(angle), np.cos(angle)
    east, north = (major * sin) ** 2 + (minor * cos) ** 2, (major * cos) ** 2 + (minor * sin) ** 2
    return np.stack([east, sin * cos * (major**2 - minor**2), north], axis=1)


def _positive(values: ArrayLike, name: str) -> Floats:
    checked = np.atleast_1d(np.asarray(values, dtype=np.float64))
    _check((checked > 0) & np.isfinite(checked), checked, name, "a length above 0")
    return checked


def _check(good: np.ndarray, values: Floats, name: str, wanted: str) -> None:
    bad = np.flatnonzero(~good)
    if bad.size:
        raise CatalogError(
            f"row {bad[0] + 1}: the {name} is {values[bad[0]]:g}; {wanted} was expected "
            f"({bad.size} such rows): drop these rows, or give one error for the whole survey"
        )
