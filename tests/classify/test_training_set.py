"""Labels and folds: what counts as a label, and how evenly rows are dealt."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.catalog.class_labels import label_texts
from skyfill.classify.training_set import deal_folds, read_labels
from skyfill.errors import DataError


@given(
    st.lists(st.sampled_from([0, 1, 2]), min_size=6, max_size=80),
    st.integers(2, 6),
    st.integers(0, 99),
)
def test_folds_are_even_in_all_and_within_each_class(codes, n_folds, seed):
    codes = np.array(codes)
    fold = deal_folds(codes, n_folds, np.random.default_rng(seed))
    alone = np.bincount(codes, minlength=3) == 1
    assert ((fold == -1) == alone[codes]).all()
    for rows in (fold >= 0, *(codes == c for c in np.flatnonzero(~alone))):
        counts = np.bincount(fold[rows], minlength=n_folds)
        assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize(
    "labels",
    [
        ["RRL ", "QSO", None, " RRL", " ", float("nan")],
        np.array(["RRL ", "QSO", "", " RRL", "  ", ""]),
        pa.array(["RRL ", "QSO", None, " RRL", "  ", ""]),
        np.array([1.0, 0.0, np.nan, 1.0, np.nan, np.nan]),
    ],
    ids=["objects", "text", "arrow", "numbers"],
)
def test_blanks_do_not_count_and_gaps_have_no_label(labels):
    found = read_labels(labels)
    assert found.known.tolist() == [True, True, False, True, False, False]
    assert found.codes.tolist() == [1, 0, 1]
    assert len(found.classes) == 2


def test_numbers_stay_numbers_unless_a_table_asks_for_text():
    assert read_labels([10, 2, 10]).classes.tolist() == [2, 10]
    assert read_labels(label_texts([10, 2, 10])).classes.tolist() == ["10", "2"]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([None, " "], "no row has a class label"),
        (["a", "a "], "all labels are of one class, a"),
        ([1.0, np.inf], "infinity"),
    ],
)
def test_labels_of_which_nothing_can_be_learned_are_refused(labels, message):
    with pytest.raises(DataError, match=message):
        read_labels(labels)
