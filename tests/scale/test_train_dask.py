"""Learning on a real cluster: the sums, and the model, of one machine."""

import os
import signal

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from skyfill.catalog import Schema, Table, read_table, write_table
from skyfill.cli import main
from skyfill.model import fill_table, load_model, train
from skyfill.network.mixture.fit import Plan, climb_mixture
from skyfill.network.mixture.mixture import expect_parts, split
from skyfill.scale import Steps
from skyfill.scale.inputs import plan_parts
from skyfill.scale.train_dask import (
    expect_on_dask,
    hold_parts,
    refine_on_dask,
    sum_tree,
    take_sample,
    train_on_dask,
)
from skyfill.threads import map_threads
from tests.model.test_cells import survey
from tests.stars import make_table

pytest.importorskip("distributed", reason="needs Dask: pip install skyfill[dask]")


@pytest.fixture
def files(tmp_path):
    """Six files, one of them empty."""
    paths = [tmp_path / f"in{i}.parquet" for i in range(6)]
    for i, path in enumerate(paths):
        write_table(make_table(0 if i == 3 else 300 + i, seed=i), path)
    return paths


def _process():
    return {"pid": os.getpid()}


def test_filled_files_teach_a_cluster_what_they_taught_before(tmp_path):
    table, options = survey(900)[0], {"n_components": 1, "n_fits": 1, "errors": "on"}
    model = train(table, ["V", "K"], **options)[0]
    found = []
    for name, each in (("before", table), ("after", fill_table(model, table))):
        (tmp_path / name).mkdir()
        for i in range(3):
            part = Table(each.arrow.slice(300 * i, 300))
            write_table(part, tmp_path / name / f"{i}.parquet")
        how = {**options, "sample_rows": 400, "scheduler": "local"}
        found.append(train_on_dask([tmp_path / name], ["V", "K"], **how).model.identifier)
    assert found[0] == found[1]


def whole(model, files):
    X = np.concatenate([read_table(path).numbers("V", "I") for path in files])
    return split(model.network.scores(X))


def test_sums_over_the_cluster_are_those_of_one_machine_to_1e_minus_10(client, model_path, files):
    model = load_model(model_path)
    held = hold_parts(client, plan_parts(files), model, Schema())
    mixture = model.network.fits[0]
    found = expect_on_dask(client, held, mixture)
    expected = expect_parts(whole(model, files), mixture, map_threads)
    assert found.n == expected.n
    for name in ("weight", "total", "cross", "gaps", "loglik"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-10, atol=1e-10 * found.n
        )
    again = expect_on_dask(client, held, mixture)
    assert np.array_equal(again.cross, found.cross)


def test_the_tree_adds_every_result_once_in_a_fixed_order(client):
    for n in (1, 2, 5, 8):
        words = [str(i) for i in range(n)]
        futures = [client.submit(str, word) for word in words]
        assert sum_tree(client, futures).result() == "".join(words)


def test_em_on_the_cluster_climbs_to_the_fit_of_one_machine(client, model_path, files):
    model = load_model(model_path)
    plan = Plan(2, 5.0)
    parts, start = whole(model, files), model.network.fits[0]
    rng = np.random.default_rng(0)
    alone = climb_mixture(
        lambda m: expect_parts(parts, m, map_threads), start, plan, rng=rng, tol=1e-5, max_iter=30
    )
    held = hold_parts(client, plan_parts(files), model, Schema())
    refined = refine_on_dask(client, held, model, plan, tol=1e-5, max_iter=30)
    found = refined.model.network.fits[0]
    assert (refined.n_iter, refined.converged) == (alone.n_iter, alone.converged)
    assert refined.n_rows == sum(len(part.Z) for part in parts)
    np.testing.assert_allclose(found.means, alone.params.means, rtol=1e-8)
    np.testing.assert_allclose(found.covs, alone.params.covs, rtol=1e-8)
    assert not np.allclose(found.means, start.means, rtol=1e-3)
    assert refined.model.identifier != model.identifier


