"""Draws of the gaps by default where gaps are unlike those of the training set."""

from dataclasses import replace

import numpy as np
import pytest

from skyfill.classify.gap_draws import CLOSE, MOST_DRAWS, N_DRAWS, error_of_means
from skyfill.classify.known_gaps import KnownGaps, check_gaps, learn_gaps
from skyfill.classify.prior import shift_prior
from skyfill.classify.scorer import Scorer
from skyfill.errors import DataError
from tests.classify.test_classifier import quick, stars


def pairs(n, seed):
    """Two classes that the first column separates; the second follows it at a distance."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(2, size=n)
    key = rng.normal(3.0 * kind, 1.0)
    return np.column_stack([key, key + rng.normal(0, 3.0, n)]), np.array(["A", "B"])[kind]


@pytest.fixture(scope="module")
def complete():
    # Of a single kind of trees: several that disagree are less sure.
    return quick("paper").fit(*pairs(600, 0))


@pytest.fixture(scope="module")
def field():
    X, y = pairs(2000, 1)
    X[:, 0] = np.nan
    return X, y


def accuracy_and_claim(classifier, X, y):
    P = classifier.predict_proba(X)
    right = classifier.classes_[P.argmax(axis=1)] == y
    return right.mean(), P.max(axis=1).mean()


def test_without_the_key_column_probabilities_are_as_often_right_as_they_say(complete, field):
    right, said = accuracy_and_claim(complete, *field)
    assert said == pytest.approx(right, abs=0.04)
    overconfident = accuracy_and_claim(complete.set_params(n_draws=0), *field)
    complete.set_params(n_draws="auto")
    assert overconfident[1] - overconfident[0] > 0.08


def test_rows_with_the_gaps_of_the_training_set_are_classified_as_without_draws():
    scorer = quick("forest").fit(*stars(600)).scorer_
    X, _ = stars(200, seed=3)
    known = ~scorer.gaps.unlike(X)
    assert known.mean() > 0.9
    plain = scorer.probabilities(X, n_draws=0)
    assert np.array_equal(scorer.probabilities(X)[known], plain[known])
    assert np.array_equal(scorer.score(X).probabilities[known], plain[known])


def test_shares_of_a_field_come_from_rows_with_known_gaps():
    X, y = pairs(900, 4)
    X[np.random.default_rng(0).random(900) < 0.3, 1] = np.nan
    classifier = quick("both", prior="estimate").fit(X, y)
    X, y = pairs(3000, 5)
    rare = (y == "A") | (np.arange(3000) % 20 == 0)
    X, y = X[rare], y[rare]
    X[::2, 0] = np.nan
    # Without the key column, what is left of A is made to look like B.
    X[::2, 1] += 3.0
    mean = classifier.predict_proba(X[1::2])[:, 1].mean()
    P = classifier.predict_proba(X)
    assert P[1::2, 1].mean() == pytest.approx(mean, abs=0.01)
    assert mean == pytest.approx((y == "B").mean(), abs=0.03)
    assert not classifier.scorer_.known(X)[::2].any()


def test_rows_without_a_label_may_stand_for_the_field():
    X, y = pairs(600, 6)
    field, kind = pairs(4000, 7)
    field = field[(kind == "A") | (np.arange(4000) % 10 == 0)]
    both = np.concatenate([X, field]), np.concatenate([y, np.full(len(field), None)])
    fitted = quick("forest", prior="field").fit(*both)
    share = 1 - (kind == "A").sum() / len(field)
    assert fitted.field_shares_.low[1] < share < fitted.field_shares_.high[1]
    assert np.array_equal(fitted.scorer_.prior, fitted.field_shares_.shares)
    plain = quick("forest").fit(*both)
    assert (fitted.predict_proba(X)[:, 1] < plain.predict_proba(X)[:, 1] + 1e-12).all()
    with pytest.raises(DataError, match="needs rows without a label"):
        fitted.fit(X, y)


def test_draws_count_in_a_field_by_how_probable_they_are_there(complete, field):
    """P(class | seen) of the training set, shifted: Bayes' rule does not ask how it was found."""
    scorer, X, new = complete.scorer_, field[0][:40], np.array([0.02, 0.98])
    there = replace(scorer, prior=new)
    P = scorer.probabilities(X, n_draws=16, rng=1)
    expected = shift_prior(P, scorer.shares, new)
    np.testing.assert_allclose(there.probabilities(X, n_draws=16, rng=1), expected)
    share = there.score(X, n_draws=16, rng=1).gap_share
    assert ((share >= 0) & (share <= 1)).all()


