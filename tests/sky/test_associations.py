"""Weights of associations: closed forms, integrals, sums over all groupings, limits."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import dblquad

from skyfill.errors import CatalogError
from skyfill.sky.associations import Associations, associate
from skyfill.sky.completeness import fit_completeness
from skyfill.sky.ellipses import Sources, circles, ellipses
from skyfill.sky.matching import match_positions
from skyfill.sky.neighbors import count_neighbors, find_neighbors
from skyfill.sky.posterior import probabilities, summarize
from skyfill.sky.sphere import ARCSEC
from tests.sky.fields import scattered

ARC = 1 / 3600


def at(x_arcsec, y_arcsec, cov, dec=0.0) -> Sources:
    """Sources at offsets east and north of (10, dec)."""
    x, y = np.atleast_1d(x_arcsec), np.atleast_1d(y_arcsec)
    return Sources(10 + x * ARC / np.cos(np.radians(dec)), dec + y * ARC, cov)


def test_two_circles_have_the_bayes_factor_of_budavari_and_szalay():
    """B = 2 / (s1^2 + s2^2) exp(-psi^2 / 2 (s1^2 + s2^2)), radians, over 4 pi density."""
    s1, s2, psi, density = 1.5, 0.7, 2.0, 1e-3
    found = associate(at(0, 0, circles(s1)), [at(psi, 0, circles(s2))], [density], [10.0])
    total = (s1**2 + s2**2) * ARCSEC**2
    bayes = 2 / total * math.exp(-((psi * ARCSEC) ** 2) / (2 * total))
    whole_sky = density * 4 * math.pi / ARCSEC**2
    assert found.rows.tolist() == [[-1], [0]]
    assert_allclose(found.log_weight, [0, math.log(bayes / whole_sky)], rtol=1e-7)


def test_three_circles_have_the_bayes_factor_of_budavari_and_szalay():
    """Their equation 17, with the three separations of a right triangle of sides 3, 4, 5."""
    s = np.array([1.0, 2.0, 3.0]) ** 2 * ARCSEC**2
    x, a, b = at(0, 0, circles(1.0)), at(3, 0, circles(2.0)), at(0, 4, circles(3.0))
    found = associate(x, [a, b], [1e-4, 1e-4], [10.0, 10.0], rest="ignore")
    pairs = s[0] * s[1] + s[1] * s[2] + s[2] * s[0]
    exponent = (s[2] * 9 + s[0] * 25 + s[1] * 16) * ARCSEC**2 / (2 * pairs)
    sky = 1e-4 * 4 * math.pi / ARCSEC**2
    assert found.rows[-1].tolist() == [0, 0]
    assert_allclose(found.log_weight[-1], math.log(4 / pairs / sky**2) - exponent, rtol=1e-7)


def density_of(offset, cov):
    def density(x, y):
        d = np.array([x, y]) - offset
        return math.exp(-d @ np.linalg.solve(cov, d) / 2) / (
            2 * math.pi * math.sqrt(np.linalg.det(cov))
        )

    return density


def test_ellipses_agree_with_the_integral_over_the_true_position():
    shapes = [(2.0, 0.5, 30.0), (1.5, 1.0, 100.0), (3.0, 0.8, -20.0)]
    offsets = [(0.0, 0.0), (1.0, -0.5), (-0.3, 1.2)]
    covs = [ellipses(*([part] for part in shape)) for shape in shapes]
    x, a, b = (at(*o, cov) for o, cov in zip(offsets, covs, strict=True))
    found = associate(x, [a, b], [1.0, 1.0], [9.0, 9.0], rest="ignore")
    matrices = [np.array([[c[0, 0], c[0, 1]], [c[0, 1], c[0, 2]]]) for c in covs]
    parts = [density_of(np.array(o), m) for o, m in zip(offsets, matrices, strict=True)]
    for chosen, log_weight in zip(found.rows, found.log_weight, strict=True):
        taken = [parts[0], *(parts[k + 1] for k in range(2) if chosen[k] >= 0)]
        whole, _ = dblquad(lambda y, x: math.prod(f(x, y) for f in taken), -15, 15, -15, 15)  # noqa: B023
        assert_allclose(log_weight, math.log(whole), atol=1e-5)


def test_the_first_axis_of_an_ellipse_points_north_at_angle_zero_and_east_at_90():
    for angle, (x, y) in ((0.0, (0.0, 3.0)), (90.0, (3.0, 0.0)), (45.0, (2.0, 2.0))):
        cov = ellipses([2.0], [0.5], [angle])
        along = associate(at(0, 0, cov), [at(x, y, circles(0.1))], [1.0], [9.0]).log_weight[1]
        across = associate(at(0, 0, cov), [at(-y, x, circles(0.1))], [1.0], [9.0]).log_weight[1]
        assert along > across + 3


def test_within_the_beam_the_base_may_lie_anywhere_towards_a_fainter_neighbor():
    """The weight is the mean of those of a base moved back by its neighbor's share of the light."""
    density, radii = [1e-3, 2e-3], [6.0, 6.0]
    first = at([0.6, 1.9, -5.0], [0.2, 0.9, 0.0], circles([0.2, 0.2, 0.2]))
    second = at(0.5, 0.3, circles(0.3))
    shares = 1 / (1 + 10 ** (0.4 * (np.arange(5) + 0.5)))

    def weight(x, y, beam=0.0):
        found = associate(at(x, y, circles(0.5)), [first, second], density, radii, rest="ignore",
                          beam_arcsec=beam)  # fmt: skip
        row = np.flatnonzero((found.rows == [0, 0]).all(axis=1))[0]
        return found.log_weight[row]

    moved = [weight(-share * 1.3, -share * 0.7) for share in shares]
    assert_allclose(weight(0, 0, beam=2.0), np.log(np.mean(np.exp(moved))), rtol=1e-6)
    assert weight(0, 0, beam=1.0) == weight(0, 0)


