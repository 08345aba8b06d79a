"""Arithmetic on lanes against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import errors, njit

from skyfill.network.mixture import lanes
from skyfill.network.mixture.lanes import LANES

SIZE = 30


@njit
def apply_all(a, b, i, j, count, out):
    lanes.subtract(2.5, a, i, out, 0)
    lanes.combine(2.0, a, i, -0.5, b, j, out, 1)
    lanes.copy(a, i, out, 2)
    lanes.multiply(a, i, b, j, out, 3)
    lanes.sum_products(a, i, b, j, count, out, 4)
    lanes.add_products(a, i, b, j, count, out, 5)
    lanes.norm(a, i, count, out, 6)
    lanes.eliminate(b, j, a, i, b, j, count, a, j, out, 7)
    lanes.pivot(b, j, a, i, count, out, 8)


@settings(max_examples=60)
@given(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1), st.integers(0, SIZE), st.integers(0, 99))
def test_every_operation_is_that_of_numpy(i, j, count, seed):
    count = min(count, SIZE - max(i, j))
    rng = np.random.default_rng(seed)
    a, b, out = (rng.normal(size=(n, LANES)) for n in (SIZE, SIZE, 9))
    before = out.copy()
    apply_all(a, b, i, j, count, out)
    rows, others = a[i : i + count], b[j : j + count]
    products = (rows * others).sum(axis=0)
    variance = np.maximum(2 * b[j] - (rows**2).sum(axis=0), lanes.TINY)
    wanted = [
        2.5 - a[i],
        2 * a[i] - b[j] / 2,
        a[i],
        a[i] * b[j],
        products,
        before[5] + products,
        np.sqrt((rows**2).sum(axis=0)),
        (b[j] - products) * a[j],
        1 / np.sqrt(variance),
    ]
    np.testing.assert_allclose(out, wanted, rtol=1e-12, atol=1e-12)


def test_rows_are_counted_over_all_axes():
    table = np.arange(3 * 4 * LANES, dtype=float).reshape(3, 4, LANES)
    out = np.zeros((2, LANES))

    @njit
    def take(table, out):
        lanes.copy(table, 2 * 4 + 1, out, 1)

    take(table, out)
    np.testing.assert_array_equal(out, [np.zeros(LANES), table[2, 1]])


@pytest.mark.parametrize("table", [np.ones((4, LANES), np.float32), np.ones((LANES, 4)).T])
def test_other_arrays_are_refused(table):
    @njit
    def take(table, out):
        lanes.copy(table, 0, out, 0)

    with pytest.raises(errors.TypingError, match="C-contiguous float64"):
        take(table, np.zeros((1, LANES)))
