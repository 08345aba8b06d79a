"""Objects that want the same source: marginals against a sum over all one-to-one choices."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skyfill.sky.associations import Associations
from skyfill.sky.posterior import probabilities
from skyfill.sky.rivals import LEAST_P, find_free
from tests.sky.test_one_to_one import random_field, sources


def one_to_one(found, p):
    """Probabilities with rivals, from those of each object for itself."""
    alone = Associations(found.starts, found.rows, np.log(p))
    even = np.full(1 << found.rows.shape[1], 0.5 ** found.rows.shape[1])
    return probabilities(alone, even, rivals=find_free(found, p))


def by_trying_all(found, p):
    total = np.zeros(len(p))
    for choice in itertools.product(*(range(a, b) for a, b in itertools.pairwise(found.starts))):
        taken = sources(found, choice)
        if len(set(taken)) == len(taken):
            total[list(choice)] += np.prod(p[list(choice)])
    return total / np.add.reduceat(total, found.starts[:-1])[found.base]


def likely(found, p):
    """Leave out what is too unlikely to take anything away; the rest sums to 1 for each object."""
    p = np.where(p < LEAST_P, 0.0, p)
    return p / np.add.reduceat(p, found.starts[:-1])[found.base]


def chain(seed, n):
    """Objects in a row, each of which shares one source with the next."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([[[-1], [i], [i + 1]] for i in range(n)])
    return Associations(3 * np.arange(n + 1), rows, np.zeros(3 * n)), np.concatenate(
        rng.dirichlet(np.ones(3), n)
    )


@given(seed=st.integers(0, 10_000), n=st.integers(1, 6))
@settings(max_examples=40)
def test_without_rings_the_marginals_are_exact(seed, n):
    found, p = chain(seed, n)
    p = likely(found, p)
    assert_allclose(one_to_one(found, np.maximum(p, 1e-300)), by_trying_all(found, p), atol=1e-9)


@given(seed=st.integers(0, 10_000), n_surveys=st.integers(1, 3))
@settings(max_examples=40)
def test_of_two_objects_they_are_exact_whatever_these_share(seed, n_surveys):
    found, p = random_field(seed, 2, 3, n_surveys)
    p = likely(found, p)
    assert_allclose(one_to_one(found, np.maximum(p, 1e-300)), by_trying_all(found, p), atol=1e-9)


def test_of_four_objects_in_rings_they_are_close_to_exact():
    apart = []
    for seed in range(30):
        found, p = random_field(seed, 4, 6, 1)
        apart.append(np.abs(one_to_one(found, p) - by_trying_all(found, p)).max())
    assert np.mean(apart) < 0.02


def test_who_has_no_rival_is_left_alone():
    found, p = random_field(3, 1, 5, 1)
    which, log_free = find_free(found, p)
    assert not len(which)
    assert not len(log_free)


def test_two_sure_objects_of_one_source_share_it():
    rows = np.array([[-1], [0], [-1], [0]])
    found = Associations(np.array([0, 2, 4]), rows, np.zeros(4))
    sure = np.array([1e-9, 1 - 1e-9] * 2)
    assert_allclose(one_to_one(found, sure), 0.5, atol=1e-6)
