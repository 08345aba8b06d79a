"""Photometric likelihood of counterparts: it finds what position alone cannot."""

import numpy as np
import pytest

from skyfill.classify.photometric_ratio import Magnitudes
from skyfill.classify.photometry import MixturePhotometry
from skyfill.datasets.field.xray import simulate_xray_field
from skyfill.errors import DataError
from skyfill.sky import (
    CounterpartRules,
    Survey,
    find_counterparts,
    group_elsewhere,
    read_surroundings,
)

BANDS = ("B", "V", "R", "I")


@pytest.fixture(scope="module")
def sky():
    field = simulate_xray_field(600, seed=5)
    survey = Survey("optical", field.surveys["optical"], 0.0, area_deg2=field.area_deg2)
    there = read_surroundings(Survey("base", field.base, 0.0), [survey])
    truth = field.truth.numbers("row_optical")[:, 0].astype(int)
    magnitudes = field.surveys["optical"].numbers(*BANDS)
    return field, there, truth, magnitudes


def score(found, truth):
    rows = found.associations.rows[found.best.chosen, 0]
    right = (rows == truth) & (truth >= 0)
    return right, found.best.p_any * found.best.p_i


def test_magnitudes_find_more_true_counterparts_and_stay_calibrated(sky):
    field, there, truth, magnitudes = sky
    nothing = np.empty((len(field.base), 0))
    photometry = MixturePhotometry(Magnitudes.of(nothing, [magnitudes]), group_elsewhere(there))
    rules = CounterpartRules(rounds=2)
    plain, _ = score(find_counterparts(there, rules), truth)
    right, p = score(find_counterparts(there, rules, photometry), truth)
    assert right.mean() > plain.mean() + 0.05
    assert abs(right.mean() - p.mean()) < 0.04


def test_the_ratio_of_none_is_one_and_bounds_hold(sky):
    field, there, _, magnitudes = sky
    flux = field.base.numbers("log_flux")
    photometry = MixturePhotometry(Magnitudes.of(flux, [magnitudes]), group_elsewhere(there))
    found = find_counterparts(there, CounterpartRules())
    ratio = photometry.learn(found.associations, found.p)(found.associations)
    assert np.all(ratio[found.associations.starts[:-1]] == 0)
    assert np.all(np.isfinite(ratio))
    assert ratio.max() <= np.log(1000) + 1e-9


def test_the_same_seed_gives_the_same_ratio(sky):
    field, there, _, magnitudes = sky
    nothing = np.empty((len(field.base), 0))
    found = find_counterparts(there, CounterpartRules())
    elsewhere = group_elsewhere(there)
    one, two = (
        MixturePhotometry(Magnitudes.of(nothing, [magnitudes]), elsewhere).learn(
            found.associations, found.p
        )(found.associations)
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)


def test_too_few_counterparts_are_refused(sky):
    field, there, _, magnitudes = sky
    nothing = np.empty((len(field.base), 0))
    photometry = MixturePhotometry(Magnitudes.of(nothing, [magnitudes]), group_elsewhere(there))
    found = find_counterparts(there, CounterpartRules()).associations
    none = np.zeros(len(found))
    none[found.starts[:-1]] = 1.0
    with pytest.raises(DataError, match="switch photometry off"):
        photometry.learn(found, none)
