"""A real cluster of two processes gives what one machine gives, also when a worker dies."""

import os
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Role, Schema, Table, read_table, write_table
from skyfill.classify import CatalogClassifier
from skyfill.cli import main
from skyfill.errors import CatalogError, ModelError, SkyfillError
from skyfill.impute import NetworkImputer
from skyfill.model import (
    Extras,
    classify_table,
    fill_table,
    load_model,
    save_model,
    train,
    train_classifier,
)
from skyfill.network.mixture.fit import Plan, climb_mixture
from skyfill.network.mixture.mixture import expect_parts, split
from skyfill.scale import fill_file
from skyfill.scale.dispatch import (
    column_names,
    input_files,
    is_distributed,
    read_columns,
    score_distributed,
)
from skyfill.scale.partitions import Part, plan_parts, read_part
from skyfill.scale.steps import open_steps
from skyfill.scale.stream import BATCH_ROWS
from skyfill.scale.work import Classifying, Filling, Job, worker_model
from skyfill.threads import map_threads

distributed = pytest.importorskip("distributed", reason="needs Dask: pip install skyfill[dask]")

from skyfill.scale import cluster  # noqa: E402
from skyfill.scale.client import open_client  # noqa: E402
from skyfill.scale.cluster import (  # noqa: E402
    fill_files_on_dask,
    score_files_on_dask,
    score_partitions,
)
from skyfill.scale.cluster_train import (  # noqa: E402
    expect_on_dask,
    hold_parts,
    refine_on_dask,
    sum_tree,
    take_sample,
    train_on_dask,
)

INFO = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "I")}


def make_table(n, seed=0):
    rng = np.random.default_rng(seed)
    v = rng.normal(18, 1, n)
    i = np.where(rng.random(n) < 0.3, np.nan, v - 0.8 + rng.normal(0, 0.2, n))
    return Table.from_columns({"id": np.arange(n), "V": v, "I": i}, info=INFO)


@pytest.fixture(scope="module")
def client():
    with open_client("local", n_workers=2) as client:
        yield client


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.skyfill"
    save_model(train(make_table(400), ["V", "I"], n_components=2, n_fits=1)[0], path)
    return path


@pytest.fixture
def files(tmp_path):
    """Six files, one of them empty."""
    paths = [tmp_path / f"in{i}.parquet" for i in range(6)]
    for i, path in enumerate(paths):
        write_table(make_table(0 if i == 3 else 300 + i, seed=i), path)
    return paths


def alone(model_path, files, work=None):
    """What one machine gives for the files, one after the other."""
    model = worker_model(str(model_path), "")
    work = work or Filling()
    return pa.concat_tables([work(model, read_table(path), 0).arrow for path in files])


def same_rows(left, right):
    return left.schema.equals(right.schema) and left.combine_chunks().equals(right.combine_chunks())


@dataclass(frozen=True)
class KillOnce:
    """Fill, but kill the process that works on the batch with a given first row: once."""

    marker: str
    victim: float

    def __call__(self, model, table, place):
        done = Filling()(model, table, place)
        if len(table) and table.numbers("V")[0, 0] == self.victim and self._is_first():
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    def _is_first(self):
        try:
            Path(self.marker).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


def test_the_cluster_gives_the_rows_of_one_machine_in_their_order(
    client, model_path, files, tmp_path
):
    out, told = tmp_path / "out.parquet", []
    rows, filled = fill_files_on_dask(model_path, files, out, tell=told.append)
    expected = alone(model_path, files)
    assert same_rows(read_table(out).arrow, expected)
    assert rows == sum(told) == expected.num_rows
    assert filled == sum(int(np.isnan(read_table(path).numbers("I")).sum()) for path in files)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        [*(f.name for f in files), out.name]
    )


