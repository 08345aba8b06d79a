"""Random numbers of rows: uniform, independent, and the same wherever a row stands."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.testing import assert_array_equal
from scipy.stats import kstest

from skyfill.network import Cells, MixtureNetwork
from skyfill.network.mixture.margin import Identity
from skyfill.network.mixture.mixture import Mixture
from skyfill.network.mixture.random_keys import (
    begin,
    codes_of,
    keys_of_cells,
    keys_of_texts,
    number,
    numbered,
    uniform,
)

N = 20_000


def network(names, mean, cov):
    """One Gaussian, on the scale of the columns."""
    one = Mixture(np.ones(1), np.array([mean]), np.array([cov]), None, None)
    return MixtureNetwork(
        names, (Identity(np.array([0.0, 1.0]), np.array([0.0, 1.0])),) * len(names), (one,)
    )


@njit
def numbers_of(keys, n_draws, codes, out):
    for r in range(keys.size):
        for t in range(n_draws):
            for j in range(codes.size):
                out[r, t, j] = number(keys[r], t, codes[j])


@njit
def streams_of(keys, codes, out):
    states = np.empty(codes.size, np.uint64)
    for r in range(keys.size):
        for j in range(codes.size):
            begin(states, j, keys[r], 0, codes[j])
        for i in range(out.shape[1]):
            for j in range(codes.size):
                out[r, i, j] = uniform(states, j)


def worst_keys():
    """Keys and codes that differ in a few bits alone."""
    return np.arange(N, dtype=np.uint64), np.arange(4, dtype=np.uint64)


@pytest.mark.parametrize("kind", ["draws", "streams"])
def test_numbers_are_uniform_and_no_two_of_them_go_together(kind):
    (keys, codes), found = worst_keys(), np.empty((N, 3, 4))
    if kind == "draws":
        numbers_of(keys, 3, codes, found)
    else:
        streams_of(keys, codes, found)
    table = found.reshape(N, -1)
    assert ((table > 0) & (table < 1)).all()
    assert len(np.unique(table)) == table.size
    assert min(kstest(column, "uniform").pvalue for column in table.T) > 1e-4
    # Those of one row, and those of rows that follow one another.
    both = np.column_stack([table[:-1], table[1:]])
    apart = np.abs(np.corrcoef(both.T)) - np.eye(both.shape[1])
    assert apart.max() < 5 / np.sqrt(N)
    # Pairs fill the unit square evenly.
    counts = np.histogram2d(table[:, 0], table[:, 1], bins=10, range=[[0, 1]] * 2)[0]
    assert ((counts - N / 100) ** 2 / (N / 100)).sum() < 99 + 5 * np.sqrt(2 * 99)


def test_draws_have_the_conditional_mean_and_covariance_of_a_gaussian():
    """Truth: x_m | x_o is Gaussian with mean m_m + B (x_o - m_o) and covariance S_mm - B S_om."""
    rng, mean = np.random.default_rng(0), np.array([1.0, -2.0, 0.5])
    root = np.array([[1.0, 0, 0], [0.8, 0.6, 0], [-0.5, 0.4, 0.7]])
    cov = root @ root.T
    X = rng.multivariate_normal(mean, cov, N)
    X[:, :2] = np.nan
    cells = Cells(X)
    cells = cells.with_keys(keys_of_cells(cells, 0))
    draws = network(("a", "b", "c"), mean, cov).draws(cells, 2)
    B = cov[:2, 2] / cov[2, 2]
    left = np.linalg.cholesky(cov[:2, :2] - np.outer(B, cov[2, :2]))
    away = draws[:, :, :2] - (mean[:2] + B * (X[:, 2:] - mean[2]))
    # Independent standard normals, which have nothing to do with the value from which they follow.
    table = np.column_stack(
        [*np.linalg.solve(left, away.transpose(0, 2, 1)).reshape(4, N), X[:, 2]]
    )
    assert min(kstest(column, "norm").pvalue for column in table.T[:4]) > 1e-4
    assert (np.abs(np.corrcoef(table.T)) - np.eye(5)).max() < 5 / np.sqrt(N)


def test_the_components_of_draws_are_chosen_by_their_shares():
    """Truth: of two components far apart, the second has 0.3 of the draws."""
    means = np.array([[0.0], [100.0]])
    one = Mixture(np.array([0.7, 0.3]), means, np.ones((2, 1, 1)), None, None)
    margin = Identity(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    draws = MixtureNetwork(("a",), (margin,), (one,)).draws(np.full((N, 1), np.nan), 1, 0)[0, :, 0]
    is_far = draws > 50
    assert is_far.mean() == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / N))
    assert kstest(np.where(is_far, draws - 100, draws), "norm").pvalue > 1e-4


def test_limits_are_met_by_draws_that_have_the_moments_of_a_truncated_normal():
    """Truth: above 1, a normal has the mean h = phi(1) / Phi(-1) and the variance 1 + h - h^2."""
    cells = Cells(np.full((N, 1), np.nan), lower=np.ones((N, 1)))
    draws = network(("a",), [0.0], np.eye(1)).draws(cells, 1, 0)[0, :, 0]
    hazard = 1.5251352761609812
    assert draws.min() >= 1.0
    assert draws.mean() == pytest.approx(hazard, abs=0.02)
    assert draws.var() == pytest.approx(1 + hazard - hazard**2, abs=0.02)


@given(first=st.integers(0, 40), n_draws=st.integers(1, 4), limited=st.booleans())
@settings(max_examples=20)
def test_a_draw_has_its_numbers_whichever_draws_are_made_with_it(first, n_draws, limited):
    X = np.full((5, 2), np.nan)
    X[2, 1] = 0.3
    cells = Cells(X, lower=np.where(np.isnan(X), -0.5, np.nan) if limited else None)
    model = network(("a", "b"), [0.0, 0.0], np.array([[1.0, 0.5], [0.5, 1.0]]))
    many = model.draws(cells, first + n_draws, 7)
    assert_array_equal(model.draws(cells, n_draws, 7, first=first), many[first:])


def test_a_column_keeps_its_numbers_when_others_come_or_go():
    """Columns that are independent: one more, and in another order, changes no draw."""
    few = network(("a", "b"), [0.0, 0.0], np.eye(2)).draws(np.full((9, 2), np.nan), 3, 1)
    more = network(("b", "c", "a"), [0.0] * 3, np.eye(3)).draws(np.full((9, 3), np.nan), 3, 1)
    assert_array_equal(few[..., 0], more[..., 2])
    assert_array_equal(few[..., 1], more[..., 0])
    assert not np.isin(more[..., 1], few).any()


def test_keys_follow_from_all_that_is_known_of_a_row_and_from_the_seed():
    row = np.array([[1.0, np.nan, 2.0]])
    nothing, some = np.full((1, 3), np.nan), np.array([[np.nan, 5.0, np.nan]])
    tables = [
        Cells(row),
        Cells(row, lower=some),
        Cells(row, upper=some),
        Cells(row, errors=some),
        Cells(row[:, [2, 1, 0]]),
        Cells(row[:, [1, 0, 2]]),
        Cells(row + 1e-15),
    ]
    keys = [int(keys_of_cells(cells, seed)[0]) for cells in tables for seed in (0, 1)]
    assert len(set(keys)) == len(keys)
    assert keys_of_cells(Cells(row, lower=nothing), 0)[0] == keys[0]


def test_zeros_and_nan_have_one_key_each():
    other = np.array([0x7FF8000000000001, 0xFFF0000000000001], np.uint64).view(np.float64)
    X = np.array([[0.0, np.nan], [-0.0, other[0]], [0.0, other[1]]])
    assert len(set(keys_of_cells(Cells(X), 0).tolist())) == 1


def test_equal_rows_have_keys_of_their_own_by_number_and_by_text():
    keys = np.zeros(6, np.uint64)
    own = numbered(keys, 10)
    assert len(set(own.tolist())) == 6
    assert_array_equal(numbered(keys[:2], 14), own[4:])
    starts, text = np.array([0, 1, 2, 4, 4]), np.frombuffer(b"abab", np.uint8)
    a, b, ab, empty = keys_of_texts(starts, text, 0).tolist()
    assert len({a, b, ab, empty}) == 4
    assert keys_of_texts(starts[2:], text, 0).tolist() == [ab, empty]
    assert keys_of_texts(starts, text, 1)[0] != a


def test_the_choice_of_a_component_has_a_code_of_its_own():
    codes = codes_of(["V", "I"])
    assert codes.dtype == np.uint64
    assert len(set(codes.tolist())) == 3


def test_rows_that_are_taken_or_measured_keep_their_keys():
    cells = Cells(np.full((3, 1), np.nan), lower=np.ones((3, 1)), errors=np.ones((3, 1)))
    cells = cells.with_keys(np.arange(3, dtype=np.uint64))
    assert cells.take([2, 0]).keys.tolist() == [2, 0]
    assert cells.measured(np.ones((3, 1))).keys.tolist() == [0, 1, 2]
    assert replace(cells, errors=None).measured(np.ones((3, 1))).keys.tolist() == [0, 1, 2]
