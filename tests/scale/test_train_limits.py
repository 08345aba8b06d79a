"""Limits and errors over blocks of a file: the sums, the model and the fill of one table."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skyfill.catalog import Schema, Table, read_table, write_table
from skyfill.model import Filling, cells_of, fill_table, refine, train
from skyfill.network.mixture.mixture import expect_parts, split
from skyfill.scale import apply_model, inputs, train_file
from skyfill.scale.train_limits import expect_file, with_companions
from skyfill.threads import map_threads
from tests.model.test_cells import radio, survey

NAMES = ["V", "K"]
OPTIONS = {"n_components": 1, "n_fits": 1, "errors": "on", "calibrate": False}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    path = tmp_path_factory.mktemp("limits") / "stars.parquet"
    write_table(survey(1200)[0], path)
    return path


@pytest.fixture(scope="module")
def model(catalog):
    return train(read_table(catalog), NAMES, **OPTIONS)[0]


def assert_same_sums(found, wanted):
    assert found.n == wanted.n
    for name in ("weight", "total", "cross", "gaps", "loglik"):
        a, b = np.asarray(getattr(found, name)), np.asarray(getattr(wanted, name))
        assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


def sums_in_memory(model, table, mixture):
    scores = model.network.score_cells(cells_of(model, table)[0])
    return expect_parts(split(scores), mixture, map_threads)


@pytest.mark.parametrize("block_rows", [100, 1024])
def test_sums_over_blocks_of_a_file_are_those_of_the_table(catalog, model, monkeypatch, block_rows):
    monkeypatch.setattr("skyfill.scale.train_limits.BLOCK_ROWS", block_rows)
    mixture = model.network.fits[0]
    bare = replace(model, network=replace(model.network, fits=()))
    found = expect_file(bare, catalog, Schema(), mixture)
    assert_same_sums(found, sums_in_memory(model, read_table(catalog), mixture))


def test_a_file_of_few_rows_gives_the_model_of_the_table(catalog, model):
    found = train_file(catalog, NAMES, **OPTIONS)
    assert found.model.identifier == model.identifier
    assert found.n_rows == 1200


def test_a_sample_gives_the_start_and_all_rows_the_parameters(catalog):
    found = train_file(catalog, NAMES, sample_rows=500, **OPTIONS)
    places = np.sort(np.random.default_rng(0).choice(1200, 500, replace=False))
    table = read_table(catalog)
    start, learned = train(Table(table.arrow.take(places)), NAMES, **OPTIONS)
    wanted = refine(
        start, lambda mixture: sums_in_memory(start, table, mixture), learned.plan, n_rows=1200
    )
    assert (found.n_rows, found.n_iter) == (1200, wanted.n_iter)
    assert found.model.detections == start.detections
    for a, b in zip(found.model.network.fits, wanted.model.network.fits, strict=True):
        assert_allclose(a.means, b.means, rtol=1e-8)
        assert_allclose(a.covs, b.covs, rtol=1e-7)


def test_a_file_filled_in_small_batches_is_the_table_filled_at_once(
    catalog, model, tmp_path, monkeypatch
):
    monkeypatch.setattr(inputs, "BATCH_ROWS", 128)
    work = Filling((0.05,), denoise=True)
    apply_model(work, model, catalog, tmp_path / "out.parquet")
    done, whole = read_table(tmp_path / "out.parquet"), fill_table(model, read_table(catalog), work)
    for name in ("K", "K_sd", "K_q5", "K_denoised"):
        assert_allclose(done.numbers(name), whole.numbers(name), rtol=1e-12)


def test_the_columns_that_say_more_of_features_come_along():
    table = survey(20)[0]
    assert with_companions(table, NAMES) == ["V", "K", "K_limit", "e_K", "K_gap"]
    assert with_companions(table, ["V"]) == ["V"]


def test_workers_take_the_sums_of_one_machine(catalog, model):
    pytest.importorskip("distributed", reason="needs Dask: pip install skyfill[dask]")
    from skyfill.scale.train_dask import expect_on_dask, hold_parts, take_sample
    from skyfill.scale.workers import open_client

    mixture, parts = model.network.fits[0], inputs.plan_parts([catalog])
    with open_client("local", n_workers=2) as client:
        found = expect_on_dask(client, hold_parts(client, parts, model, Schema()), mixture)
        sample = take_sample(client, parts, NAMES, rules=Schema(), rows=10**6)
    assert_same_sums(found, sums_in_memory(model, read_table(catalog), mixture))
    assert sample.names == ("V", "K", "K_limit", "e_K", "K_gap")


@pytest.mark.parametrize("with_limits", [True, False])
def test_all_rows_of_a_file_map_the_same_columns_by_their_logarithms(tmp_path, with_limits):
    table = radio(2000)[0]
    table = table if with_limits else table.drop(["S_limit"])
    write_table(table, tmp_path / "radio.parquet")
    options = {"n_components": 1, "n_fits": 1, "calibrate": False}
    whole = train(table, ["V", "S"], **options)[0]
    found = train_file(tmp_path / "radio.parquet", ["V", "S"], sample_rows=600, **options).model
    assert found.network.logarithmic.tolist() == whole.network.logarithmic.tolist()
    assert not with_limits or found.network.logarithmic[1]
    assert (fill_table(found, table).numbers("S") > 0).all()
