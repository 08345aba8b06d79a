"""Each class varies in its own way, at the times when the survey looked."""

import numpy as np
import pytest
from astropy.timeseries import LombScargle
from numpy.random import default_rng

from skyfill.datasets import Field, simulate_field
from skyfill.datasets.field.cadence import draw_cadence
from skyfill.datasets.field.draw import draw_population
from skyfill.datasets.field.population import CLASSES
from skyfill.datasets.field.signals import cycles, damped_random_walk, deviations

from .conftest import python_calls

PER_CLASS = 150


@pytest.fixture(scope="module")
def field() -> Field:
    shares = dict.fromkeys(CLASSES, 1.0)
    return simulate_field(PER_CLASS * len(CLASSES), seed=1, light_curves=True, fractions=shares)


@pytest.fixture(scope="module")
def curves(field):
    """Arrays of all measurements: object, is blue, time, mag, err."""
    names = {name: i for i, name in enumerate(field.truth.column("id").to_pylist())}
    source = np.array([names[name] for name in field.light_curves.column("id").to_pylist()])
    blue = np.array(field.light_curves.column("band").to_pylist()) == "blue"
    return source, blue, *field.light_curves.numbers("time", "mag", "err").T


def kinds(field):
    return np.array(field.truth.column("class").to_pylist())


def one(curves, row, color=True):
    source, blue, *columns = curves
    keep = (source == row) & (blue == color)
    return [column[keep] for column in columns]


def test_a_damped_random_walk_has_its_structure_function():
    """E[(x(t + dt) - x(t))^2] = 2 sigma^2 (1 - exp(-dt / tau))."""
    rng = default_rng(0)
    times = np.sort(rng.uniform(0, 3000, (40_000, 30)), axis=1)
    walk = damped_random_walk(times, np.full(40_000, 200.0), np.full(40_000, 0.3), rng)
    lag, change = times[:, 2:] - times[:, :-2], walk[:, 2:] - walk[:, :-2]
    for low, high in ((50, 70), (150, 180), (400, 450)):
        chosen = (lag > low) & (lag < high)
        expected = 2 * 0.3**2 * (1 - np.exp(-lag[chosen].mean() / 200))
        assert np.mean(change[chosen] ** 2) == pytest.approx(expected, rel=0.05)


def test_quasars_follow_their_own_time_scale():
    quasars = draw_population({"QSO": 3000}, default_rng(1))
    times = np.broadcast_to(np.array([0.0, 100.0, 5000.0, 5100.0]), (3000, 4))
    walk = deviations(quasars, times, default_rng(2)) / quasars.sigma[:, None]
    slow = quasars.tau > np.median(quasars.tau)
    change = (walk[:, 1::2] - walk[:, ::2]) ** 2
    for rows in (slow, ~slow):
        expected = 2 * (1 - np.exp(-100 / quasars.tau[rows])).mean()
        assert change[rows].mean() == pytest.approx(expected, rel=0.1)
    assert 100 < np.median(quasars.tau) < 1000


def test_the_cadence_has_seasons_and_seven_years():
    cadence = draw_cadence(default_rng(3))
    assert (np.diff(cadence.times, axis=1) > 0).all()
    assert 7.0 < (cadence.times.max() - cadence.times.min()) / 365.25 < 7.6
    day = (cadence.times - 48988) % 365.25
    summer, winter = (np.abs((day - middle + 182.6) % 365.25 - 182.6) < 30 for middle in (0, 182.6))
    assert summer.mean() > 5 * winter.mean()


def test_every_object_has_several_hundred_epochs_in_both_bands(field, curves):
    source, blue, times, mag, err = curves
    bright = field.truth.numbers("true_V")[:, 0] < 19.5
    for band in (blue, ~blue):
        counts = np.bincount(source[band], minlength=len(field.truth))
        assert 300 < counts[bright].min() <= counts.max() < 720
    assert np.isfinite(mag).all()
    assert (err > 0).all()
    same = (np.diff(source) == 0) & (blue[1:] == blue[:-1])
    assert (np.diff(times)[same] > 0).all()


def test_means_agree_with_the_base_catalog(field, curves):
    source, blue, _, mag, _ = curves
    bright = (field.macho.numbers("V")[:, 0] < 19.5) & (kinds(field) != "LPV")
    for band, name in ((blue, "V"), (~blue, "R")):
        mean = np.bincount(source[band], mag[band]) / np.bincount(source[band])
        assert abs(np.median((mean - field.macho.numbers(name)[:, 0])[bright])) < 0.01


def test_stars_that_keep_still_scatter_by_their_errors(field, curves):
    bright = field.truth.numbers("true_V")[:, 0] < 20
    for row in np.flatnonzero((kinds(field) == "NV") & bright)[:40]:
        _, mag, err = one(curves, row)
        spread = 1.4826 * np.median(np.abs(mag - np.median(mag)))
        assert spread == pytest.approx(np.median(err), rel=0.25)


