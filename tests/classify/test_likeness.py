"""When estimated shares count: other shares must explain why a field differs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.classify import CatalogClassifier
from skyfill.classify.likeness import (
    Likeness,
    Looks,
    check_looks,
    explained_by,
    learn_looks,
    looks_arrays,
    measure_likeness,
    read_looks,
)
from skyfill.classify.prior import FieldShares, judge_shares
from skyfill.impute import NetworkImputer

HALVES = np.array([0.5, 0.5])
LOOKS = learn_looks(np.repeat([[15.0], [19.0]], 100_000, axis=0), np.repeat([0, 1], 100_000), 2)


def objects(kind, rng, spread=1.0):
    """Three columns, in two of which the classes are 3 sigma apart."""
    return rng.normal(size=(len(kind), 3)) * spread + np.outer(kind, [3.0, -3.0, 0.0])


def labelled(rng, n=1000):
    y = np.repeat([0, 1], n)
    return learn_looks(objects(y, rng), y, 2)


def test_what_other_shares_explain_as_on_paper():
    """Magnitudes of 15 and 19, half and half; in the field 0.8 and 0.2.

    So it differs by 0.3, and under shares of 0.7 and 0.3 by 0.1. A column that the field lacks does
    not count.
    """
    X = np.repeat([[15.0], [19.0]], [400_000, 100_000], axis=0)
    assert explained_by(np.array([0.7, 0.3]), HALVES, X, LOOKS) == pytest.approx(2 / 3, abs=0.01)
    assert explained_by(HALVES, HALVES, X, LOOKS) == 0
    assert explained_by(np.array([0.8, 0.2]), HALVES, X, LOOKS) == 1
    two = Looks(*(np.repeat(part, 2, axis=-2) for part in LOOKS[:2]), LOOKS.totals)
    lacking = np.column_stack([X, np.full(len(X), np.nan)])
    assert explained_by(np.array([0.7, 0.3]), HALVES, lacking, two) == pytest.approx(
        2 / 3, abs=0.01
    )


@pytest.mark.parametrize("beyond", [14.9, 19.1])
def test_no_shares_explain_values_beyond_all_labelled_ones(beyond):
    """0.5 and 0.5 in the training set, 0.5, 0.3 and 0.2 beyond in the field: the 0.2 remain."""
    X = np.repeat([[15.0], [19.0], [beyond]], [250_000, 150_000, 100_000], axis=0)
    for share in (0.5, 0.6, 0.7):
        found = explained_by(np.array([share, 1 - share]), HALVES, X, LOOKS)
        assert found == pytest.approx(0, abs=0.01)
    far = np.full((1000, 1), beyond)
    assert explained_by(np.array([0.9, 0.1]), HALVES, far, LOOKS) < 0.01


def test_shares_of_classes_without_a_value_count_among_those_that_have_one():
    """Of the second class only a tenth has the column: 0.5 and 0.05 of all, 10/11 of the seen."""
    y = np.repeat([0, 1], 100_000)
    X = np.where(y == 0, 15.0, np.where(np.arange(len(y)) % 10, np.nan, 19.0))[:, None]
    field = np.repeat([[15.0], [19.0]], [100_000, 10_000], axis=0)
    looks = learn_looks(X, y, 2)
    assert explained_by(np.array([0.9, 0.1]), HALVES, field, looks) == 1  # nothing to explain
    other = np.repeat([[15.0], [19.0]], [90_000, 1_000], axis=0)
    assert explained_by(np.array([0.9, 0.1]), HALVES, other, looks) == pytest.approx(1, abs=0.01)


@given(seed=st.integers(0, 10_000), share=st.floats(0.01, 0.99), n=st.integers(2000, 20_000))
@settings(max_examples=25)
def test_the_true_shares_are_trusted_wherever_only_they_differ(seed, share, n):
    rng = np.random.default_rng(seed)
    kind = rng.random(n) < share
    true = np.array([1 - kind.mean(), kind.mean()])
    found = explained_by(true, HALVES, objects(kind, rng), labelled(rng))
    assert found > 0.9 or abs(share - 0.5) < 0.1


@given(seed=st.integers(0, 10_000), hidden=st.floats(0.0, 0.8))
@settings(max_examples=10)
def test_gaps_at_random_do_not_make_a_field_look_different(seed, hidden):
    rng = np.random.default_rng(seed)
    X = objects(rng.random(5000) < 0.1, rng)
    X[rng.random(X.shape) < hidden] = np.nan
    assert explained_by(np.array([0.9, 0.1]), HALVES, X, labelled(rng)) > 0.9


NAMES = {"classes": ("a", "b"), "names": ("x", "y", "z")}


def test_unlike_objects_as_on_paper():
    """Magnitudes of 15 and 19, half and half; three in ten of the faint ones are beyond 19."""
    X = np.repeat([[15.0], [19.0], [23.0]], [500_000, 350_000, 150_000], axis=0)
    P = np.eye(2)[np.repeat([0, 1], 500_000)]
    found = measure_likeness(P, HALVES, X, LOOKS, classes=("a", "b"), names=("V",))
    assert (found.rows, found.feature) == (1_000_000, "V")
    assert found.unlike == pytest.approx(0.15, abs=0.01)
    assert found.classes["a"] == 0
    assert found.classes["b"] == pytest.approx(0.3, abs=0.01)
    # Under other shares than the probabilities rest on, four in ten of all would have to be others.
    other = measure_likeness(P, np.array([0.9, 0.1]), X, LOOKS, classes=("a", "b"), names=("V",))
    assert other.unlike == pytest.approx(0.4, abs=0.01)
    assert other.classes == found.classes


def posterior(X, shares):
    """Probabilities that hold for `objects`, by Bayes' rule."""
    odds = shares[1] / shares[0] * np.exp(3 * X[:, 0] - 3 * X[:, 1] - 9)
    return np.column_stack([1 / (1 + odds), odds / (1 + odds)])


