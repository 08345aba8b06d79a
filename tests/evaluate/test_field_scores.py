"""Scores in a field with other shares of the classes, against a field whose truth is known."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from skyfill.classify.class_scores import class_scores, confusion
from skyfill.errors import DataError
from skyfill.evaluate import ClassComparison, OutOfFold, cross_validate, score_in_field

METHODS = {"bayes": GaussianNB}


def objects(n, share, seed):
    """Quasars among stars, of which one column knows most."""
    rng = np.random.default_rng(seed)
    quasar = rng.random(n) < share
    X = rng.normal(size=(n, 2)) + np.where(quasar, 2.0, 0.0)[:, None] * [1.0, 0.5]
    return X, np.where(quasar, "QSO", "star")


@pytest.fixture(scope="module")
def scored():
    X, y = objects(6000, 0.5, 0)
    field = objects(20_000, 0.1, 1)
    found = cross_validate(X, y, METHODS, folds=5)
    return found, field, score_in_field(found, X, y, METHODS, field[0])


def test_the_shares_are_those_of_the_field(scored):
    _, (_, kind), there = scored
    width = there.shares.high[0] - there.shares.low[0]
    assert abs(there.shares.shares[0] - (kind == "QSO").mean()) < width < 0.05


def test_scores_are_those_that_the_field_itself_gives(scored):
    found, (X, kind), there = scored
    model = GaussianNB().fit(*objects(6000, 0.5, 0))
    odds = model.predict_proba(X) * there.shares.shares * 2
    P = odds / odds.sum(axis=1, keepdims=True)
    truth = (kind == "star").astype(int)
    wanted = class_scores(confusion(truth, P.argmax(axis=1), 2))
    mine = there.comparison.by_class("bayes")
    assert mine.precision[0] == pytest.approx(wanted.precision[0], abs=0.08)
    assert mine.recall[0] == pytest.approx(wanted.recall[0], abs=0.05)
    loss = -np.log(P[np.arange(len(P)), truth]).mean()
    # The share is known to 0.01, and the loss changes by about as much with it.
    assert there.comparison.mean("log_loss", "bayes").value == pytest.approx(loss, abs=0.03)
    promised = found.by_class("bayes").precision[0]
    assert promised - wanted.precision[0] > 0.05


def test_weights_count_as_repeated_objects_do():
    P = np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])
    truth, weights = np.array([0, 1, 1]), np.array([2.0, 1.0, 3.0])
    rows = np.repeat(np.arange(3), [2, 1, 3])
    one = ClassComparison(("a", "b"), truth, (OutOfFold("m", 0, P, 0, 0),), np.arange(3), weights)
    many = ClassComparison(
        ("a", "b"), truth[rows], (OutOfFold("m", 0, P[rows], 0, 0),), np.arange(6)
    )
    assert np.array_equal(one.confusion("m"), many.confusion("m"))
    for score in ("accuracy", "macro_f", "log_loss", "brier", "ece"):
        assert one.mean(score, "m").value == pytest.approx(many.mean(score, "m").value)
    np.testing.assert_allclose(one.reliability("m"), many.reliability("m"))
    assert one.roc("m", "a").area == pytest.approx(many.roc("m", "a").area)
    assert one.to_dict()["support"] == many.to_dict()["support"] == [2, 4]
    assert one.subset(np.array([True, False, True])).weights.tolist() == [2.0, 3.0]


def test_a_field_with_other_columns_is_refused(scored):
    X, y = objects(40, 0.5, 2)
    found = cross_validate(X, y, METHODS, folds=2)
    with pytest.raises(DataError, match="3 columns, the objects have 2"):
        score_in_field(found, X, y, METHODS, np.ones((5, 3)))
