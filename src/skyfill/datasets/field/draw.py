"""Draw the objects of a field, class by class: constant stars, variables and quasars."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from skyfill.datasets.field.colors import (
    WAVELENGTH_MICRON,
    Array,
    log_wavelength_over_v,
    minus_v,
    quasar_colors,
    star_colors,
)
from skyfill.datasets.field.population import (
    CLASSES,
    DISTANCE_MODULUS,
    Population,
    draw_luminosity,
    jitter_colors,
    make,
)

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
_SCATTER = 0.03


@dataclass(frozen=True)
class Sequence:
    """A line in the color-magnitude diagram, and how densely it is populated.

    Attributes
    ----------
    weight : float
        Share of the non-variable objects.
    span : pair of floats
        Absolute V magnitudes between which it is populated.
    slope : float
        Increase of the luminosity function per magnitude (log10).
    line : two tuples
        Absolute V magnitudes and temperatures (K) along the line.
    width : float
        Scatter of log10 temperature.
    dust : float
        Dust relative to the mean.
    """

    weight: float
    span: tuple[float, float]
    slope: float
    line: tuple[tuple[float, ...], tuple[float, ...]]
    width: float
    dust: float = 1.0


MAIN_SEQUENCE = Sequence(
    weight=0.33,
    span=(-4.5, 2.3),
    slope=0.33,
    line=(
        (-5.0, -4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 1.5, 2.3),
        (33000, 29000, 25000, 20000, 15500, 12000, 9800, 8900, 8000),
    ),
    width=0.05,
    dust=1.3,
)
RED_CLUMP = Sequence(0.20, (0.25, 0.75), 0.05, ((0.0, 1.0), (4950, 4950)), 0.012)
RED_GIANTS = Sequence(
    weight=0.32,
    span=(-2.7, 2.0),
    slope=0.22,
    line=((-2.7, -2.0, -1.0, 0.0, 1.0, 2.0), (3750, 4050, 4430, 4730, 4950, 5150)),
    width=0.012,
    dust=0.9,
)
HORIZONTAL_BRANCH = Sequence(0.06, (0.0, 1.2), 0.1, ((0.0, 1.2), (6600, 6900)), 0.05)
BRIGHT_GIANTS = Sequence(0.035, (-2.9, -1.6), -0.1, ((-2.9, -1.6), (3650, 3800)), 0.012)
SUPERGIANTS = Sequence(0.01, (-6.5, -3.0), 0.25, ((-6.5, -3.0), (6500, 6500)), 0.14, 1.2)
FOREGROUND = Sequence(0.05, (-5.0, 2.3), 0.15, ((-5.0, 2.3), (5800, 4600)), 0.06, 0.35)
STILL = (
    MAIN_SEQUENCE,
    RED_CLUMP,
    RED_GIANTS,
    HORIZONTAL_BRANCH,
    BRIGHT_GIANTS,
    SUPERGIANTS,
    FOREGROUND,
)
_GALAXIES = 0.025
# U-B ... [5.8]-[8.0] of small galaxies that the survey mistakes for stars.
_GALAXY_COLORS = np.array([0.05, 0.75, 0.50, 1.05, 2.95, 1.35, 0.55, 0.75, 0.30, 0.45, 1.30])


def draw_still(n: int, rng: Generator) -> Population:
    """Draw constant objects: every part of the diagram, foreground stars and galaxies."""
    weights = np.array([sequence.weight for sequence in STILL] + [_GALAXIES])
    counts = rng.multinomial(n, weights / weights.sum())
    parts = [_draw_sequence(k, s, rng) for k, s in zip(counts[:-1], STILL, strict=True)]
    return Population.concatenate([*parts, _draw_galaxies(counts[-1], rng)])


def _draw_sequence(n: int, sequence: Sequence, rng: Generator) -> Population:
    magnitude = draw_luminosity(n, rng, slope=sequence.slope, span=sequence.span)
    teff = _line_temperature(magnitude, sequence, rng)
    return make("NV", star_magnitudes(magnitude, teff, rng), teff=teff, dust=sequence.dust)


def _line_temperature(magnitude: Array, sequence: Sequence, rng: Generator) -> Array:
    scatter = rng.normal(0.0, sequence.width, len(magnitude))
    return np.interp(magnitude, *sequence.line) * 10**scatter


def star_magnitudes(absolute: Array, teff: Array, rng: Generator) -> Array:
    """Return the apparent magnitudes of stars in the LMC before dust, shape (12, n)."""
    depth = rng.normal(DISTANCE_MODULUS, 0.05, len(teff))
    return absolute + depth + star_colors(teff) + jitter_colors(len(teff), rng, _SCATTER)


def _draw_galaxies(n: int, rng: Generator) -> Population:
    apparent = draw_luminosity(n, rng, slope=0.35, span=(17.0, 20.8))
    scatter = rng.normal(0.0, 0.20, (11, n))
    colors = minus_v(_GALAXY_COLORS[:, None] + scatter)
    return make("NV", apparent + colors, dust=1.5)


def draw_binaries(n: int, rng: Generator) -> Population:
    """Draw eclipsing binaries: pairs on the main sequence, some giants."""
    giants = rng.random(n) < 0.12
    young = draw_luminosity(n, rng, slope=0.25, span=(-3.8, 1.3))
    absolute = np.where(giants, rng.uniform(-1.5, 0.8, n), young)
    hot = _line_temperature(absolute, MAIN_SEQUENCE, rng)
    teff = np.where(giants, rng.normal(5000, 250, n), hot)
    log_period = np.where(giants, rng.normal(1.7, 0.3, n), rng.normal(0.4, 0.35, n))
    magnitudes = star_magnitudes(absolute - rng.uniform(0.0, 0.6, n), teff, rng)
    amplitude = np.clip(10 ** rng.normal(-0.35, 0.22, n), 0.1, 1.6)
    period = np.maximum(10**log_period, 0.3)
    facts = {"period": period, "amplitude": amplitude, "mode": (period < 1.2).astype(float)}
    return make("EB", magnitudes, teff=teff, dust=1.2, **facts)


def draw_be_stars(n: int, rng: Generator) -> Population:
    """Draw Be stars: B stars whose disk adds light, more at longer wavelengths."""
    absolute = draw_luminosity(n, rng, slope=0.2, span=(-4.6, -0.6))
    teff = _line_temperature(absolute, MAIN_SEQUENCE, rng)
    strength = 10 ** rng.normal(-1.15, 0.45, n)
    disk = -2.5 * np.log10(1 + strength * (WAVELENGTH_MICRON[:, None] / 0.55) ** 1.2)
    magnitudes = star_magnitudes(absolute, teff, rng) + disk
    tau = np.clip(10 ** rng.normal(2.7, 0.3, n), 60, 3000)
    sigma = np.clip(10 ** rng.normal(-1.15, 0.25, n), 0.02, 0.3)
    amplitude = np.clip(10 ** rng.normal(-0.6, 0.25, n), 0.08, 0.9)
    return make("BE", magnitudes, teff=teff, dust=1.3, tau=tau, sigma=sigma, amplitude=amplitude)


def tilt(n: int, rng: Generator, scatter: float) -> Array:
    """Draw a change of spectral slope, in magnitudes per dex of wavelength, shape (12, n)."""
    return log_wavelength_over_v() * rng.normal(0.0, scatter, n)


def temperature_from_v_i(v_i: Array) -> Array:
    """Invert the color table: return the temperature (K) of stars with this V-I."""
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
    """Draw quasars behind the LMC, which vary as damped random walks (Kelly et al. 2009)."""
    redshift = np.clip(rng.gamma(3.2, 0.42, n), 0.1, 3.0)
    apparent = draw_luminosity(n, rng, slope=0.45, span=(15.8, 19.4))
    colors = quasar_colors(redshift) + tilt(n, rng, 0.45) + jitter_colors(n, rng, 0.07)
    tau = np.clip(10 ** rng.normal(2.5, 0.28, n), 60, 2000)
    sigma = np.clip(10 ** rng.normal(-0.75, 0.18, n), 0.05, 0.6)
    return make("QSO", apparent + colors, redshift=redshift, dust=1.6, tau=tau, sigma=sigma)


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
    population = Population.concatenate(parts)
    return population.take(rng.permutation(len(population)))