def test_a_worker_killed_in_the_middle_does_not_change_the_result(
    client, model_path, files, tmp_path
):
    before = {info["pid"] for info in client.run(_process).values()}
    victim = read_table(files[2]).numbers("V")[0, 0]
    work = KillOnce(str(tmp_path / "killed"), float(victim))
    out = tmp_path / "out.parquet"
    score_files_on_dask(model_path, files, out, work=work)
    assert (tmp_path / "killed").exists()
    client.wait_for_workers(2, timeout=30)
    assert {info["pid"] for info in client.run(_process).values()} != before
    assert same_rows(read_table(out).arrow, alone(model_path, files))


def _process():
    return {"pid": os.getpid()}


def test_a_folder_of_parts_holds_the_same_rows_and_appears_whole(
    client, model_path, files, tmp_path
):
    out = tmp_path / "filled"
    fill_files_on_dask(model_path, files, out)
    assert len(list(out.iterdir())) == len(files)
    parts = [read_table(path).arrow for path in sorted(out.iterdir())]
    assert same_rows(pa.concat_tables(parts), alone(model_path, files))
    with pytest.raises(SkyfillError, match="exists; choose another folder"):
        fill_files_on_dask(model_path, files, out)


def test_one_long_file_is_cut_into_parts_with_the_draws_of_one_machine(
    client, model_path, tmp_path
):
    path, n = tmp_path / "long.parquet", 2 * BATCH_ROWS + 1000
    # Row groups that do not fit the batches.
    pq.write_table(make_table(n).arrow, path, row_group_size=50_001)
    extras = Extras(quantiles=(0.5,), n_draws=1, seed=5)
    parts = plan_parts([path], part_rows=1)
    assert [part.start for part in parts] == [0, BATCH_ROWS, 2 * BATCH_ROWS]
    fill_files_on_dask(model_path, [path], tmp_path / "d.parquet", extras=extras, part_rows=1)
    fill_file(worker_model(str(model_path), ""), path, tmp_path / "s.parquet", extras=extras)
    found, expected = (read_table(tmp_path / f"{name}.parquet").arrow for name in "ds")
    assert same_rows(found, expected)
    assert found.column("I_draw1").null_count < n


def test_a_catalog_classified_on_the_cluster_is_that_of_one_machine(client, files, tmp_path):
    names = ["RRL" if v < 18 else "QSO" for v in make_table(300).numbers("V")[:, 0]]
    small = CatalogClassifier("forest", n_trees=5, imputer=NetworkImputer(1, n_fits=1))
    table = make_table(300).with_column("kind", names)
    model, _ = train_classifier(table, ["V", "I"], "kind", classifier=small)
    save_model(model, tmp_path / "c.skyfill")
    work = Classifying(prior=(0.2, 0.8))
    score_files_on_dask(tmp_path / "c.skyfill", files, tmp_path / "out.parquet", work=work)
    shifted = replace(model, scorer=replace(model.scorer, prior=np.array([0.2, 0.8])))
    expected = [classify_table(shifted, read_table(path)).arrow for path in files]
    assert same_rows(read_table(tmp_path / "out.parquet").arrow, pa.concat_tables(expected))


def test_each_worker_loads_the_model_once(client, model_path, files, tmp_path):
    client.run(_forget)
    job = Job.of(model_path, Filling())
    score_partitions(client, plan_parts(files), job, tmp_path)
    loads = client.run(_loads)
    assert set(loads.values()) <= {0, 1}
    assert sum(loads.values()) >= 1


def _forget():
    from skyfill.scale import work

    work._load.cache_clear()


def _loads():
    from skyfill.scale import work

    return work._load.cache_info().misses


