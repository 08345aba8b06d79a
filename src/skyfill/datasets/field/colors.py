"""Twelve bands from U to 8 micron: extinction, and the colors of stars and quasars."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BANDS = ("U", "B", "V", "R", "I", "J", "H", "K", "m36", "m45", "m58", "m80")
WAVELENGTH_MICRON = np.array(
    [0.36, 0.44, 0.55, 0.66, 0.80, 1.24, 1.65, 2.16, 3.55, 4.49, 5.73, 7.87]
)
# A(band) / E(B-V) for R_V = 3.1.
EXTINCTION = np.array([4.86, 4.10, 3.10, 2.40, 1.83, 0.87, 0.55, 0.35, 0.20, 0.16, 0.14, 0.13])

# Mean colors of normal stars, dwarfs at the hot end and giants at the cool end; temperatures in K.
_STARS = np.array(
    [
        # teff, U-B, B-V, V-R, V-I, V-K, J-K, H-K, K-36, 36-45, 45-58, 58-80
        [35000, -1.14, -0.32, -0.15, -0.35, -0.95, -0.21, -0.06, -0.04, -0.03, -0.03, -0.03],
        [25000, -0.95, -0.26, -0.11, -0.26, -0.72, -0.17, -0.05, -0.04, -0.02, -0.02, -0.02],
        [19000, -0.74, -0.20, -0.08, -0.19, -0.53, -0.12, -0.03, -0.03, -0.02, -0.02, -0.02],
        [15000, -0.54, -0.15, -0.06, -0.13, -0.38, -0.08, -0.02, -0.02, -0.01, -0.01, -0.01],
        [11000, -0.25, -0.07, -0.02, -0.04, -0.12, -0.02, 0.00, 0.00, 0.00, 0.00, 0.00],
        [9500, -0.02, 0.00, 0.00, 0.01, 0.02, 0.01, 0.00, 0.00, 0.00, 0.00, 0.00],
        [8500, 0.08, 0.10, 0.05, 0.11, 0.25, 0.06, 0.01, 0.01, 0.00, 0.00, 0.00],
        [7500, 0.07, 0.26, 0.14, 0.30, 0.66, 0.17, 0.03, 0.02, 0.00, 0.00, 0.01],
        [6750, 0.00, 0.40, 0.24, 0.47, 1.05, 0.27, 0.05, 0.03, -0.01, 0.01, 0.01],
        [6250, 0.02, 0.52, 0.31, 0.59, 1.34, 0.35, 0.06, 0.03, -0.01, 0.01, 0.01],
        [5750, 0.15, 0.65, 0.37, 0.71, 1.64, 0.43, 0.07, 0.04, -0.02, 0.02, 0.02],
        [5250, 0.40, 0.82, 0.45, 0.86, 2.03, 0.54, 0.09, 0.05, -0.03, 0.03, 0.02],
        [4900, 0.68, 0.96, 0.50, 0.97, 2.33, 0.62, 0.10, 0.06, -0.05, 0.04, 0.03],
        [4500, 1.05, 1.16, 0.60, 1.14, 2.83, 0.75, 0.13, 0.08, -0.08, 0.06, 0.04],
        [4200, 1.40, 1.34, 0.70, 1.34, 3.33, 0.87, 0.16, 0.10, -0.10, 0.08, 0.05],
        [3900, 1.78, 1.52, 0.84, 1.67, 3.95, 0.99, 0.20, 0.13, -0.12, 0.10, 0.07],
        [3600, 1.85, 1.60, 1.02, 2.25, 4.90, 1.09, 0.26, 0.18, -0.10, 0.13, 0.10],
        [3300, 1.65, 1.59, 1.35, 3.10, 6.20, 1.18, 0.33, 0.26, -0.02, 0.17, 0.16],
        [3000, 1.35, 1.62, 1.85, 4.20, 7.70, 1.27, 0.42, 0.38, 0.10, 0.23, 0.26],
        [2700, 1.10, 1.72, 2.40, 5.20, 9.30, 1.40, 0.52, 0.55, 0.25, 0.32, 0.40],
    ]
)
# Mean colors of type 1 quasars by redshift: big blue bump, emission lines, hot dust.
_QUASARS = np.array(
    [
        # z, U-B, B-V, V-R, V-I, V-K, J-K, H-K, K-36, 36-45, 45-58, 58-80
        [0.1, -0.70, 0.34, 0.35, 0.80, 3.10, 1.85, 0.95, 1.20, 0.60, 0.65, 0.95],
        [0.5, -0.75, 0.25, 0.28, 0.58, 2.90, 1.85, 1.00, 1.40, 0.75, 0.65, 0.95],
        [1.0, -0.72, 0.30, 0.20, 0.52, 2.35, 1.40, 0.65, 1.40, 0.85, 0.70, 0.95],
        [1.5, -0.75, 0.20, 0.28, 0.48, 2.30, 1.25, 0.60, 1.20, 0.80, 0.80, 1.00],
        [2.0, -0.68, 0.16, 0.24, 0.55, 2.45, 1.45, 0.85, 1.00, 0.60, 0.90, 1.10],
        [2.5, -0.40, 0.20, 0.20, 0.45, 2.35, 1.50, 0.65, 0.90, 0.50, 0.80, 1.20],
        [3.0, 0.05, 0.32, 0.20, 0.40, 2.20, 1.40, 0.60, 0.90, 0.50, 0.70, 1.20],
    ]
)


def minus_v(colors: Array) -> Array:
    """Convert eleven colors to the twelve magnitudes minus V.

    Parameters
    ----------
    colors : array of shape (11, n)
        U-B, B-V, V-R, V-I, V-K, J-K, H-K, K-[3.6], [3.6]-[4.5], [4.5]-[5.8], [5.8]-[8.0].

    Returns
    -------
    array of shape (12, n)
        Magnitude in each of `BANDS` minus V.
    """
    u_b, b_v, v_r, v_i, v_k, j_k, h_k = colors[:7]
    infrared = -v_k - np.cumsum(colors[7:], axis=0)
    zero = np.zeros_like(b_v)
    near = np.stack([u_b + b_v, b_v, zero, -v_r, -v_i, j_k - v_k, h_k - v_k, -v_k])
    return np.concatenate([near, infrared])


_STAR_MAGNITUDES = minus_v(_STARS[:, 1:].T)[:, ::-1]
_STAR_LOG_TEFF = np.log10(_STARS[::-1, 0])
_QUASAR_MAGNITUDES = minus_v(_QUASARS[:, 1:].T)


def star_colors(teff: Array) -> Array:
    """Return each band's magnitude minus V for stars of these temperatures.

    Parameters
    ----------
    teff : array of shape (n,)
        Effective temperatures in K; outside 2700 to 35000 K the ends of the table apply.

    Returns
    -------
    array of shape (12, n)
        Magnitude minus V, one row for each of `BANDS`.

    Examples
    --------
    A star of 9500 K has nearly the colors of Vega.

    >>> float(abs(star_colors(np.array([9500.0]))).max())
    0.02
    """
    return np.stack([np.interp(np.log10(teff), _STAR_LOG_TEFF, row) for row in _STAR_MAGNITUDES])


def quasar_colors(redshift: Array) -> Array:
    """Return each band's magnitude minus V for quasars of these redshifts, shape (12, n)."""
    return np.stack([np.interp(redshift, _QUASARS[:, 0], row) for row in _QUASAR_MAGNITUDES])


def log_wavelength_over_v() -> Array:
    """Return log10 of the wavelength relative to V, shape (12, 1)."""
    return np.asarray(np.log10(WAVELENGTH_MICRON / WAVELENGTH_MICRON[2])[:, None])
