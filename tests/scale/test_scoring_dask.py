"""A real cluster of two processes gives what one machine gives, also when a worker dies."""

import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from skyfill.catalog import Schema, Table, read_table, write_table
from skyfill.classify import CatalogClassifier
from skyfill.errors import CatalogError, ModelError, SkyfillError
from skyfill.impute import NetworkImputer
from skyfill.model import (
    Filling,
    Scoring,
    classify_table,
    load_model,
    save_model,
    train_classifier,
)
from skyfill.scale import Run, apply_model, cluster, open_source
from skyfill.scale.inputs import BATCH_ROWS, plan_parts
from skyfill.scale.job_folder import folder_of
from skyfill.scale.scoring import ModelTask
from skyfill.scale.workers import open_client
from tests.stars import make_table

pytest.importorskip("distributed", reason="needs Dask: pip install skyfill[dask]")
psutil = pytest.importorskip("psutil", reason="comes with Dask")


@pytest.fixture
def workers(client):
    with cluster(None) as workers:
        yield workers


@pytest.fixture
def files(tmp_path):
    """A folder of six files, one of them empty."""
    (tmp_path / "in").mkdir()
    paths = [tmp_path / "in" / f"in{i}.parquet" for i in range(6)]
    for i, path in enumerate(paths):
        write_table(make_table(0 if i == 3 else 300 + i, seed=i), path)
    return paths


def fill(model_path, catalog, output, workers, *, work=None, **run):
    work, run = work or Filling(), Run(workers=workers, **run)
    return apply_model(work, model_path, catalog, output, run=run)


def one_by_one(model_path, files):
    """What one machine gives for the files, one after the other."""
    model = load_model(model_path)
    return pa.concat_tables([Filling().apply(model, read_table(p)).arrow for p in files])


def together(files):
    return Table(pa.concat_tables([read_table(path).arrow for path in files]))


def gaps(files):
    return sum(int(np.isnan(read_table(path).numbers("I")).sum()) for path in files)


def same_rows(left, right):
    return left.schema.equals(right.schema) and left.combine_chunks().equals(right.combine_chunks())


def is_first(marker):
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


@dataclass(frozen=True)
class KillOnce:
    """Fill, but kill the process that works on the batch with a given first row: once."""

    marker: str
    victim: float
    prefix = ""

    def apply(self, model, table, place):
        done = Filling().apply(model, table, place)
        if len(table) and table.numbers("V")[0, 0] == self.victim and is_first(self.marker):
            os.kill(os.getpid(), signal.SIGKILL)
        return done


def test_the_cluster_gives_the_rows_of_one_machine_in_their_order(
    workers, model_path, files, tmp_path
):
    out, told = tmp_path / "out.parquet", []
    done = fill(model_path, tmp_path / "in", out, workers, progress=told.append)
    expected = one_by_one(model_path, files)
    assert same_rows(read_table(out).arrow, expected)
    assert done.rows == sum(told) == expected.num_rows
    assert done.counts["filled"] == gaps(files)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", out.name]


def test_a_file_from_the_cluster_has_the_bytes_of_one_from_threads(
    workers, model_path, files, tmp_path
):
    names = ("threads", "cluster")
    for name, who in zip(names, (None, workers), strict=True):
        fill(model_path, tmp_path / "in", tmp_path / f"{name}.parquet", who)
    found, expected = ((tmp_path / f"{name}.parquet").read_bytes() for name in names)
    assert found == expected


def test_a_worker_killed_in_the_middle_does_not_change_the_result(
    client, workers, model_path, files, tmp_path
):
    before = {info["pid"] for info in client.run(_process).values()}
    victim = read_table(files[2]).numbers("V")[0, 0]
    work = KillOnce(str(tmp_path / "killed"), float(victim))
    out = tmp_path / "out.parquet"
    fill(model_path, tmp_path / "in", out, workers, work=work)
    assert (tmp_path / "killed").exists()
    client.wait_for_workers(2)
    assert {info["pid"] for info in client.run(_process).values()} != before
    assert same_rows(read_table(out).arrow, one_by_one(model_path, files))


