"""How the probabilities of members are combined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skyfill.classify.combining import choose_pool
from skyfill.classify.members import POOLS, pool_members

tables = arrays(np.float64, (4, 3), elements=st.floats(0.01, 1)).map(
    lambda P: P / P.sum(axis=1, keepdims=True)
)


@pytest.mark.parametrize("pool", POOLS)
@given(P=tables)
def test_members_that_agree_are_right(pool, P):
    assert np.allclose(pool_members([(0.3, P), (0.7, P)], pool), P)


@given(P=tables, Q=tables)
def test_odds_are_the_weighted_products_of_odds(P, Q):
    found = pool_members([(0.25, P), (0.75, Q)], "logs")
    odds = (P[:, 0] / P[:, 1]) ** 0.25 * (Q[:, 0] / Q[:, 1]) ** 0.75
    assert np.allclose(found[:, 0] / found[:, 1], odds)


def test_no_class_is_impossible_because_trees_never_saw_it():
    certain = np.array([[1.0, 0.0]])
    assert pool_members([(0.5, certain), (0.5, certain[:, ::-1])], "logs") == pytest.approx(0.5)


def two_witnesses(rng, n=4000):
    """Classes, and the probabilities of two members that know independent halves of the truth."""
    y = rng.integers(2, size=n)
    logits = [rng.normal(2 * (2 * y - 1), 2.0) for _ in range(2)]
    sides = [1 / (1 + np.exp(-each)) for each in logits]
    return y, [(0.5, np.stack([1 - p, p], axis=1)) for p in sides]


def test_independent_members_are_combined_by_their_logs():
    rng = np.random.default_rng(0)
    y, parts = two_witnesses(rng)
    assert choose_pool(parts, y, np.ones(len(y)), np.arange(len(y)) % 5, len(y)) == "logs"


def test_the_mean_is_taken_where_one_member_is_often_wrong_with_confidence():
    rng = np.random.default_rng(1)
    y, ((_, P), _) = two_witnesses(rng)
    silly = np.where(rng.random((len(y), 1)) < 0.5, P, np.eye(2)[rng.integers(2, size=len(y))])
    parts = [(0.5, P), (0.5, silly)]
    assert choose_pool(parts, y, np.ones(len(y)), np.arange(len(y)) % 5, len(y)) == "mean"