def test_outliers_are_rare_but_there(field, curves):
    rows = np.flatnonzero(kinds(field) == "NV")
    bright = rows[field.truth.numbers("true_V")[rows, 0] < 19]
    pulls = []
    for row in bright:
        _, mag, err = one(curves, row)
        pulls.append((mag - np.median(mag)) / err)
    share = np.mean(np.abs(np.concatenate(pulls)) > 5)
    assert 0.002 < share < 0.03


def test_variance_orders_the_classes(field, curves):
    source, blue, _, mag, err = curves
    counts = np.bincount(source[blue])
    mean = np.bincount(source[blue], mag[blue]) / counts
    variance = np.bincount(source[blue], (mag[blue] - mean[source[blue]]) ** 2) / counts
    noise = np.bincount(source[blue], err[blue] ** 2) / counts
    excess = np.sqrt(np.maximum(variance - noise, 0))
    bright = field.truth.numbers("true_V")[:, 0] < 19.8
    median = {c: np.median(excess[(kinds(field) == c) & bright]) for c in CLASSES}
    assert median["NV"] < 0.06
    assert min(median[c] for c in CLASSES if c != "NV") > 0.06
    assert median["RRL"] > median["EB"] > median["BE"]


@pytest.mark.parametrize("name", ["CEPH", "RRL"])
def test_periods_of_pulsators_are_found_again(field, curves, name):
    rows = np.flatnonzero(kinds(field) == name)[:15]
    period = field.truth.numbers("period")[:, 0]
    found = 0
    for row in rows:
        times, mag, err = one(curves, row)
        trial = np.linspace(0.995, 1.005, 801) / period[row]
        power = LombScargle(times, mag, err).power(np.append(trial, 0.37 * trial))
        found += abs(np.append(trial, 0.37 * trial)[power.argmax()] * period[row] - 1) < 1e-3
    assert found >= 14


def test_rr_lyrae_stars_of_type_ab_rise_faster_than_they_fade():
    stars = draw_population({"RRL": 200}, default_rng(4))
    stars = stars.take(np.flatnonzero(stars.mode == 0))
    phase = np.linspace(0, 1, 400, endpoint=False)
    times = stars.period[:, None] * phase
    mag = deviations(stars, times, default_rng(5))
    rising = (np.diff(mag, axis=1) < 0).mean()
    assert rising < 0.4
    assert np.ptp(mag, axis=1) == pytest.approx(stars.amplitude, rel=0.03)


def test_eclipses_only_dim_and_reach_their_depth():
    stars = draw_population({"EB": 300}, default_rng(6))
    times = stars.period[:, None] * np.linspace(0, 1, 1000, endpoint=False)
    mag = deviations(stars, times, default_rng(7))
    level = np.median(mag, axis=1, keepdims=True)
    above, below = (mag - level).max(axis=1), (level - mag).max(axis=1)
    assert (above[stars.mode == 0] > 3 * below[stars.mode == 0]).all()
    assert np.ptp(mag, axis=1) == pytest.approx(stars.amplitude, rel=0.05)


def test_long_period_variables_change_slowly():
    stars = draw_population({"LPV": 200}, default_rng(8))
    times = np.broadcast_to(np.arange(0.0, 2700.0, 1.0), (200, 2700))
    mag = deviations(stars, times, default_rng(9))
    step = np.abs(np.diff(mag, axis=1)).mean(axis=1)
    assert np.median(step / mag.std(axis=1)) < 0.1


def test_be_stars_brighten_in_outbursts():
    stars = draw_population({"BE": 300}, default_rng(10))
    times = np.broadcast_to(np.arange(48900.0, 51500.0, 5.0), (300, 520))
    mag = deviations(stars, times, default_rng(11))
    skew = ((mag / mag.std(axis=1, keepdims=True)) ** 3).mean(axis=1)
    assert np.median(skew) < -0.2


def test_cycles_count_on_between_seasons():
    stars = draw_population({"RRL": 50}, default_rng(12))
    counted = cycles(stars, np.tile([48900.0, 50900.0], (50, 1)), default_rng(13))
    assert np.diff(counted, axis=1)[:, 0] == pytest.approx(2000 / stars.period)


def test_neighbors_hide_part_of_the_variation(field, curves):
    rrl = kinds(field) == "RRL"
    blended = np.array(field.truth.column("blended").to_pylist())
    source, blue, _, mag, _ = curves
    amplitude = field.truth.numbers("amplitude")[:, 0]
    ratio = []
    for rows in (rrl & blended, rrl & ~blended):
        spreads = [np.std(mag[(source == i) & blue]) / amplitude[i] for i in np.flatnonzero(rows)]
        ratio.append(np.median(spreads))
    assert ratio[0] < ratio[1]


def test_a_light_curve_costs_less_than_two_python_calls():
    """Measurements are drawn for many objects at once, not one after the other."""
    few, many = (python_calls(lambda n=n: simulate_field(n, light_curves=True)) for n in (200, 800))
    assert many - few < 2 * 600


def test_a_field_of_a_thousand_has_its_million_measurements():
    assert len(simulate_field(1000, light_curves=True).light_curves) > 900_000
