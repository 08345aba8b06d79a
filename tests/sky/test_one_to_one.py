"""One to one: the largest total probability, against a search through all choices."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.sky.associations import Associations
from skyfill.sky.one_to_one import MOST_EXACT, choose_one_to_one


def random_field(seed: int, n_base: int, n_rows: int, n_surveys: int):
    """Associations of crowded objects with random probabilities that sum to one."""
    rng = np.random.default_rng(seed)
    rows, p, starts = [], [], [0]
    for _ in range(n_base):
        options = {tuple(rng.integers(-1, n_rows, n_surveys)) for _ in range(rng.integers(1, 5))}
        options.discard((-1,) * n_surveys)
        rows += [(-1,) * n_surveys, *sorted(options)]
        p += rng.dirichlet(np.ones(len(options) + 1)).tolist()
        starts.append(len(rows))
    return Associations(np.array(starts), np.array(rows), np.zeros(len(rows))), np.array(p)


def total(found, p, chosen):
    return sum(p[a] for i, a in enumerate(chosen) if a > found.starts[i])


def sources(found, chosen):
    return [(k, r) for a in chosen for k, r in enumerate(found.rows[a]) if r >= 0]


def most_by_trying_all(found, p):
    choices = itertools.product(*(range(a, b) for a, b in itertools.pairwise(found.starts)))
    legal = (c for c in choices if len(set(s := sources(found, c))) == len(s))
    return max(total(found, p, c) for c in legal)


@given(seed=st.integers(0, 100_000), n_surveys=st.integers(1, 3))
@settings(max_examples=60)
def test_no_other_choice_has_a_larger_total_probability(seed, n_surveys):
    found, p = random_field(seed, 5, 4, n_surveys)
    p = np.where(p < 1e-3, 1e-3, p)  # what is unlikelier is no choice
    chosen = choose_one_to_one(found, p)
    taken = sources(found, chosen)
    assert len(set(taken)) == len(taken)
    assert_allclose(total(found, p, chosen), most_by_trying_all(found, p))


def test_objects_without_rivals_keep_their_best_association_even_if_none_is_likelier():
    found = Associations(np.array([0, 2, 3]), np.array([[-1], [5], [-1]]), np.zeros(3))
    assert_array_equal(choose_one_to_one(found, np.array([0.9, 0.1, 1.0])), [1, 2])


def test_large_groups_are_decided_from_the_likeliest_down_and_stay_one_to_one():
    found, p = random_field(1, 4 * MOST_EXACT, 30, 1)
    chosen = choose_one_to_one(found, p)
    taken = sources(found, chosen)
    assert len(set(taken)) == len(taken)
    free = p.copy()
    for i, a in enumerate(chosen):  # nobody could have had a free source
        if a == found.starts[i]:
            options = range(found.starts[i] + 1, found.starts[i + 1])
            assert all(free[o] < 1e-3 or (0, found.rows[o, 0]) in taken for o in options)


def test_an_object_that_loses_its_best_gets_its_second_choice():
    rows = np.array([[-1], [0], [1], [-1], [0]])
    found = Associations(np.array([0, 3, 5]), rows, np.zeros(5))
    chosen = choose_one_to_one(found, np.array([0.05, 0.55, 0.4, 0.4, 0.6]))
    assert_array_equal(found.rows[chosen][:, 0], [1, 0])