def test_the_entropy_is_that_of_the_averaged_probabilities(complete, field):
    scorer, X = complete.scorer_, field[0][:50]
    found = scorer.score(X, rng=2)
    assert found.entropy.mean() > scorer.score(X, average=0, rng=2).entropy.mean()
    P = found.probabilities
    np.testing.assert_allclose(found.entropy, -(P * np.log2(np.maximum(P, 1e-300))).sum(axis=1))


def test_draws_grow_only_where_a_few_are_too_few(complete, field, monkeypatch):
    asked = []
    draw = Scorer._drawn

    def counted(self, cells, n_draws, *first, **how):
        asked.append((len(cells), n_draws))
        return draw(self, cells, n_draws, *first, **how)

    monkeypatch.setattr(Scorer, "_drawn", counted)
    complete.scorer_.probabilities(field[0][:300])
    (first, few), (second, more) = asked
    assert (first, few, more) == (300, N_DRAWS, MOST_DRAWS - N_DRAWS)
    assert 0 < second < 300
    asked.clear()
    replace(complete.scorer_, mixture=None).score(field[0][:300])
    assert [n for _, n in asked] == [N_DRAWS, MOST_DRAWS - N_DRAWS]  # those of gap_share serve both


def test_few_draws_that_agree_are_enough():
    same = np.full((8, 3, 2), 0.5)
    assert (error_of_means(same) == 0).all()
    apart = np.array([[[1.0, 0.0]], [[0.0, 1.0]]] * 4)
    assert error_of_means(apart)[0] == pytest.approx(np.sqrt(2 / 7 / 8))
    assert error_of_means(apart)[0] > CLOSE


def test_gaps_are_unlike_if_a_column_or_their_number_is_new():
    X = np.ones((200, 4))
    X[:100, 3] = np.nan
    X[:20, 2] = np.nan
    X[0, 1] = np.nan
    known = learn_gaps(X)
    gap = np.nan
    rows = np.array(
        [[1, 1, 1, gap], [1, 1, gap, gap], [1, 1, gap, 1], [1, gap, 1, 1], [gap] * 4, [1] * 4]
    )
    assert known.unlike(rows).tolist() == [False, False, False, True, False, False]
    assert KnownGaps(np.full(4, 0.5), np.array([1, 0.5, 0, 0, 0])).unlike(rows)[1]


def test_a_model_remembers_its_gaps_and_older_ones_average_nothing(complete, field):
    scorer, X = complete.scorer_, field[0][:20]
    arrays = scorer.arrays()
    again = Scorer.from_arrays(scorer.facts(), arrays, scorer.network)
    assert np.array_equal(again.probabilities(X), scorer.probabilities(X))
    older = {name: array for name, array in arrays.items() if not name.startswith("gaps.")}
    plain = Scorer.from_arrays(scorer.facts(), older, scorer.network)
    assert np.array_equal(plain.probabilities(X), scorer.probabilities(X, n_draws=0))


@pytest.mark.parametrize(
    ("columns", "counts"),
    [([0.1], [1, 0.1]), ([0.1, 1.1], [1, 0.1, 0]), ([0.1, 0.1], [1, 0.1, 0.2])],
)
def test_gaps_that_cannot_be_are_refused(columns, counts):
    with pytest.raises(ValueError, match="gaps"):
        check_gaps(KnownGaps(np.array(columns), np.array(counts)), 2)


@pytest.mark.parametrize("n_draws", [-1, "many"])
def test_a_number_of_draws_that_makes_no_sense_is_refused(n_draws):
    with pytest.raises(DataError, match="n_draws must be a number from 0"):
        quick(n_draws=n_draws).fit(*stars(60))
