"""Forests that correct mixtures: what they gain, and what they must not touch."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.impute import NetworkImputer
from skyfill.impute.hidden_views import hide_column
from skyfill.impute.pulls import NO_CHOICE, NONE, Held, Rule, chance_of
from skyfill.impute.refined_network import RefinedNetwork
from skyfill.impute.refinement import Pull, Refinement, ratio, trust
from skyfill.impute.refining import MOST_DISTANCE, find_distances
from skyfill.impute.regression_trees import RegressionTrees, flatten_trees, join_trees
from skyfill.network import Cells, learn_mixture
from skyfill.network.mixture.calibration import STEPS


def rule_table(n=500, seed=0, rate=0.15):
    """Columns of which one is the size of another: a rule that one Gaussian cannot see."""
    rng = np.random.default_rng(seed)
    a, b, noise = rng.normal(size=(3, n))
    X = np.column_stack([a, b, np.abs(a) + 0.05 * noise, b + 0.3 * noise])
    return X, np.where(rng.random(X.shape) < rate, np.nan, X)


def imputer(refine="trees", **options):
    options = {"n_fits": 1, "shrinkage": 5.0, "random_state": 0} | options
    return NetworkImputer(1, refine=refine, **options)


@pytest.fixture(scope="module")
def fitted():
    """The same mixture without forests and with them."""
    X = rule_table()[1]
    return imputer(None).fit(X), imputer().fit(X)


def test_a_rule_that_a_gaussian_cannot_see_is_learned(fitted):
    truth, new = rule_table(seed=1)
    lost = np.isnan(new[:, 2])
    errors = [np.std((each.transform(new) - truth)[lost, 2]) for each in fitted]
    assert errors[1] < 0.7 * errors[0]
    widths = [np.subtract(*each.interval(new)[::-1])[lost, 2].mean() for each in fitted]
    assert widths[1] < 0.9 * widths[0]


def test_intervals_hold_what_they_promise(fitted):
    truth, new = rule_table(n=4000, seed=2)
    low, high = fitted[1].interval(new, 0.9)
    lost = np.isnan(new)
    inside = ((low <= truth) & (truth <= high))[lost]
    assert 0.87 < inside.mean() < 0.93


def test_the_mixture_is_the_same_with_and_without(fitted):
    plain, refined = (each.network_ for each in fitted)
    assert_array_equal(plain.fits[0].means, refined.fits[0].means)
    assert fitted[0].refinement_ is None


def test_seen_cells_stay_and_a_row_is_filled_alone_as_among_others(fitted):
    new = rule_table(n=40, seed=3)[1]
    new[0], new[:, 3] = np.nan, np.nan
    for found in (fitted[1].transform(new), *fitted[1].quantiles(new, [0.1, 0.9])):
        seen = ~np.isnan(new)
        assert (found[seen].view(np.int64) == new[seen].view(np.int64)).all()
        assert np.isfinite(found).all()
    alone = np.vstack([fitted[1].transform(row[None]) for row in new])
    assert_allclose(alone, fitted[1].transform(new), rtol=1e-9)


def test_quantiles_rise_and_no_draw_leaves_the_range(fitted):
    new = rule_table(n=200, seed=4)[1]
    quantiles = fitted[1].quantiles(new, np.linspace(0.02, 0.98, 25))
    assert (np.diff(quantiles, axis=0) >= -1e-9).all()
    draws, plain = (each.sample(new, 20, random_state=0) for each in fitted[::-1])
    low, high = plain.min(axis=(0, 1)), plain.max(axis=(0, 1))
    wide = 3 * (high - low)
    assert ((draws > low - wide) & (draws < high + wide)).all()


def test_draws_keep_the_order_of_the_draws_of_mixtures(fitted):
    new = rule_table(n=50, seed=5)[1]
    plain, refined = (each.sample(new, 30, random_state=7) for each in fitted)
    rows, columns = np.nonzero(np.isnan(new))
    for row, column in zip(rows, columns, strict=True):
        order = np.argsort(plain[:, row, column], kind="stable")
        assert (np.diff(refined[order, row, column]) >= -1e-9).all()


def test_gaps_with_limits_are_those_of_the_mixtures(fitted):
    new = np.array([[1.0, 1.0, np.nan, 0.0]])
    limits = {"lower": np.array([[np.nan, np.nan, 0.5, np.nan]])}
    plain, refined = (each.posterior(new, **limits) for each in fitted)
    assert_array_equal(plain.mean, refined.mean)
    assert refined.mean[0, 2] > 0.5
    assert_array_equal(*(each.quantiles(new, [0.1, 0.9], **limits) for each in fitted))


def test_values_that_many_rows_share_stay_such_values():
    X = rule_table()[0]
    X[:, 2] = np.maximum(X[:, 2] - 0.7, 0.0)
    X[::4, 2] = np.nan
    draws = imputer().fit(X).sample(X, 20, random_state=0)[:, ::4, 2]
    assert np.mean(draws == 0.0) > 0.3
    assert (draws >= 0.0).all()


def test_units_rescale_the_answer():
    center, unit = np.array([5.0, 0.0, 100.0, -3.0]), 2.0 ** np.array([-20, 0, 20, 400])
    tables = rule_table()[1], rule_table(n=60, seed=6)[1]
    # Rounded alike, so that no value lies on the other side of the cut of a tree.
    X, new = (((table * unit + center) - center) / unit for table in tables)
    plain = imputer().fit(X).transform(new)
    rescaled = imputer().fit(X * unit + center).transform(new * unit + center)
    assert_allclose((rescaled - center) / unit, plain, rtol=0, atol=1e-6)


def test_the_same_seed_gives_the_same_forests(fitted):
    X, new = rule_table()[1], rule_table(n=30, seed=1)[1]
    assert_array_equal(fitted[1].transform(new), imputer().fit(X).transform(new))


def test_columns_of_noise_are_left_to_the_mixtures():
    tables = [np.random.default_rng(seed).normal(size=(300, 3)) for seed in range(10)]
    followed = [imputer("auto").fit(noise).refinement_ is not None for noise in tables]
    # A risk of 0.2 is taken.
    assert sum(followed) <= 2


def test_small_tables_are_left_to_the_mixtures():
    assert imputer().fit(rule_table(n=150)[1]).refinement_ is None


def test_columns_with_errors_are_left_to_the_mixtures():
    X = rule_table(n=300)[1]
    errors = np.full(X.shape, np.nan)
    errors[:, 2] = 0.05
    found = imputer().fit(X, errors=errors).refinement_
    assert found is None or 2 not in found.columns


def gaps_of_families(n=20_000):
    """Columns 0 and 1 are missing together, the third by itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    X[rng.random(n) < 0.3, :2] = np.nan
    X[rng.random(n) < 0.4, 2] = np.nan
    return Cells(X)


