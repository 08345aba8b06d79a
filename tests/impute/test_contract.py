"""The laws that every imputer keeps, run over one table of instances."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from skyfill.catalog import Table
from skyfill.errors import ConvergenceWarning, DataError, EmptyColumnWarning
from skyfill.impute import (
    ForestImputer,
    GaussianMixtureImputer,
    MeanImputer,
    NeighborsImputer,
    NetworkImputer,
    OneNetworkImputer,
)

IMPUTERS = [
    MeanImputer(),
    GaussianMixtureImputer(random_state=0),
    GaussianMixtureImputer("sample", random_state=0),
    NeighborsImputer(5),
    ForestImputer(10, max_iter=3, random_state=0),
    NetworkImputer(2, n_fits=2, shrinkage=5.0, random_state=0),
    OneNetworkImputer(n_completions=2, n_orders=2, random_state=0),
    OneNetworkImputer("bic", margins=True, random_state=0),
]
every_imputer = pytest.mark.parametrize("imputer", IMPUTERS, ids=repr)


@parametrize_with_checks(IMPUTERS)
def test_scikit_learn_accepts(estimator, check):
    check(estimator)


def table(n=80, p=4, rate=0.2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1)) + 0.5 * rng.normal(size=(n, p))
    X[rng.random(X.shape) < rate] = np.nan
    return X


@every_imputer
@given(seed=st.integers(0, 1000), rate=st.floats(0.0, 0.9))
@settings(max_examples=8)
def test_seen_cells_come_back_bit_for_bit_and_no_gap_stays(imputer, seed, rate):
    imputer.fit(table())
    X = table(n=7, rate=rate, seed=seed) * 1e3 + 1 / 3
    filled = imputer.transform(X)
    seen = ~np.isnan(X)
    assert (filled[seen].view(np.int64) == X[seen].view(np.int64)).all()
    assert np.isfinite(filled).all()


@every_imputer
def test_a_row_and_a_column_of_gaps_are_filled(imputer):
    imputer.fit(table())
    X = table(n=5, rate=0.0)
    X[:, 1] = np.nan
    X[2] = np.nan
    assert np.isfinite(imputer.transform(X)).all()
    assert np.isfinite(imputer.transform(X[2:3])).all()


@every_imputer
def test_a_row_is_filled_alone_as_among_others(imputer):
    if getattr(imputer, "strategy", "") == "sample":
        pytest.skip("draws of a row depend on the rows drawn before it")
    X = table(seed=3)
    imputer.fit(table())
    alone = np.vstack([imputer.transform(row[None]) for row in X])
    np.testing.assert_allclose(alone, imputer.transform(X), rtol=1e-12)


@every_imputer
def test_units_rescale_the_answer(imputer):
    X, new = table(), table(n=30, seed=1)
    center, unit = np.array([5.0, -3.0, 0.0, 100.0]), np.array([1e-6, 1.0, 2.0**20, 50.0])
    plain = imputer.fit(X).transform(new)
    rescaled = imputer.fit(X * unit + center).transform(new * unit + center)
    np.testing.assert_allclose((rescaled - center) / unit, plain, rtol=1e-3, atol=1e-3)


@every_imputer
def test_the_training_table_is_not_written_to(imputer):
    X = table()
    X.flags.writeable = False
    before = X.copy()
    imputer.fit(X).transform(X)
    np.testing.assert_array_equal(X, before)


def kinds_of_tables():
    """One table in every kind of container: a float, an integer and a boolean with gaps."""
    columns = {
        "J": [14.5, None, 13.0, 15.0],
        "n": [1, 2, None, 4],
        "flag": [True, False, True, None],
    }
    numbers = np.array([[14.5, 1, 1], [np.nan, 2, 0], [13, np.nan, 1], [15, 4, np.nan]])
    return columns, numbers


def as_pandas(columns):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({k: pd.array(v) for k, v in columns.items()})


def as_polars(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def as_astropy(columns):
    from astropy.table import MaskedColumn
    from astropy.table import Table as AstropyTable

    return AstropyTable(
        {
            name: MaskedColumn([v or 0 for v in values], mask=[v is None for v in values])
            for name, values in columns.items()
        }
    )


def as_quantities(columns):
    from astropy import units
    from astropy.table import QTable

    plain = as_astropy(columns)
    return QTable([plain["J"].filled(np.nan) * units.mag, plain["n"], plain["flag"]], names=columns)


CONTAINERS = [
    as_pandas,
    as_polars,
    pa.table,
    pa.RecordBatch.from_pydict,
    Table.from_columns,
    as_astropy,
    as_quantities,
]


@pytest.mark.parametrize("make", CONTAINERS)
def test_all_kinds_of_tables_give_the_same_answer_and_names(make):
    columns, numbers = kinds_of_tables()
    truth = MeanImputer().fit(numbers).transform(numbers)
    container = make(columns)
    imputer = MeanImputer().fit(container)
    np.testing.assert_array_equal(imputer.transform(container), truth)
    assert list(imputer.get_feature_names_out()) == ["J", "n", "flag"]


@pytest.mark.parametrize("make", [pa.table, Table.from_columns, as_astropy])
def test_columns_in_another_order_are_put_in_order(make):
    columns, _ = kinds_of_tables()
    imputer = MeanImputer().fit(make(columns))
    swapped = make({name: columns[name] for name in ("n", "J", "flag")})
    np.testing.assert_array_equal(imputer.transform(swapped), imputer.transform(make(columns)))


def test_a_text_column_is_named():
    with pytest.raises(ValueError, match="'name', row 1: 'a' is not a number"):
        MeanImputer().fit(pa.table({"name": ["a"], "J": [1.0]}))


def test_set_output_gives_a_frame_with_names_and_index():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"J": [1.0, np.nan, 3.0]}, index=[7, 8, 9])
    filled = MeanImputer().set_output(transform="pandas").fit(frame).transform(frame)
    assert filled["J"].to_dict() == {7: 1.0, 8: 2.0, 9: 3.0}


@every_imputer
def test_a_column_without_values_is_left_out_with_a_warning(imputer):
    J = np.arange(30.0)
    X = pa.table({"J": J, "K": pa.array([None] * 30, pa.float64()), "H": J + 1})
    with pytest.warns(EmptyColumnWarning, match="column 'K' has no value in 30 rows and is left"):
        fitted = clone(imputer).fit(X)
    assert fitted.get_feature_names_out().tolist() == ["J", "H"]
    new = pa.table({"J": [3.0], "K": [5.0], "H": [None]})
    expected = clone(imputer).fit(X.select(["J", "H"])).transform(new.select(["J", "H"]))
    assert_allclose(fitted.transform(new), expected)


def test_columns_that_are_all_empty_cannot_be_learned():
    with pytest.raises(DataError, match="column 'x0' has no value in 3 rows; drop it"):
        MeanImputer().fit(np.full((3, 2), np.nan))


@every_imputer
def test_masked_cells_are_gaps(imputer):
    X = table()
    masked = np.ma.array(np.where(np.isnan(X), -999.0, X), mask=np.isnan(X))
    fitted = clone(imputer).fit(masked)
    assert_allclose(fitted.transform(masked), clone(imputer).fit(X).transform(X))


@every_imputer
@pytest.mark.parametrize(
    "X",
    [
        np.full((20, 3), 7.0),
        np.column_stack([np.arange(20.0), np.where(np.arange(20) < 5, 1.0, np.nan)]),
        np.column_stack(
            [np.where(np.arange(20) % 2, 1.0, np.nan), np.where(np.arange(20) % 2, np.nan, 2.0)]
        ),
        np.linspace(-1e300, 1e300, 60).reshape(20, 3),
        np.random.default_rng(0).normal(size=(60, 40)),
    ],
    ids=["identical rows", "seen five times", "never together", "1e300", "wide"],
)
def test_hard_tables_still_give_numbers(imputer, X):
    new = X.copy()
    new[::2, 0] = np.nan
    filled = imputer.fit(X).transform(new)
    assert np.isfinite(filled).all()
    assert (filled <= np.nanmax(X) * 3 + 1).all()


def test_infinity_is_refused():
    with pytest.raises(ValueError, match="infinity"):
        MeanImputer().fit([[np.inf], [1.0]])


@pytest.mark.parametrize(
    "imputer",
    [NetworkImputer(2, n_fits=1, shrinkage=5.0, max_iter=1), OneNetworkImputer("bic", max_iter=1)],
    ids=repr,
)
def test_a_fit_that_ends_early_says_what_that_means(imputer):
    with pytest.warns(ConvergenceWarning, match="the model can be used.*another seed shows"):
        fitted = imputer.fit(table())
    assert not fitted.converged_
    assert np.isfinite(fitted.transform(table())).all()
