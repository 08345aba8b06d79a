"""Laws of all features: what units, zero points and the order of rows may and may not change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.lightcurve import FEATURES, About, collect, extract_features
from skyfill.lightcurve.curve import Curve, Star
from skyfill.lightcurve.registry import Of
from tests.lightcurve.curves import damped_walk, epochs, sawtooth, star_of

# A mean moves with the zero point; nothing else does.
MEANS = {"mean", "median", "weighted_mean", "car_mean"}
# Found by climbing, or single precision: equal up to where the search stops.
LOOSE = {"car_sigma": 0.02, "car_tau": 0.02, "car_gain": 1e-3}
STARS = {
    "pulsating": star_of(sawtooth(0.6), np.random.default_rng(0), n=150),
    "walking": star_of(
        lambda t: damped_walk(t, 0.05, 30.0, np.random.default_rng(1)), np.random.default_rng(1),
        n=150,
    ),
}  # fmt: skip


def changed(star, *, shift=0.0, offset=0.0, factor=1.0, slower=1.0):
    curves = [
        Curve(slower * c.time + shift, factor * c.value + offset, factor * c.error)
        for c in star.curves
    ]
    return Star(tuple(curves))


def compare(feature, expected, found):
    assert found == pytest.approx(expected, rel=LOOSE.get(feature.name, 1e-4), abs=1e-6), (
        feature.name
    )


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("kind", STARS)
def test_every_feature_exists_for_a_star_of_two_bands(name, kind):
    assert np.isfinite(FEATURES[name].compute(STARS[kind]))


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("kind", STARS)
def test_the_zero_point_of_time_does_not_matter(name, kind):
    feature = FEATURES[name]
    compare(
        feature, feature.compute(STARS[kind]), feature.compute(changed(STARS[kind], shift=4096))
    )


@pytest.mark.parametrize("name", FEATURES)
@pytest.mark.parametrize("kind", STARS)
def test_the_zero_point_of_magnitudes_moves_means_only(name, kind):
    feature = FEATURES[name]
    before, after = feature.compute(STARS[kind]), feature.compute(changed(STARS[kind], offset=2.5))
    compare(feature, before + 2.5 if name in MEANS else before, after)


@pytest.mark.parametrize("name", [n for n in FEATURES if not n.startswith("color")])
@pytest.mark.parametrize("kind", STARS)
def test_the_unit_of_values_rescales_what_has_it(name, kind):
    feature = FEATURES[name]
    power = (feature.unit or "").count("{value}")
    scaled = feature.compute(changed(STARS[kind], factor=8.0))
    compare(feature, feature.compute(STARS[kind]) * 8.0**power, scaled)


@pytest.mark.parametrize("name", [n for n, f in FEATURES.items() if f.of is Of.CURVE])
def test_the_unit_of_time_rescales_what_has_it(name):
    feature = FEATURES[name]
    unit = (feature.unit or "").replace("{value}", "")
    power = {"": 0.0, "d": 1.0, " / d": -1.0, " / d(1/2)": -0.5}[unit]
    slower = feature.compute(changed(STARS["walking"], slower=4.0))
    compare(feature, feature.compute(STARS["walking"]) * 4.0**power, slower)


@settings(max_examples=20)
@given(seed=st.integers(0, 10**6), n=st.integers(0, 60))
def test_the_order_of_rows_does_not_matter(seed, n):
    rng = np.random.default_rng(seed)
    ids, bands = rng.integers(0, 3, n), rng.choice(["B", "R"], n)
    numbers = np.column_stack([epochs(rng, n), rng.normal(15, 1, n), rng.uniform(-0.1, 0.9, n)])
    about = About(bands=("B", "R"))
    table = extract_features(collect(np.sort(ids), bands, numbers, about), "mean,sigma,color,eta")
    mixed = rng.permutation(n)
    other = collect(np.sort(ids)[mixed], bands[mixed], numbers[mixed], about)
    found = extract_features(other, "mean,sigma,color,eta").arrow.sort_by("id")
    assert found.equals(table.arrow)


def test_the_number_of_threads_does_not_matter(monkeypatch):
    rng = np.random.default_rng(2)
    numbers = np.column_stack([epochs(rng, 900), rng.normal(15, 1, 900), np.full(900, 0.1)])
    curves = collect(rng.integers(0, 40, 900), None, numbers, About())
    tables = []
    for threads in ("1", "4"):
        monkeypatch.setenv("SKYFILL_THREADS", threads)
        tables.append(extract_features(curves, "all").arrow)
    assert tables[0].equals(tables[1])


@given(
    st.lists(
        st.sampled_from([15.0, 15.5, 1e30, -1e30, float("nan"), float("inf"), 0.0]), max_size=14
    ),
    st.lists(
        st.sampled_from([0.1, 1e-12, 1e12, 0.0, -1.0, float("nan")]), min_size=14, max_size=14
    ),
)
def test_strange_numbers_give_a_number_or_a_gap_and_no_warning(values, errors):
    n = len(values)
    numbers = np.column_stack([np.arange(n) / 3, values, errors[:n]])
    table = extract_features(collect([1] * n, None, numbers, About()), "all")
    for name in table.names_with("feature"):
        assert table.column(name).null_count == len(table) - np.isfinite(table.numbers(name)).sum()
