"""Variation of each class: deviation of V from its mean, for each object and epoch."""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

from skyfill.datasets.field.cadence import FIRST_NIGHT, LAST_NIGHT
from skyfill.datasets.field.colors import Array
from skyfill.datasets.field.population import CLASSES, Population

_GRID = np.linspace(0.0, 1.0, 128, endpoint=False)
_OUTBURSTS = 6
# Strength of the harmonics: fundamental mode and first overtone.
_RR_LYRAE = np.array([[1.0, 0.47, 0.34, 0.21, 0.12], [1.0, 0.17, 0.07, 0.03, 0.0]])
_CEPHEID = np.array([[1.0, 0.44, 0.22, 0.11, 0.06], [1.0, 0.16, 0.05, 0.02, 0.0]])


def damped_random_walk(times: Array, tau: Array, sigma: Array, rng: Generator) -> Array:
    """Draw stationary damped random walks (Ornstein-Uhlenbeck processes) at given times.

    Parameters
    ----------
    times : array of shape (n, t)
        Ascending along each row.
    tau, sigma : arrays of shape (n,)
        Time scale, in the unit of `times`, and standard deviation of the process.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    array of shape (n, t)
        Deviations with covariance ``sigma ** 2 * exp(-|dt| / tau)``.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> times = np.tile(np.arange(2000.0), (50, 1))
    >>> walk = damped_random_walk(times, np.full(50, 5.0), np.full(50, 0.2), rng)
    >>> bool(abs(walk.std() - 0.2) < 0.01)
    True
    """
    decay = np.exp(-np.diff(times, axis=1).T / tau)
    kicks = rng.normal(size=times.T.shape) * sigma
    kicks[1:] *= np.sqrt(1 - decay**2)
    for step in range(len(decay)):
        kicks[step + 1] += decay[step] * kicks[step]
    return np.ascontiguousarray(kicks.T)


def still(objects: Population, times: Array, rng: Generator) -> Array:
    """Do not vary."""
    return np.zeros_like(times)


def quasar(objects: Population, times: Array, rng: Generator) -> Array:
    """Vary as a damped random walk."""
    return damped_random_walk(times, objects.tau, objects.sigma, rng)


def be_star(objects: Population, times: Array, rng: Generator) -> Array:
    """Drift, with outbursts that rise fast and fade slowly."""
    drift = damped_random_walk(times, objects.tau, objects.sigma, rng)
    n = len(objects)
    for slot in range(_OUTBURSTS):
        happens = rng.random(n) < 0.85 ** (slot + 1)
        height = happens * objects.amplitude * rng.uniform(0.3, 1.0, n)
        drift -= height[:, None] * _outburst(times, rng)
    return np.asarray(drift - drift.mean(axis=1, keepdims=True))


def _outburst(times: Array, rng: Generator) -> Array:
    start, rise, fall = (
        rng.uniform(low, high, (len(times), 1))
        for low, high in ((FIRST_NIGHT - 200, LAST_NIGHT), (10, 60), (80, 400))
    )
    since = times - start
    return np.exp(np.where(since < 0, since / rise, -since / fall))


def cycles(objects: Population, times: Array, rng: Generator) -> Array:
    """Count the cycles of each periodic object from a random zero point."""
    start = rng.random((len(objects), 1))
    return (times - FIRST_NIGHT) / objects.period[:, None] + start


def _sawtooth(strength: Array, phase: Array) -> Array:
    """Sum harmonics (n, 5) to a slow decline and a fast rise; full amplitude 1, mean 0."""
    grid = _harmonics(strength, np.broadcast_to(_GRID, (len(strength), len(_GRID))))
    return np.asarray(_harmonics(strength, phase) / np.ptp(grid, axis=1)[:, None])


def _harmonics(strength: Array, phase: Array) -> Array:
    angle = 2 * np.pi * phase
    total = np.zeros_like(phase)
    for k in range(strength.shape[1]):
        total -= strength[:, k : k + 1] * np.sin((k + 1) * angle)
    return total


def cepheid(objects: Population, times: Array, rng: Generator) -> Array:
    """Pulsate; the second harmonic nearly vanishes at ten days (Hertzsprung progression)."""
    strength = _CEPHEID[objects.mode] * rng.uniform(0.85, 1.15, (len(objects), 5))
    near_ten = np.exp(-(((np.log10(objects.period) - 1.0) / 0.12) ** 2))
    strength[:, 1] *= 1 - 0.75 * near_ten
    return objects.amplitude[:, None] * _sawtooth(strength, cycles(objects, times, rng))


def rr_lyrae(objects: Population, times: Array, rng: Generator) -> Array:
    """Pulsate: a steep sawtooth for type ab, nearly a sine for type c."""
    strength = _RR_LYRAE[objects.mode] * rng.uniform(0.85, 1.15, (len(objects), 5))
    return objects.amplitude[:, None] * _sawtooth(strength, cycles(objects, times, rng))


def eclipsing(objects: Population, times: Array, rng: Generator) -> Array:
    """Eclipse twice per orbit; the stars of contact binaries are also distorted."""
    n, contact = len(objects), objects.mode[:, None] == 1
    phase = cycles(objects, times, rng)
    wide = np.where(contact, rng.uniform(0.09, 0.13, (n, 1)), rng.uniform(0.02, 0.07, (n, 1)))
    second = np.where(contact, rng.uniform(0.5, 1.0, (n, 1)), rng.uniform(0.05, 1.0, (n, 1)))
    stretch = np.where(contact, 0.35, 0.04)
    dip = _eclipse(phase, 0.0, wide) + second * _eclipse(phase, 0.5, wide)
    shape = (1 - stretch) * dip + stretch * 0.5 * (1 + np.cos(4 * np.pi * phase))
    return np.asarray(objects.amplitude[:, None] * (shape - shape.mean(axis=1, keepdims=True)))


def _eclipse(phase: Array, middle: float, width: Array) -> Array:
    distance = np.abs((phase - middle + 0.5) % 1.0 - 0.5)
    return np.asarray(np.exp(-0.5 * (distance / width) ** 4))


def long_period(objects: Population, times: Array, rng: Generator) -> Array:
    """Pulsate slowly and irregularly: wandering phase, a second period, a slow drift."""
    n, half = len(objects), 0.5 * objects.amplitude[:, None]
    wander = damped_random_walk(times, np.full(n, 1500.0), np.full(n, 0.6), rng)
    angle = 2 * np.pi * cycles(objects, times, rng) + wander
    factor = np.where(rng.random((n, 1)) < 0.3, 9.0, rng.uniform(0.48, 0.55, (n, 1)))
    other = angle / factor + rng.uniform(0.0, 2 * np.pi, (n, 1))
    drift = damped_random_walk(times, np.full(n, 400.0), 0.15 * objects.amplitude, rng)
    share = rng.uniform(0.2, 0.6, (n, 1))
    return half * ((1 - share) * np.sin(angle) + share * np.sin(other)) + drift


_SIGNALS: dict[str, Callable[[Population, Array, Generator], Array]] = {
    "NV": still,
    "QSO": quasar,
    "BE": be_star,
    "CEPH": cepheid,
    "RRL": rr_lyrae,
    "EB": eclipsing,
    "LPV": long_period,
}


def deviations(objects: Population, times: Array, rng: Generator) -> Array:
    """Return the deviation of each object from its mean V at each time, shape (n, t)."""
    result = np.zeros_like(times)
    for kind, name in enumerate(CLASSES):
        rows = np.flatnonzero(objects.kind == kind)
        result[rows] = _SIGNALS[name](objects.take(rows), times[rows], rng)
    return result
