"""Streams, texts and files as they should not be: one clear line, exit code 2, no traceback."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, read_table, write_table
from skyfill.cli import main
from skyfill.compiled_cache import VARIABLE, ensure_cache
from skyfill.model import load_model, save_model

MODEL = Path(__file__).parent.parent / "model_files" / "version-2.skyfill"
RUN = [sys.executable, "-c", "from skyfill.cli import main; main(prog_name='skyfill')"]
ESCAPE = "\x1b]0;owned\x07\x9b2J\u202e"


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def shell(line):
    """Run a line of a shell, in which `skyfill` is this package."""
    script = f'skyfill() {{ "{sys.executable}" -c "{RUN[2]}" "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", script], capture_output=True, check=False)


def refused(said, *words):
    assert said.exit_code == 2, said.output
    assert "Traceback" not in said.output
    for word in words:
        assert word in said.stderr


def stars(n=40):
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=n) for name in ("V", "V_I", "n_obs")}
    return Table.from_columns({"id": [f"s{i}" for i in range(n)], **columns})


@pytest.fixture
def here(tmp_path, monkeypatch):
    shutil.copy(MODEL, tmp_path / "m.skyfill")
    write_table(stars(), tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_escapes_of_a_table_do_not_reach_the_terminal(here):
    table = stars().with_column(ESCAPE, np.arange(40.0)).with_info(ESCAPE, unit=ESCAPE)
    write_table(table, "e.parquet")
    for words in ("inspect e.parquet", "train e.parquet --features x -o out.skyfill"):
        said = run(*words.split())
        assert "\\x1b]0;owned" in said.output
        assert not {*"\x1b\x07\x9b\u202e"} & {*said.output}


def test_escapes_of_a_model_do_not_reach_the_terminal(here):
    from dataclasses import replace

    model = load_model(MODEL)
    made = {"command": ESCAPE, ESCAPE: "x"}
    features = (replace(model.features[0], description=ESCAPE), *model.features[1:])
    save_model(replace(model, provenance=made, features=features), "e.skyfill")
    for words in (["show", "e.skyfill"], ["show", "e.skyfill", "--json"]):
        said = run(*words)
        assert said.exit_code == 0
        assert not {*"\x1b\x07\x9b\u202e"} & {*said.output}


def test_cells_that_a_spreadsheet_would_run_are_kept_and_mentioned(here):
    cells = ["=cmd()", "-1.5", "@SUM(A1)", "+a", "fine", *["x"] * 35]
    write_table(stars().with_column("note", cells), "f.parquet")
    said = run("publish", "f.parquet", "-o", "f.csv")
    assert "warning: column 'note' has 3 cells that a spreadsheet would run" in said.stderr
    assert read_table("f.csv").column("note").to_pylist() == cells
    assert "spreadsheet" not in run("publish", "f.parquet", "-o", "f.fits").stderr


def test_closed_streams_do_not_harm_the_output(here):
    said = shell("skyfill impute m.skyfill t.parquet -o out.csv 2>&- <&-")
    assert said.returncode == 0, said
    assert len(read_table("out.csv")) == 40


def test_a_full_standard_output_is_named(here):
    said = shell("skyfill show m.skyfill > /dev/full")
    assert said.returncode == 2
    assert b"Traceback" not in said.stderr
    assert b"No space left" in said.stderr


def test_pipes_and_standard_output_are_refused(here):
    os.mkfifo("pipe.csv")
    refused(run("inspect", "pipe.csv"), "pipe.csv", "not a regular file")
    said = shell("skyfill inspect <(echo V; echo 1)")
    assert (said.returncode, b"not a regular file" in said.stderr) == (2, True)
    for words in ("report m.skyfill -o -", "impute m.skyfill t.parquet -o -"):
        refused(run(*words.split()), "give a file name")
    refused(run(*["impute", "m.skyfill", "t.parquet", "-o", "/dev/full"]), "/dev/full")


@pytest.mark.parametrize("text", ["x", "1e99", "-99999999999999999", "12.5"])
def test_a_time_that_is_none_is_named(here, monkeypatch, text):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", text)
    refused(run("publish", "t.parquet", "-o", "out.fits"), f"SOURCE_DATE_EPOCH={text}")


def test_titles_that_are_not_utf_8_are_refused(here):
    refused(run("report", "m.skyfill", "--title", "\udcff", "-o", "p.html"), "--title", "UTF-8")
    refused(run("publish", "t.parquet", "--authors", "\udcff", "-o", "p.fits"), "--authors")
    assert not Path("p.html").exists()


def test_lone_surrogates_in_a_model_are_refused(here):
    import zipfile

    with zipfile.ZipFile(MODEL) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    facts = json.loads(content["model.json"])
    facts["provenance"]["command"] = "\ud800"
    with zipfile.ZipFile("s.skyfill", "w") as archive:
        for name, data in content.items():
            archive.writestr(name, json.dumps(facts) if name == "model.json" else data)
    refused(run("show", "s.skyfill"), "s.skyfill", "damaged")


@pytest.mark.parametrize("text", ["[[[", "5", '{"inputs": 5}', '{"inputs": [{}]}', "[" * 10**5])
def test_a_damaged_provenance_is_no_obstacle(here, text):
    table = stars().with_meta(provenance=text, source_provenance=text)
    write_table(table, "p.parquet")
    assert run("publish", "p.parquet", "-o", "p.fits").exit_code == 0
    assert run("report", "m.skyfill", "p.parquet", "-o", "p.html").exit_code == 0


DEEP = "[" * 50_000 + "]" * 50_000


def test_nesting_without_end_is_refused(here):
    Path("deep.toml").write_text(f"a = {DEEP}\n")
    Path("deep.json").write_text(DEEP)
    refused(run("impute", "m.skyfill", "t.parquet", "--schema", "deep.toml", "-o", "o.csv"))
    refused(run("impute", "m.skyfill", "t.parquet", "--config", "deep.toml", "-o", "o.csv"))
    refused(run("report", "m.skyfill", "--evaluation", "deep.json", "-o", "o.html"), "deep.json")


def test_sentinels_that_are_lists_are_refused(here):
    Path("s.toml").write_text("sentinels = [[1]]\n")
    refused(run("impute", "m.skyfill", "t.parquet", "--schema", "s.toml", "-o", "o.csv"), "[[1]]")


def test_a_class_named_like_a_count_is_a_class(here):
    kinds = ["outliers", "rows"] * 20
    write_table(stars().with_column("kind", kinds), "k.parquet")
    small = "--label kind --features V,n_obs --components 1 --fits 1 --method forest --trees 5"
    assert run("train", "k.parquet", *small.split(), "-o", "k.skyfill").exit_code == 0
    said = run("classify", "k.skyfill", "t.parquet", "-o", "out.parquet", "--json")
    facts = json.loads(said.stdout)
    found = read_table("out.parquet").column("sf_class").to_pylist()
    assert facts["classes"] == {name: found.count(name) for name in ("outliers", "rows")}
    assert facts["rows"] == 40


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder that nobody can write")
def test_compiled_code_goes_where_something_can_be_written(tmp_path):
    nowhere = Path("/proc/self")
    assert ensure_cache(tmp_path, {}) is None
    environ = {"HOME": str(tmp_path)}
    assert ensure_cache(nowhere, environ) is None
    assert environ[VARIABLE] == str(tmp_path / ".cache" / "skyfill")
    environ = {"HOME": str(nowhere / "x")}
    assert "compiled anew" in ensure_cache(nowhere, environ)
    assert Path(environ[VARIABLE]).stat().st_mode & 0o77 == 0


def test_an_interrupt_of_a_search_ends_in_order(here):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        places = {"ra": rng.uniform(0, 360, 300_000), "dec": rng.uniform(-90, 90, 300_000)}
        write_table(Table.from_columns({**places, "x": np.arange(300_000)}), f"{name}.parquet")
    words = [*RUN, "match", "a.parquet", "b.parquet", "-o", "out.parquet"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        said = process.stderr.readline()  # then it searches
        process.send_signal(signal.SIGINT)
        said += process.communicate()[1]
    assert process.returncode in (0, 130), said
    assert process.returncode == 0 or said.strip().splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
