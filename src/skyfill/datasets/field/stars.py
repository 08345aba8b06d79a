"""Stars that keep still, and binaries and Be stars among the young ones."""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from skyfill.datasets.field.bands import (
    WAVELENGTH_MICRON,
    Array,
    log_wavelength_over_v,
    minus_v,
    star_colors,
)
from skyfill.datasets.field.population import (
    DISTANCE_MODULUS,
    Population,
    concatenate,
    draw_luminosity,
    jitter_colors,
    make,
)

_SCATTER = 0.03


@dataclass(frozen=True)
class Sequence:
    """A line in the color-magnitude diagram and how densely it is filled.

    Attributes
    ----------
    weight : float
        Share of the non-variable objects.
    span : pair of floats
        Absolute V magnitudes between which it is filled.
    slope : float
        Growth of the luminosity function per magnitude (log10).
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
# U-B ... [5.8]-[8.0] of small galaxies that the survey takes for stars.
_GALAXY_COLORS = np.array([0.05, 0.75, 0.50, 1.05, 2.95, 1.35, 0.55, 0.75, 0.30, 0.45, 1.30])


def draw_still(n: int, rng: Generator) -> Population:
    """Draw objects that do not vary: every part of the diagram, foreground and galaxies."""
    weights = np.array([sequence.weight for sequence in STILL] + [_GALAXIES])
    counts = rng.multinomial(n, weights / weights.sum())
    parts = [_draw_sequence(k, s, rng) for k, s in zip(counts[:-1], STILL, strict=True)]
    return concatenate([*parts, _draw_galaxies(counts[-1], rng)])


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
    """Draw Be stars: B stars whose disk adds light, the more the longer the wavelength."""
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
