"""Bins: laws that hold for any column, and boosting on codes against boosting on values."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier

from skyfill.classify.sklearn_trees import MOST_BINS, find_bins, flatten_boosting

OPTIONS = {"max_iter": 20, "max_leaf_nodes": 8, "early_stopping": False, "random_state": 0}
values = st.floats(-1e300, 1e300) | st.just(np.nan)


@given(st.lists(values, min_size=1, max_size=60))
def test_codes_rise_with_values_and_gaps_stay_gaps(column):
    table = np.array(column)[:, None]
    codes = find_bins(table).codes(table)[:, 0]
    assert np.array_equal(np.isnan(codes), np.isnan(table[:, 0]))
    order = np.argsort(table[:, 0])
    assert (np.diff(codes[order])[~np.isnan(codes[order])[1:]] >= 0).all()


@given(st.lists(st.integers(-50, 50), min_size=2, max_size=200))
def test_few_values_are_all_kept_apart(column):
    table = np.array(column, float)[:, None]
    codes = find_bins(table).codes(table)
    assert len(np.unique(codes)) == len(np.unique(table))


def test_many_values_make_bins_of_equally_many_rows():
    table = np.random.default_rng(0).normal(size=(MOST_BINS * 40, 1))
    counts = np.bincount(find_bins(table).codes(table).astype(int)[:, 0])
    assert len(counts) == MOST_BINS
    assert counts.min() >= 39
    assert counts.max() <= 41


def test_trees_grown_on_codes_say_of_values_what_they_said_of_codes():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=3000) * 1e5, rng.integers(4, size=3000), rng.random(3000)])
    X[rng.random(X.shape) < 0.2] = np.nan
    y = (np.nan_to_num(X[:, 0]) > 3e4).astype(int) + (np.nan_to_num(X[:, 1], nan=3) > 2)
    bins = find_bins(X)
    grown = HistGradientBoostingClassifier(**OPTIONS).fit(bins.codes(X), y)
    new = np.vstack([X, 2 * X, X - 0.5])
    restored = bins.restore(flatten_boosting(grown))
    np.testing.assert_allclose(
        restored.predict_proba(new), grown.predict_proba(bins.codes(new)), atol=1e-6
    )


def test_boosting_on_codes_is_boosting_on_values():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2000, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = (np.nan_to_num(X[:, 0] + X[:, 1]) > 0).astype(int)
    bins = find_bins(X)
    coded = HistGradientBoostingClassifier(**OPTIONS).fit(bins.codes(X), y)
    plain = HistGradientBoostingClassifier(**OPTIONS).fit(X, y)
    restored = bins.restore(flatten_boosting(coded))
    np.testing.assert_allclose(restored.predict_proba(X), plain.predict_proba(X), atol=1e-6)
