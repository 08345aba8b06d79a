"""Light curves with known properties."""

import numpy as np

from skyfill.lightcurve.curve import Curve, Star

EIGHT = Curve(
    np.array([0.0, 1.0, 2.0, 4.0, 5.0, 7.0, 8.0, 10.0]),
    np.array([10.0, 12.0, 11.0, 13.0, 15.0, 14.0, 16.0, 13.0]),
    np.array([1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]),
)


def epochs(rng, n=300, days=1000.0):
    return np.sort(rng.uniform(0, days, n))


def nights(rng, n=300, days=1000):
    """One epoch per night, at some hour."""
    return np.sort(rng.choice(days, n, replace=False)) + rng.uniform(0.1, 0.4, n)


def star_of(signal, rng, *, times=epochs, noise=0.03, n=300, colors=(18.5, 18.0)):
    """Two bands that vary alike, the second with 0.7 of the amplitude, a few minutes later."""
    first = times(rng, n)
    curves = []
    for mean, scale, time in zip(colors, (1.0, 0.7), (first, first + 0.01), strict=True):
        error = noise * rng.uniform(0.7, 1.3, n)
        value = mean + scale * signal(time) + error * rng.normal(size=n)
        curves.append(Curve(time, value, error))
    return Star(tuple(curves))


def damped_walk(time, sigma, tau, rng):
    """Exact draws of a damped random walk."""
    variance = 0.5 * tau * sigma**2
    decay = np.exp(-np.diff(time) / tau)
    kicks = np.sqrt(variance * (1 - decay**2)) * rng.normal(size=len(decay))
    walk = np.empty(len(time))
    walk[0] = np.sqrt(variance) * rng.normal()
    for i, (a, kick) in enumerate(zip(decay, kicks, strict=True)):
        walk[i + 1] = a * walk[i] + kick
    return walk


def eclipses(period, depths=(0.5, 0.3), width=0.05):
    """Two unequal eclipses per period, in magnitudes."""

    def signal(time):
        phase = (time / period) % 1
        return sum(
            depth * np.exp(-0.5 * ((phase - place) / width) ** 2)
            for depth, place in zip(depths, (0.25, 0.75), strict=True)
        )

    return signal


def sawtooth(period, amplitude=0.4):
    """A fast rise and a slow decline, like a pulsating star."""

    def signal(time):
        phase = (time / period) % 1
        return amplitude * np.where(phase < 0.2, -phase / 0.2, (phase - 1) / 0.8)

    return signal
