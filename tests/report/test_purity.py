"""Expected purity and completeness of candidate lists, against truths on paper and simulations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.catalog import Table
from skyfill.errors import DataError
from skyfill.report.purity import ProbabilityCounts, expect_list, learn_reliability


def counted(p, batches=1, more=()):
    counts = ProbabilityCounts("QSO", more=more)
    for part in np.array_split(p, batches):
        counts.add(Table.from_columns({"p_QSO": part}))
    return counts


def test_purity_and_completeness_as_on_paper():
    p = np.array([0.9, 0.7, 0.4, 0.1, np.nan])
    found = expect_list(counted(p)).at(0.5)
    assert (found["threshold"], found["candidates"]) == (0.5, 2)
    assert found["purity"] == pytest.approx(0.8)
    assert found["completeness"] == pytest.approx(1.6 / 2.1)


def test_of_one_object_nothing_or_all_may_be_of_the_class():
    """Its interval was 2.2e-308 to 1."""
    found = expect_list(counted(np.array([0.84, 0.2]))).at(0.5)
    assert (found["purity_low"], found["purity"], found["purity_high"]) == (0, 0.84, 1)
    assert (found["completeness_low"], found["completeness_high"]) == (0, 1)


@given(p=st.lists(st.floats(1e-4, 1), min_size=1, max_size=12), checked=st.integers(0, 3))
@settings(max_examples=60)
def test_intervals_hold_what_is_expected_and_end_at_whole_objects(p, checked):
    how = learn_reliability(np.full(checked, 0.5), np.arange(checked) > 0)
    found = expect_list(counted(np.array(p)), how)
    for threshold in (0.0, 0.1, 0.5):
        facts = found.at(threshold)
        if not facts["candidates"]:
            continue
        assert 0 <= facts["purity_low"] <= facts["purity"] <= facts["purity_high"] <= 1
        n, ends = facts["candidates"], (facts["purity_low"], facts["purity_high"])
        for end in ends:
            is_whole = abs(end * n - round(end * n)) < 1e-6
            assert is_whole or end == facts["purity"]
        if facts["completeness"] is not None:
            low, high = facts["completeness_low"], facts["completeness_high"]
            assert 0 <= low <= facts["completeness"] <= high <= 1
            assert low == 0 or low > 1e-4


def test_an_object_at_exactly_the_threshold_is_listed_also_off_the_grid():
    found = expect_list(counted(np.array([0.8051, 0.8049]), more=[0.8051])).at(0.8051)
    assert found["candidates"] == 1
    assert expect_list(counted(np.array([0.8, 0.79]))).at(0.8)["candidates"] == 1


def test_batches_do_not_matter():
    p = np.random.default_rng(0).random(100)
    one, many = expect_list(counted(p)), expect_list(counted(p, batches=7))
    np.testing.assert_allclose(one.purity, many.purity)


def test_without_candidates_there_is_nothing_to_expect():
    found = expect_list(counted(np.array([0.1]))).at(0.5)
    assert (found["candidates"], found["purity"], found["completeness"]) == (0, None, 0.0)


def test_objects_that_are_certain_leave_no_interval():
    found = expect_list(counted(np.ones(5))).at(0.5)
    assert found["purity"] == pytest.approx(1, abs=1e-6)
    assert found["purity_low"] > 0.999


@given(seed=st.integers(0, 10_000))
@settings(max_examples=20)
def test_the_purity_that_was_asked_for_is_expected_at_the_chosen_threshold(seed):
    p = np.random.default_rng(seed).beta(0.3, 1, 200)
    found = expect_list(counted(p))
    least = found.threshold_for(0.7)
    assert p[p >= least].mean() >= 0.7
    assert p[p >= least - 0.02].mean() < 0.72


def test_a_purity_that_no_list_has_is_refused_with_the_best_one():
    with pytest.raises(DataError, match=r"it is 0\.6 at most"):
        expect_list(counted(np.full(10, 0.6))).threshold_for(0.9)


def test_intervals_hold_the_truth_in_nine_of_ten_lists():
    rng, purity, completeness = np.random.default_rng(1), [], []
    for _ in range(100):
        p = rng.beta(0.1, 1, 2000)
        true, listed = rng.random(2000) < p, p >= 0.5
        found = expect_list(counted(p)).at(0.5)
        share = true[listed].mean(), (true & listed).sum() / true.sum()
        purity.append(found["purity_low"] <= share[0] <= found["purity_high"])
        completeness.append(found["completeness_low"] <= share[1] <= found["completeness_high"])
    # Two standard errors of a share of 0.9 out of 100 are 0.06.
    assert np.mean(purity) == pytest.approx(0.9, abs=0.06)
    assert np.mean(completeness) == pytest.approx(0.9, abs=0.06)


def test_checked_objects_correct_probabilities_that_promise_too_much():
    rng = np.random.default_rng(2)
    p = rng.beta(0.1, 1, 20_000)
    odds = p / (1 - p) / 5
    true, listed = rng.random(20_000) < odds / (1 + odds), p >= 0.5
    best = np.argsort(-p)[:600:3]
    found = expect_list(counted(p), learn_reliability(p[best], true[best])).at(0.5)
    stated = expect_list(counted(p)).at(0.5)
    assert stated["purity"] - true[listed].mean() > 0.1
    assert found["purity_low"] < true[listed].mean() < found["purity_high"]
    share = (true & listed).sum() / true.sum()
    assert found["completeness_low"] < share < found["completeness_high"]


def test_two_checked_objects_change_little():
    p = np.full(50, 0.9)
    found = expect_list(counted(p), learn_reliability(p[:2], np.array([True, True]))).at(0.5)
    assert 0.85 < found["purity"] < 0.98
    assert found["purity_high"] - found["purity_low"] > 0.1
