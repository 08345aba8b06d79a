from itertools import pairwise
from math import exp, factorial, log, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skyfill.errors import DataError
from skyfill.network import k2_score, k2_search
from skyfill.network.single.k2 import as_codes, cut, family_counts, quantile_edges


def by_definition(codes, child, parents, levels):
    """Cooper & Herskovits (1992), equation 5, with exact integer factorials."""
    total, r = 0.0, levels[child]
    for config in {tuple(row[k] for k in parents) for row in codes}:
        column = [row[child] for row in codes if tuple(row[k] for k in parents) == config]
        counts = [column.count(level) for level in range(r)]
        total += log(factorial(r - 1)) - log(factorial(len(column) + r - 1))
        total += log(prod(factorial(count) for count in counts))
    return total


def test_mission_3_score_of_a_hand_counted_table():
    # Parent 0: child 0, 0, 1 -> 1! 2! 1! / 4! = 1/12; parent 1: child 1, 1 -> 1! 0! 2! / 3! = 1/3.
    codes = [[0, 0], [0, 0], [0, 1], [1, 1], [1, 1]]
    assert exp(k2_score(codes, 1, [0])) == pytest.approx(1 / 36)
    # Alone: two 0 and three 1 -> 1! 2! 3! / 6! = 1/60.
    assert exp(k2_score(codes, 1, [])) == pytest.approx(1 / 60)


def test_mission_3_the_worked_example_of_cooper_and_herskovits():
    """Ten cases of three binary variables; the paper gives 2.23e-9 and 2.23e-10 (times priors)."""
    cases = np.array(
        [
            [1, 0, 0],
            [1, 1, 1],
            [0, 0, 1],
            [1, 1, 1],
            [0, 0, 0],
            [0, 1, 1],
            [1, 1, 1],
            [0, 0, 0],
            [1, 1, 1],
            [0, 0, 0],
        ]
    )
    chain = k2_score(cases, 0, []) + k2_score(cases, 1, [0]) + k2_score(cases, 2, [1])
    fork = k2_score(cases, 0, []) + k2_score(cases, 1, [0]) + k2_score(cases, 2, [0])
    assert exp(chain) == pytest.approx(2.23e-9, rel=3e-3)
    assert exp(fork) == pytest.approx(2.23e-10, rel=3e-3)
    assert k2_search(cases, [0, 1, 2]) == ((), (0,), (1,))


@st.composite
def code_tables(draw):
    levels = draw(st.lists(st.integers(2, 4), min_size=2, max_size=4))
    n = draw(st.integers(1, 25))
    rows = [[draw(st.integers(0, r - 1)) for r in levels] for _ in range(n)]
    return rows, levels


@given(code_tables())
def test_mission_3_scores_are_those_of_the_definition(table):
    rows, levels = table
    parents = list(range(1, len(levels)))
    assert k2_score(rows, 0, parents, levels) == pytest.approx(
        by_definition(rows, 0, parents, levels), rel=1e-9, abs=1e-9
    )


@given(code_tables())
def test_counts_of_parts_sum_to_the_whole(table):
    rows, levels = table
    half = len(rows) // 2
    if half:
        parts = [
            family_counts(as_codes(part, levels), 0, [1], range(2, len(levels)))
            for part in (rows[:half], rows[half:])
        ]
        whole = family_counts(as_codes(rows, levels), 0, [1], range(2, len(levels)))
        assert np.array_equal(parts[0] + parts[1], whole)
        assert whole.sum() == len(rows) * len(whole)


def greedy(codes, order, max_parents):
    """The published pseudo-code, a family at a time."""
    parents = [()] * len(order)
    for place, child in enumerate(order):
        mine, best = [], k2_score(codes, child, [])
        while len(mine) < max_parents:
            options = [k for k in order[:place] if k not in mine]
            scores = [k2_score(codes, child, [*mine, k]) for k in options]
            if not options or max(scores) <= best:
                break
            best = max(scores)
            mine.append(options[int(np.argmax(scores))])
        parents[child] = tuple(sorted(mine))
    return tuple(parents)


@given(st.integers(0, 999), st.integers(1, 3))
def test_mission_3_the_search_is_the_published_one(seed, max_parents):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, (60, 5))
    for a, b in pairwise(rng.permutation(5)):
        codes[:, b] = np.where(rng.random(60) < 0.7, codes[:, a], codes[:, b])
    order = rng.permutation(5).tolist()
    assert k2_search(codes, order, max_parents) == greedy(codes, order, max_parents)


def test_many_levels_fit_as_well():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 1000, 3000)
    codes = np.column_stack([a, a // 500, rng.integers(0, 2, 3000)])
    assert k2_search(codes, [0, 2, 1], None)[1] == (0,)


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0.5, 1.0]], "must be a table of integers"),
        ([[-1, 0]], "integers from 0 upwards"),
        (np.zeros((0, 2), int), "at least one row"),
        ([1, 2, 3], "must be a table"),
    ],
)
def test_what_is_not_a_table_of_codes_is_refused(codes, message):
    with pytest.raises(DataError, match=message):
        k2_score(codes, 0, [])


def test_impossible_orders_levels_and_sizes_are_refused():
    with pytest.raises(DataError, match="each of the 2 columns once"):
        k2_search([[0, 1], [1, 0]], [0, 0])
    with pytest.raises(DataError, match="beyond its declared number"):
        k2_score([[0, 3]], 1, [], levels=[2, 2])
    with pytest.raises(DataError, match="too large"):
        k2_search(np.full((2, 4), 5000), [0, 1, 2, 3])


def test_quantile_bins_are_estimated_from_seen_cells_and_hold_equal_shares():
    X = np.random.default_rng(0).normal(size=(9000, 2))
    edges = quantile_edges(np.where(np.arange(9000)[:, None] % 2, X, np.nan), 3)
    counts = np.bincount(cut(X, edges).columns[0])
    assert counts == pytest.approx([3000] * 3, rel=0.05)


def test_ties_merge_bins_and_keep_equal_values_together():
    column = np.array([0.0] * 70 + list(np.linspace(1, 2, 30)))
    codes = cut(column[:, None], quantile_edges(column[:, None], 4)).columns[0]
    assert set(codes[:70]) == {codes[0]}
    assert set(codes) == {0, 1, 2}  # two of the three inner edges are 0
