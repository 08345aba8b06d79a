import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, read_table, write_table
from skyfill.cli import main


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Write a config file beside the tables and run a command with it."""
    monkeypatch.chdir(tmp_path)

    def call(config, *words):
        Path("skyfill.toml").write_text(config)
        return CliRunner().invoke(main, [*words, "--config", "skyfill.toml"])

    return call


def test_a_section_sets_the_options_of_its_command(run):
    said = run("[data.simulate]\nobjects = 7\nseed = 3\n", "data", "simulate", "field")
    assert said.exit_code == 0, said.output
    assert said.stderr == "7 objects -> field\n"


def test_what_is_typed_wins_over_the_file(run):
    said = run("[data.simulate]\nobjects = 7\n", "data", "simulate", "field", "-n", "9")
    assert said.stderr == "9 objects -> field\n"


def test_keys_before_the_first_section_hold_for_commands_that_have_them(run):
    said = run("quiet = true\nseed = 1\n[train]\ncomponents = 8\n", "data", "simulate", "field")
    assert (said.exit_code, said.stderr) == (0, "")


def test_lists_tables_and_files_are_written_as_a_user_would_type_them(run):
    base = Table.from_columns({"ra": [10.0, 20.0], "dec": [0.0, 0.0]})
    for name in ("base", "nir", "wise"):
        write_table(base, f"{name}.parquet")
    config = """
        [match]
        base = "base.parquet"
        others = ["nir.parquet", "wise.parquet"]
        radius = {nir = 1, wise = 6.5}
        output = "joined.parquet"
        json = true
    """
    said = run(config, "match")
    assert said.exit_code == 0, said.output
    assert [report["radius_arcsec"] for report in json.loads(said.stdout)["surveys"]] == [1, 6.5]
    made = json.loads(read_table("joined.parquet").meta["provenance"])["command"]
    files = "base.parquet nir.parquet wise.parquet --output joined.parquet"
    assert made == f"skyfill match {files} --radius nir=1 --radius wise=6.5 --json"


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("[trian]\nseed = 1", ["skyfill.toml: [trian]", "no such command", "'train'"]),
        ("[train]\ncomponent = 8", ["skyfill.toml: [train] component", "'components'"]),
        ("sead = 1", ["skyfill.toml: sead", "'seed'"]),
        ("[data]\nobjects = 1", ["skyfill.toml: [data.objects]", "no such command"]),
        ("[data.simulate]\nobject = 1", ["[data.simulate] object", "'objects'"]),
        ("[data.simulate]\nobjects = 2.5", ["skyfill.toml: [data.simulate] objects", "2.5"]),
        ("[data.simulate]\nobjects = 0", ["skyfill.toml: [data.simulate] objects", "0"]),
        ("[data.simulate]\nseed = true", ["[data.simulate] seed", "True"]),
        ("[data.simulate]\ntraining = 'perhaps'", ["[data.simulate] training", "perhaps"]),
        ("seed = -1", ["skyfill.toml: seed", "-1"]),
        ("[data\n", ["skyfill.toml: not TOML", "line 1"]),
    ],
)
def test_what_no_command_knows_is_named_with_its_file_section_and_neighbor(run, config, words):
    said = run(config, "data", "simulate", "field")
    assert said.exit_code == 2, said.output
    assert not Path("field").exists()
    for word in words:
        assert word in said.stderr
    assert "Traceback" not in said.output


def test_a_config_file_that_is_not_there_is_named(tmp_path):
    missing = tmp_path / "none.toml"
    said = CliRunner().invoke(main, ["data", "list", "--config", str(missing)])
    assert said.exit_code == 2
    assert str(missing) in said.stderr


def test_the_file_of_the_docs_names_options_that_exist(run):
    page = (Path(__file__).parents[2] / "docs" / "how-to.md").read_text()
    example = page.split("```toml\n")[1].split("```")[0]
    said = run(example, "data", "simulate", "field", "-n", "3")
    assert said.exit_code == 0, said.output
