"""Columns with one or two values, small tables, and the warnings about both."""

import numpy as np
import pytest

from skyfill.errors import SmallTableWarning
from skyfill.impute import NetworkImputer
from skyfill.network import learn_mixture
from skyfill.network.mixture.maps import fit_margin
from skyfill.network.mixture.mixture import Mixture


def with_few(n, seen, seed=0):
    X = np.random.default_rng(seed).normal(20, 1, (n, 3))
    X[seen:, 2] = np.nan
    return X


def learned(X, seed=0):
    return learn_mixture(X, n_components=1, n_fits=1, rng=seed).network


@pytest.mark.parametrize("n", [15, 230])
def test_a_column_seen_once_is_as_uncertain_as_its_value_is_large(n):
    X = with_few(n, 1)
    post = learned(X).posterior(X)
    np.testing.assert_allclose(post.mean[1:, 2], X[0, 2])
    np.testing.assert_allclose(post.sd[1:, 2], abs(X[0, 2]))


def test_a_column_seen_twice_tells_nothing_about_others_and_they_nothing_about_it():
    X = with_few(60, 2)
    network = learned(X)
    (fit,) = network.fits
    np.testing.assert_array_equal(fit.covs[0, 2], [0, 0, 1])
    post = network.posterior(X)
    np.testing.assert_allclose(post.mean[2:, 2], X[:2, 2].mean())
    # Two values of a normal are 2 / sqrt(pi) of its spread apart, on average.
    assert 0.5 < post.sd[2, 2] / abs(X[1, 2] - X[0, 2]) < 1.0


def test_the_map_of_few_values_goes_on_beyond_them():
    margin = fit_margin(np.array([11.0, 12.0]))
    z = margin.z[1]
    np.testing.assert_allclose(margin.from_normal(np.array([2 * z, -2 * z])), [12.5, 10.5])


def test_the_map_of_few_positive_values_stays_above_zero():
    margin = fit_margin(np.array([1.0, 2.0]))
    low = margin.from_normal(np.linspace(-5, 0, 50))
    assert (low > 0).all()
    assert (np.diff(low) >= 0).all()


def test_intervals_of_twenty_rows_hold_most_true_values():
    held = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.multivariate_normal(np.zeros(3), 0.5 * np.eye(3) + 0.5, 220)
        gaps = rng.random(X.shape) < 0.2
        G = np.where(gaps, np.nan, X)
        low, high = learned(G[:20], seed).quantiles(G[20:], [0.05, 0.95])
        held.append(((low <= X[20:]) & (X[20:] <= high))[gaps[20:]].mean())
    assert 0.84 < np.mean(held) < 0.97


def test_small_tables_and_columns_are_warned_of():
    imputer = NetworkImputer(n_components=1, n_fits=1)
    with pytest.warns(SmallTableWarning, match="has 20 rows; with fewer than 40"):
        imputer.fit(with_few(20, 20))
    with pytest.warns(SmallTableWarning, match=r"fewer than 10 values.*: x2 \(4\)"):
        imputer.fit(with_few(50, 4))


def test_a_table_of_forty_rows_is_not(recwarn):
    NetworkImputer(n_components=1, n_fits=1).fit(with_few(40, 30))
    assert not [w for w in recwarn if w.category is SmallTableWarning]


def test_a_mixture_without_such_columns_stays_as_it_is():
    network = learned(with_few(50, 50))
    assert isinstance(network.fits[0], Mixture)
    assert (network.fits[0].covs[0, 2, :2] != 0).all()
