"""What commands say of wide tables: one short line for all columns, and the whole in JSON."""

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, write_table
from skyfill.cli import main
from skyfill.cli.terminal import LONGEST
from skyfill.model import load_model

QUICK = ("--components", "1", "--fits", "1", "--refine", "off")
N = 80


def run(*words, code=0):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


def short(done):
    """The lines, checked for length; only names of files may make one longer."""
    lines = done.stderr.splitlines()
    for line in lines:
        assert len(" ".join(word for word in line.split() if "/" not in word)) <= LONGEST, line
    return lines


def wide(n=120, n_columns=N, seed=0):
    """Columns with long names, errors and limits beside them, and sentinels."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    found = {}
    for j in range(n_columns):
        name = f"brightness_in_an_infrared_filter_band_{j}"
        x = 18 + common + rng.normal(0, 0.2, n)
        x[j % 7 :: 20] = -999.0
        found[name] = x
        found[f"e_{name}"] = rng.uniform(0.01, 0.05, n)
        if j % 2:
            found[f"l_{name}"] = np.where(rng.random(n) < 0.1, 20.0, np.nan)
    found |= {"empty_column_of_the_survey": np.full(n, np.nan), "ra": 80 + np.arange(n) / 99}
    return found | {"dec": np.full(n, -69.0), "kind": np.where(common > 0, "red", "blue")}


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wide")
    write_table(Table.from_columns(wide()), folder / "t.csv")
    new = {name: x for name, x in wide(seed=1).items() if not name.endswith(("3", "4"))}
    new = {name: x + 30 if name.endswith("5") else x for name, x in new.items()}
    write_table(Table.from_columns(new), folder / "new.csv")
    words = (
        "--features",
        ",".join(f"brightness_in_an_infrared_filter_band_{j}" for j in range(N)),
    )
    run("train", folder / "t.csv", *words, *QUICK, "-o", folder / "m.skyfill")
    return folder


def test_inspect_says_each_kind_once(shelf):
    lines = short(run("inspect", shelf / "t.csv", "--label", "kind"))
    kinds = [line.split(":")[1] for line in lines if line.startswith(("guessed", "warning"))]
    assert len(set(kinds)) == len(kinds)
    (errors,) = (line for line in lines if "errors of" in line)
    assert errors.startswith(f"guessed: errors of {N} columns are known and not used: e_bright")
    assert errors.endswith("more; train --errors on uses them")


def test_what_is_cut_in_a_line_is_whole_in_json(shelf):
    for name in ("t.csv", "new.csv"):
        done = run("impute", shelf / "m.skyfill", shelf / name, "-o", shelf / "f.csv", "--json")
        short(done)
        said = json.loads(done.stdout)["input"]
        assert " more" in done.stderr
        assert not any(" more" in text for texts in said.values() for text in texts)
    lost = " ".join(said["warned"])
    assert all(f"_filter_band_{j}" in lost for j in range(N) if j % 10 in (3, 4))


def test_no_line_of_a_process_is_long(shelf):
    some = ",".join([name for name in wide() if name.startswith("bright")][:12])
    forest = ("--features", some, "--method", "forest", "--trees", "3", "--no-calibration")
    for words in (
        ("train", "t.csv", "--label", "kind", *QUICK, *forest, "-o", "c.skyfill"),
        ("classify", "c.skyfill", "new.csv", "-o", "classes.csv"),
        ("impute", "m.skyfill", "new.csv", "-o", "filled.csv"),
        ("match", "t.csv", "new.csv", "--radius", "1", "-o", "joined.csv"),
        ("inspect", "joined.csv", "--label", "kind"),
        ("train", "t.csv", "--features", ",".join(["ra", *wide()]), "-o", "x.skyfill"),
    ):
        line = [sys.executable, "-c", "from skyfill.cli import main; main()", *words]
        done = subprocess.run(line, cwd=shelf, capture_output=True, text=True, check=False)
        assert done.returncode == (2 if "x.skyfill" in words else 0), done.stderr
        assert done.stderr
        short(done)


@pytest.mark.parametrize("command", ["train", "evaluate"])
def test_errors_are_short_as_well(shelf, command):
    absent = ",".join(f"{name}x" for name in wide())
    option = "--features" if command == "train" else "--columns"
    words = (command, shelf / "t.csv", option, absent, "-o", shelf / "x.skyfill")
    (line,) = short(run(*words[: 6 if command == "train" else 4], code=2))[-1:]
    assert "no column 'brightness_in_an_infrared_filter_band_0x'; did you mean " in line


def test_errors_that_are_known_are_used_where_the_user_wants_them(tmp_path):
    rng = np.random.default_rng(0)
    true = rng.normal(18, 1, (300, 2)) @ [[1, 0.9], [0, 0.2]]
    error = rng.uniform(0.2, 0.8, 300)
    columns = {"V": true[:, 0], "I": true[:, 1] + error * rng.normal(size=300), "e_I": error}
    write_table(Table.from_columns(columns), tmp_path / "t.csv")
    found = {}
    for name, words in {
        "auto": (),
        "on": ("--errors", "on"),
        "declared": ("--errors", "on", "--role", "e_I=error:I"),
    }.items():
        path = tmp_path / f"{name}.skyfill"
        done = run("train", tmp_path / "t.csv", *QUICK, *words, "-o", path)
        found[name] = load_model(path)
        used = "errors of 1 column are used: e_I of I" in done.stderr
        assert used == (name == "on")
    on, declared = (found[name].network.fits[0] for name in ("on", "declared"))
    assert np.array_equal(on.covs, declared.covs)
    # Whatever is not error is less than what errors and values make together.
    spread = {name: _spread_of_i(model) for name, model in found.items()}
    assert spread["on"] < spread["auto"]
    # The model applies them to other tables.
    again = run("impute", tmp_path / "on.skyfill", tmp_path / "t.csv", "-o", tmp_path / "f.csv")
    assert "declared: e_I: role error, of I (in training)" in again.stderr


def _spread_of_i(model):
    from skyfill.network.cells import Cells

    return float(model.network.posterior(Cells(np.array([[18.0, np.nan]]))).sd[0, 1])