def test_a_column_is_hidden_with_what_is_missing_together_with_it():
    cells, rng = gaps_of_families(), np.random.default_rng(1)
    rows = np.flatnonzero(~np.isnan(cells.values[:, 0]))
    hidden = hide_column(cells, rows, 0, rng)
    lost = np.isnan(cells.values[rows])
    assert hidden[:, 0].all()
    assert not (hidden & lost).any()
    assert abs(hidden[:, 1].mean() - 0.5) < 0.02
    # Gaps that have nothing to do with the column stay as frequent as they are.
    assert abs((hidden | lost)[:, 2].mean() - 0.4) < 0.02


def test_a_column_without_gaps_is_hidden_with_cells_at_random():
    cells, rows = Cells(np.zeros((20_000, 6))), np.arange(20_000)
    hidden = hide_column(cells, rows, 3, np.random.default_rng(1))
    assert hidden[:, 3].all()
    assert_allclose(np.delete(hidden.mean(axis=0), 3), 0.1, atol=0.01)


def test_a_row_keeps_what_else_it_has_where_nothing_would_be_left():
    X = np.full((60, 2), np.nan)
    X[:30], X[30:, 0] = 1.0, 2.0
    assert not hide_column(Cells(X[:, ::-1]), np.arange(30), 0, np.random.default_rng(0))[
        :, 1
    ].any()


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="refine must be auto, trees or None, not 'tree'"):
        imputer("tree").fit(rule_table(n=20)[1])


def test_one_forest_is_believed_sooner_among_others_that_know_something():
    rule, chances = Rule(gain=0.0, risk=0.1), np.array([0.03, 0.9, 0.8, 0.7, 0.6, 0.55])
    assert not rule.believes(chances).any()
    others = np.array([0.03, 1e-4, 1e-5, 1e-3, 1e-3, 0.55])
    assert rule.believes(others).tolist() == [True] * 5 + [False]
    assert Rule(gain=0.0, risk=1.0).believes(chances).all()
    assert not len(rule.believes(np.zeros(0)))