def test_near_a_pole_north_turns_with_right_ascension():
    """A survey source on the far side of the pole: its north is the south of the base object."""
    base = Sources(np.array([0.0]), np.array([90 - ARC]), circles(0.5))
    far = Sources(np.array([90.0]), np.array([90 - ARC]), ellipses([3.0], [0.3], [0.0]))
    # Seen from the base, the source's north-south axis runs east-west.
    turned = Sources(np.array([0.0]), np.array([0.0]), circles(0.5))
    equal = Sources(np.array([ARC]), np.array([ARC]), ellipses([3.0], [0.3], [90.0]))
    here, there = (
        associate(b, [s], [1.0], [9.0]).log_weight for b, s in ((base, far), (turned, equal))
    )
    assert_allclose(here, there, rtol=1e-5)


def test_in_the_limit_of_small_errors_the_best_association_is_the_nearest_match():
    left, right = scattered(200, 1), scattered(300, 2)
    base, survey = (Sources(*p, circles(np.full(len(p[0]), 0.01))) for p in (left, right))
    found = associate(base, [survey], [1e-3], [20.0])
    best = summarize(found, probabilities(found, np.array([0.5])))
    weights = found.log_weight
    nearest = match_positions(*left, *right, 20.0, keep="best")
    likeliest = [
        found.rows[a + 1 + np.argmax(weights[a + 1 : b]), 0]
        for a, b in itertools.pairwise(found.starts)
        if b > a + 1
    ]
    assert_array_equal(likeliest, nearest.right)
    assert_array_equal(best.p_any[np.diff(found.starts) == 1], 0.0)


def every_grouping(sources):
    """All ways to cut a list of (survey, ...) into sets with at most one source per survey."""
    if not sources:
        yield []
        return
    first, *others = sources
    for size in range(len(others) + 1):
        for joined in itertools.combinations(others, size):
            block = (first, *joined)
            if len({s[0] for s in block}) == len(block):
                for groups in every_grouping([s for s in others if s not in joined]):
                    yield [block, *groups]


