"""Independent programs: equal where the definitions coincide, the differences spelled out."""

import numpy as np
import pytest

from skyfill.lightcurve import FEATURES
from tests.lightcurve.curves import damped_walk, nights, sawtooth, star_of

REASON = "is in the extra `compare`"
STAR = star_of(sawtooth(0.6), np.random.default_rng(0), n=200)
CURVE = STAR.curves[0]
N = len(CURVE)


def ours(name, star=STAR):
    return FEATURES[name].compute(star)


LIGHT_CURVE = {
    "amplitude": ("Amplitude", ()),
    "beyond_1_sigma": ("BeyondNStd", (1,)),
    "chi2": ("ReducedChi2", ()),
    "cusum": ("Cusum", ()),
    "eta": ("Eta", ()),
    "eta_e": ("EtaE", ()),
    "kurtosis": ("Kurtosis", ()),
    "linear_trend": ("LinearTrend", ()),
    "mad": ("MedianAbsoluteDeviation", ()),
    "max_slope": ("MaximumSlope", ()),
    "mean": ("Mean", ()),
    "median": ("Median", ()),
    "sigma": ("StandardDeviation", ()),
    "skewness": ("Skew", ()),
    "stetson_k": ("StetsonK", ()),
    "weighted_mean": ("WeightedMean", ()),
}


@pytest.mark.parametrize("name", LIGHT_CURVE)
def test_light_curve_agrees(name):
    rival = pytest.importorskip("light_curve", reason=f"light-curve {REASON}")
    kind, arguments = LIGHT_CURVE[name]
    found = getattr(rival, kind)(*arguments)(CURVE.time, CURVE.value, CURVE.error)
    assert found[0] == pytest.approx(ours(name), rel=1e-8)


@pytest.mark.parametrize(
    ("name", "outer"), [("percentile_ratio_50", 0.25), ("percentile_ratio_20", 0.4)]
)
def test_light_curve_interpolates_percentiles_differently(name, outer):
    rival = pytest.importorskip("light_curve", reason=f"light-curve {REASON}")
    found = rival.MagnitudePercentageRatio(outer, 0.05)(CURVE.time, CURVE.value, CURVE.error)
    assert found[0] == pytest.approx(ours(name), rel=5 / N)


def test_light_curve_finds_the_same_period():
    rival = pytest.importorskip("light_curve", reason=f"light-curve {REASON}")
    search = rival.Periodogram(peaks=1, resolution=5, max_freq_factor=100.0)
    assert search(CURVE.time, CURVE.value)[0] == pytest.approx(ours("period"), rel=1e-3)


def feets_features(*names, star=STAR):
    feets = pytest.importorskip("feets", reason=f"feets {REASON}")
    first, second = star.curves
    space = feets.FeatureSpace(only=names, dask_options={"scheduler": "synchronous"})
    known = {
        "time": first.time, "magnitude": first.value, "error": first.error,
        "magnitude2": second.value, "aligned_time": first.time,
        "aligned_magnitude": first.value, "aligned_magnitude2": second.value,
        "aligned_error": first.error, "aligned_error2": second.error,
    }  # fmt: skip
    used = {key: known[key] for key in space.required_data}
    return space.extract(**used).as_frame().iloc[0].to_dict()


FEETS = {
    "amplitude": "Amplitude",
    "color": "Color",
    "cusum": "Cusum",
    "eta": "Eta",
    "eta_e": "EtaE",
    "iqr": "Q31",
    "kurtosis": "SmallKurtosis",
    "mad": "MedianAbsDev",
    "mean": "Mean",
    "sigma": "Std",
    "skewness": "Skew",
}


@pytest.mark.parametrize("name", FEETS)
def test_feets_agrees(name):
    assert feets_features(FEETS[name])[FEETS[name]] == pytest.approx(ours(name), rel=1e-8)


def test_feets_differs_as_documented():
    found = feets_features("Rcs", "PeriodLS")
    assert found["Rcs"] == pytest.approx(ours("cusum") * np.sqrt(N / (N - 1)), rel=1e-8)
    assert found["PeriodLS_0"] == pytest.approx(ours("period"), rel=1e-3)


def test_feets_agrees_on_stetson_j_where_every_epoch_has_its_pair():
    star = star_of(sawtooth(0.6), np.random.default_rng(0), times=nights)
    found = feets_features("StetsonJ", star=star)["StetsonJ"]
    assert found == pytest.approx(ours("stetson_j", star), rel=1e-8)


@pytest.mark.parametrize("tau", [5.0, 40.0])
def test_feets_fits_the_same_walk_below_its_bound_of_a_hundred_days(tau):
    rng = np.random.default_rng(3)
    star = star_of(lambda t: damped_walk(t, 0.1, tau, rng), rng, n=300)
    found = feets_features("CAR_sigma", "CAR_tau", star=star)
    assert found["CAR_tau"] == pytest.approx(ours("car_tau", star), rel=0.1)
    assert found["CAR_sigma"] == pytest.approx(ours("car_sigma", star), rel=0.1)


def test_cesium_agrees_or_differs_as_documented():
    rival = pytest.importorskip("cesium.featurize", reason=f"cesium {REASON}")
    names = ["amplitude", "max_slope", "mean", "median", "median_absolute_deviation", "skew", "std",
             "weighted_average", "freq1_freq"]  # fmt: skip
    table = rival.featurize_time_series(
        CURVE.time, CURVE.value, CURVE.error, features_to_use=names
    ).iloc[0]
    found = {name: table[name, 0] for name in names}
    same = {"amplitude": "amplitude", "max_slope": "max_slope", "mean": "mean", "median": "median",
            "median_absolute_deviation": "mad", "weighted_average": "weighted_mean"}  # fmt: skip
    for name, own in same.items():
        assert found[name] == pytest.approx(ours(own), rel=1e-8), name
    # n instead of n - 1, and the skewness of the sample.
    assert found["std"] == pytest.approx(ours("sigma") * np.sqrt((N - 1) / N), rel=1e-8)
    bias = np.sqrt(N * (N - 1)) / (N - 2)
    assert found["skew"] == pytest.approx(ours("skewness") / bias, rel=1e-8)
    assert found["freq1_freq"] == pytest.approx(1 / ours("period"), rel=1e-3)
