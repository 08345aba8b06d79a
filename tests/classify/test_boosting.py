"""Boosting: a step on paper, laws of bins, and scikit-learn's boosting tree by tree."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.ensemble import HistGradientBoostingClassifier

from skyfill.classify.boosting import GAP, MOST_BINS, Steps, boost, encode, find_edges
from skyfill.classify.forest_layout import Strike, Walk

values = st.floats(-1e300, 1e300) | st.just(np.nan)


def codes_of(table):
    return encode(table, find_edges(table))


@given(st.lists(values, min_size=1, max_size=60))
def test_codes_rise_with_values_and_gaps_have_their_own(column):
    table = np.array(column)[:, None]
    codes = codes_of(table)[:, 0].astype(int)
    assert np.array_equal(codes == GAP, np.isnan(table[:, 0]))
    assert (np.diff(codes[np.argsort(table[:, 0])]) >= 0).all()


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=200))
def test_few_values_are_all_kept_apart(column):
    table = np.array(column, float)[:, None]
    assert len(np.unique(codes_of(table))) == len(np.unique(table))


def test_many_values_make_bins_of_equally_many_rows():
    table = np.random.default_rng(0).normal(size=(MOST_BINS * 40, 1))
    counts = np.bincount(codes_of(table)[:, 0])
    assert len(counts) == MOST_BINS
    assert counts.min() >= 39
    assert counts.max() <= 41


def test_one_step_as_on_paper():
    """Six rows, one cut: each side moves by -rate * sum(p - y) / (sum(p (1 - p)) + ridge)."""
    X = np.array([[1.0], [2], [3], [11], [12], [13]])
    y = np.array([0, 0, 0, 1, 1, 0])
    trees = boost(X, y, np.ones(6), Steps(1, rate=0.5, n_leaves=2, least_in_leaf=1, ridge=1), 0)
    p = 1 / 3
    left = np.log(p / (1 - p)) - 0.5 * 3 * p / (3 * p * (1 - p) + 1)
    right = np.log(p / (1 - p)) - 0.5 * (3 * p - 2) / (3 * p * (1 - p) + 1)
    expected = 1 / (1 + np.exp(-np.array([left, right])))
    assert_allclose(trees.predict_proba([[0.0], [20.0]])[:, 1], expected, rtol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("n_leaves", [8, 31])
def test_the_trees_are_those_of_scikit_learn(n_classes, n_leaves):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 800)
    X = rng.normal(size=(800, 5)) + 1.2 * np.eye(n_classes, 5)[y]
    X[:, 3] = np.round(X[:, 3]) * 1e5
    X[rng.random(X.shape) < [0.3, 0.1, 0.1, 0.1, 0]] = np.nan
    weights = rng.uniform(0.5, 2, 800)
    codes = codes_of(X).astype(float)
    codes[np.isnan(X)] = np.nan
    theirs = HistGradientBoostingClassifier(
        learning_rate=0.1, max_iter=12, max_leaf_nodes=n_leaves, min_samples_leaf=3,
        l2_regularization=3.0, early_stopping=False,
    ).fit(codes, y, weights)  # fmt: skip
    ours = boost(X, y, weights, Steps(12, 0.1, n_leaves), seed=0)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(codes), atol=1e-7)
    assert isinstance(ours.packed, Strike if n_leaves == 8 else Walk)


def test_gaps_that_training_did_not_have_go_with_the_majority():
    X = np.array([[1.0]] * 3 + [[2.0]] * 7)
    trees = boost(X, (X[:, 0] > 1.5).astype(int), np.ones(10), Steps(5), 0)
    assert_allclose(trees.predict_proba([[np.nan]]), trees.predict_proba([[2.0]]))


def test_rows_that_are_the_same_teach_nothing_and_a_seed_gives_the_same_trees():
    y = np.repeat([0, 1], 20)
    flat = boost(np.ones((40, 2)), y, np.ones(40), Steps(3), 0)
    assert_allclose(flat.predict_proba([[1.0, np.nan]]), [[0.5, 0.5]])
    X = np.random.default_rng(1).normal(size=(40, 8)) + y[:, None]
    one, two, other = (boost(X, y, np.ones(40), Steps(9, n_columns=2), s) for s in (3, 3, 4))
    for name, array in one.arrays().items():
        assert array.tobytes() == two.arrays()[name].tobytes()
    assert len(set(one.feature.tolist())) > 3
    assert one.feature.tolist() != other.feature.tolist()
