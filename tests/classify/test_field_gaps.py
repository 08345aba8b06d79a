"""Gaps of a field, which trees learn from labelled objects that are shown with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.classify import CatalogClassifier
from skyfill.classify.field_gaps import MOST_COPIES, with_gaps_of
from skyfill.classify.known_gaps import check_gaps, gap_arrays, learn_gaps, read_gaps
from skyfill.classify.scorer import Scorer
from skyfill.impute import NetworkImputer
from skyfill.network import Cells

NAN = np.nan


def stars(n, rng):
    """Two classes that one column tells apart and another hardly does."""
    kind = rng.random(n) < 0.5
    X = np.column_stack([np.where(kind, 4.0, 0.0), np.where(kind, 0.7, 0.0), np.zeros(n)])
    return X + rng.normal(size=X.shape), np.where(kind, "QSO", "star")


@pytest.fixture(scope="module")
def taught():
    """A classifier whose training set is complete, for a field without the key column."""
    rng = np.random.default_rng(0)
    (X, y), (field, truth) = stars(600, rng), stars(2000, rng)
    field[:, 0] = NAN
    both = np.concatenate([X, field])
    labels = np.concatenate([y, np.full(len(field), None)]).astype(object)
    small = {"n_trees": 50, "n_rounds": 50, "random_state": 0}
    imputer = NetworkImputer(2, n_fits=1, refine=None)
    model = CatalogClassifier(imputer=imputer, prior="field", **small).fit(both, labels)
    return model.scorer_, field, truth


@given(seed=st.integers(0, 1000), here=st.floats(0, 0.6), there=st.floats(0.2, 1.0))
@settings(max_examples=30)
def test_rows_keep_their_values_but_for_gaps_of_the_field(seed, here, there):
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(40, 4)), rng.normal(size=(30, 4))
    X[rng.random(X.shape) < here], Z[rng.random(Z.shape) < there] = NAN, NAN
    found = with_gaps_of(Cells(Z), Cells(X), rng)
    if found is None:
        assert learn_gaps(X).unlike(Z).mean() < 0.01
        return
    X = np.tile(X, (len(found) // len(X), 1))
    new = np.isnan(found.values) & ~np.isnan(X)
    np.testing.assert_array_equal(found.values[~new], X[~new])
    assert np.array_equal(np.isnan(found.values).all(axis=1), np.isnan(X).all(axis=1))
    patterns = {tuple(row) for row in np.isnan(Z)}
    for row, lost, added in zip(np.isnan(found.values), np.isnan(X), new, strict=True):
        assert not added.any() or any(tuple(row) == tuple(lost | np.array(p)) for p in patterns)


def test_gaps_with_a_limit_are_not_taken_over():
    field = Cells([[NAN, NAN, 17.0]] * 5, lower=[[20.0, NAN, NAN]] * 5)
    found = with_gaps_of(field, Cells([[15.0, 16.0, 14.0]] * 3), np.random.default_rng(0))
    np.testing.assert_array_equal(found.values, [[15.0, NAN, 14.0]] * 3 * MOST_COPIES)


@pytest.mark.parametrize(("n", "times"), [(10, 4), (3000, 2), (7000, 1), (9000, 1)])
def test_few_objects_are_shown_more_often(n, times):
    found = with_gaps_of(Cells([[NAN, 1.0]]), Cells(np.ones((n, 2))), np.random.default_rng(0))
    assert len(found) == times * n


@pytest.mark.parametrize(("n_new", "times"), [(1, 1), (25, 2), (50, 4), (100, 4)])
def test_objects_are_shown_more_often_if_more_of_a_field_has_new_gaps(n_new, times):
    field = np.where(np.arange(100)[:, None] < [n_new, 0], NAN, 1.0)
    found = with_gaps_of(Cells(field), Cells(np.ones((50, 2))), np.random.default_rng(0))
    assert len(found) == 50 * times


def test_a_field_with_gaps_like_those_of_the_objects_teaches_none():
    X = np.array([[1.0, NAN], [NAN, 2.0], [1.0, 2.0]] * 10)
    assert with_gaps_of(Cells(X), Cells(X[::-1]), np.random.default_rng(0)) is None


def test_trees_know_what_a_field_lacks_and_are_not_too_sure(taught):
    """Without the key column 0.64 are right at best: 0.35 sigma from the middle of two normals."""
    scorer, field, truth = taught
    P = scorer.probabilities(field, n_draws=0)
    right = np.array(scorer.classes)[P.argmax(axis=1)] == truth
    assert right.mean() == pytest.approx(0.637, abs=0.05)
    assert P.max(axis=1).mean() == pytest.approx(right.mean(), abs=0.06)


def test_gaps_that_a_field_has_taught_are_not_drawn(taught):
    scorer, field, _ = taught
    rows = field[:50]
    np.testing.assert_array_equal(scorer.probabilities(rows), scorer.probabilities(rows, n_draws=0))
    assert not scorer.known(rows).any()
    odd = np.where(np.arange(3) == 1, NAN, stars(20, np.random.default_rng(5))[0])
    drawn = scorer.probabilities(odd)
    assert not np.array_equal(drawn, scorer.probabilities(odd, n_draws=0))


def test_the_gaps_of_a_field_are_kept_in_a_model_file(taught):
    scorer, field, _ = taught
    again = Scorer.from_arrays(scorer.facts(), scorer.arrays(), scorer.network)
    np.testing.assert_array_equal(again.field_gaps.columns, scorer.field_gaps.columns)
    np.testing.assert_array_equal(again.probabilities(field[:20]), scorer.probabilities(field[:20]))
    assert read_gaps(gap_arrays(None, "gaps."), "gaps.") is None
    with pytest.raises(ValueError, match="shape"):
        check_gaps(scorer.field_gaps, 4)
