"""A model recognizes the rows that it was trained on."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skyfill.model.recognition import are_known, hash_rows, known_rows

ROWS = arrays(np.float64, (12, 3), elements=st.floats(-1e6, 1e6, width=32) | st.just(np.nan))


@given(ROWS)
def test_rows_are_recognized_in_any_order_and_in_single_precision(X):
    telling = (~np.isnan(X)).sum(axis=1) >= 2
    known = known_rows(X)
    assert np.array_equal(are_known(X[::-1].astype(np.float32).astype(float), known), telling[::-1])


def test_other_rows_and_other_orders_of_values_are_not_recognized():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    known = known_rows(X[:1000])
    assert not are_known(X[1000:], known).any()
    assert not are_known(X[:1000, ::-1], known).any()


def test_zero_has_no_sign_and_all_gaps_are_equal():
    one, other = hash_rows(np.array([[0.0, np.nan], [-0.0, -np.nan]]))
    assert one == other


def test_nothing_is_recognized_after_training_on_nothing():
    assert not are_known(np.ones((2, 2)), known_rows(np.empty((0, 2)))).any()
