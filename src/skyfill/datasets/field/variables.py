"""Pulsating stars and quasars."""

import numpy as np
from numpy.random import Generator

from skyfill.datasets.field.bands import Array, minus_v, quasar_colors, star_colors
from skyfill.datasets.field.population import (
    DISTANCE_MODULUS,
    Population,
    draw_luminosity,
    jitter_colors,
    make,
)
from skyfill.datasets.field.stars import star_magnitudes, tilt

# V0 = a + b log10 P and (V-I)0 = c + d log10 P of LMC Cepheids (Udalski et al. 1999).
CEPHEID_V = (17.066, -2.779)
CEPHEID_V_I = (0.473, 0.200)
# K0 = a + b (log10 P - 2.4) of the fundamental sequence of long-period variables.
LPV_K = (11.15, -3.5)
_OVERTONE = 0.15
_CARBON = np.array([1.9, 2.4, 1.2, 2.4, 5.7, 1.5, 0.55, 0.50, 0.10, 0.25, 0.30])
_CARBON_DUST = np.array([0.3, 0.4, 0.25, 0.5, 1.3, 0.6, 0.35, 0.5, 0.3, 0.25, 0.25])
_OXYGEN_DUST = np.array([0.0, 0.0, 0.1, 0.2, 0.5, 0.25, 0.15, 0.35, 0.25, 0.25, 0.45])
_COOL = np.linspace(2700.0, 9500.0, 400)


def temperature_from_v_i(v_i: Array) -> Array:
    """Invert the color table: temperature (K) of stars with this V-I."""
    colors = -star_colors(_COOL)[4]
    return np.interp(v_i, colors[::-1], _COOL[::-1])


def draw_cepheids(n: int, rng: Generator) -> Population:
    """Draw Cepheids on the period-luminosity relation; a third pulsate in the first overtone."""
    overtone = rng.random(n) < 0.35
    log_p = np.clip(0.45 + rng.gamma(1.6, 0.16, n), 0.3, 1.75)
    residual = rng.normal(0.0, 0.17, n)
    v0 = CEPHEID_V[0] + CEPHEID_V[1] * log_p + residual
    v_i = CEPHEID_V_I[0] + CEPHEID_V_I[1] * log_p + 0.35 * residual - 0.04 * overtone
    teff = temperature_from_v_i(v_i)
    amplitude = np.where(overtone, 0.30, 0.75) * 10 ** rng.normal(0.0, 0.10, n)
    facts = {"period": 10 ** (log_p - _OVERTONE * overtone), "amplitude": amplitude}
    magnitudes = star_magnitudes(v0 - DISTANCE_MODULUS, teff, rng)
    return make("CEPH", magnitudes, teff=teff, dust=1.1, mode=overtone.astype(float), **facts)


def draw_rr_lyrae(n: int, rng: Generator) -> Population:
    """Draw RR Lyrae stars: three quarters of type ab, the rest of type c."""
    overtone = rng.random(n) < 0.25
    period = np.where(overtone, rng.normal(0.335, 0.035, n), rng.normal(0.575, 0.065, n))
    period = np.clip(period, 0.22, 0.90)
    warm = rng.normal(6600, 160, n) - 1800 * (period - 0.575)
    teff = np.where(overtone, rng.normal(7150, 130, n), warm)
    steep = np.clip(2.4 - 2.6 * period + rng.normal(0.0, 0.15, n), 0.25, 1.5)
    amplitude = np.where(overtone, np.clip(rng.normal(0.45, 0.08, n), 0.15, 0.7), steep)
    magnitudes = star_magnitudes(rng.normal(0.58, 0.13, n), teff, rng)
    facts = {"period": period, "amplitude": amplitude}
    return make("RRL", magnitudes, teff=teff, dust=0.9, mode=overtone.astype(float), **facts)


def draw_long_period(n: int, rng: Generator) -> Population:
    """Draw long-period variables: oxygen-rich giants and, two in five, carbon stars."""
    carbon = rng.random(n) < 0.40
    log_p = np.clip(rng.normal(2.28, 0.24, n) + 0.12 * carbon, 1.5, 2.9)
    k0 = LPV_K[0] + LPV_K[1] * (log_p - 2.4) + rng.normal(0.0, 0.18, n)
    k0 = np.clip(k0, 9.2, 13.2)
    teff = np.clip(3620 - 230 * (12.0 - k0) + rng.normal(0.0, 90, n), 2800, 3900)
    shell = rng.exponential(np.where(carbon, 0.55, 0.15))
    warm = star_colors(teff) + minus_v(_OXYGEN_DUST[:, None] * shell)
    cool = minus_v(_CARBON[:, None] + _CARBON_DUST[:, None] * shell)
    colors = np.where(carbon, cool, warm) + jitter_colors(n, rng, 0.05)
    spread = rng.normal(-0.35, 0.28, n) + 0.9 * (log_p - 2.3)
    facts = {"period": 10**log_p, "amplitude": np.clip(10**spread, 0.08, 4.0)}
    magnitudes = k0 + colors - colors[7]
    return make("LPV", magnitudes, teff=teff, mode=carbon.astype(float), **facts)


def draw_quasars(n: int, rng: Generator) -> Population:
    """Draw quasars behind the LMC, damped random walks in time (Kelly et al. 2009)."""
    redshift = np.clip(rng.gamma(3.2, 0.42, n), 0.1, 3.0)
    apparent = draw_luminosity(n, rng, slope=0.45, span=(15.8, 19.4))
    colors = quasar_colors(redshift) + tilt(n, rng, 0.45) + jitter_colors(n, rng, 0.07)
    tau = np.clip(10 ** rng.normal(2.5, 0.28, n), 60, 2000)
    sigma = np.clip(10 ** rng.normal(-0.75, 0.18, n), 0.05, 0.6)
    return make("QSO", apparent + colors, redshift=redshift, dust=1.6, tau=tau, sigma=sigma)
