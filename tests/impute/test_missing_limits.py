"""Limits and errors that were given to fit, and are forgotten when new rows are filled."""

import numpy as np
import pytest

from skyfill.errors import MissingLimitsWarning
from skyfill.impute import NetworkImputer

METHODS = {
    "transform": {},
    "posterior": {},
    "interval": {},
    "quantiles": {"levels": [0.5]},
    "sample": {"random_state": 0},
    "score_samples": {},
}


def stars(n=60):
    """V with errors; a flux that is seen down to a limit."""
    rng = np.random.default_rng(0)
    v = rng.normal(17.0, 1.0, n)
    flux = 20.0 - v + rng.normal(0, 0.1, n)
    X = np.column_stack([v, np.where(flux > 2.5, flux, np.nan)])
    upper = np.where(np.isnan(X), 2.5, np.nan)
    return X, {"upper": upper, "errors": np.where(np.isnan(X), np.nan, [0.1, np.nan])}


@pytest.fixture(scope="module")
def fitted():
    X, known = stars()
    return NetworkImputer(1, n_fits=1, refine=None, random_state=0).fit(X, **known)


@pytest.mark.parametrize("method", METHODS)
def test_each_method_asks_once_for_all_that_is_missing(fitted, method):
    X, known = stars()
    call, how = getattr(fitted, method), METHODS[method]
    with pytest.warns(MissingLimitsWarning, match="fit was given upper= and errors=, this") as said:
        call(X, **how)
    assert len(said) == 1
    with pytest.warns(MissingLimitsWarning, match="fit was given errors=, this") as said:
        call(X, upper=known["upper"], **how)
    assert len(said) == 1
    call(X, **known, **how)


def test_nothing_is_asked_for_where_it_would_say_nothing(fitted):
    X, known = stars()
    seen = X[~np.isnan(X).any(axis=1)]
    with pytest.warns(MissingLimitsWarning, match="fit was given errors=, this"):
        fitted.transform(seen)
    # Errors were of V alone, and limits of the flux alone.
    X[:, 0] = np.nan
    fitted.transform(X, upper=known["upper"])
    plain = NetworkImputer(1, n_fits=1, refine=None, random_state=0).fit(seen)
    plain.transform(X)
    nothing = np.full(X.shape, np.nan)
    fitted.transform(X, upper=nothing, errors=nothing)


def test_fitting_and_filling_at_once_gives_both(fitted):
    X, known = stars()
    one = NetworkImputer(1, n_fits=1, refine=None, random_state=0).fit_transform(X, **known)
    np.testing.assert_array_equal(one, fitted.transform(X, **known))
