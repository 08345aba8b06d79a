"""Features of folded light curves: the shape of a band at the period of the star."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skyfill.lightcurve.curve import Array, Curve, Shared, Star
from skyfill.lightcurve.order import difference_square, sum_range
from skyfill.lightcurve.period import period, period_series, usable
from skyfill.lightcurve.series import Series, fit_series, one_cycle
from skyfill.lightcurve.shape import mean, sigma

DOUBLE_ORDER = 6


@dataclass(frozen=True)
class FoldedCurve(Shared):
    """One band of a star, and the period of the star in days."""

    curve: Curve
    period: float
    _memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.curve)


def folds(star: Star) -> tuple[FoldedCurve, ...]:
    """Fold every band at the period of the best Fourier series of the star."""
    best = period_series(star)
    return tuple(FoldedCurve(curve, best) for curve in star.curves)


def fold_amplitude(fold: FoldedCurve) -> float:
    """Return half the range of the Fourier series."""
    return float(np.ptp(one_cycle(fold.once(series)))) / 2


def fourier_amplitude(fold: FoldedCurve) -> float:
    """Return the amplitude of the first harmonic of the Fourier series."""
    return float(fold.once(series).amplitude[0])


def amplitude_ratio_21(fold: FoldedCurve) -> float:
    """Return the amplitude of the second harmonic over that of the first."""
    return _ratio(fold, 2)


def amplitude_ratio_31(fold: FoldedCurve) -> float:
    """Return the amplitude of the third harmonic over that of the first."""
    return _ratio(fold, 3)


def phase_21(fold: FoldedCurve) -> float:
    """Return the phase of the second harmonic relative to the first, 0 to 2 pi."""
    return _phase(fold, 2)


def phase_31(fold: FoldedCurve) -> float:
    """Return the phase of the third harmonic relative to the first, 0 to 2 pi."""
    return _phase(fold, 3)


def fold_left(fold: FoldedCurve) -> float:
    """Return the share of the weighted scatter that the Fourier series leaves unexplained."""
    return fold.once(series).left


def fold_skewness(fold: FoldedCurve) -> float:
    """Return the skewness of the Fourier series over one period."""
    wave = one_cycle(fold.once(series))
    wave = wave - wave.mean()
    return float(np.mean(wave**3) / np.mean(wave**2) ** 1.5)


def rise_time(fold: FoldedCurve) -> float:
    """Return the share of the period from minimum to maximum of the Fourier series."""
    wave = one_cycle(fold.once(series))
    return float((np.argmax(wave) - np.argmin(wave)) % len(wave)) / len(wave)


def fold_eta(fold: FoldedCurve) -> float:
    """Return eta of the values in order of phase (psi_eta of Kim et al. 2014)."""
    value = fold.once(by_phase)
    return float(difference_square(value)) / ((len(value) - 1) * sigma(fold.curve) ** 2)


def fold_cusum(fold: FoldedCurve) -> float:
    """Return the range of the cumulative sum in order of phase (psi_CS of Kim et al. 2014)."""
    value = fold.once(by_phase)
    return float(sum_range(value, mean(fold.curve))) / (len(value) * sigma(fold.curve))


def double_gain(star: Star) -> float:
    """Return the log of the scatter left at the Lomb-Scargle period over that at twice the period.

    Scatter left by Fourier series; the one at twice the period has twice the order, so that it
    includes the other. Large for binaries with unequal eclipses.
    """
    once, twice = star.once(fits_once), star.once(fits_twice)
    left = [sum(fit.left for fit in fits) for fits in (once, twice)]
    return float(np.log(left[0] / left[1]))


def odd_share(star: Star) -> float:
    """Return the share of odd harmonics in the Fourier series at twice the Lomb-Scargle period."""
    powers = np.sum([fit.amplitude**2 for fit in star.once(fits_twice)], axis=0)
    return float(np.sqrt(powers[::2].sum() / powers.sum()))


def fourier_ratio(star: Star) -> float:
    """Return the amplitude of the first harmonic in the first band over that in the second."""
    first, second = _two(star)
    return float(first.amplitude[0] / second.amplitude[0])


def phase_lag(star: Star) -> float:
    """Return the phase of the first harmonic, second band minus first, -pi to pi."""
    first, second = _two(star)
    return float(np.angle(np.exp(1j * (second.phase[0] - first.phase[0]))))


def series(fold: FoldedCurve) -> Series:
    """Fit a Fourier series to a band at the period."""
    return fit_series(fold.curve, 1 / fold.period)


def by_phase(fold: FoldedCurve) -> Array:
    """Return the values in order of phase."""
    turns = (fold.curve.time - fold.curve.time[0]) / fold.period
    return fold.curve.value[np.argsort(turns % 1, kind="stable")]


def fits_once(star: Star) -> list[Series]:
    """Fit all usable bands at the period with half the order of `fits_twice`."""
    frequency = 1 / period(star)
    return [fit_series(curve, frequency, DOUBLE_ORDER // 2) for curve in usable(star)]


def fits_twice(star: Star) -> list[Series]:
    """Fit all usable bands at twice the period."""
    frequency = 0.5 / period(star)
    return [fit_series(curve, frequency, DOUBLE_ORDER) for curve in usable(star)]


def _two(star: Star) -> tuple[Series, Series]:
    frequency = 1 / period_series(star)
    first, second = (fit_series(curve, frequency) for curve in star.curves[:2])
    return first, second


def _ratio(fold: FoldedCurve, k: int) -> float:
    amplitude = fold.once(series).amplitude
    return float(amplitude[k - 1] / amplitude[0])


def _phase(fold: FoldedCurve, k: int) -> float:
    phase = fold.once(series).phase
    return float((phase[k - 1] - k * phase[0]) % (2 * np.pi))
