"""Rates of gaps of the components: as different as the data say, no more."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chi2

from skyfill.network.mixture.fit import GAP_DOUBT, GAP_PRIOR, gap_rates
from skyfill.network.moments import Moments


def moments(weight, gaps):
    """Moments of components with these numbers of rows and of gaps in each column."""
    k, p = gaps.shape
    zeros = np.zeros((k, p))
    return Moments(round(weight.sum()), zeros, weight, zeros, np.zeros((k, p, p)), gaps, 0.0)


def test_rates_that_chance_explains_are_the_same_for_all_components():
    """Of columns without any difference, those are taken in that chi-squared says."""
    k, n, columns = 20, 150, 4000
    gaps = np.random.default_rng(0).binomial(n, 0.2, size=(k, columns)).astype(float)
    rates = gap_rates(moments(np.full(k, float(n)), gaps))
    assert np.ptp(gaps / n, axis=0).min() > 0.03
    differ = np.ptp(rates, axis=0) > 1e-6
    wanted = chi2(k - 1).sf(k - 1 + GAP_DOUBT * np.sqrt(2 * (k - 1)))
    assert differ.mean() == pytest.approx(wanted, abs=3 * np.sqrt(wanted / columns))


def test_rates_that_differ_are_kept():
    weight = np.array([500.0, 500.0])
    gaps = np.array([[25.0, 100.0], [450.0, 100.0]])
    rates = gap_rates(moments(weight, gaps))
    np.testing.assert_allclose(rates[:, 0], [0.05, 0.9], atol=0.01)
    np.testing.assert_allclose(rates[:, 1], 0.2, atol=0.001)


@example(seed=6854, k=1, level=0.0)  # a weight of less than half a row
@given(st.integers(0, 9999), st.integers(1, 12), st.floats(0, 1))
def test_rates_lie_between_the_own_and_the_overall_one(seed, k, level):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0, 200, k) + 1e-6
    gaps = weight[:, None] * np.clip(level + rng.normal(0, 0.3, (k, 3)), 0, 1)
    found = moments(weight, gaps)
    rates, own = gap_rates(found), gaps / weight[:, None]
    overall = (gaps.sum(axis=0) + 0.5) / (weight.sum() + 1.0)
    low, high = np.minimum(own, overall), np.maximum(own, overall)
    assert ((low - 1e-9 <= rates) & (rates <= high + 1e-9)).all()
    # Never as far from the overall rate as without any extra row.
    far = np.abs(own - overall) * weight[:, None] / (weight[:, None] + GAP_PRIOR)
    assert (np.abs(rates - overall) <= far + 1e-9).all()