def test_the_sum_over_the_rest_is_the_sum_over_all_groupings_of_all_sources():
    """Brute force: three surveys, seven sources within a few sigmas of each other."""
    rng = np.random.default_rng(4)
    density, sigmas = [0.02, 0.03, 0.05], [0.5, 0.7, 0.4]
    offsets = [rng.normal(0, 1.0, (n, 2)) for n in (2, 3, 2)]
    surveys = [
        at(o[:, 0], o[:, 1], circles(np.full(len(o), s)))
        for o, s in zip(offsets, sigmas, strict=True)
    ]
    base = at(0, 0, circles(1.0))
    found = associate(base, surveys, density, [9.0] * 3, rest="sum")

    def log_block(block, with_base):
        w = [1 / sigmas[k] ** 2 for k, _ in block] + [1.0] * with_base
        x = [offsets[k][j] for k, j in block] + [np.zeros(2)] * with_base
        mean = np.average(x, axis=0, weights=w)
        q = sum(wi * np.sum((xi - mean) ** 2) for wi, xi in zip(w, x, strict=True))
        log_e = np.sum(np.log(w)) - np.log(np.sum(w)) - (len(w) - 1) * np.log(2 * np.pi) - q / 2
        log_rho = [np.log(density[k]) for k, _ in block]
        return log_e - sum(log_rho) + (0 if with_base or len(block) == 1 else min(log_rho))

    sources = [(k, j) for k, o in enumerate(offsets) for j in range(len(o))]

    def total_without(taken):
        left = [s for s in sources if s not in taken]
        return sum(
            math.exp(sum(log_block(b, with_base=False) for b in groups if len(b) > 1))
            for groups in every_grouping(left)
        )

    for rows, weight in zip(found.rows.tolist(), found.log_weight, strict=True):
        taken = [(k, j) for k, j in enumerate(rows) if j >= 0]
        expected = math.log(total_without(taken) / total_without([]))
        expected += log_block(taken, with_base=True) if taken else 0.0
        assert_allclose(weight, expected, atol=0.02)  # links below odds of 0.01 are cut


def test_two_sources_that_coincide_far_from_the_object_are_no_evidence_for_a_counterpart():
    """Without the rest, their coincidence would count as evidence that they are its counterpart."""
    x = at(0, 0, circles(1.0))
    pair = [at(4.0, 0, circles(0.05)), at(4.0, 0.01, circles(0.05))]
    told = {
        rest: associate(x, pair, [1e-3, 1e-3], [9.0, 9.0], rest=rest)
        for rest in ("sum", "best", "ignore")
    }
    p_any = {
        k: summarize(f, probabilities(f, np.array([0.5, 0.5]))).p_any[0] for k, f in told.items()
    }
    alone = associate(x, pair[:1], [1e-3], [9.0])
    single = summarize(alone, probabilities(alone, np.array([0.5]))).p_any[0]
    assert p_any["ignore"] > 0.99
    assert_allclose(p_any["sum"], single, atol=0.02)
    assert p_any["best"] < 0.3


@given(
    seed=st.integers(0, 10_000),
    n_surveys=st.integers(1, 3),
    rest=st.sampled_from(["sum", "best", "ignore"]),
)
@settings(max_examples=25)
def test_probabilities_of_each_object_sum_to_one_and_none_comes_first(seed, n_surveys, rest):
    rng = np.random.default_rng(seed)
    lists = [
        Sources(*scattered(30, seed + k, width=0.004), circles(rng.uniform(0.1, 2, 30)))
        for k in range(n_surveys + 1)
    ]
    found = associate(lists[0], lists[1:], np.full(n_surveys, 0.01), [4.0] * n_surveys, rest=rest)
    p = probabilities(found, rng.uniform(0.1, 0.9, n_surveys))
    assert_allclose(np.add.reduceat(p, found.starts[:-1]), 1.0)
    assert np.all(found.rows[found.starts[:-1]] == -1)
    assert_allclose(found.log_weight[found.starts[:-1]] if rest != "best" else 0.0, 0.0, atol=1e-12)
    best = summarize(found, p)
    assert_allclose(best.p_any, 1 - p[found.starts[:-1]], atol=1e-12)
    assert np.all((best.p_i >= 0) & (best.p_i <= 1 + 1e-12))


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20)
def test_the_order_of_surveys_and_the_direction_of_the_sky_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    x, a, b = (
        Sources(*scattered(20, seed + k, width=0.003), circles(rng.uniform(0.2, 1, 20)))
        for k in range(3)
    )
    one = associate(x, [a, b], [0.01, 0.03], [4.0, 5.0])
    two = associate(x, [b, a], [0.03, 0.01], [5.0, 4.0])
    ones = summarize(one, probabilities(one, np.array([0.7, 0.4])))
    twos = summarize(two, probabilities(two, np.array([0.4, 0.7])))
    assert_allclose(ones.p_any, twos.p_any, rtol=1e-9)
    assert_allclose(ones.p_i, twos.p_i, rtol=1e-9)


