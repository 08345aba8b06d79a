"""`skyfill data`: what it prints, what it writes, how it fails."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skyfill.catalog import read_table
from skyfill.cli.main import main
from skyfill.datasets import DATASETS


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["data", *map(str, words)])


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a data folder nor a cache."""
    monkeypatch.delenv("SKYFILL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_list_names_every_table(offline):
    result = run("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(DATASETS)
    states = {line.split()[0]: line.split()[1] for line in lines}
    assert states["macho"] == "download"
    assert states["debosscher"] == "absent"
    assert states["simulated"] == "here"


def test_list_is_json_for_programs(offline):
    rows = json.loads(run("list", "--json").stdout)["datasets"]
    assert [row["name"] for row in rows] == list(DATASETS)
    by_name = {row["name"]: row for row in rows}
    assert by_name["eros"]["files"] == ["eros1/train.csv", "eros1/test.csv"]


@pytest.mark.parametrize("suffix", [".parquet", ".fits", ".ecsv", ".vot"])
def test_fetch_writes_any_format_with_provenance(offline, tmp_path, suffix):
    target = tmp_path / f"training{suffix}"
    result = run("fetch", "simulated", "-o", target)
    assert result.exit_code == 0, result.output
    assert result.stdout == ""
    assert "1833 rows" in result.stderr
    table = read_table(target)
    assert len(table) == 1833
    assert "skyfill data fetch simulated" in table.meta["provenance"]


def test_fetch_says_where_the_files_are(tmp_path, monkeypatch):
    monkeypatch.setenv("SKYFILL_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    marks = tmp_path / "networks" / "marks.csv"
    marks.parent.mkdir()
    marks.write_text("MECH\n1\n")
    result = run("fetch", "marks")
    assert result.exit_code == 2
    assert str(marks) in result.stderr
    assert "checksum" in result.stderr


def test_fetch_of_a_simulated_table_needs_a_target(offline):
    result = run("fetch", "simulated")
    assert result.exit_code == 0
    assert "-o" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fetch", "marx"), "no data set 'marx'"),
        (("fetch", "marks"), "SKYFILL_DATA"),
        (("fetch", "simulated", "-o", "table.doc"), "table.doc"),
    ],
)
def test_mistakes_end_with_code_2_and_one_line(offline, words, message):
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.output


def test_simulate_writes_the_catalogs_of_a_field(tmp_path):
    result = run("simulate", tmp_path / "field", "-n", "200", "--seed", "3", "--light-curves")
    assert result.exit_code == 0, result.output
    paths = [Path(line) for line in result.stdout.splitlines()]
    assert {path.name for path in paths} >= {"macho.ecsv", "sage.fits", "two_mass.vot", "ubvi.ecsv"}
    assert all(path.is_file() for path in paths)
    assert len(read_table(tmp_path / "field" / "macho.ecsv")) == 200
    assert "200 objects" in result.stderr


def test_simulate_the_training_set(tmp_path):
    assert run("simulate", tmp_path, "--training").exit_code == 0
    assert len(read_table(tmp_path / "truth.parquet")) == 1833