def _process():
    return {"pid": os.getpid()}


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_a_folder_of_parts_holds_the_same_rows_and_appears_whole(
    workers, model_path, files, tmp_path, where
):
    who = workers if where == "cluster" else None
    out = tmp_path / "filled"
    fill(model_path, tmp_path / "in", out, who)
    names = [path.name for path in sorted(out.iterdir())]
    assert names == [f"part-{i:06d}.parquet" for i in range(len(files))]
    parts = [read_table(path).arrow for path in sorted(out.iterdir())]
    assert same_rows(pa.concat_tables(parts), one_by_one(model_path, files))
    source = open_source(out)
    assert source.checked_files == []
    assert source.count_rows() == sum(map(len, parts))
    found = np.concatenate([table.numbers("I")[:, 0] for table in source.tables(["I"])])
    assert np.array_equal(found, pa.concat_tables(parts).column("I").to_numpy())
    with pytest.raises(SkyfillError, match="exists; choose another folder"):
        fill(model_path, tmp_path / "in", out, who)


def test_one_long_file_is_cut_into_parts_with_the_draws_of_one_machine(
    workers, model_path, tmp_path
):
    path, n = tmp_path / "long.parquet", 2 * BATCH_ROWS + 1000
    # Row groups that do not fit the batches.
    pq.write_table(make_table(n).arrow, path, row_group_size=50_001)
    parts = plan_parts([path], part_rows=1)
    assert [part.start for part in parts] == [0, BATCH_ROWS, 2 * BATCH_ROWS]
    work = Filling(quantiles=(0.5,), n_draws=1, seed=5)
    fill(model_path, path, tmp_path / "d.parquet", workers, work=work, part_rows=1)
    fill(model_path, path, tmp_path / "s.parquet", None, work=work)
    found, expected = ((tmp_path / f"{name}.parquet").read_bytes() for name in "ds")
    assert found == expected
    assert read_table(tmp_path / "d.parquet").column("I_draw1").null_count < n


def test_draws_of_a_folder_are_those_of_one_table(workers, model_path, files, tmp_path):
    work = Filling(n_draws=2, seed=3)
    fill(model_path, tmp_path / "in", tmp_path / "out.parquet", workers, work=work)
    expected = work.apply(load_model(model_path), together(files))
    assert same_rows(read_table(tmp_path / "out.parquet").arrow, expected.arrow)


def test_a_catalog_classified_on_the_cluster_is_that_of_one_machine(workers, files, tmp_path):
    names = ["RRL" if v < 18 else "QSO" for v in make_table(300).numbers("V")[:, 0]]
    small = CatalogClassifier("forest", n_trees=5, imputer=NetworkImputer(1, n_fits=1, refine=None))
    table = make_table(300).with_column("kind", names)
    model, _ = train_classifier(table, ["V", "I"], "kind", classifier=small)
    save_model(model, tmp_path / "c.skyfill")
    work, out = Scoring(prior=(0.2, 0.8)), tmp_path / "out.parquet"
    done = fill(tmp_path / "c.skyfill", tmp_path / "in", out, workers, work=work)
    found = read_table(out)
    assert same_rows(found.arrow, classify_table(model, together(files), work).arrow)
    classes = found.column("sf_class").to_pylist()
    assert done.counts["class.QSO"] == classes.count("QSO") > 0
    assert done.counts["outliers"] == sum(found.column("sf_outlier").to_pylist())


def test_each_worker_loads_the_model_once(client, workers, model_path, files, tmp_path):
    client.run(_forget)
    fill(model_path, tmp_path / "in", tmp_path / "out", workers)
    loads = client.run(_loads)
    assert set(loads.values()) <= {0, 1}
    assert sum(loads.values()) >= 1


def _forget():
    from skyfill.scale import scoring

    scoring._load.cache_clear()


def _loads():
    from skyfill.scale import scoring

    return scoring._load.cache_info().misses


def test_nan_null_and_whole_file_formats_are_gaps_alike(workers, model_path, tmp_path):
    table = make_table(50)
    write_table(table, tmp_path / "a.parquet")
    with_nan = pa.table({n: table.numbers(n)[:, 0] for n in ("V", "I")})
    assert with_nan.column("I").null_count == 0
    pq.write_table(with_nan, tmp_path / "b.parquet")
    write_table(table, tmp_path / "c.fits")
    found = []
    for name in ("a.parquet", "b.parquet", "c.fits"):
        fill(model_path, tmp_path / name, tmp_path / f"{name}.out.parquet", workers)
        found.append(read_table(tmp_path / f"{name}.out.parquet"))
    for other in found[1:]:
        assert np.array_equal(
            found[0].numbers("I", "I_sd"), other.numbers("I", "I_sd"), equal_nan=True
        )
        assert found[0].reasons("I").equals(other.reasons("I"))


