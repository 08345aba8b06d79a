"""Densities of field sources: at borders, by sets of surveys, and without base objects."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skyfill.catalog import Table
from skyfill.sky import (
    CounterpartRules,
    PositionError,
    Survey,
    group_elsewhere,
    local_density,
    read_surroundings,
)
from skyfill.sky.counterparts import with_sets
from skyfill.sky.elsewhere import count_groups, likely_same
from skyfill.sky.posterior import patterns_of

SIDE, ARC = 0.7, 1 / 3600
N_SETS = {1: 16_000, 2: 300, 3: 6_000}
ERRORS = {"sharp": 0.15, "coarse": 0.4}


def scatter(rng, n, margin_arcsec=0.0):
    half = SIDE / 2 - margin_arcsec * ARC
    return rng.uniform(-half, half, (2, n))


def survey_of(name, place, rng):
    ra, dec = place + rng.normal(0, ERRORS[name] * ARC, place.shape)
    table = Table.from_columns({"ra": 10 + ra, "dec": dec})
    return Survey(name, table, 0.0, error=PositionError(value=ERRORS[name]))


def field_around(places, sigma, rng):
    """Two surveys of a square field, each complete for some kinds of sources, and objects there."""
    alone, coarse, both = (scatter(rng, n) for n in N_SETS.values())
    surveys = [
        survey_of("sharp", np.concatenate([alone, both], axis=1), rng),
        survey_of("coarse", np.concatenate([coarse, both], axis=1), rng),
    ]
    table = Table.from_columns({"ra": 10 + places[0], "dec": places[1]})
    base = Survey("base", table, 0.0, error=PositionError(value=sigma))
    return read_surroundings(base, surveys)


def test_where_no_object_has_a_counterpart_the_weights_of_each_set_sum_to_one_on_average():
    """The mean Bayes factor over what it argues against is one (up to the border of the field)."""
    rng = np.random.default_rng(1)
    there = field_around(scatter(rng, 10_000, margin_arcsec=15), 6.0, rng)
    found = with_sets(there, CounterpartRules()).associate("sum")
    weight, sets = np.exp(found.log_weight), patterns_of(found.rows)
    for code, tolerance in ((1, 0.03), (2, 0.2), (3, 0.05)):
        assert_allclose(weight[sets == code].sum() / found.n_base, 1.0, atol=tolerance)


def test_groups_of_field_sources_are_as_many_as_there_are():
    rng = np.random.default_rng(2)
    there = field_around(scatter(rng, 20), 6.0, rng)
    counts = count_groups(group_elsewhere(there))
    seen = 1 - 20 * np.pi * (5 * 6.0) ** 2 / (SIDE * 3600) ** 2
    expected = np.array(list(N_SETS.values())) * seen
    assert_allclose(counts[1:], expected, rtol=0.01, atol=5 * np.sqrt(N_SETS[2] * (1 - seen)) + 6)


@settings(max_examples=30, deadline=None)
@given(share=st.floats(0.05, 0.95), log_density=st.floats(-6, -2), seed=st.integers(0, 99))
def test_pairs_are_cut_where_chance_is_as_likely(share, log_density, seed):
    """Those taken for one source are the nearer ones, about as many as there are."""
    rng, n = np.random.default_rng(seed), 5000
    density = 10**log_density
    true = rng.random(n) < share
    chance = np.sqrt(-np.log(rng.random(n)) / (np.pi * density))
    apart = np.where(true, np.sqrt(-2 * np.log(rng.random(n))), chance)
    near = apart[apart < 6]
    same = likely_same(near, density, n)
    assert near[same].max(initial=0.0) < near[~same].min(initial=np.inf)
    assert abs(same.sum() - true.sum()) < 5 * np.sqrt(n * share) + 0.06 * n


def test_the_density_at_the_border_of_a_survey_is_that_inside():
    rng, n, m = np.random.default_rng(3), 60_000, 1000
    survey = tuple(rng.uniform(-1, 1, (2, n)) + np.array([[10.0], [0.0]]))
    along, true = rng.uniform(-0.9, 0.9, m), n / 4 / 3600**2
    for inside_deg in (0.0, 0.02, 0.04, 0.1):
        found = local_density(np.full(m, 11.0 - inside_deg), along, survey)
        assert_allclose(np.mean(true / found), 1.0, atol=0.15)
    everywhere = local_density(10 + rng.uniform(-1, 1, 5 * m), rng.uniform(-1, 1, 5 * m), survey)
    assert_allclose(np.mean(true / everywhere), 1.01, atol=0.01)


def test_an_object_does_not_count_as_its_own_rival():
    rng = np.random.default_rng(4)
    lonely = np.array([[-0.2, 0.2], [0.0, 0.0]])
    assert field_around(lonely, 6.0, rng).conditions.crowding == (0.0, 0.0)
    pair = np.array([[-0.001, 0.001], [0.0, 0.0]])
    assert_allclose(field_around(pair, 6.0, rng).conditions.crowding, 1 / 99)
