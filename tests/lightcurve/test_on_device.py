"""Features computed on a GPU, or on an imitation of one, are those computed star by star."""

import numpy as np
import pyarrow as pa
import pytest

from skyfill.catalog import Role
from skyfill.device import using
from skyfill.lightcurve import About, choose_features, collect, extract_features, stream_features
from skyfill.lightcurve.on_device import NAMES
from tests.devices import DEVICES


def curves_of(stars, **about):
    """Collect light curves from (time, value, error) of each band of each star."""
    ids, bands, numbers = [], [], [np.empty((0, 3))]
    for star, by_band in enumerate(stars):
        for band, points in zip("BR", by_band, strict=False):
            numbers.append(np.column_stack(points))
            ids += [star] * len(numbers[-1])
            bands += [band] * len(numbers[-1])
    facts = About(bands=("B", "R"), id_type=pa.int64(), **about)
    return collect(pa.array(ids, pa.int64()), bands, np.concatenate(numbers), facts)


def band(rng, n, *, days=12.0, period=0.7, amplitude=0.3, noise=0.03):
    time = np.sort(rng.uniform(0, days, n))
    wave = amplitude * np.sin(2 * np.pi * time / period)
    return time, 18 + wave + noise * rng.normal(size=n), rng.uniform(0.5, 2, n) * noise


def various(rng):
    """Stars of many kinds: pulsating, red noise, constant, dense, regular, without a band."""
    pulsating = [(band(rng, 40, period=p), band(rng, 35, period=p)) for p in (0.31, 1.7, 4.0)]
    steps = rng.normal(size=60).cumsum()
    red = (np.sort(rng.uniform(0, 15, 60)), 17 + 0.1 * steps, np.full(60, 0.02))
    constant = (np.arange(12.0), np.full(12, 15.0), np.ones(12))
    dense = (np.sort(rng.uniform(0, 0.4, 50)), rng.normal(size=50), np.ones(50))
    regular = (np.arange(30) * 0.25, np.sin(np.arange(30) * 1.1), np.full(30, 0.1))
    empty = (np.zeros(0),) * 3
    few = band(rng, 4)
    others = [(band(rng, 30), empty), (few, few), (constant, constant), (regular, regular)]
    return [*pulsating, (red, band(rng, 20)), (constant, band(rng, 15)), (dense, dense), *others]


def assert_same(found, expected):
    assert found.names == expected.names
    for name in expected.names_with(Role.FEATURE):
        a, b = found.numbers(name), expected.numbers(name)
        assert np.allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True), (name, a, b)
    for name in set(expected.names).difference(expected.names_with(Role.FEATURE)):
        assert found.column(name).equals(expected.column(name)), name


@pytest.mark.parametrize("name", DEVICES)
def test_features_of_all_kinds_of_stars_agree(name):
    curves = curves_of(various(np.random.default_rng(3)))
    expected = extract_features(curves)
    with using(name):
        assert_same(extract_features(curves), expected)


@pytest.mark.parametrize("name", DEVICES)
def test_other_features_and_every_band_agree_too(name):
    curves = curves_of(various(np.random.default_rng(4))[:4])
    chosen = choose_features("eta, iqr, car_tau, period_power, mean, skewness", every_band=True)
    expected = extract_features(curves, chosen)
    with using(name):
        assert_same(extract_features(curves, chosen), expected)


@pytest.mark.parametrize("about", [{"has_errors": False}, {"is_flux": True}])
def test_collections_without_errors_and_of_fluxes_agree(about):
    curves = curves_of(various(np.random.default_rng(5))[1:4], **about)
    names = sorted(NAMES.difference({"period", "period_snr", "period_power"}))
    expected = extract_features(curves, names)
    with using("emulated"):
        assert_same(extract_features(curves, names), expected)


def test_unusable_epochs_are_dropped_and_counted_in_the_same_way():
    rng = np.random.default_rng(6)
    stars = [[[x.copy() for x in one] for one in star] for star in various(rng)[:3]]
    stars[0][0][1][3] = np.nan
    stars[0][1][2][[0, 5]] = 0.0
    stars[1][0][0][7] = stars[1][0][0][6]
    stars[2][1][0][:] = stars[2][1][0][::-1].copy()
    stars[1][1][1][4] += 50
    curves = curves_of(stars)
    for clip in (None, 5.0):
        expected = extract_features(curves, "mean, eta, stetson_l", clip=clip)
        with using("emulated"):
            assert_same(extract_features(curves, "mean, eta, stetson_l", clip=clip), expected)


def test_a_stream_merges_its_parts_for_the_device():
    curves = curves_of(various(np.random.default_rng(7)))
    parts = [curves.part(0, 3), curves.part(3, 4), curves.part(4, len(curves))]
    chosen, seen = choose_features("mean, con, n_above_4"), []
    with using("emulated"):
        tables = list(stream_features(parts, chosen, advance=seen.append, n_objects=len(curves)))
    assert seen == [len(curves)]
    assert_same(tables[0], extract_features(curves, chosen))
