import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose
from scipy.special import ndtr, ndtri

from skyfill.network.mixture.maps import fit_margin, identity_margin
from skyfill.network.mixture.margin import GRID_REACH, Margin

values = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))
columns = arrays(np.float64, st.integers(2, 300), elements=values)


def test_ranks_become_normal_quantiles():
    margin = fit_margin(np.array([3.0, 1.0, 2.0, 5.0]))
    assert_allclose(
        margin.to_normal(np.array([1.0, 2.0, 3.0, 5.0])), ndtri([1 / 8, 3 / 8, 5 / 8, 7 / 8])
    )


def test_an_atom_takes_the_interval_of_its_ranks_and_its_mean_score():
    column = np.concatenate([np.zeros(50), np.linspace(1, 2, 50)])
    margin = fit_margin(column)
    low, high = margin.score_interval(np.zeros(1))
    assert_allclose([ndtr(low[0]), ndtr(high[0])], [0.005, 0.5])
    # Mean of a normal between two quantiles: (phi(a) - phi(b)) / (Phi(b) - Phi(a)).
    phi = np.exp(-(np.array([low[0], high[0]]) ** 2) / 2) / np.sqrt(2 * np.pi)
    assert margin.to_normal(np.zeros(1))[0] == pytest.approx((phi[0] - phi[1]) / 0.495)
    assert (margin.from_normal(np.linspace(low[0], high[0], 9)[:-1]) == 0).all()


@given(columns)
def test_margins_rise_and_lead_back(column):
    margin = fit_margin(column)
    assert (np.diff(margin.x) >= 0).all()
    assert (np.diff(margin.z) >= 0).all()
    scores = margin.to_normal(np.sort(column))
    assert (np.diff(scores) >= 0).all()
    scale = max(np.abs(column).max(), 1e-3)
    inside = np.abs(scores) < GRID_REACH
    assert_allclose(margin.from_normal(scores)[inside], np.sort(column)[inside], atol=1e-6 * scale)
    assert (np.diff(margin.grid()) >= -1e-9 * scale).all()


@given(columns, values)
def test_new_values_get_finite_scores_and_order_is_kept(column, new):
    margin = fit_margin(column)
    both = np.sort(np.array([new, column[0]]))
    scores = margin.to_normal(both)
    assert np.isfinite(scores).all()
    assert scores[0] <= scores[1]
    assert np.isnan(margin.to_normal(np.array([np.nan]))).all()


def test_a_normal_column_stays_nearly_as_it_is():
    column = np.random.default_rng(0).normal(5, 2, 20_000)
    margin = fit_margin(column)
    scores = margin.to_normal(column)
    assert abs(scores.mean()) < 0.01
    assert scores.std() == pytest.approx(1, abs=0.01)
    assert np.corrcoef(scores, column)[0, 1] > 0.999


def test_plain_standardisation_and_constant_columns():
    plain = identity_margin(np.array([1.0, 3.0]))
    assert_allclose(plain.to_normal(np.array([1.0, 9.0])), [-1, 7])
    assert_allclose(plain.from_normal(np.array([-1.0, 7.0])), [1, 9])
    for make in (fit_margin, identity_margin):
        constant: Margin = make(np.full(5, 4.0))
        assert_allclose(constant.to_normal(np.array([4.0, 7.0])), 0)
        assert_allclose(constant.from_normal(np.array([-3.0, 3.0])), 4)


def test_next_to_an_atom_no_value_is_made_up() -> None:
    rng = np.random.default_rng(0)
    x = np.where(rng.random(6000) < 0.2, 0.0, 0.3 + rng.lognormal(0, 1, 6000))
    margin = fit_margin(x)
    made = margin.from_normal(rng.normal(size=200_000))
    assert not ((made > 0) & (made < x[x > 0].min())).any()
    assert (made == 0).mean() == pytest.approx((x == 0).mean(), abs=0.005)


def test_whole_numbers_stay_whole() -> None:
    rng = np.random.default_rng(1)
    margin = fit_margin(rng.poisson(2.0, 900).astype(float))
    made = margin.from_normal(rng.normal(size=5000))
    assert set(made) <= set(margin.x)
