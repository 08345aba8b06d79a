"""Scores of classifiers: by hand, against scikit-learn, and as laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics

from skyfill.classify.class_scores import (
    SCALARS,
    averages,
    brier_scores,
    log_losses,
    scalar_scores,
)
from skyfill.evaluate import calibration_error, class_scores, confusion, reliability


@pytest.fixture(scope="module")
def opinions():
    rng = np.random.default_rng(0)
    truth = rng.integers(4, size=300)
    logits = rng.normal(size=(300, 4)) + 1.5 * np.eye(4)[truth]
    p = np.exp(logits)
    return p / p.sum(axis=1, keepdims=True), truth


def test_a_table_of_two_classes_by_hand():
    # 8 of 10 quasars found, 4 of 10 others taken for one.
    scores = class_scores(np.array([[8.0, 2.0], [4.0, 6.0]]))
    assert scores.precision[0] == pytest.approx(8 / 12)
    assert scores.recall[0] == pytest.approx(8 / 10)
    assert scores.f[0] == pytest.approx(2 * (8 / 12) * (8 / 10) / (8 / 12 + 8 / 10))


def test_weighted_and_macro_averages_by_hand():
    scores = class_scores(np.array([[90.0, 0.0], [5.0, 5.0]]))
    assert averages(scores, "weighted")[1] == pytest.approx(0.95)
    assert averages(scores, "macro")[1] == pytest.approx(0.75)


def test_a_class_nobody_predicts_has_zeros_not_nan():
    scores = class_scores(np.array([[5.0, 0.0], [3.0, 0.0]]))
    assert scores.precision[1] == scores.recall[1] == scores.f[1] == 0


def test_a_class_without_objects_does_not_enter_the_averages():
    with_ghost = np.array([[8.0, 2.0, 0.0], [4.0, 6.0, 0.0], [0.0, 0.0, 0.0]])
    plain = averages(class_scores(with_ghost[:2, :2]), "macro")
    assert averages(class_scores(with_ghost), "macro") == pytest.approx(plain)


def test_scores_agree_with_scikit_learn(opinions):
    p, truth = opinions
    predicted = p.argmax(axis=1)
    counts = confusion(truth, predicted, 4)
    np.testing.assert_array_equal(counts, metrics.confusion_matrix(truth, predicted))
    theirs = metrics.precision_recall_fscore_support(truth, predicted)
    for mine, value in zip(class_scores(counts), theirs, strict=True):
        np.testing.assert_allclose(mine, value)
    found = {key: float(v[0]) for key, v in scalar_scores(p, truth, np.ones((1, 300))).items()}
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(truth, predicted))
    assert found["macro_f"] == pytest.approx(metrics.f1_score(truth, predicted, average="macro"))
    weighted = metrics.f1_score(truth, predicted, average="weighted")
    assert found["weighted_f"] == pytest.approx(weighted)
    assert found["log_loss"] == pytest.approx(metrics.log_loss(truth, p))


def test_losses_of_one_object_by_hand():
    p = np.array([[0.7, 0.2, 0.1]])
    assert log_losses(p, np.array([1]))[0] == pytest.approx(np.log(5))
    assert brier_scores(p, np.array([1]))[0] == pytest.approx(0.49 + 0.64 + 0.01)


def test_a_class_that_was_called_impossible_costs_much_but_not_all():
    assert np.isfinite(log_losses(np.array([[1.0, 0.0]]), np.array([1]))[0])


def test_calibration_error_by_hand():
    p = np.array([[0.9, 0.1]] * 10 + [[0.6, 0.4]] * 10)
    truth = np.array([0] * 9 + [1] + [0] * 3 + [1] * 7)  # 0.9 is honest, 0.6 is 0.3 too sure
    assert calibration_error(p, truth) == pytest.approx(0.15)


def test_honest_probabilities_have_a_small_calibration_error():
    rng = np.random.default_rng(1)
    chance = rng.uniform(0.5, 1, 20_000)
    p = np.column_stack([chance, 1 - chance])
    truth = (rng.random(20_000) > chance).astype(np.int64)
    assert calibration_error(p, truth) < 0.01
    assert calibration_error(np.clip(p + [0.1, -0.1], 0, 1), truth) > 0.05


def test_reliability_counts_every_object_once():
    p = np.array([0.0, 0.5, 1.0])
    found = reliability(p, np.array([False, True, True]))
    assert found.n.sum() == 3
    assert (found.share[0], found.share[-1]) == (0, 1)


@given(
    arrays(np.float64, (12, 3), elements=st.floats(0.01, 1)),
    arrays(np.int64, 12, elements=st.integers(0, 2)),
    arrays(np.int64, 12, elements=st.integers(1, 3)),
)
def test_a_weight_of_k_is_as_k_copies(p, truth, weights):
    p = p / p.sum(axis=1, keepdims=True)
    weighed = scalar_scores(p, truth, weights[None].astype(float))
    copies = np.repeat(np.arange(12), weights)
    plain = scalar_scores(p[copies], truth[copies], np.ones((1, len(copies))))
    for name in SCALARS:
        assert weighed[name][0] == pytest.approx(plain[name][0])
