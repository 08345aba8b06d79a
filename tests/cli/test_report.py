"""`skyfill report`: the page, its options, the likely mistakes."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Role, Table, write_table
from skyfill.cli.main import LazyGroup
from skyfill.cli.main import main as skyfill
from skyfill.cli.report import command
from skyfill.model import save_model, train


@pytest.fixture
def run(monkeypatch):
    # The group as it is run: errors become one line and exit code 2.
    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)
    return lambda *words: CliRunner().invoke(skyfill, ["report", *map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    rng = np.random.default_rng(0)
    V = rng.normal(18, 1, 80)
    columns = {"id": [f"star {i}" for i in range(80)], "V": V, "I": V - 1 + rng.normal(0, 0.1, 80)}
    columns["I"][:20] = np.nan
    info = {name: ColumnInfo(role=Role.FEATURE) for name in ("V", "I")}
    table = Table.from_columns(columns, info=info)
    write_table(table, folder / "stars.csv")
    save_model(train(table, ["V", "I"], n_components=1, n_fits=1)[0], folder / "lmc.skyfill")
    return folder


def payload(path):
    found = re.search(
        r'<script type="application/json" id="payload">(.*?)</script>', path.read_text()
    )
    return json.loads(found[1])


def test_a_page_about_a_model_and_a_catalog(run, folder, tmp_path):
    page = tmp_path / "report.html"
    done = run(folder / "lmc.skyfill", folder / "stars.csv", "-o", page)
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith(f"80 objects -> {page}")
    found = payload(page)
    assert found["objects"]["shown"] == 80
    assert found["gaps"]["counts"][1][-1] == 20
    assert "<h1>lmc</h1>" in page.read_text()


def test_the_page_says_how_it_was_made(run, folder, tmp_path):
    page = tmp_path / "report.html"
    run(folder / "lmc.skyfill", "-o", page, "--title", "My field")
    made = dict(payload(page)["provenance"][-1]["facts"])
    assert " report " in made["command"]
    assert "--title 'My field'" in made["command"]
    assert made["input"].startswith("lmc.skyfill (SHA-256")


def test_options_decide_groups_and_number_of_objects(run, folder, tmp_path):
    page = tmp_path / "report.html"
    options = ("--survey", "base=V", "--max-objects", 10, "--json", "-o", page)
    done = run(folder / "lmc.skyfill", folder / "stars.csv", *options)
    facts = json.loads(done.stdout)
    assert (facts["objects"], facts["shown"]) == (80, 10)
    assert facts["bytes"] == page.stat().st_size
    assert [group["name"] for group in payload(page)["groups"]] == ["base", "other"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("none.skyfill",), "none.skyfill"),
        (("stars.csv",), "not a skyfill model"),
        (("stars.csv", "lmc.skyfill"), "not a skyfill model"),
        (("lmc.skyfill", "none.csv"), "none.csv"),
        (("lmc.skyfill", "other.csv"), "none of the model's features (V, I)"),
        (("lmc.skyfill", "--evaluation", "stars.csv"), "stars.csv: not JSON"),
        (("lmc.skyfill", "--evaluation", "none.json"), "none.json"),
        (("lmc.skyfill", "--survey", "2MASS"), "write NAME or NAME=COLUMN"),
        (("lmc.skyfill", "--survey", "2MASS=J"), "no feature 'J'"),
        (("lmc.skyfill", "--max-objects", "0"), "0"),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(
    run, folder, tmp_path, monkeypatch, words, message
):
    write_table(Table.from_columns({"x": [1.0]}), folder / "other.csv")
    monkeypatch.chdir(folder)
    done = run(*words, "-o", tmp_path / "report.html")
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert "Traceback" not in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_named(run, folder, tmp_path):
    done = run(folder / "lmc.skyfill", "-o", tmp_path / "nowhere" / "report.html")
    assert done.exit_code == 2
    assert "there is no directory" in done.stderr


def test_the_help_shows_an_example(run):
    assert "Example: skyfill report lmc.skyfill classified.parquet" in " ".join(
        run("--help").output.split()
    )