def test_mistakes_are_said_before_any_work(workers, model_path, files, tmp_path):
    with pytest.raises(SkyfillError, match="there is no directory"):
        fill(model_path, tmp_path / "in", tmp_path / "none" / "o.csv", workers)
    write_table(make_table(5).drop(["id"]), tmp_path / "in" / "odd.parquet")
    with pytest.raises(CatalogError, match="odd.parquet: its columns are not those of"):
        fill(model_path, tmp_path / "in", tmp_path / "o.csv", workers)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CatalogError, match="holds no Parquet files"):
        open_source(tmp_path / "empty")
    with pytest.raises(ModelError, match="this worker finds model"):
        ModelTask(Filling(), str(model_path), "another", Schema()).load()
    with pytest.raises(SkyfillError, match="read the model from a file; give its path"):
        fill(load_model(model_path), files[0], tmp_path / "o.csv", workers)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty", "in"]


def test_an_address_without_a_scheduler_is_an_error_that_says_what_to_do(monkeypatch, closed_port):
    monkeypatch.setattr("skyfill.scale.workers.SECONDS_TO_CONNECT", 0.3)
    address = f"tcp://127.0.0.1:{closed_port}"
    with (
        pytest.raises(SkyfillError, match=f"no Dask scheduler answers at {address}"),
        open_client(address),
    ):
        pass


def test_without_dask_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SkyfillError, match=r"skyfill\[dask\]"), open_client("local"):
        pass


def test_a_fault_in_a_part_reaches_the_user_and_the_other_parts_can_be_resumed(
    workers, model_path, files, tmp_path
):
    data, stat = files[4].read_bytes(), files[4].stat()
    cut = len(data) // 3
    files[4].write_bytes(data[:8] + bytes(cut) + data[8 + cut :])
    os.utime(files[4], ns=(stat.st_atime_ns, stat.st_mtime_ns))
    out = tmp_path / "out.parquet"
    with pytest.raises(CatalogError, match="in4.parquet"):
        fill(model_path, tmp_path / "in", out, workers)
    assert not out.exists()
    # All others were waited for.
    made = {path: path.stat().st_mtime_ns for path in (folder_of(out) / "parts").iterdir()}
    assert len(made) == 5
    files[4].write_bytes(data)
    os.utime(files[4], ns=(stat.st_atime_ns, stat.st_mtime_ns))
    work = Marking(str(tmp_path / "marks"))
    (tmp_path / "marks").mkdir()
    with pytest.raises(CatalogError, match=r"another run \(it differs in: options\)"):
        fill(model_path, tmp_path / "in", out, workers, work=work, resume=True)
    done = fill(model_path, tmp_path / "in", out, workers, resume=True)
    assert same_rows(read_table(out).arrow, one_by_one(model_path, files))
    assert done.rows == read_table(out).arrow.num_rows
    assert done.counts["filled"] == gaps(files)
    assert not folder_of(out).exists()


@dataclass(frozen=True)
class Marking:
    """Fill, and leave a file for each batch; fail once where the first row has a given value."""

    folder: str
    victim: float = 0.0
    prefix = ""

    def apply(self, model, table, place):
        if len(table):
            first = float(table.numbers("V")[0, 0])
            if first == self.victim and is_first(f"{self.folder}/failed"):
                raise CatalogError("power cut")
            (Path(self.folder) / str(first)).touch()
        return Filling().apply(model, table, place)


def test_resuming_does_not_score_again_what_is_done(workers, model_path, files, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    work = Marking(str(marks), float(read_table(files[2]).numbers("V")[0, 0]))
    out = tmp_path / "out.parquet"
    with pytest.raises(CatalogError, match="power cut"):
        fill(model_path, tmp_path / "in", out, workers, work=work)
    finished = len(list((folder_of(out) / "parts").iterdir()))
    for path in marks.iterdir():
        if path.name != "failed":
            path.unlink()
    fill(model_path, tmp_path / "in", out, workers, work=work, resume=True)
    assert len(list(marks.iterdir())) - 1 == len(files) - finished
    assert same_rows(read_table(out).arrow, one_by_one(model_path, files))


def test_a_local_cluster_can_be_reached_from_this_machine_only(client):
    me = psutil.Process()
    listening = {
        connection.laddr.ip
        for process in (me, *me.children(recursive=True))
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert client.dashboard_link
    assert listening == {"127.0.0.1"}
