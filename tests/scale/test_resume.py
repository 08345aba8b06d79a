"""Killed at any point and taken up again: the same bytes as in one go."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyfill.catalog import ColumnInfo, Provenance, Role, Table, read_table, write_table
from skyfill.cli import main
from skyfill.errors import CatalogError
from skyfill.model import Extras, load_model, save_model, train
from skyfill.scale import fill_file
from skyfill.scale.journal import JOURNAL, parts_folder
from skyfill.scale.ledger import ROWS, open_ledger

N_ROWS, BATCH = 1000, 100


class KilledError(BaseException):
    """Stands for a kill: nothing catches it, nothing is tidied up."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    rng = np.random.default_rng(0)
    v = rng.normal(18, 1, N_ROWS)
    i = np.where(rng.random(N_ROWS) < 0.3, np.nan, v - 0.8 + rng.normal(0, 0.2, N_ROWS))
    info = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in ("V", "I")}
    table = Table.from_columns({"id": np.arange(N_ROWS), "V": v, "I": i}, info=info)
    write_table(table, folder / "in.parquet")
    model = train(table, ["V", "I"], n_components=2, shrinkage=5.0, n_fits=1)[0]
    save_model(model, folder / "m.skyfill")
    return folder


@pytest.fixture(autouse=True)
def _small_batches_and_a_fixed_date(monkeypatch):
    monkeypatch.setattr("skyfill.scale.stream.BATCH_ROWS", BATCH)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")


def fill(folder, output, *, resume=False, stop_after=None, seed=0):
    rows = []

    def tell(n):
        rows.append(n)
        if stop_after is not None and sum(rows) >= stop_after:
            raise KilledError

    model = load_model(folder / "m.skyfill")
    made = Provenance("by hand", [folder / "in.parquet"], model=model.identifier)
    extras = Extras(n_draws=1, seed=seed)
    options = {"extras": extras, "provenance": made, "resume": resume, "tell": tell}
    counts = fill_file(model, folder / "in.parquet", output, **options)
    return counts, rows


@pytest.mark.parametrize("extension", ["parquet", "fits", "vot", "csv", "ecsv.gz"])
def test_a_run_that_was_stopped_gives_the_bytes_of_one_that_was_not(folder, extension, tmp_path):
    whole, output = tmp_path / f"whole.{extension}", tmp_path / f"out.{extension}"
    expected, _ = fill(folder, whole)
    with pytest.raises(KilledError):
        fill(folder, output, stop_after=300)
    assert not output.exists()
    found, rows = fill(folder, output, resume=True)
    assert found == expected
    assert rows == [300, *[BATCH] * 7]
    assert output.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([whole.name, output.name])


@given(st.integers(0, 9), st.floats(0, 1), st.binary(max_size=300))
@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_whatever_a_kill_leaves_of_the_journal_the_result_is_the_same(
    folder, tmp_path_factory, n_parts, share, torn
):
    """The journal ends anywhere; bytes that no line speaks of stand behind the rows."""
    here = tmp_path_factory.mktemp("torn")
    whole = folder / "whole.parquet"
    if not whole.exists():
        fill(folder, whole)
    output = here / "out.parquet"
    with pytest.raises(KilledError):
        fill(folder, output, stop_after=n_parts * BATCH)
    journal = parts_folder(output) / JOURNAL
    os.truncate(journal, round(share * journal.stat().st_size))
    with open(parts_folder(output) / ROWS, "ab") as rows:
        rows.write(torn)
    counts, _ = fill(folder, output, resume=True)
    assert counts[0] == N_ROWS
    assert output.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("extension", ["parquet", "csv"])
