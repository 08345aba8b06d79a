"""Weight of a pair: how well two positions agree, given their errors."""

import math

import numpy as np

from skyfill.sky.sphere import ARCSEC, Floats

LOG_2PI = math.log(2 * math.pi)


def log_pair_weight(frame: Floats, vector: Floats, cov: Floats, other_cov: Floats) -> Floats:
    """Log density of the offsets of pairs of sources that are one object, per square arcsec.

    They are normal, and the covariances of both positions add (Budavari & Szalay 2008).

    Parameters
    ----------
    frame : array of shape (m, 4)
        Sine and cosine of right ascension, then of declination, of the first source.
    vector : array of shape (m, 3)
        Unit vector of the second.
    cov, other_cov : arrays of shape (m, 3)
        Their covariances in square arcsec: east, both, north.

    Examples
    --------
    >>> frame, vector = np.array([[0.0, 1.0, 0.0, 1.0]]), np.array([[1.0, 0.0, 0.0]])
    >>> cov, other_cov = np.array([[0.36, 0.0, 0.36]]), np.array([[0.64, 0.0, 0.64]])
    >>> (2 * np.pi * np.exp(log_pair_weight(frame, vector, cov, other_cov))).round(12)
    array([1.])
    """
    sin_ra, cos_ra, sin_dec, cos_dec = frame.T
    x, y, z = vector.T
    east = y * cos_ra - x * sin_ra
    north = z * cos_dec - (x * cos_ra + y * sin_ra) * sin_dec
    if np.any(other_cov[:, 1] != 0) or np.any(other_cov[:, 0] != other_cov[:, 2]):
        # North at the one is not quite north at the other: ellipses are turned by the difference.
        other_cov = _turned(other_cov, np.arctan2(-east * z, cos_dec - north * z))
    xx, xy, yy = (cov + other_cov).T
    det = xx * yy - xy**2
    square = (yy * east**2 - 2 * xy * east * north + xx * north**2) / (det * ARCSEC**2)
    return np.asarray(-LOG_2PI - (np.log(det) + square) / 2)


def _turned(cov: Floats, turn: Floats) -> Floats:
    """Turn covariances (east, both, north) by small angles in radians."""
    xx, xy, yy = cov.T
    s, c = np.sin(turn), np.cos(turn)
    return np.stack(
        [
            c * c * xx + 2 * s * c * xy + s * s * yy,
            (c * c - s * s) * xy + s * c * (yy - xx),
            s * s * xx - 2 * s * c * xy + c * c * yy,
        ],
        axis=1,
    )
