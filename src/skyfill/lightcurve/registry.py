"""All features by name; a new one takes a small function and a line here."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from skyfill.catalog.table import nearest
from skyfill.errors import DataError
from skyfill.lightcurve import (
    autocorrelation,
    car,
    harmonics,
    noise,
    order,
    period,
    shape,
    two_bands,
)
from skyfill.lightcurve.curve import Star


class Of(StrEnum):
    """What the function of a feature takes: one band, one folded band, or all bands."""

    CURVE = "curve"
    FOLD = "fold"
    STAR = "star"


@dataclass(frozen=True)
class CurveFeature:
    """A number that describes a light curve.

    Parameters
    ----------
    function : callable
        From a `Curve`, `FoldedCurve` or `Star` to a float, or NaN. The feature takes its name
        from it, and its description from the first line of the docstring.
    min_points : int
        The feature is not computed for bands with fewer points.
    unit : str, optional
        ``{value}`` stands for the unit of the values.
    ucd : str
        Unified content descriptor, written for magnitudes.
    of : Of
        What the function takes.
    n_bands : int
        How many bands must have `min_points`; if two, the first two.
    needs_errors : bool
        Whether the feature is meaningless without errors.

    Examples
    --------
    >>> feature = FEATURES["car_tau"]
    >>> feature.name, feature.unit, feature.min_points
    ('car_tau', 'd', 10)
    >>> feature.description
    'The relaxation time of the damped random walk'
    """

    function: Callable[[Any], float]
    min_points: int
    unit: str | None = None
    ucd: str = "src.var.index"
    of: Of = Of.CURVE
    n_bands: int = 1
    needs_errors: bool = False

    @property
    def name(self) -> str:
        """Name of the column; with several bands, the name of the band is appended."""
        return self.function.__name__

    @property
    def description(self) -> str:
        """One line that describes the feature."""
        line = (inspect.getdoc(self.function) or "").partition("\n")[0]
        words = line.removeprefix("Return ").rstrip(".")
        return words[:1].upper() + words[1:]

    def compute(self, star: Star, band: int = 0) -> float:
        """Compute the feature of a star, or of one of its bands; NaN if it is undefined."""
        curves = star.curves if self.of is Of.STAR else (star.curves[band],)
        curves = curves[:2] if self.n_bands == 2 else curves
        enough = [curve for curve in curves if len(curve) >= self.min_points]
        blind = self.needs_errors and not all(curve.has_errors for curve in enough)
        if len(enough) < self.n_bands or blind:
            return float("nan")
        try:
            return float(self.function(_TARGETS[self.of](star, band)))
        except ArithmeticError:
            return float("nan")


_TARGETS: dict[Of, Callable[[Star, int], Any]] = {
    Of.CURVE: lambda star, band: star.curves[band],
    Of.FOLD: lambda star, band: star.once(harmonics.folds)[band],
    Of.STAR: lambda star, band: star,
}

_MAG, _SIZE, _TIME = "{value}", "src.var.amplitude", "time.scale"
_STAR: dict[str, Any] = {"of": Of.STAR}
_TWO: dict[str, Any] = {"of": Of.STAR, "n_bands": 2}
_FOLD: dict[str, Any] = {"of": Of.FOLD}
_ERRORS: dict[str, Any] = {"needs_errors": True}
_PERIOD: dict[str, Any] = {"unit": "d", "ucd": "time.period", "of": Of.STAR}

_ALL = (
    CurveFeature(shape.mean, 1, _MAG, "phot.mag;stat.mean"),
    CurveFeature(shape.median, 1, _MAG, "phot.mag;stat.median"),
    CurveFeature(shape.sigma, 2, _MAG, "stat.stdev;phot.mag"),
    CurveFeature(shape.amplitude, 2, _MAG, _SIZE),
    CurveFeature(shape.percentile_amplitude, 5, _MAG, _SIZE),
    CurveFeature(shape.iqr, 4, _MAG, _SIZE),
    CurveFeature(shape.mad, 3, _MAG, _SIZE),
    CurveFeature(shape.skewness, 3),
    CurveFeature(shape.kurtosis, 4),
    CurveFeature(shape.percentile_skewness, 5),
    CurveFeature(shape.extremes_skewness, 3),
    CurveFeature(shape.beyond_1_sigma, 2),
    *(CurveFeature(ratio, 5) for ratio in shape.PERCENTILE_RATIOS),
    CurveFeature(order.eta, 3),
    CurveFeature(order.eta_e, 3),
    CurveFeature(order.con, 3),
    CurveFeature(order.cusum, 2),
    CurveFeature(order.max_slope, 2, "{value} / d"),
    CurveFeature(order.linear_trend, 3, "{value} / d"),
    CurveFeature(order.trend_share, 3),
    CurveFeature(noise.weighted_mean, 1, _MAG, "phot.mag;stat.mean", **_ERRORS),
    CurveFeature(noise.mean_error, 1, _MAG, "stat.error;phot.mag", **_ERRORS),
    CurveFeature(noise.excess_sigma, 2, _MAG, _SIZE, **_ERRORS),
    CurveFeature(noise.chi2, 2, **_ERRORS),
    CurveFeature(noise.stetson_k, 2, **_ERRORS),
    CurveFeature(car.car_sigma, 10, "{value} / d(1/2)", _SIZE),
    CurveFeature(car.car_tau, 10, "d", _TIME),
    CurveFeature(car.car_mean, 10, _MAG, "phot.mag;stat.mean"),
    CurveFeature(car.car_flag, 10, None, "meta.code.qual"),
    CurveFeature(car.car_gain, 10),
    CurveFeature(autocorrelation.acf_length, 10, "d", _TIME),
    CurveFeature(autocorrelation.stetson_k_ac, 10),
    CurveFeature(autocorrelation.n_above_4, 10),
    CurveFeature(autocorrelation.n_below_4, 10),
    CurveFeature(two_bands.color, 1, "mag", "phot.color", **_TWO),
    CurveFeature(two_bands.color_median, 1, "mag", "phot.color", **_TWO),
    CurveFeature(two_bands.sigma_ratio, 3, **_TWO),
    CurveFeature(two_bands.mad_ratio, 3, **_TWO),
    CurveFeature(two_bands.stetson_j, 3, **_TWO, **_ERRORS),
    CurveFeature(two_bands.stetson_l, 3, **_TWO, **_ERRORS),
    CurveFeature(two_bands.band_correlation, 3, **_TWO),
    CurveFeature(two_bands.band_angle, 3, "rad", **_TWO),
    CurveFeature(period.period, 10, **_PERIOD),
    CurveFeature(period.period_snr, 10, **_STAR),
    CurveFeature(period.period_power, 10, **_STAR),
    CurveFeature(period.period_log_fap, 10, **_STAR),
    CurveFeature(period.period_2, 10, **_PERIOD),
    CurveFeature(period.period_2_power, 10, **_STAR),
    CurveFeature(period.period_daily, 10, **_PERIOD),
    CurveFeature(period.period_series, 10, **_PERIOD),
    CurveFeature(period.series_order, 10, **_STAR),
    CurveFeature(harmonics.double_gain, 10, **_STAR),
    CurveFeature(harmonics.odd_share, 10, **_STAR),
    CurveFeature(harmonics.fourier_ratio, 10, **_TWO),
    CurveFeature(harmonics.phase_lag, 10, "rad", **_TWO),
    CurveFeature(harmonics.fourier_amplitude, 10, _MAG, _SIZE, **_FOLD),
    CurveFeature(harmonics.fold_amplitude, 10, _MAG, _SIZE, **_FOLD),
    CurveFeature(harmonics.amplitude_ratio_21, 10, **_FOLD),
    CurveFeature(harmonics.amplitude_ratio_31, 10, **_FOLD),
    CurveFeature(harmonics.phase_21, 10, "rad", **_FOLD),
    CurveFeature(harmonics.phase_31, 10, "rad", **_FOLD),
    CurveFeature(harmonics.fold_left, 10, **_FOLD),
    CurveFeature(harmonics.fold_skewness, 10, **_FOLD),
    CurveFeature(harmonics.rise_time, 10, **_FOLD),
    CurveFeature(harmonics.fold_eta, 10, **_FOLD),
    CurveFeature(harmonics.fold_cusum, 10, **_FOLD),
)
FEATURES: dict[str, CurveFeature] = {feature.name: feature for feature in _ALL}

# Pichara & Protopapas (2013), in their order.
MACHO14 = (
    "car_sigma", "mean", "car_tau", "sigma", "eta", "con", "stetson_l", "cusum", "color", "period",
    "period_snr", "stetson_k_ac", "n_above_4", "n_below_4",
)  # fmt: skip


@dataclass(frozen=True)
class FeatureSet:
    """Features, and whether those of one band are computed for every band or the first only."""

    features: tuple[CurveFeature, ...]
    every_band: bool


def choose_features(names: str | Iterable[str], *, every_band: bool | None = None) -> FeatureSet:
    """Turn the name of a set, or names of features, into a `FeatureSet`.

    Parameters
    ----------
    names : str or iterable of str
        ``macho14`` (those of the paper, for the first band), ``all``, or names, as a list or
        separated by commas.
    every_band : bool, optional
        Whether features of one band are computed for every band; by default yes, except for
        ``macho14``.

    Examples
    --------
    >>> len(choose_features("macho14").features), choose_features("macho14").every_band
    (14, False)
    >>> [feature.name for feature in choose_features("period, eta").features]
    ['period', 'eta']
    """
    if names == "macho14":
        chosen: tuple[str, ...] = MACHO14
    elif names == "all":
        chosen = tuple(FEATURES)
    else:
        words = names.split(",") if isinstance(names, str) else names
        chosen = tuple(dict.fromkeys(word.strip() for word in words))
    every = names != "macho14" if every_band is None else every_band
    return FeatureSet(tuple(_feature(name) for name in chosen), every)


def _feature(name: str) -> CurveFeature:
    if name not in FEATURES:
        hint = nearest(name, FEATURES, "features")
        raise DataError(f"no feature {name!r}; {hint}; the sets are macho14 and all")
    return FEATURES[name]
