import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.classify.held_out import HeldOut, check_held_out, held_out_arrays, keep_held_out
from skyfill.classify.prior import (
    estimate_shares,
    find_profiles,
    match_profiles,
    refine_shares,
    shifted_profiles,
)

HALVES = np.array([0.5, 0.5])


def judged(kind, rng, distance=3.0):
    """Bayes' probabilities, for equal shares, of classes that are normal and some sigma apart."""
    odds = np.exp(distance * rng.normal(distance * kind, 1.0) - distance**2 / 2)
    return np.column_stack([1 / (1 + odds), odds / (1 + odds)])


def two_classes(rng, n=300, distance=3.0):
    y = np.repeat([0, 1], n)
    return HeldOut(judged(y, rng, distance), y)


@given(seed=st.integers(0, 200), rare=st.integers(20, 400))
@settings(max_examples=3)
def test_shares_of_a_rare_class_are_right_within_an_interval_that_holds_both_estimates(seed, rare):
    rng = np.random.default_rng(seed)
    held_out, P = two_classes(rng), judged(np.arange(20_000) < rare, rng)
    found = refine_shares(P, HALVES, held_out)
    plain = match_profiles(P, find_profiles(*held_out))
    assert abs(found.shares[1] - rare / 20_000) < found.high[1] - found.low[1]
    assert found.low[1] <= plain.shares[1] <= found.high[1]


def test_the_share_of_a_rare_class_is_better_known_under_the_shares_of_the_field():
    """20,000 others with a probability of 0.034 each hide 40 objects; 0.0007 each do not."""
    off = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        held_out, P = two_classes(rng, 300, 4.0), judged(np.arange(20_000) < 40, rng, 4.0)
        ways = refine_shares(P, HALVES, held_out), match_profiles(P, find_profiles(*held_out))
        off.append([abs(found.shares[1] - 0.002) for found in ways])
    refined, plain = np.mean(off, axis=0)
    assert refined < 0.5 * plain


def test_shares_that_drift_stay_at_the_first_estimate():
    """Objects of one class, 0.3 sigma nearer to the other than held-out ones: they fit no share."""
    rng = np.random.default_rng(0)
    held_out, odds = two_classes(rng), np.exp(3 * rng.normal(0.3, 1.0, 5000) - 4.5)
    P = np.column_stack([1 / (1 + odds), odds / (1 + odds)])
    first = match_profiles(P, shifted_profiles(held_out, HALVES, HALVES))
    found = refine_shares(P, HALVES, held_out)
    assert np.array_equal(found.shares, first.shares)
    assert found.low[1] < 0.5 * first.low[1]


def test_profiles_under_other_shares_as_on_paper():
    y = np.array([0, 0, 1, 1])
    P = np.array([[0.8, 0.2], [0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    found = shifted_profiles(HeldOut(P, y), HALVES, np.array([0.8, 0.2]))
    # Odds of 4, 1, 1 and 1/4 become 16, 4, 4 and 1.
    assert found.mean[:, 1] == pytest.approx([(1 / 17 + 1 / 5) / 2, (1 / 5 + 1 / 2) / 2])
    chances = np.array([1 / 17, 1 / 5, 1 / 5, 1 / 2])
    weights = np.array([0.8, 0.5, 0.5, 0.2]) / 2
    variance = weights @ chances**2 - (weights @ chances) ** 2
    assert found.error[0, 1] == pytest.approx(np.sqrt(variance))


def test_shares_that_are_those_of_the_training_set_stay():
    rng = np.random.default_rng(0)
    held_out = two_classes(rng, 2000)
    found = estimate_shares(judged(np.arange(8000) % 2, rng), HALVES, held_out)
    assert found.shares == pytest.approx(HALVES, abs=0.02)


def test_classes_with_many_held_out_objects_are_thinned_evenly():
    y = np.repeat([0, 1], [20_000, 3])
    P = np.column_stack([np.linspace(0, 1, len(y)), np.linspace(1, 0, len(y))])
    kept = keep_held_out(P, y)
    assert np.bincount(kept.y).tolist() == [5000, 3]
    assert kept.P[kept.y == 0].mean(axis=0) == pytest.approx(P[y == 0].mean(axis=0), abs=1e-3)


def test_a_class_with_one_held_out_object_has_none():
    assert keep_held_out(np.full((3, 2), 0.5), np.array([0, 0, 1])) is None
    assert keep_held_out(np.empty((0, 2)), np.empty(0, int)) is None
    assert held_out_arrays(None) == {}


@pytest.mark.parametrize(
    ("P", "y", "words"),
    [
        (np.full((4, 3), 1 / 3), [0, 0, 1, 1], "shape"),
        (np.full((4, 2), 0.6), [0, 0, 1, 1], "probabilities"),
        (np.full((4, 2), 0.5), [0, 0, 0, 1], "two held-out"),
        (np.full((4, 2), 0.5), [0, 0, 1, 2], "two held-out"),
    ],
)
def test_held_out_objects_of_a_damaged_file_are_refused(P, y, words):
    with pytest.raises(ValueError, match=words):
        check_held_out(HeldOut(P, np.array(y)), 2)