def test_what_is_chosen_is_judged_by_other_cells():
    rng, n = np.random.default_rng(0), 200
    part = np.arange(n) % 4
    gains = []
    for _ in range(50):
        truth, forest = rng.normal(size=(2, n))
        gains.append(Held(truth, np.zeros(n), np.ones(n), 0.1 * forest, part).choose()[0].gain)
    # The best weight of each column gains half a percent of these very cells on average.
    assert np.mean(np.array(gains) > 0.01) < 0.1
    truth, noise = rng.normal(size=(2, n))
    knows = Held(truth, np.zeros(n), np.ones(n), truth + noise, part).choose()[0]
    assert knows.gain > 0.3
    assert 0.3 < knows.pull[0] < 0.7
    assert Held(truth, truth, np.ones(n), noise, part).choose()[0] == NO_CHOICE


def test_a_step_away_from_noise_is_no_knowledge():
    rng, n = np.random.default_rng(1), 400
    truth, forest, mean = rng.normal(size=(3, n)) * [[1.0], [0.3], [0.5]]
    held = Held(truth, mean, np.ones(n), forest, np.arange(n) % 4)
    assert held.choose()[0].gain > 0.05
    assert chance_of(truth, mean, forest) > 0.05
    assert chance_of(truth, mean, forest + 0.3 * truth) < 1e-3


def test_trust_and_ratio():
    assert_allclose(trust(np.array([0.0, 3.0]), 4.0), [0.0, 9 / 25])
    assert_allclose(trust(np.array([0.0, 3.0]), 0.0), [0.0, 1.0])
    assert_allclose(ratio(np.array([3.0]), (1.0, 4.0, 0.5)), [1 - 0.5 * 9 / 25])
    assert_allclose(ratio(np.array([3.0]), NONE), [1.0])


def test_a_forest_is_followed_within_its_reach_only(fitted):
    new, (network, found) = rule_table(seed=3)[1], (fitted[1].network_, fitted[1].refinement_)
    i, lost, old = found.columns.tolist().index(2), np.isnan(new[:, 2]), network.posterior(new).mean
    reach = found.reach.copy()
    reach[0, i] = np.median(old[lost, 2])
    now = RefinedNetwork(network, replace(found, reach=reach)).posterior(new).mean
    below = lost & (old[:, 2] < reach[0, i])
    assert_array_equal(now[below, 2], old[below, 2])
    assert (now[lost & ~below, 2] != old[lost & ~below, 2]).mean() > 0.8


@pytest.mark.parametrize(("most", "followed"), [(None, [1, 0, 0]), ([1.0], [1, 1, 0])])
def test_a_forest_is_followed_up_to_a_distance(most, followed):
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    X = np.column_stack([x, x + 0.3 * rng.normal(size=400)])
    network = learn_mixture(X, n_components=1, n_fits=1).network
    # Distances are steps beyond the range of the other column, times the correlation with it.
    support, says = network.support, 42.0
    beyond = np.array([-0.5, 0.9, 1.1]) / support.related[1, 0]
    row = network.margins[0].from_normal(support.high[1, 0] + beyond)
    new = np.column_stack([row, np.full(3, np.nan)])
    assert_allclose(network.distances(Cells(new))[:, 1], [0.0, 0.9, 1.1], atol=1e-9)
    whole = Pull(*np.array([[1.0], [0.0], [1.0]]))
    leaf = RegressionTrees(
        np.array([0, 1]), np.array([-1], np.int32), np.array([says], np.float32), np.zeros(1, int)
    )
    known = (np.array([1]), np.zeros(1), np.ones(1), whole, whole, STEPS[None], leaf)
    most = None if most is None else np.array(most)
    found = RefinedNetwork(network, Refinement(*known, distance=most)).posterior(new).mean[:, 1]
    assert_allclose(found, np.where(followed, says, network.posterior(new).mean[:, 1]))


def test_forests_of_columns_with_gaps_beyond_are_not_followed_beyond():
    rng = np.random.default_rng(0)
    V, noise = rng.uniform(14, 20, 600), 0.05 * rng.normal(size=(2, 600))
    # J of faint stars is not measured.
    J = np.where(V < 17, V - 1 + 0.5 * np.sin(4 * V) + noise[0], np.nan)
    made = imputer().fit(np.column_stack([V, J, np.abs(V - 17) + noise[1]]))
    beyond, found = made.network_.columns_beyond, made.refinement_
    assert list(beyond) == ["x1"]
    assert {1, 2} <= set(found.columns.tolist())
    assert_array_equal(found.distance, np.where(found.columns == 1, 0.0, MOST_DISTANCE))


