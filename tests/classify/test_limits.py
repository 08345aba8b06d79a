"""Classes of objects with limits: trees see gaps, what is filled and drawn respects the limits."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.classify import CatalogClassifier
from skyfill.classify.next_measurement import expected_gains, possible_rows
from skyfill.classify.views import gather_facts
from skyfill.errors import MissingLimitsWarning
from skyfill.impute import NetworkImputer
from skyfill.network import Cells, learn_mixture

LIMIT = 17.0


def stars(n=500, seed=0):
    """Two classes that differ in K alone; K is seen down to a limit."""
    rng = np.random.default_rng(seed)
    is_red = rng.random(n) < 0.5
    v = rng.normal(17.5, 0.7, n)
    k = v - 0.2 - 1.2 * is_red + rng.normal(0, 0.1, n)
    X = np.column_stack([v, np.where(k < LIMIT, k, np.nan)])
    lower = np.full(X.shape, np.nan)
    lower[:, 1] = np.where(k < LIMIT, np.nan, LIMIT)
    return X, lower, np.where(is_red, "red", "blue")


@pytest.fixture(scope="module")
def fitted():
    X, lower, y = stars()
    imputer = NetworkImputer(2, n_fits=1, refine=None, random_state=0)
    small = CatalogClassifier("forest", n_trees=30, imputer=imputer, random_state=0)
    return small.fit(X, y, lower=lower)


def test_limits_are_passed_to_the_imputer(fitted):
    X, lower, _ = stars()
    alone = NetworkImputer(2, n_fits=1, refine=None, random_state=0).fit(X, lower=lower)
    assert_array_equal(fitted.imputer_.network_.fits[0].means, alone.network_.fits[0].means)


def test_trees_see_gaps_and_filled_values_lie_beyond_the_limits(fitted):
    X, lower, _ = stars(200, seed=1)
    facts = gather_facts(fitted.scorer_.network, Cells(X, lower), ["gaps"])
    assert_array_equal(facts.X, X)
    lost = np.isnan(X[:, 1])
    assert (facts.filled[lost, 1] >= LIMIT).all()


def test_a_limit_is_evidence_of_the_class(fitted):
    """At V = 17.5 blue stars have K = 17.3, beyond the limit; red ones 16.1."""
    X, lower = np.array([[17.5, np.nan]]), np.array([[np.nan, LIMIT]])
    blue = list(fitted.classes_).index("blue")
    assert fitted.predict_proba(X, lower=lower)[0, blue] > 0.9
    draws = fitted.scorer_.probabilities(Cells(X, lower), n_draws=200)
    without = fitted.scorer_.probabilities(X, n_draws=200)
    assert draws[0, blue] > without[0, blue] + 0.1
    assert fitted.predict(X, lower=lower).tolist() == ["blue"]


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score_rows"])
def test_limits_that_are_given_to_fit_alone_are_asked_for_once(fitted, method):
    X, lower, _ = stars(50, seed=1)
    with pytest.warns(MissingLimitsWarning, match="fit was given lower=, this call is not") as said:
        getattr(fitted, method)(X)
    assert len(said) == 1
    assert "pass lower= in the shape of X" in str(said[0].message)
    assert Path(said[0].filename).name != "_inputs.py"
    getattr(fitted, method)(X, lower=lower)
    # No limit belongs to a value that was measured, and none to a column that never had one.
    seen = X[~np.isnan(X).any(axis=1)]
    getattr(fitted, method)(seen)
    getattr(fitted, method)(np.column_stack([np.full(len(seen), np.nan), seen[:, 1]]))


def test_an_object_beyond_a_limit_is_no_outlier_for_that(fitted):
    X, lower, _ = stars(300, seed=2)
    found = fitted.score_rows(X, lower=lower)
    assert found.outlier.mean() < 0.03
    assert_allclose(found.probabilities.sum(axis=1), 1.0)


def test_the_values_that_a_measurement_may_find_lie_beyond_its_limit(fitted):
    network = fitted.scorer_.network
    cells = Cells(np.array([[17.5, np.nan]]), np.array([[np.nan, LIMIT]]))
    for points in (12, -12):
        tried = possible_rows(network, cells, [1], points, 0)
        assert (tried[:, 0, 1] >= LIMIT).all()


def test_less_is_learned_from_a_measurement_whose_limit_tells_the_class(fitted):
    X, lower = np.array([[17.5, np.nan]]), np.array([[np.nan, LIMIT]])
    parts = (fitted.scorer_.probabilities, fitted.scorer_.network)
    with_limit = expected_gains(*parts, Cells(X, lower)).bits[0, 1]
    assert 0 <= with_limit < expected_gains(*parts, X).bits[0, 1]


def test_with_limits_informative_gaps_are_not_counted_twice():
    """A limited cell says nothing by its gap: other gap rates, the same responsibilities."""
    X, lower, _ = stars(300)
    learned = learn_mixture(Cells(X, lower), n_components=2, n_fits=1, gaps="informative")
    network = learned.network
    row = Cells(np.array([[17.5, np.nan]]), np.array([[np.nan, LIMIT]]))
    rates = network.fits[0].gap_rates
    other = rates.copy()
    other[:, 1] = other[::-1, 1]
    turned = replace(network, fits=(network.fits[0]._replace(gap_rates=other),))
    assert_allclose(turned.responsibilities(row), network.responsibilities(row))
    plain = Cells(row.values)
    assert not np.allclose(turned.responsibilities(plain), network.responsibilities(plain))