@pytest.mark.parametrize("step", ["os.replace", "shutil.rmtree"])
def test_a_kill_while_the_output_is_put_in_place_is_mended(
    folder, step, extension, tmp_path, monkeypatch
):
    whole, output = tmp_path / f"whole.{extension}", tmp_path / f"out.{extension}"
    expected, _ = fill(folder, whole)

    def stop(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(f"skyfill.scale.stream.{step}", stop)
        with pytest.raises(KilledError):
            fill(folder, output)
    assert output.exists() == (step == "shutil.rmtree")
    found, rows = fill(folder, output, resume=True)
    assert (found, rows) == (expected, [N_ROWS])
    assert output.read_bytes() == whole.read_bytes()
    assert not parts_folder(output).exists()


def test_an_output_that_was_finished_and_removed_is_missed(folder, tmp_path, monkeypatch):
    output = tmp_path / "out.parquet"

    def stop(*_):
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr("skyfill.scale.stream.shutil.rmtree", stop)
        with pytest.raises(KilledError):
            fill(folder, output)
    output.unlink()
    with pytest.raises(CatalogError, match="gone; run without --resume"):
        fill(folder, output, resume=True)


SCRIPT = """
import os, signal, sys, threading, time
from skyfill.cli import main
import skyfill.scale.stream as stream
from skyfill.model import fill_table

stream.BATCH_ROWS = 100

def slow(*words):
    time.sleep(0.02)
    if not threading.timers:
        end = os.getpid(), signal.SIGKILL
        threading.timers = [threading.Timer(float(sys.argv[1]), os.kill, end)]
        threading.timers[0].daemon = True
        threading.timers[0].start()
    return fill_table(*words)

threading.timers = []
stream.fill_table = slow
main(sys.argv[2:])
"""


@pytest.mark.parametrize("extension", ["parquet"])
def test_a_process_killed_at_random_loses_nothing(folder, extension, tmp_path):
    rng = np.random.default_rng(int(time.time()))
    words = ["impute", str(folder / "m.skyfill"), str(folder / "in.parquet"), "--draws", "1"]
    words += ["-o", f"out.{extension}"]
    fates = []
    for name, lives in (("whole", 1), ("killed", 3)):
        (tmp_path / name).mkdir()
        for life in range(lives):
            seconds = 60.0 if life == lives - 1 else float(rng.uniform(0, 0.12))
            command = [sys.executable, "-c", SCRIPT, str(seconds), *words]
            command += ["--resume"] if life else []
            ended = subprocess.run(command, cwd=tmp_path / name, capture_output=True, check=False)
            fates.append(ended.returncode)
    assert fates[0] == fates[-1] == 0
    assert set(fates) <= {0, -signal.SIGKILL}
    whole, killed = (tmp_path / name / f"out.{extension}" for name in ("whole", "killed"))
    assert killed.read_bytes() == whole.read_bytes()
    assert len(read_table(killed)) == N_ROWS


def test_parts_of_another_job_are_refused_and_a_new_start_drops_them(folder, tmp_path):
    whole, output = tmp_path / "whole.parquet", tmp_path / "out.parquet"
    fill(folder, whole, seed=1)
    with pytest.raises(KilledError):
        fill(folder, output, stop_after=300)
    with pytest.raises(CatalogError, match=r"another run \(it differs in: extras\).*start anew"):
        fill(folder, output, resume=True, seed=1)
    _, rows = fill(folder, output, seed=1)
    assert rows[0] == 0
    assert output.read_bytes() == whole.read_bytes()


def test_rows_that_are_lost_are_noticed(folder, tmp_path):
    output = tmp_path / "out.parquet"
    with pytest.raises(KilledError):
        fill(folder, output, stop_after=300)
    os.truncate(parts_folder(output) / ROWS, 100)
    with pytest.raises(CatalogError, match="damaged"):
        fill(folder, output, resume=True)


def test_an_error_leaves_parts_only_where_they_were_asked_for(folder, tmp_path):
    def fail(rows):
        if rows:
            raise CatalogError("a fault")

    model = load_model(folder / "m.skyfill")
    for resume in (False, True):
        output = tmp_path / "out.parquet"
        with pytest.raises(CatalogError, match="a fault"):
            fill_file(model, folder / "in.parquet", output, resume=resume, tell=fail)
        assert parts_folder(output).exists() == resume
        assert not output.exists()


def test_two_runs_cannot_write_one_output(tmp_path):
    output = tmp_path / "out.parquet"
    with (
        open_ledger(output, {}, provenance=None, resume=True),
        pytest.raises(CatalogError, match="another run is writing it"),
        open_ledger(output, {}, provenance=None, resume=True),
    ):
        pass


def test_the_first_run_says_where_the_output_comes_from(folder, tmp_path, monkeypatch):
    output = tmp_path / "out.parquet"
    with pytest.raises(KilledError):
        fill(folder, output, stop_after=300)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    fill(folder, output, resume=True)
    assert "1970-01-01T00:00:00Z" in read_table(output).meta["provenance"]


def test_resume_is_an_option_of_the_command(folder, tmp_path):
    words = ["impute", folder / "m.skyfill", folder / "in.parquet", "-o", tmp_path / "a.parquet"]
    words = [str(word) for word in words]
    outputs = []
    for last in ([], ["--resume"]):
        said = CliRunner().invoke(main, words + last)
        assert said.exit_code == 0, said.output
        outputs.append((tmp_path / "a.parquet").read_bytes())
    assert outputs[0] == outputs[1]