def test_neighbors_are_the_pairs_of_the_plain_match():
    left, right = scattered(500, 1), scattered(800, 2)
    found = find_neighbors(left, right, 10.0)
    pairs = match_positions(*left, *right, 10.0, keep="all")
    order = np.lexsort((pairs.right, pairs.left))
    assert_array_equal(found.rows, pairs.right[order])
    assert_array_equal(np.diff(found.starts), pairs.n_candidates)


@given(seed=st.integers(0, 10_000), radius=st.floats(0, 3 * 3600 * 60))
@settings(max_examples=30)
def test_neighbors_are_found_over_poles_and_the_zero_meridian(seed, radius):
    rng = np.random.default_rng(seed)
    left, right = (
        (rng.uniform(-10, 370, 40), np.degrees(np.arcsin(rng.uniform(-1, 1, 40)))) for _ in range(2)
    )
    found = find_neighbors(left, right, radius)
    pairs = match_positions(*left, *right, radius, keep="all")
    order = np.lexsort((pairs.right, pairs.left))
    assert_array_equal(found.rows, pairs.right[order])


def test_each_row_may_have_its_own_radius_and_rows_without_a_position_have_no_neighbors():
    left = np.array([10.0, 10.0, np.nan]), np.zeros(3)
    right = np.array([10.0, 10.002, np.nan]), np.zeros(3)
    found = find_neighbors(left, right, np.array([1.0, 10.0, 10.0]))
    assert found.starts.tolist() == [0, 1, 3, 3]
    assert found.rows.tolist() == [0, 0, 1]
    assert count_neighbors(left, right, np.array([1.0, 10.0, 10.0])).tolist() == [1, 2, 0]


def test_completeness_by_em_finds_the_share_of_objects_with_a_counterpart():
    rng = np.random.default_rng(3)
    n, share = 4000, 0.6
    ra, dec = rng.uniform(10, 12, n), rng.uniform(-1, 1, n)
    has = rng.uniform(size=n) < share
    true = (
        ra[has] + rng.normal(0, 1, has.sum()) * ARC / np.cos(np.radians(dec[has])),
        dec[has] + rng.normal(0, 1, has.sum()) * ARC,
    )
    field = rng.uniform(10, 12, 40_000), rng.uniform(-1, 1, 40_000)
    survey = Sources(
        *(np.append(t, f) for t, f in zip(true, field, strict=True)),
        circles(np.full(has.sum() + 40_000, 0.1)),
    )
    density = np.array([40_000 / (4 * 3600**2)])
    found = associate(Sources(ra, dec, circles(np.full(n, 1.0))), [survey], density, [6.0])
    fit = fit_completeness(found)
    assert fit.converged
    assert abs(fit.shares[0] - has.mean()) < 0.02
    best = summarize(found, probabilities(found, fit.shares))
    assert abs(best.p_any.mean() - fit.shares[0]) < 1e-4


