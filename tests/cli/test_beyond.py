"""Gaps of objects unlike all that were measured: every command that meets them says so."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, write_table
from skyfill.cli import main
from skyfill.model import load_model
from skyfill.report import Report, build_page

QUICK = ("--components", "1", "--fits", "1", "--refine", "off")


def run(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


def stars(n=600, low=14.0, high=20.0, seed=0):
    rng = np.random.default_rng(seed)
    V, noise = rng.uniform(low, high, n), rng.normal(0, 0.1, (2, n))
    return {"V": V, "R": V - 0.5 + noise[0], "J": V - 2 + noise[1]}


def with_random_gaps(columns, share=0.2, seed=1):
    lost = np.random.default_rng(seed).random(len(columns["J"])) < share
    return {**columns, "J": np.where(lost, np.nan, columns["J"])}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A survey that misses all stars fainter than J = 15, and a model of it."""
    folder, columns = tmp_path_factory.mktemp("beyond"), stars()
    faint = {**columns, "J": np.where(columns["J"] > 15, np.nan, columns["J"])}
    write_table(Table.from_columns(faint), folder / "faint.parquet")
    write_table(Table.from_columns(with_random_gaps(columns)), folder / "plain.parquet")
    for name in ("faint", "plain"):
        words = ("train", folder / f"{name}.parquet", "--features", "V,R,J", *QUICK, "--json")
        done = run(*words, "-o", folder / f"{name}.skyfill")
        (folder / f"{name}.json").write_text(done.stdout)
        (folder / f"{name}.txt").write_text(done.stderr)
    return folder


def test_train_and_show_name_the_columns_and_the_share_of_their_gaps(folder):
    network = load_model(folder / "faint.skyfill").network
    share = network.columns_beyond["J"]
    assert list(network.columns_beyond) == ["J"]
    assert 0.7 < share < 1
    line = f"beyond what was measured: J ({100 * share:.0f} % of its gaps)"
    shown = run("show", folder / "faint.skyfill").stdout
    for text in ((folder / "faint.txt").read_text(), shown):
        assert line in text
        assert "intervals are widened" in text
        assert ("components share their regressions" in text) == network.support.is_shared
    facts = [json.loads((folder / "faint.json").read_text())]
    facts.append(json.loads(run("show", folder / "faint.skyfill", "--json").stdout))
    for each in facts:
        assert each["beyond"]["shares"] == {"J": pytest.approx(share, abs=1e-4)}


def test_gaps_at_random_are_not_called_beyond(folder):
    assert load_model(folder / "plain.skyfill").network.columns_beyond == {}
    assert "beyond what was" not in (folder / "plain.txt").read_text()
    assert "beyond what was" not in run("show", folder / "plain.skyfill").stdout


def test_impute_says_how_many_gaps_lie_beyond(folder, tmp_path):
    words = ("impute", folder / "faint.skyfill", folder / "faint.parquet", "--json")
    (warning,) = json.loads(run(*words, "-o", tmp_path / "o.parquet").stdout)["input"]["warned"]
    lost = int((stars()["J"] > 15).sum())
    n_beyond = int(warning.partition("J (")[2].partition(f" of {lost})")[0])
    share = load_model(folder / "faint.skyfill").network.columns_beyond["J"]
    assert n_beyond == pytest.approx(share * lost)
    assert "in 600 rows" in warning


@pytest.mark.parametrize(("low", "high", "is_told"), [(14, 20, False), (22, 24, True)])
def test_a_fainter_field_is_told_apart_from_one_like_the_training_set(
    folder, tmp_path, low, high, is_told
):
    field = with_random_gaps(stars(200, low, high, seed=2))
    write_table(Table.from_columns(field), tmp_path / "f.parquet")
    done = run("impute", folder / "plain.skyfill", tmp_path / "f.parquet", "-o", tmp_path / "o.csv")
    assert ("gaps beyond what was measured in training" in done.stderr) == is_told


def test_the_page_names_them(folder):
    known, plain = (
        build_page(Report(load_model(folder / f"{name}.skyfill"))) for name in ("faint", "plain")
    )
    assert "Gaps in J are often those of objects unlike all that were measured" in known
    assert "unlike all that were measured" not in plain
