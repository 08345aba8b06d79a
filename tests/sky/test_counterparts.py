"""Counterparts from tables: errors in any unit, thresholds, tables of the best and of all."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.catalog import Table
from skyfill.errors import CatalogError
from skyfill.sky import (
    BASE_ROW,
    PROBABILITY,
    CounterpartRules,
    CounterpartWarning,
    PositionError,
    Survey,
    association_table,
    counterpart_table,
    find_counterparts,
    find_threshold,
    group_elsewhere,
    read_surroundings,
)

ARC = 1 / 3600
N, AREA = 300, 0.25


def make(seed=0, *, share=0.7, sigma=2.0, n_field=2500):
    """Objects in a square of half a degree, of which a share has a counterpart in a survey."""
    rng = np.random.default_rng(seed)
    ra, dec = rng.uniform(10, 10.5, N), rng.uniform(-0.25, 0.25, N)
    has = rng.uniform(size=N) < share
    true = [angle[has] + rng.normal(0, 0.1, has.sum()) * ARC for angle in (ra, dec)]
    field = rng.uniform(10, 10.5, n_field), rng.uniform(-0.25, 0.25, n_field)
    survey = {
        "ra": np.append(true[0], field[0]),
        "dec": np.append(true[1], field[1]),
        "mag": np.append(rng.normal(20, 1, has.sum()), rng.normal(22, 1, n_field)),
    }
    base = {
        "id": np.arange(N),
        "ra": ra + rng.normal(0, sigma, N) * ARC,
        "dec": dec + rng.normal(0, sigma, N) * ARC,
        "pos_err": np.full(N, sigma),
    }
    truth = np.where(has, np.cumsum(has) - 1, -1)
    return Table.from_columns(base), Table.from_columns(survey), truth


def field_of(base, survey, **how):
    stated = Survey("s", survey, 0.0, error=PositionError(value=0.1), area_deg2=AREA)
    return stated, read_surroundings(Survey("base", base, 0.0), [stated], **how)


def test_probabilities_are_right_as_often_as_they_say():
    right, said, n_any, p_any = 0, 0.0, 0, 0.0
    for seed in range(6):
        base, survey, truth = make(seed)
        _, there = field_of(base, survey)
        found = find_counterparts(there, CounterpartRules(one_to_one=False))
        rows = found.associations.rows[found.best.chosen, 0]
        right += np.count_nonzero((rows == truth) & (truth >= 0))
        said += np.sum(found.best.p_any * found.best.p_i)
        n_any, p_any = n_any + np.count_nonzero(truth >= 0), p_any + found.best.p_any.sum()
    assert abs(right - said) / (6 * N) < 0.03
    assert abs(n_any - p_any) / (6 * N) < 0.03


def test_the_table_of_the_best_says_how_sure_each_is():
    base, survey, truth = make()
    stated, there = field_of(base, survey)
    rules = CounterpartRules()
    found = find_counterparts(there, rules)
    table, (report,) = counterpart_table(base, [stated], there, found, rules)
    assert len(table) == N
    flags = np.array(table.column("flag").to_pylist())
    p_any = table.numbers("p_any")[:, 0]
    assert_array_equal(flags == "none", p_any < 0.5)
    assert np.isnan(table.numbers("mag_s")[flags == "none", 0]).all()
    assert set(table.reasons("mag_s").to_pylist()) == {None, "unmatched"}
    sigma = table.numbers("sigma_s")[:, 0]
    separation = table.numbers("sep_s")[:, 0]
    assert_allclose(sigma, separation / np.hypot(2.0, 0.1), rtol=1e-4)
    assert report.matched == np.count_nonzero(flags != "none")
    assert abs(report.completeness - np.mean(truth >= 0)) < 0.1
    secure = flags == "secure"
    assert np.all(table.numbers("n_rivals")[secure, 0] == 0)


def test_the_table_of_all_associations_sums_to_one_for_each_object():
    base, survey, _ = make()
    stated, there = field_of(base, survey)
    found = find_counterparts(there, CounterpartRules())
    table = association_table(base, [stated], there, found)
    assert len(table) == len(found.associations)
    owner = table.numbers(BASE_ROW)[:, 0].astype(int)
    p = table.numbers(PROBABILITY)[:, 0]
    assert_allclose(np.bincount(owner, weights=p), 1.0)
    assert_array_equal(table.numbers("id")[:, 0], owner)
    short = association_table(base, [stated], there, found, least=0.05)
    assert len(short) < len(table)
    owner, p = short.numbers(BASE_ROW)[:, 0].astype(int), short.numbers(PROBABILITY)[:, 0]
    assert_allclose(np.bincount(owner, weights=p), 1.0)


def test_a_stricter_threshold_accepts_fewer_by_chance():
    base, survey, _ = make(n_field=20_000)
    _, there = field_of(base, survey)
    rules = CounterpartRules()
    found = find_counterparts(there, rules)
    loose, strict = (find_threshold(there, found, rules, false_rate=r) for r in (0.5, 0.05))
    assert loose.p_any < strict.p_any
    assert np.all(np.diff(strict.accepted) <= 0)
    assert strict.at(strict.p_any)[0] >= 0.95
    assert strict.chance[0] == 1.0


def test_errors_are_read_in_any_unit_and_for_any_share():
    base, survey, _ = make()
    in_deg = base.with_column("pos_err", np.full(N, 2.0 / 3600))
    ninety = base.with_column("pos_err", np.full(N, 2.0 * 2.1460))
    plain = read_surroundings(
        Survey("base", base, 0.0), [Survey("s", survey, 0.0, error=PositionError(value=0.1))]
    )
    for table, text in ((in_deg, "pos_err:deg"), (ninety, "pos_err@90")):
        stated = Survey("base", table, 0.0, error=PositionError.parse(text))
        other = read_surroundings(
            stated, [Survey("s", survey, 0.0, error=PositionError(value=0.1))]
        )
        assert_allclose(other.base.cov, plain.base.cov, rtol=1e-4)


def test_errors_that_nobody_states_are_estimated_from_the_separations():
    base, survey, _ = make(sigma=1.0)
    base = base.drop(["pos_err"])
    there = read_surroundings(Survey("base", base, 0.0), [Survey("s", survey, 8.0)])
    total = there.base.variance[0] + there.surveys[0].variance[0]
    assert_allclose(np.sqrt(total), np.hypot(1.0, 0.1), rtol=0.1)


def test_rows_without_an_error_get_the_median_and_a_warning_counts_them():
    base, survey, _ = make()
    some = base.with_column("pos_err", np.where(np.arange(N) < 7, np.nan, 2.0))
    with pytest.warns(CounterpartWarning, match=f"base: 7 of {N} rows have no position error"):
        _, there = field_of(some, survey)
    assert_allclose(there.base.cov[:, 0], 4.0)


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (np.zeros(N), "row 1: a position error of 0"),
        (np.full(N, np.nan), "no position error at all"),
    ],
)
def test_errors_of_zero_or_none_are_refused(column, words):
    base, survey, _ = make()
    with pytest.raises(CatalogError, match=words):
        field_of(base.with_column("pos_err", column), survey)


def test_a_radius_smaller_than_the_errors_is_a_warning():
    base, survey, _ = make()
    small = Survey("s", survey, 3.0, error=PositionError(value=0.1), area_deg2=AREA)
    with pytest.warns(CounterpartWarning, match=r"below 3 standard deviations for 300 of 300"):
        read_surroundings(Survey("base", base, 0.0), [small])


def test_catalogues_without_overlap_are_refused():
    base, survey, _ = make()
    elsewhere = survey.with_column("ra", survey.numbers("ra")[:, 0] + 90)
    with pytest.raises(CatalogError, match="do not overlap"):
        field_of(base, elsewhere)


def test_areas_that_contradict_the_density_are_a_warning():
    base, survey, _ = make()
    vast = Survey("s", survey, 0.0, error=PositionError(value=0.1), area_deg2=100.0)
    with pytest.warns(CounterpartWarning, match="an area of 100 square degrees"):
        read_surroundings(Survey("base", base, 0.0), [vast])
    wrong = Survey("s", survey, 0.0, error=PositionError(value=0.1), area_deg2=1e6)
    with pytest.raises(CatalogError, match="at most the whole sky"):
        read_surroundings(Survey("base", base, 0.0), [wrong])


def test_sources_elsewhere_are_grouped_over_surveys_and_lie_beyond_the_reach():
    base, survey, _ = make()
    rng = np.random.default_rng(1)
    half = survey.arrow.take(np.arange(0, len(survey), 2))
    other = Table(half).with_column(
        "ra", half["ra"].to_numpy() + rng.normal(0, 0.1, len(half)) * ARC
    )
    surveys = [
        Survey(n, t, 0.0, error=PositionError(value=0.1)) for n, t in (("a", survey), ("b", other))
    ]
    there = read_surroundings(Survey("base", base, 0.0), surveys)
    groups = group_elsewhere(there)
    pairs = groups[(groups >= 0).all(axis=1)]
    assert len(pairs) > 0.45 * np.count_nonzero(groups[:, 0] >= 0)
    assert np.mean(pairs[:, 0] == 2 * pairs[:, 1]) > 0.97
    assert len(np.unique(groups[groups[:, 0] >= 0, 0])) == np.count_nonzero(groups[:, 0] >= 0)


@pytest.mark.parametrize("text", ["", "a:b", "a:b:c:d:e", "err@0", "err@x"])
def test_words_that_are_no_position_error_are_refused(text):
    if text == "a:b":
        assert PositionError.parse(text).unit == "b"
        return
    with pytest.raises(CatalogError, match="position error|percentage"):
        PositionError.parse(text)