def test_forests_are_not_followed_beyond_where_there_are_limits(fitted):
    cells = Cells(rule_table()[1])
    assert (find_distances(fitted[1].network_, cells) == MOST_DISTANCE).all()
    lower = np.where(np.isnan(cells.values), -1.0, np.nan)
    assert (find_distances(fitted[1].network_, Cells(cells.values, lower)) == 0).all()


@given(st.integers(0, 1000), st.floats(0.2, 5.0), st.sampled_from([0.0, 0.1, 1.0]))
def test_gaps_farther_out_are_those_of_the_mixtures(fitted, seed, factor, most):
    new = factor * rule_table(n=20, seed=seed, rate=0.4)[1]
    network, found = fitted[1].network_, fitted[1].refinement_
    assert (found.distance == MOST_DISTANCE).all()
    refined = RefinedNetwork(network, replace(found, distance=np.full(len(found.columns), most)))
    seen, far = ~np.isnan(new), network.distances(Cells(new)) > most
    for one, other in (
        (refined.posterior(new).mean, network.posterior(new).mean),
        (refined.posterior(new).sd, network.posterior(new).sd),
        (refined.draws(new, 2, 0)[0], network.draws(new, 2, 0)[0]),
    ):
        assert_array_equal(one[far | seen], other[far | seen])


def test_arrays_make_the_same_refinement(fitted):
    found = fitted[1].refinement_
    again = Refinement.from_arrays(found.arrays(), 4)
    for name, array in found.arrays().items():
        assert_array_equal(again.arrays()[name], array)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("columns", lambda a: a[::-1], "rise"),
        ("columns", lambda a: a + 4, "columns of the table"),
        ("columns", lambda a: a.astype(float), "whole numbers"),
        ("unit", lambda a: -a, "positive"),
        ("unit", lambda a: a * np.nan, "finite"),
        ("mean", lambda a: a + 2, "between 0 and 1"),
        ("shape", lambda a: a * [[1], [1], [-1]], "scales must be positive"),
        ("center", lambda a: a[:1], "wrong type or shape"),
        ("reach", lambda a: a[:1], "wrong type or shape"),
        ("distance", lambda a: a[:1], "wrong type or shape"),
        ("distance", lambda a: -a, "negative"),
        ("trees.right", lambda a: a * 0, "follow its parent"),
        ("trees.starts", lambda a: a[[0, -1]], "as many trees"),
    ],
)
def test_forged_arrays_are_refused(fitted, name, change, words):
    arrays = fitted[1].refinement_.arrays()
    assert len(arrays["columns"]) > 1
    with pytest.raises(ValueError, match=words):
        Refinement.from_arrays({**arrays, name: change(arrays[name])}, 4)


def test_flat_trees_predict_what_those_of_scikit_learn_do():
    from sklearn.tree import ExtraTreeRegressor

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    grown = [ExtraTreeRegressor(random_state=s).fit(X, X[:, 0] * X[:, 1]) for s in range(4)]
    flat = join_trees([flatten_trees([tree.tree_ for tree in grown[i : i + 2]]) for i in (0, 2)])
    flat.check(4)
    new = np.vstack([rng.normal(size=(200, 4)).astype(np.float32), X])
    for first, last in ((0, 4), (1, 2), (2, 4)):
        expected = np.mean([tree.predict(new) for tree in grown[first:last]], axis=0)
        assert_allclose(flat.mean(new, first, last), expected, rtol=1e-5, atol=1e-6)


STUMP = RegressionTrees(
    np.array([0, 3]),
    np.array([0, -1, -1], np.int32),
    np.array([0.5, 1.0, 2.0], np.float32),
    np.array([2, 0, 0], np.int32),
)


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("starts", [0, 2], "cover"),
        ("starts", [0, 3, 3], "no nodes"),
        ("feature", [7, -1, -1], "does not exist"),
        ("number", [np.nan, 1, 2], "finite"),
        ("number", [0.5, 1], "length"),
        ("right", [3, 0, 0], "follow"),
        ("right", [0, 0, 0], "follow"),
        ("feature", [0, -1, 0], "follow"),
    ],
)
def test_malicious_trees_are_refused(name, values, words):
    STUMP.check(1)
    array = np.array(values, getattr(STUMP, name).dtype)
    with pytest.raises(ValueError, match=words):
        STUMP._replace(**{name: array}).check(1)
    with pytest.raises(ValueError, match="wrong type"):
        STUMP._replace(**{name: np.array(values, np.complex128)}).check(1)