@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 0.95), n=st.integers(100, 5000),
       n_labelled=st.integers(20, 2000))  # fmt: skip
@settings(max_examples=25)
def test_objects_like_the_training_set_are_hardly_called_unlike(seed, share, n, n_labelled):
    rng = np.random.default_rng(seed)
    X, shares = objects(rng.random(n) < share, rng), np.array([1 - share, share])
    X[rng.random(X.shape) < 0.3] = np.nan
    P = posterior(np.nan_to_num(X), shares)
    P = np.where(np.isnan(X[:, :2]).any(axis=1)[:, None], shares, P)
    found = measure_likeness(P, shares, X, labelled(rng, n_labelled), **NAMES)
    assert found.unlike < 0.1


@given(seed=st.integers(0, 10_000), share=st.floats(0.05, 0.95))
@settings(max_examples=25)
def test_probabilities_that_hold_leave_no_class_unlike(seed, share):
    rng = np.random.default_rng(seed)
    X, shares = objects(rng.random(4000) < share, rng), np.array([1 - share, share])
    found = measure_likeness(posterior(X, shares), shares, X, labelled(rng), **NAMES)
    assert max(found.classes.values()) < 0.1


def test_too_few_objects_no_common_column_and_old_models_tell_nothing():
    rng = np.random.default_rng(0)
    X, P, looks = objects(np.arange(200) % 2, rng), np.full((200, 2), 0.5), labelled(rng)
    nothing = {"a": None, "b": None}
    for values, known in ((X[:99], looks), (np.full(X.shape, np.nan), looks), (X, None)):
        found = measure_likeness(P[: len(values)], HALVES, values, known, **NAMES)
        assert found == Likeness(len(values), None, None, nothing)
    sure = np.repeat([[1.0, 0.0], [0.0, 1.0]], [150, 50], axis=0)
    found = measure_likeness(sure, HALVES, X, looks, **NAMES)
    assert found.unlike == 0
    assert found.classes["a"] is not None
    assert found.classes["b"] is None


