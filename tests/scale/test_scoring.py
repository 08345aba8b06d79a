import json

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, read_table, write_table
from skyfill.cli import main
from skyfill.model import Filling, fill_table, save_model
from skyfill.scale import apply_model
from tests.stars import explained_table


@pytest.mark.parametrize("extension", ["parquet", "fits", "vot", "csv"])
def test_files_are_filled_in_batches_as_in_one_piece(star_model, extension, tmp_path, monkeypatch):
    table = explained_table(150, seed=3)
    write_table(table, tmp_path / f"in.{extension}")
    whole = fill_table(star_model, read_table(tmp_path / f"in.{extension}"))
    monkeypatch.setattr("skyfill.scale.inputs.BATCH_ROWS", 40)
    files = (tmp_path / f"in.{extension}", tmp_path / f"out.{extension}")
    done = apply_model(Filling(), star_model, *files)
    found = read_table(tmp_path / f"out.{extension}")
    assert (done.rows, done.counts["filled"]) == (150, int(np.isnan(table.numbers("I")).sum()))
    assert np.array_equal(found.numbers("I", "I_sd"), whole.numbers("I", "I_sd"), equal_nan=True)
    assert found.reasons("I").to_pylist() == whole.reasons("I").to_pylist()


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def test_train_show_and_impute_from_the_command_line(tmp_path):
    write_table(explained_table(), tmp_path / "in.csv")
    said = run("train", tmp_path / "in.csv", "--fits", 2, "-o", tmp_path / "m.skyfill", "--json")
    assert said.exit_code == 0, said.output
    assert "features (2): V, I" in said.stderr
    identifier = json.loads(said.stdout)["model"]
    shown = json.loads(run("show", tmp_path / "m.skyfill", "--json").stdout)
    assert shown["identifier"] == identifier
    assert [feature["name"] for feature in shown["features"]] == ["V", "I"]
    assert "V" in run("show", tmp_path / "m.skyfill").stdout
    said = run(
        "impute", tmp_path / "m.skyfill", tmp_path / "in.csv", "-o", tmp_path / "o.fits", "--json"
    )
    assert said.exit_code == 0, said.output
    out = read_table(tmp_path / "o.fits")
    assert json.loads(said.stdout)["filled"] == sum(
        r == "filled" for r in out.reasons("I").to_pylist()
    )
    made = json.loads(out.meta["provenance"])
    assert made["model"] == identifier
    assert len(made["inputs"]) == 2


def test_mistakes_are_said_in_one_line_and_nothing_is_written(star_model, tmp_path):
    write_table(explained_table(30), tmp_path / "in.csv")
    save_model(star_model, tmp_path / "m.skyfill")
    write_table(Table.from_columns({"other": [1.0]}), tmp_path / "other.csv")
    out = tmp_path / "out.parquet"
    cases = [
        (["impute", tmp_path / "in.csv", tmp_path / "in.csv", "-o", out], "not a skyfill model"),
        (
            ["impute", tmp_path / "m.skyfill", tmp_path / "other.csv", "-o", out],
            "none of the model's",
        ),
        (["impute", tmp_path / "m.skyfill", tmp_path / "none.csv", "-o", out], "no such file"),
        (
            [
                "impute",
                tmp_path / "m.skyfill",
                tmp_path / "in.csv",
                "-o",
                out,
                "--quantiles",
                "1.5",
            ],
            "levels between 0 and 1",
        ),
        (["train", tmp_path / "in.csv", "--features", "V,X", "-o", out], "no column 'X'"),
        (["train", tmp_path / "in.csv", "--components", "many", "-o", out], "neither a number"),
        (["show", tmp_path / "in.csv"], "not a skyfill model"),
    ]
    for words, message in cases:
        said = run(*words)
        assert said.exit_code == 2, said.output
        assert message in " ".join(said.output.split())
        assert "Traceback" not in said.output
        assert not out.exists()
