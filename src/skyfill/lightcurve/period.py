"""Features of the periodogram of all bands together."""

import numpy as np
from scipy.special import betainc, gammaln

from skyfill.lightcurve.curve import Array, Curve, IntArray, Star, UncomputableError
from skyfill.lightcurve.noise import weighted_mean
from skyfill.lightcurve.periodogram import Periodogram, find_periods
from skyfill.lightcurve.series import Choice, choose_series
from skyfill.lightcurve.spectrum import StarPoints

# A sinusoid and a mean use up three: with a few more points any frequency seems to fit.
LEAST_POINTS = 10
LN10 = float(np.log(10))


def period(star: Star) -> float:
    """Return the period of the highest peak of the Lomb-Scargle periodogram of all bands."""
    return 1 / float(star.once(search_periods).frequency[0])


def period_snr(star: Star) -> float:
    """Return the height of the highest peak above the mean power, in standard deviations of it."""
    found = star.once(search_periods)
    return (float(found.power[0]) - found.mean) / found.sd


def period_power(star: Star) -> float:
    """Return the share of chi squared that sinusoids of the best period remove."""
    return float(star.once(search_periods).power[0])


def period_log_fap(star: Star) -> float:
    """Return the decimal logarithm of the probability that white noise has a peak as high."""
    found, points = star.once(search_periods), star.once(gather_points)
    variance = time_variance(points.time, points.weight, points.start)
    width = float(found.grid.frequency[-1] * np.sqrt(4 * np.pi * variance.mean()))
    return log_false_alarm(
        float(found.power[0]), len(points.time), len(points.scatter), width=width
    )


def period_2(star: Star) -> float:
    """Return the period of the second highest peak of the periodogram."""
    frequency = star.once(search_periods).frequency
    return 1 / float(frequency[1]) if len(frequency) > 1 else np.nan


def period_2_power(star: Star) -> float:
    """Return the power of the second highest peak over that of the highest."""
    power = star.once(search_periods).power
    return float(power[1] / power[0]) if len(power) > 1 else np.nan


def period_daily(star: Star) -> float:
    """Return the longest period that nightly observations may confuse with the best one.

    One over the distance of the frequency from the nearest integer number of cycles per day.
    """
    frequency = float(star.once(search_periods).frequency[0])
    step = star.once(search_periods).grid.step
    return 1 / max(abs(frequency - round(frequency)), step)


def search_periods(star: Star) -> Periodogram:
    """Search all bands of a star for periods."""
    return find_periods(star.once(gather_points))


def gather_points(star: Star) -> StarPoints:
    """Concatenate the bands that have enough points."""
    curves = usable(star)
    if not curves:
        raise UncomputableError("no band has enough different points")
    first = min(curve.time[0] for curve in curves)
    weights = [curve.error**-2 for curve in curves]
    totals = np.array([weight.sum() for weight in weights])
    values = [curve.value - weighted_mean(curve) for curve in curves]
    shares = [weight / total for weight, total in zip(weights, totals, strict=True)]
    squares = [float(w @ v**2) for w, v in zip(shares, values, strict=True)]
    return StarPoints(
        time=np.concatenate([curve.time for curve in curves]) - first,
        value=np.concatenate(values),
        weight=np.concatenate(shares),
        start=np.cumsum([0, *map(len, curves)]),
        scatter=np.array(squares),
        total=totals,
    )


def usable(star: Star) -> list[Curve]:
    """Select the bands to which a sinusoid can be fitted: enough points, not all equal."""
    return [
        curve for curve in star.curves if len(curve) >= LEAST_POINTS and np.ptp(curve.value) > 0
    ]


def log_false_alarm(power: float, n_points: int, n_bands: int, *, width: float) -> float:
    """Return log10 of the false-alarm probability of a peak (Baluev 2008).

    For several bands, the same bound with the number of upcrossings (Rice's formula) of a chi
    squared process with two degrees of freedom per band.

    Parameters
    ----------
    power : float
        Share of chi squared removed.
    n_points, n_bands : int
        Of all bands together.
    width : float
        Highest frequency times sqrt(4 pi variance of the times).

    Examples
    --------
    >>> round(log_false_alarm(0.3, 100, 1, width=1000.0), 2)
    -3.85
    """
    mean_left, left = n_points - n_bands, n_points - 3 * n_bands
    if left < 2 or power <= 0:
        raise UncomputableError("too few points for a false-alarm probability")
    rest = float(np.log1p(-min(power, 1 - 1e-15)))
    gamma = np.log(2 / mean_left) / 2 + gammaln(mean_left / 2) - gammaln((mean_left - 1) / 2)
    crossings = float(
        gamma
        + np.log(width)
        + 0.5 * (left - 1) * rest
        + (n_bands - 0.5) * np.log(0.5 * mean_left * power)
        - gammaln(n_bands)
    )
    single = betainc(left / 2, n_bands, 1 - power)
    # Below this, the crossings dominate the sum, and their logarithm does not underflow.
    if crossings < -500:
        return crossings / LN10
    count = np.exp(min(crossings, 50))
    return float(np.log10(-np.expm1(-count) + single * np.exp(-count)))


def time_variance(time: Array, weight: Array, start: IntArray) -> Array:
    """Return the weighted variance of the epochs of each band; weights sum to one per band."""
    mean = np.add.reduceat(weight * time, start[:-1])
    return np.asarray(np.add.reduceat(weight * time**2, start[:-1]) - mean**2)


def period_series(star: Star) -> float:
    """Return the period of the Fourier series that describes all bands best."""
    return 1 / star.once(best_series).frequency


def series_order(star: Star) -> float:
    """Return the order of the Fourier series that describes all bands best."""
    return float(star.once(best_series).order)


def best_series(star: Star) -> Choice:
    """Choose the period and order of a Fourier series for all bands of a star."""
    return choose_series(star.once(gather_points), star.once(search_periods))
