"""Fluxes and other positive columns: what is filled is positive, as if logarithms were given."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skyfill.errors import LimitWarning
from skyfill.impute import NetworkImputer
from skyfill.network import Cells, learn_mixture
from skyfill.network.mixture.maps import (
    find_positive,
    fit_censored_margin,
    fit_margin,
    log_margin,
    map_columns,
)
from skyfill.network.mixture.margin import Identity, Logarithm

SMALL = {"n_components": 1, "n_fits": 2, "rng": 0}


def fluxes(seed=0, n=313, p=5, scatter=1.6, cut=0.3):
    """Correlated fluxes, with an upper limit where they are fainter than a survey sees."""
    rng = np.random.default_rng(seed)
    true = np.exp(scatter * rng.normal(size=(n, 1)) + 0.45 * rng.normal(size=(n, p)))
    limits = np.quantile(true, cut, axis=0)
    faint = true < limits
    faint[np.arange(n), true.argmax(axis=1)] = False
    return true, np.where(faint, np.nan, true), np.where(faint, limits, np.nan)


def test_fluxes_with_limits_are_filled_as_well_as_their_logarithms():
    true, X, upper = fluxes()
    lost = np.isnan(X)
    filled = NetworkImputer(n_fits=2, random_state=0).fit(X, upper=upper).transform(X, upper=upper)
    logs = NetworkImputer(n_fits=2, random_state=0).fit(np.log10(X), upper=np.log10(upper))
    given_logs = logs.transform(np.log10(X), upper=np.log10(upper))
    assert (filled[lost] > 0).all()
    errors = [np.std(each[lost] - np.log10(true[lost])) for each in (np.log10(filled), given_logs)]
    assert errors[0] < 0.25
    assert errors[0] == pytest.approx(errors[1], abs=0.03)


@settings(deadline=None, max_examples=5)
@given(st.integers(0, 99), st.floats(0.5, 3.0), st.floats(0.05, 0.6), st.booleans())
def test_nothing_that_is_filled_is_negative_or_beyond_its_limit(seed, scatter, cut, with_errors):
    true, X, upper = fluxes(seed, 120, 3, scatter, cut)
    errors = np.where(np.isnan(X), np.nan, 0.1 * true) if with_errors else None
    network = learn_mixture(Cells(X, upper=upper, errors=errors), **SMALL).network
    cells = Cells(X / 3, upper=upper / 30, errors=errors)
    lost = np.isnan(X)
    found = [network.posterior(cells).mean, *network.quantiles(cells, [0.01, 0.99])]
    for each in (*found, *network.draws(cells, 3, 0)):
        assert (each[lost] > 0).all()
        assert (each <= upper / 30)[lost].all()
        assert np.array_equal(each[~lost], (X / 3)[~lost])


def test_a_positive_column_over_a_decade_has_a_logarithm_unless_it_is_a_magnitude():
    rng = np.random.default_rng(0)
    wide, narrow = np.exp(rng.normal(0, 1, 500)), np.exp(rng.normal(0, 0.3, 500))
    table = np.column_stack([wide, wide, narrow, narrow, wide - 0.01, np.full(500, 3.0)])
    known = [None, False, None, True, True, True]
    found = find_positive(Cells(table, errors=0.01 + 0 * table), known)
    assert wide.min() < 0.1
    assert (wide - 0.01).min() > 0
    assert found.tolist() == [True, False, False, True, True, False]
    table[0, 4] = -0.2  # forced photometry
    assert not find_positive(Cells(table, errors=0.01 + 0 * table), known)[4]


def test_a_positive_column_below_upper_limits_has_a_logarithm_and_a_magnitude_none():
    column = np.random.default_rng(0).uniform(2, 3, (100, 3))
    nothing = np.full((100, 3), np.nan)
    column[:20], limit = np.nan, nothing.copy()
    limit[:20] = 2.0
    below = Cells(column, lower=nothing, upper=limit)
    assert find_positive(below, [None, False, True]).tolist() == [True, False, True]
    above = Cells(column, lower=limit + 1, upper=nothing)
    assert find_positive(above, [None, False, True]).tolist() == [False, False, True]


@settings(deadline=None)
@given(st.integers(0, 999), st.floats(0.5, 3.0), st.integers(5, 60))
def test_ranks_of_positive_values_lead_to_positive_values(seed, scatter, n):
    seen = np.exp(scatter * np.random.default_rng(seed).normal(size=n))
    limits = np.full(n // 3, np.median(seen))
    for margin in (fit_margin(seen), fit_censored_margin(seen, np.nan * limits, limits)):
        scores = np.linspace(-5, 5, 300)
        values = margin.from_normal(scores)
        assert (values > 0).all()
        assert (np.diff(values) >= 0).all()
        np.testing.assert_allclose(margin.from_normal(margin.to_normal(seen)), seen, rtol=1e-9)


def test_ranks_far_from_zero_go_on_as_before():
    seen = np.random.default_rng(0).normal(18, 1, 300)
    margin = fit_margin(seen)
    assert margin.x[0] == seen.min()


def test_hidden_cells_judge_maps_where_there_are_values_and_gaps_alone():
    table = np.exp(np.random.default_rng(0).normal(0, 2, (300, 2)))
    assert find_positive(Cells(table), [None, True]).tolist() == [False, True]


def test_limits_count_where_the_faint_are_not_seen():
    rng = np.random.default_rng(0)
    flux = np.exp(rng.normal(0, 0.62, 2000))
    cells = Cells(flux[:, None], errors=0.1 * flux[:, None])
    limited = Cells(
        np.append(flux, [np.nan] * 300)[:, None],
        upper=np.append(flux * np.nan, [0.2] * 300)[:, None],
    )
    assert find_positive(cells).tolist() == [False]
    assert find_positive(limited).tolist() == [True]


def test_the_map_is_the_logarithm_both_ways():
    seen = np.exp(np.random.default_rng(0).normal(2, 1.5, 400))
    margin = log_margin(seen)
    z = (np.log(seen) - np.log(seen).mean()) / np.log(seen).std()
    np.testing.assert_allclose(margin.to_normal(seen), z, atol=2e-3)
    np.testing.assert_allclose(margin.from_normal(margin.to_normal(seen)), seen, rtol=1e-9)
    assert (margin.from_normal(np.array([-5.0, -8.0, -40.0])) == margin.x[0]).all()
    assert margin.to_normal(np.array([0.0, -3.0])).tolist() == [-5.0, -5.0]


def test_a_share_does_not_go_beyond_one():
    share = np.random.default_rng(0).random(500) ** 4
    share[0] = 1.0
    assert log_margin(share).from_normal(np.array([3.0, 9.0])).tolist() == [1.0, 1.0]


@given(st.floats(0.1, 10.0), st.floats(1e-3, 0.2))
def test_an_error_is_relative_to_first_order(value, relative):
    margin = log_margin(np.exp(np.random.default_rng(0).normal(0, 1, 400)))
    spread = np.log(margin.from_normal(np.array([1.0]))[0] / margin.from_normal(np.zeros(1))[0])
    found = margin.score_errors(np.array([value]), np.array([relative * value]))
    assert found[0] == pytest.approx(relative / spread, rel=0.05)


def test_an_error_above_its_value_and_a_value_below_zero_stay_finite():
    margin = log_margin(np.exp(np.random.default_rng(0).normal(0, 1, 400)))
    values, errors = np.array([1.0, 1.0, 0.0, -0.5]), np.array([2.0, 1e300, 1.0, 0.1])
    found = margin.score_errors(values, errors)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert found[0] == pytest.approx(2.0, rel=0.1)
    assert found[1] == pytest.approx(5.0, rel=0.1)
    assert found[2] == pytest.approx(2.5, rel=0.1)  # from nothing to one, by 5 scores


def test_limits_below_zero_of_what_is_positive_say_nothing():
    true, X, upper = fluxes(1, 200, 3)
    network = learn_mixture(Cells(X, upper=upper), **SMALL, names=["a", "b", "c"]).network
    assert network.logarithmic.all()
    row = np.array([[1.0, np.nan, np.nan]])
    wrong = Cells(row, upper=np.array([[np.nan, -1.0, 0.5]]))
    with pytest.warns(LimitWarning, match=r"cannot hold of what is always positive \(b\)"):
        found = network.posterior(wrong).mean
    right = network.posterior(Cells(row, upper=np.array([[np.nan, np.nan, 0.5]]))).mean
    assert np.array_equal(found, right)
    below = Cells(row, lower=np.array([[np.nan, -1.0, -2.0]]))
    assert np.array_equal(network.posterior(below).mean, network.posterior(row).mean)
    upper[np.flatnonzero(~np.isnan(upper[:, 0]))[0], 0] = -1.0
    with pytest.warns(LimitWarning, match=r"\(x0\)"):
        learn_mixture(Cells(X, upper=upper), **SMALL)


def test_columns_that_are_only_standardised_stay_linear():
    true, X, upper = fluxes(1, 200, 3)
    network = learn_mixture(Cells(X, upper=upper), margins=False, **SMALL).network
    assert not network.logarithmic.any()


def test_logarithms_do_not_depend_on_the_unit():
    true, X, upper = fluxes(2, 150, 3)
    first = learn_mixture(Cells(X, upper=upper), **SMALL).network
    second = learn_mixture(Cells(1e6 * X, upper=1e6 * upper), **SMALL).network
    filled = first.posterior(Cells(X, upper=upper)).mean
    again = second.posterior(Cells(1e6 * X, upper=1e6 * upper)).mean
    np.testing.assert_allclose(again, 1e6 * filled, rtol=1e-4)


def test_all_rows_of_a_file_may_show_values_below_zero_that_a_sample_did_not():
    assert isinstance(log_margin(np.array([1.0, 10.0, 300.0])), Logarithm)
    assert isinstance(log_margin(np.array([1.0, 10.0, 300.0, -1.0])), Identity)
    cells = Cells(np.array([[1.0], [10.0], [300.0]]))
    assert isinstance(map_columns(cells, ("logarithmic",))[0], Logarithm)