def test_nan_null_and_whole_file_formats_are_gaps_alike(client, model_path, tmp_path):
    table = make_table(50)
    write_table(table, tmp_path / "a.parquet")
    with_nan = pa.table({n: table.numbers(n)[:, 0] for n in ("V", "I")})
    assert with_nan.column("I").null_count == 0
    pq.write_table(with_nan, tmp_path / "b.parquet")
    write_table(table, tmp_path / "c.fits")
    found = []
    for name in ("a.parquet", "b.parquet", "c.fits"):
        fill_files_on_dask(model_path, [tmp_path / name], tmp_path / f"{name}.out.parquet")
        found.append(read_table(tmp_path / f"{name}.out.parquet"))
    for other in found[1:]:
        assert np.array_equal(
            found[0].numbers("I", "I_sd"), other.numbers("I", "I_sd"), equal_nan=True
        )
        assert found[0].reasons("I").equals(other.reasons("I"))


def test_parts_cover_every_row_once_whatever_the_row_groups(tmp_path):
    for k, (n, group) in enumerate([(0, 10), (1, 1), (200_000, 7_000), (150_000, 150_000)]):
        path = tmp_path / f"{k}.parquet"
        pq.write_table(pa.table({"x": np.arange(n)}), path, row_group_size=group)
        parts = plan_parts([path], part_rows=60_000)
        rows = [t.numbers("x")[:, 0] for part in parts for t in read_part(part)]
        assert np.array_equal(np.concatenate([*rows, []]), np.arange(n))
        sizes = [len(table) for part in parts for table in read_part(part)]
        assert sizes[:-1] == [BATCH_ROWS] * (len(sizes) - 1)


def test_mistakes_are_said_before_any_work(client, model_path, files, tmp_path):
    write_table(make_table(5).drop(["id"]), tmp_path / "odd.parquet")
    with pytest.raises(CatalogError, match="odd.parquet: its columns are not those of"):
        fill_files_on_dask(model_path, [files[0], tmp_path / "odd.parquet"], tmp_path / "o.csv")
    with pytest.raises(SkyfillError, match="there is no directory"):
        fill_files_on_dask(model_path, files, tmp_path / "none" / "o.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(CatalogError, match="holds no Parquet files"):
        plan_parts([tmp_path / "empty"])
    with pytest.raises(ModelError, match="this worker finds model"):
        worker_model(str(model_path), "another")
    assert not (tmp_path / "o.csv").exists()


def test_an_address_without_a_scheduler_is_an_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr("skyfill.scale.client.SECONDS_TO_CONNECT", 0.3)
    with (
        pytest.raises(SkyfillError, match="no Dask scheduler answers at tcp://127.0.0.1:9"),
        open_client("tcp://127.0.0.1:9"),
    ):
        pass


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SkyfillError, match=r"skyfill\[dask\]"), open_client("local"):
        pass


def test_a_fault_in_a_part_reaches_the_user_and_the_other_parts_can_be_resumed(
    client, model_path, files, tmp_path
):
    data, stat = files[4].read_bytes(), files[4].stat()
    cut = len(data) // 3
    files[4].write_bytes(data[:8] + bytes(cut) + data[8 + cut :])
    os.utime(files[4], ns=(stat.st_atime_ns, stat.st_mtime_ns))
    out, kept = tmp_path / "out.parquet", tmp_path / "out.parquet.dask-parts"
    with pytest.raises(CatalogError, match="in4.parquet"):
        fill_files_on_dask(model_path, files, out)
    assert not out.exists()
    wait_for_parts(kept, 5)
    made = {path.name: path.stat().st_ino for path in kept.glob("*/part-*")}
    files[4].write_bytes(data)
    os.utime(files[4], ns=(stat.st_atime_ns, stat.st_mtime_ns))
    rows, filled = fill_files_on_dask(model_path, files, out, resume=True)
    assert len(made) == 5
    assert same_rows(read_table(out).arrow, alone(model_path, files))
    assert rows == read_table(out).arrow.num_rows
    assert filled == sum(int(np.isnan(read_table(path).numbers("I")).sum()) for path in files)
    assert not kept.exists()


def wait_for_parts(folder, n):
    for _ in range(200):
        if len(list(folder.glob("*/part-*"))) == n:
            return
        time.sleep(0.05)


