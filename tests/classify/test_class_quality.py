"""How good classes are: truths on paper, agreement with scikit-learn, and what may not leak."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics
from sklearn.ensemble import RandomForestClassifier

from skyfill.classify import CatalogClassifier
from skyfill.classify.class_calibration import FOLDS, _temperature, calibrate_held_out, fit_odds
from skyfill.classify.class_quality import class_quality
from skyfill.classify.sklearn_trees import Growth, grow_trees


def said(right, wrong, n_classes=2):
    """Probabilities of 0.8 for one class each, and the classes: so many right and wrong."""
    P = np.full((right + wrong, n_classes), 0.2 / (n_classes - 1))
    predicted = np.arange(right + wrong) % n_classes
    P[np.arange(len(P)), predicted] = 0.8
    truth = np.where(np.arange(len(P)) < right, predicted, (predicted + 1) % n_classes)
    return P, truth


def test_the_scores_of_ten_objects_on_paper():
    P, truth = said(8, 2)
    found = class_quality(P, truth, ["QSO", "RRL"], apart="folds")
    scores = found["methods"][0]
    assert scores["accuracy"] == pytest.approx(
        {"value": 0.8, "error": np.sqrt(0.16 / 10)}, abs=1e-6
    )
    losses = -np.log([0.8] * 8 + [0.2] * 2)
    error = losses.std() / np.sqrt(10)
    assert scores["log_loss"] == pytest.approx({"value": losses.mean(), "error": error}, abs=1e-5)
    assert scores["confusion"] == [[4, 1], [1, 4]]
    assert scores["by_class"][0] == {
        "class": "QSO", "precision": 0.8, "recall": 0.8, "f": 0.8, "support": 5,
    }  # fmt: skip
    assert scores["macro_f"]["value"] == pytest.approx(0.8)
    # F of each class is the accuracy here, and objects are drawn within classes.
    assert scores["macro_f"]["error"] == pytest.approx(np.sqrt(0.16 / 10), rel=0.15)
    assert (found["stated"], found["true"]) == ([0.5, 0.5], [0.5, 0.5])


def test_objects_of_which_nothing_was_said_are_counted_and_not_scored():
    P, truth = said(8, 2)
    whole = class_quality(P, truth, ["a", "b"], apart="folds")
    P, truth = np.vstack([P, np.full((3, 2), np.nan)]), np.append(truth, [1, 1, 0])
    found = class_quality(P, truth, ["a", "b"], apart="folds")
    assert found.pop("unmeasured") == {"a": 1, "b": 2}
    assert whole.pop("unmeasured") == {}
    assert found == whole
    alone = class_quality(P[-3:], truth[-3:], ["a", "b"], apart="folds")
    assert (alone["objects"], "methods" in alone) == (0, False)


def test_weighted_classes_are_compared_with_their_weighted_shares():
    P = np.array([[0.9, 0.1]] * 90 + [[0.3, 0.7]] * 10)
    truth = np.repeat([0, 1], [90, 10])
    found = class_quality(P, truth, ["a", "b"], apart="folds", fractions=np.array([0.5, 0.5]))
    assert found["stated"] == pytest.approx([0.6, 0.4])
    assert found["true"] == [0.5, 0.5]


@given(st.integers(0, 99), st.integers(2, 5))
def test_scores_are_those_of_scikit_learn(seed, n_classes):
    rng = np.random.default_rng(seed)
    P, truth = rng.dirichlet(np.ones(n_classes), 60), rng.integers(0, n_classes, 60)
    truth[:n_classes] = np.arange(n_classes)
    found = class_quality(P, truth, [f"c{k}" for k in range(n_classes)], apart="folds")
    scores, predicted = found["methods"][0], P.argmax(axis=1)
    assert scores["accuracy"]["value"] == pytest.approx(
        metrics.accuracy_score(truth, predicted), rel=1e-5
    )
    assert scores["macro_f"]["value"] == pytest.approx(
        metrics.f1_score(truth, predicted, average="macro"), rel=1e-5, abs=1e-9
    )
    assert scores["log_loss"]["value"] == pytest.approx(metrics.log_loss(truth, P), rel=1e-5)


@pytest.mark.parametrize("fit", [_temperature, fit_odds])
@given(seed=st.integers(0, 9))
def test_the_calibration_of_a_row_does_not_know_its_label(fit, seed):
    rng = np.random.default_rng(seed)
    P, y = rng.dirichlet([2.0, 1.0, 1.0], 100), rng.integers(0, 3, 100)
    y[:30] = 0  # the most common class, whatever the labels of a fold
    fold, weights = np.arange(100) % FOLDS, np.ones(100)
    before = calibrate_held_out(fit, P, y, weights, fold)
    other = np.where((fold == 2) & (np.arange(100) >= 30), (y + 1) % 3, y)
    after = calibrate_held_out(fit, P, other, weights, fold)
    np.testing.assert_array_equal(after[fold == 2], before[fold == 2])
    assert (after[fold != 2] != before[fold != 2]).any()


def blobs(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + 1.2 * np.eye(3)[y], y


def test_votes_out_of_bag_are_those_of_scikit_learn():
    X, y = blobs(300)
    forest, votes = grow_trees("forest", X, y, Growth(60, 1, seed=5, bagged=True))
    other = RandomForestClassifier(60, random_state=5, oob_score=True).fit(X, y)
    np.testing.assert_allclose(votes, other.oob_decision_function_, atol=1e-12)
    assert grow_trees("forest", X, y, Growth(60, 1, seed=5))[1] is None
    np.testing.assert_array_equal(forest.predict_proba(X).shape, votes.shape)


def test_rows_of_one_object_are_in_the_bag_together():
    X, y = blobs(60)
    X, y, groups = np.repeat(X, 4, axis=0), np.repeat(y, 4), np.repeat(np.arange(60), 4)
    how = {"seed": 5, "bagged": True}
    leaking, honest = (
        grow_trees("forest", X, y, Growth(200, 1, **how, **more))[1]
        for more in ({}, {"groups": groups})
    )
    known = ~np.isnan(honest).any(axis=1)
    assert known.mean() > 0.9
    right = [(P[known].argmax(axis=1) == y[known]).mean() for P in (leaking, honest)]
    assert right[0] > right[1] + 0.1


def test_a_row_that_all_trees_know_is_not_measured():
    X, y = blobs(100)
    votes = grow_trees("forest", X, y, Growth(2, 1, bagged=True))[1]
    lost = np.isnan(votes).any(axis=1)
    assert 0 < lost.sum() < 100
    np.testing.assert_allclose(votes[~lost].sum(axis=1), 1.0)


def test_the_paper_is_judged_out_of_bag_as_well_as_by_fresh_rows():
    (X, y), (new, truth) = blobs(600), blobs(4000, seed=1)
    fitted = CatalogClassifier("paper", n_trees=100, random_state=0).fit(X, y)
    found = class_quality(fitted.out_of_fold_, y, fitted.scorer_.classes, apart="bags")
    fresh = class_quality(fitted.predict_proba(new), truth, fitted.scorer_.classes, apart="new")
    for score in ("accuracy", "macro_f", "brier"):
        one, two = found["methods"][0][score], fresh["methods"][0][score]
        assert abs(one["value"] - two["value"]) < 3 * np.hypot(one["error"], two["error"]), score