def test_shares_may_depend_on_the_position_error():
    """Two errors, four tenths and nine tenths with a sure counterpart: a line has both."""
    n = 2000
    has = np.tile(np.arange(10) < 9, n // 10)
    has = np.append(has, np.tile(np.arange(10) < 4, n // 10))
    starts = np.concatenate([[0], np.cumsum(1 + has)])
    rows = np.full((starts[-1], 1), -1)
    rows[starts[:-1][has] + 1] = 0
    found = Associations(starts, rows, np.where(rows[:, 0] >= 0, 50.0, 0.0))
    fit = fit_completeness(found, variance=np.repeat([1.0, 100.0], n))
    assert_allclose(fit.of(np.array([1.0, 100.0]))[:, 1], [0.9, 0.4], atol=2e-3)
    assert_allclose(fit.shares, [0.65], atol=1e-3)
    assert fit_completeness(found, variance=np.ones(2 * n)).trend is None


def test_weak_evidence_does_not_make_shares_depend_on_the_position_error():
    """Odds of e^0.5 apart at most, as often one way as the other; the shares are 0.8 for all."""
    n, changes = 2000, []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        has, log_error = rng.random(n) < 0.8, rng.normal(0, 1, n)
        log_weight = 0.5 * rng.normal(0.5 * has, 1) - 0.125
        rows = np.tile([[-1], [0]], (n, 1))
        weight = np.stack([np.zeros(n), log_weight], axis=1).ravel()
        found = Associations(2 * np.arange(n + 1), rows, weight)
        trend = fit_completeness(found, variance=np.exp(2 * log_error)).trend
        changes.append(trend.logits[1, 1] - trend.logits[1, 0])
    assert np.sqrt(np.mean(np.square(changes))) < 0.15


def test_a_stated_share_does_not_depend_on_the_position_error():
    found = Associations(np.array([0, 1, 2]), np.array([[-1], [-1]]), np.zeros(2))
    fit = fit_completeness(found, stated=np.array([0.3]), variance=np.array([1.0, 9.0]))
    assert_allclose(fit.of(np.array([1.0, 9.0])), [[0.7, 0.3]] * 2)


def test_completeness_counts_covered_objects_only():
    sure = Associations(
        np.array([0, 2, 3, 4]), np.array([[-1], [0], [-1], [-1]]), np.array([0, 50, 0, 0.0])
    )
    covered = np.array([[True], [True], [False]])
    assert_allclose(fit_completeness(sure, covered=covered).shares, [0.5], atol=1e-3)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
def test_an_error_that_is_no_length_is_refused_with_its_row(bad):
    with pytest.raises(CatalogError, match="row 2: the position error is .* length above 0"):
        circles([1.0, bad])
    with pytest.raises(CatalogError, match="row 1: the second axis"):
        ellipses([1.0], [bad], [0.0])


def test_a_density_of_zero_is_refused():
    x = at(0, 0, circles(1.0))
    with pytest.raises(CatalogError, match="density is 0"):
        associate(x, [x], [0.0], [1.0])


def test_without_a_sum_over_the_rest_the_sets_of_the_field_do_not_matter():
    x, pair = at(0, 0, circles(1.0)), [at(1.0, 0, circles(0.1)), at(1.0, 0.1, circles(0.1))]
    sets = np.array([0.0, 5.0, 1.0, 20.0])
    for rest in ("ignore", "best"):
        one, two = (
            associate(x, pair, [1e-3, 1e-4], [5.0, 5.0], rest=rest, field_sets=s)
            for s in (None, sets)
        )
        assert_array_equal(one.log_weight, two.log_weight)


def test_lone_sources_of_the_field_are_rarer_than_all_sources():
    """Of survey a's sources 20 of 25 are seen by b too: a lone one is five times as telling."""
    x, pair = at(0, 0, circles(1.0)), [at(1.0, 0, circles(0.1)), at(60.0, 0, circles(0.1))]
    one, two = (
        associate(x, pair, [1e-3, 1e-4], [5.0, 5.0], field_sets=s)
        for s in (None, np.array([0.0, 5.0, 0.0, 20.0]))
    )
    assert_allclose(two.log_weight[1] - one.log_weight[1], np.log(5))


def test_pairs_weigh_what_sets_of_surveys_weigh_if_one_survey_is_empty():
    rng = np.random.default_rng(5)
    ra, dec = rng.uniform(30, 30.02, 40), rng.uniform(80, 80.004, 40)
    turned = ellipses(rng.uniform(1, 3, 40), rng.uniform(0.3, 1, 40), rng.uniform(0, 180, 40))
    base, survey = Sources(ra[:10], dec[:10], turned[:10]), Sources(ra, dec, turned)
    nothing = Sources(np.empty(0), np.empty(0), np.empty((0, 3)))
    alone = associate(base, [survey], np.array([1e-3]), [20.0])
    both = associate(base, [survey, nothing], np.array([1e-3, 1e-3]), [20.0, 20.0])
    assert_array_equal(both.rows[:, 0], alone.rows[:, 0])
    assert_allclose(alone.log_weight, both.log_weight, rtol=1e-9, atol=1e-9)