@dataclass(frozen=True)
class Marking:
    """Fill, and leave a file for each batch."""

    folder: str

    def __call__(self, model, table, place):
        if len(table):
            (Path(self.folder) / str(table.numbers("V")[0, 0])).touch()
        return Filling()(model, table, place)


def test_resuming_does_not_score_again_what_is_done_nor_take_the_parts_of_another_job(
    client, model_path, files, tmp_path
):
    marks = tmp_path / "marks"
    marks.mkdir()
    job = Job.of(model_path, Marking(str(marks)))
    out = tmp_path / "out.parquet"
    parts = plan_parts(files)
    with cluster._beside(out, resume=False) as kept:
        folder = kept / cluster._digest(job, parts)
        folder.mkdir()
        score_partitions(client, parts[:4], job, folder)
        for path in marks.iterdir():
            path.unlink()
        score_files_on_dask(model_path, files, out, work=job.work, resume=True)
        assert len(list(marks.iterdir())) == 2
    other = cluster._digest(replace(job, identifier="another"), parts)
    assert other != folder.name


def test_one_call_serves_a_folder_of_files(client, model_path, files, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for path in files:
        path.rename(folder / path.name)
    assert is_distributed(folder, None)
    assert not is_distributed(folder / "in0.parquet", None)
    assert column_names(folder) == ["id", "V", "I"]
    assert input_files(folder) == []
    score_distributed(model_path, folder, tmp_path / "out", work=Filling())
    found = np.concatenate([t.numbers("I")[:, 0] for t in read_columns(tmp_path / "out", ["I"])])
    expected = alone(model_path, sorted(folder.iterdir()))
    assert np.array_equal(found, expected.column("I").to_numpy())


def test_fill_table_and_a_part_agree_on_a_whole_file(model_path, files):
    model = worker_model(str(model_path), "")
    (table,) = read_part(Part(str(files[0])))
    assert fill_table(model, table).arrow.equals(Filling()(model, table, 0).arrow)


def whole(model, files):
    X = np.concatenate([read_table(path).numbers("V", "I") for path in files])
    return split(model.network.scores(X))


def test_sums_over_the_cluster_are_those_of_one_machine_to_1e_minus_10(client, model_path, files):
    model = worker_model(str(model_path), "")
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
    model = worker_model(str(model_path), "")
    plan = Plan(2, 5.0)
    parts, start = whole(model, files), model.network.fits[0]
    rng = np.random.default_rng(0)
    alone = climb_mixture(
        lambda m: expect_parts(parts, m, map_threads), start, plan, rng=rng, tol=1e-5, max_iter=30
    )
    refined = refine_on_dask(model, files, plan, tol=1e-5, max_iter=30)
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


def test_steps_that_are_kept_are_not_taken_again(client, files, tmp_path, monkeypatch):
    options = {"sample_rows": 200, "n_components": 1, "n_fits": 1}
    with open_steps(tmp_path / "m.skyfill", {}, provenance={}, resume=False) as steps:
        first = train_on_dask(files, ["V", "I"], keep=steps.keep, **options)
        monkeypatch.delattr("skyfill.scale.cluster_train.sum_tree")
        again = train_on_dask(files, ["V", "I"], keep=steps.keep, **options)
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
    learned = train_on_dask([folder], ["V", "I"], tell=told.append, **options)
    words = ("--components", "1", "--fits", "2", "--seed", "4", "--scheduler")
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
    model = worker_model(str(model_path), "")
    held = hold_parts(client, plan_parts(files), model, Schema())
    mixture = model.network.fits[0]
    before = expect_on_dask(client, held, mixture)
    victim = next(iter(client.who_has(held[:1]).values()))[0]
    pid = client.run(_process, workers=[victim])[victim]["pid"]
    os.kill(pid, signal.SIGKILL)
    after = expect_on_dask(client, held, mixture)
    assert np.array_equal(after.cross, before.cross)
    assert after.loglik == before.loglik
