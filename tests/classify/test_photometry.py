"""Photometric likelihood of counterparts: it finds what position alone cannot."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from skyfill.classify.photometric_ratio import Magnitudes
from skyfill.classify.photometry import LEAST_FIELD, MixturePhotometry, _with_parts
from skyfill.datasets.field.xray import simulate_xray_field
from skyfill.errors import DataError
from skyfill.network import Cells
from skyfill.sky import (
    Associations,
    CounterpartRules,
    Survey,
    find_counterparts,
    group_elsewhere,
    read_surroundings,
)

BANDS = ("B", "V", "R", "I")


@pytest.fixture(scope="module")
def sky():
    return observe(600)


@pytest.fixture(scope="module")
def small_sky():
    return observe(200)


def observe(n):
    field = simulate_xray_field(n, seed=5)
    survey = Survey("optical", field.surveys["optical"], 0.0, area_deg2=field.area_deg2)
    there = read_surroundings(Survey("base", field.base, 0.0), [survey])
    truth = field.truth.numbers("row_optical")[:, 0].astype(int)
    magnitudes = field.surveys["optical"].numbers(*BANDS)
    return field, there, truth, magnitudes


def some_of(elsewhere):
    """Take one of ten sources of the field, for tests that ask only for laws of the ratio."""
    return elsewhere[::10]


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


def test_the_ratio_of_none_is_one_and_bounds_hold(small_sky):
    field, there, _, magnitudes = small_sky
    flux, elsewhere = field.base.numbers("log_flux"), some_of(group_elsewhere(there))
    photometry = MixturePhotometry(Magnitudes.of(flux, [magnitudes]), elsewhere)
    found = find_counterparts(there, CounterpartRules())
    ratio = photometry.learn(found.associations, found.p)(found.associations)
    assert np.all(ratio[found.associations.starts[:-1]] == 0)
    assert np.all(np.isfinite(ratio))
    assert ratio.max() <= np.log(1000) + 1e-9


def test_the_same_seed_gives_the_same_ratio(small_sky):
    field, there, _, magnitudes = small_sky
    nothing = np.empty((len(field.base), 0))
    found = find_counterparts(there, CounterpartRules())
    elsewhere = some_of(group_elsewhere(there))
    one, two = (
        MixturePhotometry(Magnitudes.of(nothing, [magnitudes]), elsewhere).learn(
            found.associations, found.p
        )(found.associations)
        for _ in range(2)
    )
    np.testing.assert_array_equal(one, two)


def test_too_few_counterparts_are_refused(small_sky):
    field, there, _, magnitudes = small_sky
    nothing = np.empty((len(field.base), 0))
    photometry = MixturePhotometry(Magnitudes.of(nothing, [magnitudes]), group_elsewhere(there))
    found = find_counterparts(there, CounterpartRules()).associations
    none = np.zeros(len(found))
    none[found.starts[:-1]] = 1.0
    with pytest.raises(DataError, match="switch photometry off"):
        photometry.learn(found, none)


@pytest.fixture(scope="module")
def limited():
    """Counterparts of K = 18 among sources of K = 21, observed down to 16 or to 20."""
    rng = np.random.default_rng(3)
    n, n_field = 100, 500
    k = np.append(rng.normal(18, 0.5, n), rng.normal(21, 0.5, n_field))
    limit = rng.choice([16.0, 20.0], len(k))
    values = np.stack([rng.normal(20, 1, len(k)), np.where(k < limit, k, np.nan)], axis=1)
    lower = np.stack([np.full(len(k), np.nan), np.where(k < limit, np.nan, limit)], axis=1)
    rows = np.full((2 * n, 1), -1)
    rows[1::2, 0] = np.arange(n)
    found = Associations(np.arange(0, 2 * n + 1, 2), rows, np.zeros(2 * n))
    return Cells(values, lower), found, np.arange(n, n + n_field)[:, None]


def test_a_deep_limit_tells_field_sources_from_counterparts_and_a_shallow_one_does_not(limited):
    cells, found, field = limited
    nothing = np.empty((found.n_base, 0))
    p, n = np.tile([0.0, 1.0], found.n_base), found.n_base
    ratio = MixturePhotometry(Magnitudes.of(nothing, [cells]), field).learn(found, p)
    others = Associations(
        found.starts, np.where(found.rows < 0, -1, found.rows + n), np.zeros(2 * n)
    )
    limits, of_field = cells.lower[n : 2 * n, 1], ratio(others)[1::2]
    deep, shallow = (of_field[limits == limit].mean() for limit in (20.0, 16.0))
    assert deep < shallow - 1.5


def test_an_object_that_a_survey_does_not_see_is_fainter_than_its_depth(limited):
    cells, found, _ = limited
    depth = Cells(np.full((found.n_base, 2), np.nan), np.tile([np.nan, 19.5], (found.n_base, 1)))
    plain = Magnitudes.of(np.empty((found.n_base, 0)), [cells])
    known = Magnitudes(plain.base, plain.surveys, plain.parts, (depth,))
    sets = known.of_sets(np.array([0, 1]), np.array([[-1], [1]]))
    assert np.isnan(sets.values[0]).all()
    assert sets.lower[0, 1] == 19.5
    np.testing.assert_array_equal(sets.values[1], cells.values[1])
    assert known.of_sets(None, np.array([[-1]])).lower[0, 1] == 19.5


def test_where_a_set_of_surveys_is_rare_in_the_field_its_candidates_are_parts_of_larger_groups():
    rng = np.random.default_rng(1)
    rows = np.stack([np.arange(3000), np.where(np.arange(3000) < 900, np.arange(3000), -1)], axis=1)
    rows[0, 0] = -1  # one source that the second survey sees alone
    more = _with_parts(rows, rng)[len(rows) :]
    assert len(more) == LEAST_FIELD - 1
    assert np.all(more[:, 0] == -1)
    assert len(np.unique(more[:, 1])) == len(more)
    assert set(more[:, 1]) <= set(range(1, 900))
    alone = rows[:10, :1] + 1
    np.testing.assert_array_equal(_with_parts(alone, rng), alone)


def test_a_source_that_one_survey_would_see_alone_looks_like_the_field_that_it_is_part_of():
    """All field sources are in both surveys; so is the field that a lone candidate is judged by."""
    rng, n = np.random.default_rng(2), 600
    first, second = rng.normal(22, 1, (n, 1)), rng.normal(18, 1, (n, 1))
    objects = 200
    rows = np.full((2 * objects, 2), -1)
    rows[1::2] = np.arange(objects)[:, None]
    found = Associations(np.arange(objects + 1) * 2, rows, np.tile([0.0, 9.0], objects))
    nothing = np.empty((objects, 0))
    elsewhere = np.repeat(np.arange(objects, n)[:, None], 2, axis=1)
    photometry = MixturePhotometry(Magnitudes.of(nothing, [first, second]), elsewhere)
    ratio = photometry.learn(found, np.tile([0.05, 0.95], objects))
    lone = np.stack([np.full(n, -1), np.arange(n)], axis=1)
    judged = ratio.learned.theirs.log_density(photometry.magnitudes.of_sets(None, lone), lone)
    expected = norm.logpdf(second[:, 0], second[objects:].mean(), second[objects:].std())
    middle = np.abs(second[:, 0] - 18) < 1.5
    # The mixture takes gaps of the two surveys for independent here, which costs log(3 / 2).
    assert_allclose((judged - expected)[middle], np.log(2 / 3), atol=0.1)
