"""Learning over blocks of a file: the sums, and the model, of the table in memory."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skyfill.catalog import ColumnInfo, Role, Table, write_table
from skyfill.errors import CatalogError
from skyfill.model import train
from skyfill.network import Cells, learn_one_network
from skyfill.network.mixture.fit import climb_mixture
from skyfill.network.mixture.maps import MAPS, kinds_of, map_columns
from skyfill.network.mixture.mixture import expect_parts, split
from skyfill.scale.train_disk import expect_columns, train_file, with_margins, write_columns
from skyfill.threads import map_threads, one_blas_thread

NAMES = ["V", "I", "P"]
OPTIONS = {"n_components": 3, "shrinkage": 5.0, "n_fits": 2, "gaps": "informative"}


def stars(n=4000):
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 2, n)
    v = rng.normal(17 + 2 * kind, 0.5)
    X = np.column_stack([v, v - 0.8 + rng.normal(0, 0.2, n), np.exp(rng.normal(kind, 1))])
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


def as_catalog(X, path):
    info = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in NAMES}
    table = Table.from_columns(dict(zip(NAMES, X.T, strict=True)), info=info)
    write_table(table, path)
    return table


@pytest.mark.parametrize("block_rows", [512, 1000, 4096, 10**6])
def test_sums_over_blocks_are_the_sums_of_the_table(block_rows, tmp_path):
    X = stars()
    model, _ = train(as_catalog(X, tmp_path / "a.csv"), NAMES, **OPTIONS)
    Z = model.network.scores(X)
    mixture = model.network.fits[0]
    whole = expect_parts(split(Z), mixture, map_threads)
    with write_columns(iter(np.array_split(Z, 7)), 3, tmp_path) as columns:
        found = expect_columns(columns, mixture, block_rows=block_rows)
    assert found.n == whole.n
    for name in ("weight", "total", "cross", "gaps", "loglik"):
        a, b = np.asarray(getattr(found, name)), np.asarray(getattr(whole, name))
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10 * np.abs(b).max())


@pytest.mark.parametrize("extension", ["parquet", "ecsv"])
def test_a_model_learned_from_a_file_is_that_of_the_rows_in_memory(extension, tmp_path):
    X = stars()
    as_catalog(X, tmp_path / f"in.{extension}")
    found = train_file(
        tmp_path / f"in.{extension}", NAMES, sample_rows=1000, folder=tmp_path, **OPTIONS
    )
    # The same start, taken up in memory.
    places = np.sort(np.random.default_rng(0).choice(len(X), 1000, replace=False))
    start, learned = train(as_catalog(X[places], tmp_path / "sample.csv"), NAMES, **OPTIONS)
    kinds = kinds_of(learned.plan.maps, X.shape[1])
    pairs = zip(kinds, X.T, strict=True)
    margins = tuple(MAPS[kind](column[~np.isnan(column)]) for kind, column in pairs)
    network = replace(start.network, margins=margins)
    parts = split(network.scores(X))
    with one_blas_thread():
        fits = [
            climb_mixture(
                lambda mixture: expect_parts(parts, mixture, map_threads),
                fit,
                learned.plan,
                rng=np.random.default_rng(0),
                tol=1e-4,
                max_iter=200,
            )
            for fit in network.fits
        ]
    assert (found.n_rows, found.n_iter) == (len(X), max(fit.n_iter for fit in fits))
    assert [feature.unit for feature in found.model.features] == ["mag"] * 3
    for mine, theirs in zip(found.model.network.margins, margins, strict=True):
        np.testing.assert_array_equal(mine.x, theirs.x)
    for mine, theirs in zip(found.model.network.fits, fits, strict=True):
        np.testing.assert_array_equal(mine.covs, theirs.params.covs)
        np.testing.assert_array_equal(mine.gap_rates, theirs.params.gap_rates)
    leftovers = {"in." + extension, "sample.csv"}
    assert {path.name for path in tmp_path.iterdir()} == leftovers


def test_a_small_file_gives_what_train_gives(tmp_path):
    table = as_catalog(stars(600), tmp_path / "in.parquet")
    found = train_file(tmp_path / "in.parquet", NAMES, **OPTIONS)
    assert found.model.identifier == train(table, NAMES, **OPTIONS)[0].identifier


def test_arcs_are_searched_in_the_sums_of_all_rows(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 6000))
    c = a + b + rng.normal(scale=0.5, size=6000)
    X = np.column_stack([a, b, c])
    X[rng.random(X.shape) < 0.1] = np.nan
    as_catalog(X, tmp_path / "in.parquet")
    found = train_file(
        tmp_path / "in.parquet", NAMES, sample_rows=300, n_components=1, n_fits=1, arcs="shared"
    )
    (graph,) = found.model.network.fits[0].parents
    assert graph == ((), (), (0, 1))


def test_factors_are_fitted_to_the_sums_of_all_rows(tmp_path):
    loads, rng = np.array([0.9, 0.8, 0.7]), np.random.default_rng(0)
    X = rng.normal(size=(6000, 1)) * loads + rng.normal(size=(6000, 3)) * np.sqrt(1 - loads**2)
    as_catalog(X, tmp_path / "in.parquet")
    options = {"n_components": 1, "n_fits": 1, "arcs": "factors", "shrinkage": 0.0}
    found = train_file(tmp_path / "in.parquet", NAMES, sample_rows=300, **options)
    expected = np.outer(loads, loads) + np.diag(1 - loads**2)
    assert_allclose(found.model.network.fits[0].covs[0], expected, atol=0.05)


def test_more_rows_fill_gaps_better_than_the_sample(tmp_path):
    as_catalog(stars(8000), tmp_path / "in.parquet")
    options = OPTIONS | {"n_fits": 1}
    found = train_file(tmp_path / "in.parquet", NAMES, sample_rows=100, **options).model.network
    sample, _ = train(as_catalog(stars(8000)[:100], tmp_path / "s.csv"), NAMES, **options)
    fresh = stars(30_000)[8000:]
    fresh = fresh[~np.isnan(fresh[:, 1])]
    hidden = np.where([False, True, False], np.nan, fresh)
    errors = [net.posterior(hidden).mean[:, 1] - fresh[:, 1] for net in (found, sample.network)]
    assert np.square(errors[0]).mean() < np.square(errors[1]).mean()


@pytest.mark.parametrize("kind", ["ranks", ("smooth", "ranks", "straight")], ids=["one", "each"])
def test_scores_replace_the_numbers_and_gaps_stay(kind, tmp_path):
    X = stars(1500)
    model, _ = train(as_catalog(X, tmp_path / "a.csv"), NAMES, **OPTIONS)
    with write_columns(iter([X]), 3, tmp_path) as columns:
        changed = with_margins(model, columns, kind)
        Z = columns.rows(0, len(X))
    np.testing.assert_array_equal(np.isnan(Z), np.isnan(X))
    np.testing.assert_array_equal(Z, changed.network.scores(X))
    expected = map_columns(Cells(X), kind)
    for mine, theirs in zip(changed.network.margins, expected, strict=True):
        np.testing.assert_array_equal(mine.x, theirs.x)


def test_mistakes_name_the_column(tmp_path):
    as_catalog(stars(50), tmp_path / "in.parquet")
    with pytest.raises(CatalogError, match="no column 'Vv'; did you mean 'V'"):
        train_file(tmp_path / "in.parquet", ["Vv"])


def test_one_network_is_fitted_to_all_rows_with_the_arcs_of_a_sample(tmp_path):
    X = stars()
    table = as_catalog(X, tmp_path / "in.parquet")
    how = {"learn": learn_one_network, "score": "bic", "margins": False}
    found = train_file(
        tmp_path / "in.parquet", NAMES, sample_rows=1000, folder=tmp_path, max_iter=50, **how
    )
    (fit,) = found.model.network.fits
    places = np.sort(np.random.default_rng(0).choice(len(X), 1000, replace=False))
    start = train(Table(table.arrow.take(places)), NAMES, **how)[0].network.fits[0]
    assert fit.parents == start.parents
    # The mean of a column is that of all rows, not of the sample.
    Z = found.model.network.scores(X)
    np.testing.assert_allclose(fit.means[0], np.nanmean(Z, axis=0), atol=0.03)
    assert found.n_rows == len(X)
