"""Killed at any point and taken up again: the same bytes as in one go."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skyfill.catalog import ColumnInfo, Provenance, Role, Table, read_table, write_table
from skyfill.cli import main
from skyfill.errors import CatalogError
from skyfill.model import Filling, load_model, save_model, train
from skyfill.scale import Run, apply_model
from skyfill.scale.job_folder import folder_of

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
    monkeypatch.setattr("skyfill.scale.inputs.BATCH_ROWS", BATCH)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")


def fill(folder, output, *, resume=False, stop_after=None, seed=0):
    """Fill; what was done, and the rows of every part that was told of."""
    rows = []

    def tell(n):
        rows.append(n)
        if stop_after is not None and sum(rows) >= stop_after:
            raise KilledError

    model = load_model(folder / "m.skyfill")
    made = Provenance("by hand", [folder / "in.parquet"], model=model.identifier)
    work, run = Filling(n_draws=1, seed=seed), Run(made, resume, tell)
    return apply_model(work, model, folder / "in.parquet", output, run=run), rows


def parts_of(output):
    return sorted((folder_of(output) / "parts").glob("part-*"))


@pytest.mark.parametrize("extension", ["parquet", "fits", "vot", "csv", "ecsv.gz"])
def test_a_run_that_was_stopped_gives_the_bytes_of_one_that_was_not(folder, extension, tmp_path):
    whole, output = tmp_path / f"whole.{extension}", tmp_path / f"out.{extension}"
    expected, _ = fill(folder, whole)
    with pytest.raises(KilledError):
        fill(folder, output, stop_after=300)
    assert not output.exists()
    assert 3 <= len(parts_of(output)) < 10
    found, rows = fill(folder, output, resume=True)
    assert found == expected
    assert rows == [BATCH] * 10
    assert output.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([whole.name, output.name])


@given(st.integers(0, 9), st.sets(st.integers(0, 9)), st.binary(max_size=300))
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_whatever_parts_a_kill_leaves_the_result_is_the_same(
    folder, tmp_path_factory, n_parts, lost, torn
):
    """Any parts may be there, and bytes of such as were being written."""
    here = tmp_path_factory.mktemp("torn")
    whole = folder / "whole.parquet"
    if not whole.exists():
        fill(folder, whole)
    output = here / "out.parquet"
    with pytest.raises(KilledError):
        fill(folder, output, stop_after=n_parts * BATCH)
    for i, part in enumerate(parts_of(output)):
        if i in lost:
            part.unlink()
    (folder_of(output) / "parts" / ".part-000009.parquet.00.new").write_bytes(torn)
    (folder_of(output) / "joined").write_bytes(torn)
    done, _ = fill(folder, output, resume=True)
    assert done.rows == N_ROWS
    assert output.read_bytes() == whole.read_bytes()


def test_parts_are_not_made_again(folder, tmp_path, monkeypatch):
    output, made = tmp_path / "out.parquet", []
    with pytest.raises(KilledError):
        fill(folder, output, stop_after=300)
    left = 10 - len(parts_of(output))

    def watched(work, model, table, place):
        made.append(place)
        return apply(work, model, table, place)

    apply = Filling.apply
    monkeypatch.setattr(Filling, "apply", watched)
    fill(folder, output, resume=True)
    # Once more for a table without rows, whose columns are those of the result.
    assert len(made) == left + 1


SCRIPT = """
import os, signal, sys
import skyfill.scale.inputs as inputs
from skyfill.cli import main

inputs.BATCH_ROWS = 100
replace, left = os.replace, int(sys.argv[1])

def counted(*names):
    # Files get their names by this call: job, parts, output.
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(*names)

os.replace = counted
main(sys.argv[2:])
"""


def test_a_process_killed_again_and_again_loses_nothing(folder, tmp_path):
    words = ["impute", str(folder / "m.skyfill"), str(folder / "in.parquet"), "--draws", "1"]
    words += ["-o", "out.parquet", "--resume"]
    finished = []
    for name, lives in (("whole", [0]), ("killed", [1, 4, 5, 4, 0])):
        (tmp_path / name).mkdir()
        for calls in lives:
            command = [sys.executable, "-c", SCRIPT, str(calls), *words]
            ended = subprocess.run(command, cwd=tmp_path / name, capture_output=True, check=False)
            assert ended.returncode == (-signal.SIGKILL if calls else 0), ended.stderr
            finished.append(len(parts_of(tmp_path / name / "out.parquet")))
    # The job itself gets its name first, and the job that is done before the output.
    assert finished == [0, 0, 2, 6, 9, 0]
    whole, killed = (tmp_path / name / "out.parquet" for name in ("whole", "killed"))
    assert killed.read_bytes() == whole.read_bytes()
    assert len(read_table(killed)) == N_ROWS


def test_parts_of_another_job_are_refused_and_a_new_start_drops_them(folder, tmp_path):
    whole, output = tmp_path / "whole.parquet", tmp_path / "out.parquet"
    fill(folder, whole, seed=1)
    with pytest.raises(KilledError):
        fill(folder, output, stop_after=300)
    with pytest.raises(CatalogError, match=r"another run \(it differs in: options\).*start again"):
        fill(folder, output, resume=True, seed=1)
    fill(folder, output, seed=1)
    assert output.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("extension", ["parquet", "csv"])
def test_a_damaged_part_is_made_again(folder, extension, tmp_path):
    output, whole = tmp_path / f"out.{extension}", tmp_path / f"whole.{extension}"
    fill(folder, whole)
    with pytest.raises(KilledError):
        fill(folder, output, stop_after=300)
    os.truncate(parts_of(output)[1], 100)
    content = bytearray(parts_of(output)[0].read_bytes())
    content[len(content) // 3] ^= 1
    parts_of(output)[0].write_bytes(content)
    fill(folder, output, resume=True)
    assert output.read_bytes() == whole.read_bytes()


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
