"""Limits and errors on the command line: train, show and impute."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import read_table, write_table
from skyfill.cli import main
from skyfill.model import load_model
from tests.model.test_cells import survey

QUICK = ("--features", "V,K", "--components", "1", "--fits", "1", "--refine", "off")


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("limits")
    write_table(survey(noise=0.2)[0], folder / "stars.parquet")
    done = run("train", folder / "stars.parquet", *QUICK, "--json", "-o", folder / "m.skyfill")
    assert done.exit_code == 0, done.output
    (folder / "said.json").write_text(done.stdout)
    (folder / "said.txt").write_text(done.stderr)
    return folder


def test_train_counts_the_cells_by_what_is_known_of_them(folder):
    reasons = read_table(folder / "stars.parquet").reasons("K").to_pylist()
    cells = json.loads((folder / "said.json").read_text())["cells"]
    limited = reasons.count("undetected") + reasons.count("unmatched")
    seen = reasons.count(None)
    assert cells.pop("limits")["K"].startswith(f"{limited} cells, > ")
    assert cells == {
        "errors": "on",
        "seen": 600 + seen,
        "with_errors": seen,
        "limited": limited,
        "unknown": reasons.count("uncovered"),
        "limited_by_feature": {"V": 0, "K": limited},
    }
    line = f"cells: {600 + seen} seen ({seen} with errors), {limited} beyond limits"
    assert line in (folder / "said.txt").read_text()


def test_show_says_which_side_limits_are_on_and_how_deep_a_survey_reaches(folder):
    shown = run("show", folder / "m.skyfill").stdout
    depth = load_model(folder / "m.skyfill").detections[1].depth
    assert "beyond limits" in shown
    assert f"> {depth:.6g} where none is stated" in shown
    assert "soft over" not in shown
    facts = json.loads(run("show", folder / "m.skyfill", "--json").stdout)
    assert facts["features"][1]["detection"]["side"] == "lower"
    assert facts["cells"]["errors"] == "on"


def test_limits_and_errors_can_be_left_out(folder, tmp_path):
    words = ("train", folder / "stars.parquet", *QUICK, "--limits", "off", "--errors", "off")
    done = run(*words, "-o", tmp_path / "m.skyfill")
    assert "no limits, errors not used" in done.stderr
    assert load_model(tmp_path / "m.skyfill").detections == ()
    assert "beyond limits" not in run("show", tmp_path / "m.skyfill").stdout
    done = run("impute", tmp_path / "m.skyfill", folder / "stars.parquet", "--denoise", "-o",
               tmp_path / "out.parquet")  # fmt: skip
    assert done.exit_code == 2
    assert "nothing can be denoised" in done.stderr
    assert not (tmp_path / "out.parquet").exists()


def test_impute_writes_what_values_are_without_their_errors(folder, tmp_path):
    done = run("impute", folder / "m.skyfill", folder / "stars.parquet", "--denoise", "-o",
               tmp_path / "out.parquet")  # fmt: skip
    assert done.exit_code == 0, done.output
    table = read_table(tmp_path / "out.parquet")
    seen = ~np.isnan(read_table(folder / "stars.parquet").numbers("K")[:, 0])
    np.testing.assert_array_equal(~np.isnan(table.numbers("K_denoised")[:, 0]), seen)
    np.testing.assert_array_equal(~np.isnan(table.numbers("K_denoised_sd")[:, 0]), seen)
    assert table.info("K_denoised").unit == "mag"