def test_shares_are_kept_where_objects_look_different():
    rng = np.random.default_rng(0)
    X = objects(np.arange(4000) % 5 < 2, rng, spread=2.0)
    found = FieldShares(np.array([0.55, 0.45]), np.full(2, 0.4), np.full(2, 0.46), 0.1)
    kept = judge_shares(found, HALVES, X, labelled(rng))
    assert kept.explained < 0.9
    assert not kept.is_trusted
    assert kept.shares.tolist() == [0.5, 0.5]
    assert (kept.low.tolist(), kept.high.tolist()) == ([0.4, 0.4], [0.5, 0.5])
    assert judge_shares(found, HALVES, X, None) is found
    assert found.is_trusted


def test_shares_of_the_training_set_stay_where_the_estimate_allows_them():
    rng = np.random.default_rng(0)
    kind = np.arange(2000) % 2
    looks, alike = labelled(rng), objects(kind, rng)
    found = FieldShares(np.array([0.52, 0.48]), HALVES - 0.2, HALVES + 0.2, 0.1)
    for known in (looks, None):
        kept = judge_shares(found, HALVES, alike, known)
        assert kept.shares.tolist() == [0.5, 0.5]
        assert kept.agree
    assert not judge_shares(found, np.array([0.75, 0.25]), alike, None).agree
    unknown = found._replace(low=np.full(2, np.nan), high=np.full(2, np.nan))
    assert not judge_shares(unknown, HALVES, alike, None).agree
    # Limits that allow anything do not hide that objects of a class look different.
    other = judge_shares(found, HALVES, objects(kind, rng, spread=3.0), looks)
    assert not other.is_trusted
    assert not other.agree


@pytest.mark.parametrize(("spread", "trusted"), [(1.0, True), (3.0, False)])
def test_a_classifier_takes_shares_only_from_a_field_that_looks_like_its_classes(spread, trusted):
    rng = np.random.default_rng(0)
    y, kind = np.arange(400) % 2, np.arange(2000) % 20 == 0
    X = np.concatenate(
        [objects(y, rng), objects(kind, rng, spread) * [1.0, 1.0, 4.0 ** (spread > 1)]]
    )
    labels = np.concatenate([np.array(["NV", "QSO"])[y], np.full(len(kind), None)]).astype(object)
    imputer = NetworkImputer(2, n_fits=1, refine=None)
    small = {"n_trees": 20, "n_rounds": 20, "imputer": imputer, "random_state": 0}
    fitted = CatalogClassifier(prior="field", **small).fit(X, labels)
    assert fitted.field_shares_.is_trusted == trusted
    assert (fitted.scorer_.prior[1] == pytest.approx(0.05, abs=0.02)) == trusted
    assert np.array_equal(fitted.scorer_.prior, fitted.scorer_.shares) == (not trusted)


def test_a_column_without_labelled_values_is_left_out():
    y = np.repeat([0, 1], 500)
    X = np.column_stack([np.where(y == 0, 15.0, 19.0), np.full(1000, np.nan)])
    looks = learn_looks(X, y, 2)
    check_looks(looks, 2, 2)
    field = np.column_stack([np.repeat([15.0, 19.0], [900, 100]), np.zeros(1000)])
    assert explained_by(np.array([0.9, 0.1]), HALVES, field, looks) == 1


def test_counts_go_through_a_model_file():
    found = read_looks(looks_arrays(LOOKS))
    for part, other in zip(found, LOOKS, strict=True):
        np.testing.assert_array_equal(part, other)
    assert read_looks(looks_arrays(None)) is None


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ({"edges": np.zeros((2, 9))}, "shape"),
        ({"counts": np.zeros((2, 1, 7))}, "shape"),
        ({"totals": np.array([1.0, 0.0])}, "negative"),
        ({"counts": -LOOKS.counts}, "negative"),
    ],
)
def test_counts_of_a_damaged_file_are_refused(damage, words):
    with pytest.raises(ValueError, match=words):
        check_looks(LOOKS._replace(**damage), 2, 1)
