"""Forests see numbers as they are, whatever their units and offsets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skyfill.classify.forest import FlatForest
from skyfill.classify.sklearn_trees import Growth, grow_trees, rank_columns


@given(st.lists(st.floats(-1e300, 1e300), min_size=2, max_size=60, unique=True))
def test_single_precision_keeps_the_order_and_apart_what_was_far_out(column):
    table = np.array(column)[:, None]
    with np.errstate(over="ignore"):
        ranked = rank_columns(table)[0].astype(np.float32)[:, 0]
    assert len(np.unique(ranked)) == len(column) or np.abs(table).max() < 1e30
    assert (np.diff(ranked[np.argsort(table[:, 0])]) >= 0).all()


def test_ordinary_columns_are_not_ranked():
    table = np.random.default_rng(0).normal(18, 1, (50, 2))
    assert rank_columns(table)[0] is table


def test_a_forest_on_large_offsets_tells_values_apart_and_goes_through_a_file():
    rng = np.random.default_rng(0)
    X = np.column_stack([1e9 + rng.normal(size=300), rng.normal(size=300)])
    X[::7, 0] = np.nan
    y = (X[:, 0] > 1e9).astype(np.intp)
    forest = grow_trees("forest", X, y, Growth(5, 1))[0]
    assert (forest.predict_proba(X).argmax(axis=1) == y).mean() > 0.98
    assert forest.exact.tolist() == [0]
    again = FlatForest.from_arrays(forest.arrays())
    assert np.array_equal(again.predict_proba(X), forest.predict_proba(X))