def test_a_model_is_learned_from_a_sample_and_all_rows(client, files, tmp_path):
    write_table(make_table(50), tmp_path / "whole.csv")
    files = [*files, tmp_path / "whole.csv"]
    learned = train_on_dask(files, ["V", "I"], sample_rows=200, n_components=1, n_fits=1)
    tables = pa.concat_tables([read_table(path).arrow for path in files])
    assert learned.n_rows == tables.num_rows
    assert learned.converged
    X = Table(tables).numbers("V", "I")
    # V has no gaps: with one component, the mean of its scores is that of all rows.
    Z = learned.model.network.scores(X)
    assert learned.model.network.fits[0].means[0, 0] == pytest.approx(Z[:, 0].mean(), abs=1e-12)


def test_sentinels_are_gaps_on_every_worker(client, tmp_path):
    learned = []
    for nothing in (-999.0, np.nan):
        for i in range(3):
            table = make_table(500, seed=i)
            V = table.numbers("V")[:, 0]
            V[:: 20 if i else 200] = nothing
            V[7] = -9999.0 if i == 2 and nothing == -999 else nothing  # not in the sample
            write_table(table.with_column("V", V), tmp_path / f"{i}.parquet")
        paths = [tmp_path / f"{i}.parquet" for i in range(3)]
        learned.append(train_on_dask(paths, ["V", "I"], sample_rows=200, n_components=1, n_fits=1))
    one, other = (each.model for each in learned)
    assert (one.found, other.found) == ({"V": (-999.0,)}, {})
    assert np.array_equal(one.network.fits[0].covs, other.network.fits[0].covs)


def test_steps_that_are_kept_are_not_taken_again(client, files, tmp_path, monkeypatch):
    options = {"sample_rows": 200, "n_components": 1, "n_fits": 1}
    steps = Steps(folder=tmp_path)
    first = train_on_dask(files, ["V", "I"], steps=steps, **options)
    monkeypatch.delattr("skyfill.scale.train_dask.sum_tree")
    again = train_on_dask(files, ["V", "I"], steps=steps, **options)
    assert again.model.identifier == first.model.identifier
    assert again.n_iter == first.n_iter > 1


def test_a_sample_is_random_and_the_same_every_time(client, files):
    parts = plan_parts(files)
    a, b = (take_sample(client, parts, ["V"], rules=Schema(), rows=300) for _ in range(2))
    assert a.arrow.equals(b.arrow)
    assert 220 < len(a) < 380
    assert a.info("V").unit == "mag"
    other = take_sample(client, parts, ["V"], rules=Schema(), rows=300, seed=1)
    assert not other.arrow.equals(a.arrow)


def test_the_command_learns_on_a_cluster_what_python_learns(client, files, tmp_path):
    folder, out = tmp_path / "in", tmp_path / "m.skyfill"
    folder.mkdir()
    for path in files:
        path.rename(folder / path.name)
    options = {"n_components": 1, "n_fits": 2, "rng": 4}
    told = []
    learned = train_on_dask([folder], ["V", "I"], steps=Steps(told.append), **options)
    words = ("--components", "1", "--fits", "2", "--refine", "off", "--seed", "4", "--scheduler")
    said = CliRunner().invoke(
        main, ["train", str(folder), *words, client.scheduler.address, "-o", str(out)]
    )
    assert said.exit_code == 0, said.output
    found = load_model(out)
    assert found.identifier == learned.model.identifier
    assert found.features == learned.model.features
    assert f"{learned.n_rows} rows, 2 features" in said.stderr
    assert told[0] == f"a start learned from {learned.n_rows:,} rows"
    assert told[1] == "fit 1 of 2: step 1 of EM"
    assert "fit 2 of 2: step 1 of EM" in told


def test_a_part_lost_with_its_worker_is_read_again(client, model_path, files):
    model = load_model(model_path)
    held = hold_parts(client, plan_parts(files), model, Schema())
    mixture = model.network.fits[0]
    before = expect_on_dask(client, held, mixture)
    victim = next(iter(client.who_has(held[:1]).values()))[0]
    pid = client.run(_process, workers=[victim])[victim]["pid"]
    os.kill(pid, signal.SIGKILL)
    after = expect_on_dask(client, held, mixture)
    assert np.array_equal(after.cross, before.cross)
    assert after.loglik == before.loglik
