"""`skyfill train --method paper`: the paper's own model through every command."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, read_table, write_table
from skyfill.cli import main
from skyfill.evaluate import classifiers, imputers
from skyfill.model import load_model
from skyfill.network import learn_network
from tests.cli.test_classify import stars

NAMES = ("V", "I", "K")


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("paper")
    write_table(stars(), folder / "train.parquet")
    said = run(
        "train", folder / "train.parquet", "--label", "class", "--method", "paper", "--trees", 20,
        "-o", folder / "paper.skyfill",
    )  # fmt: skip
    assert said.exit_code == 0, said.output
    assert "one network of" in said.stderr
    return folder


def test_the_model_is_one_gaussian_network_and_a_plain_forest(folder):
    model = load_model(folder / "paper.skyfill")
    assert model.network.n_components == (1,)
    assert model.network.arcs()
    assert [type(margin).__name__ for margin in model.network.margins] == ["Identity"] * 3
    assert model.network.calibration is None
    assert model.scorer.calibration.kind == "none"
    assert [member.view for member in model.scorer.members] == ["filled"]


def test_show_lists_its_arcs(folder):
    said = run("show", folder / "paper.skyfill")
    assert "network: one Gaussian network" in said.stdout
    facts = json.loads(run("show", folder / "paper.skyfill", "--json").stdout)
    found = {(arc["parent"], arc["child"]) for arc in facts["arcs"]}
    assert found == set(load_model(folder / "paper.skyfill").network.arcs())
    assert facts["arcs_learned"]
    seen = stars().numbers("V")[:, 0]
    first = facts["features"][0]
    assert (first["name"], first["range"]) == ("V", None)
    assert first["mean"] == pytest.approx(np.nanmean(seen))
    assert first["sd"] == pytest.approx(np.nanstd(seen))


def test_impute_classify_and_report_take_it(folder):
    table = stars(200, seed=1)
    write_table(table.drop(["class"]), folder / "new.parquet")
    model = folder / "paper.skyfill"
    for words in (
        ("impute", model, folder / "new.parquet", "--draws", 1, "-o", folder / "filled.parquet"),
        ("classify", model, folder / "new.parquet", "-o", folder / "classes.parquet"),
        ("report", model, folder / "classes.parquet", "-o", folder / "page.html"),
    ):
        said = run(*words)
        assert said.exit_code == 0, said.output
    filled = read_table(folder / "filled.parquet").numbers(*NAMES)
    seen = ~np.isnan(table.numbers(*NAMES))
    assert np.isfinite(filled).all()
    assert np.array_equal(filled[seen], table.numbers(*NAMES)[seen])
    truth = np.array(table.column("class").to_pylist(), dtype=object)
    known = np.array([word is not None for word in truth])
    found = np.array(read_table(folder / "classes.parquet").column("sf_class").to_pylist())
    assert (found == truth)[known].mean() > 0.9
    page = (folder / "page.html").read_text()
    assert '"learned":true,"one":true,"stability":false,"linear":true' in page


@pytest.mark.parametrize("where", [(), ("--out-of-core",)])
def test_without_labels_it_only_fills(folder, where, tmp_path):
    out = tmp_path / "bic.skyfill"
    said = run("train", folder / "train.parquet", "--network", "bic", *where, "-o", out)
    assert said.exit_code == 0, said.output
    model = load_model(out)
    assert model.scorer is None
    assert model.network.fits[0].parents is not None


def test_the_strength_of_arcs_travels_with_the_model(folder, tmp_path):
    out = tmp_path / "strong.skyfill"
    run("train", folder / "train.parquet", "--network", "bic", "--bootstrap", 5, "-o", out)
    plain = tmp_path / "plain.skyfill"
    run("train", folder / "train.parquet", "--network", "bic", "-o", plain)
    strength = load_model(out).network.strength
    assert strength.max() == 1.0
    assert load_model(plain).identifier == load_model(out).identifier
    assert "fraction of bootstrap samples" in run("show", out).stdout
    said = run("train", folder / "train.parquet", "--bootstrap", 5, "-o", tmp_path / "x")
    assert said.exit_code == 2
    assert "--bootstrap: is for one network" in said.output


def test_the_figures_of_the_paper_are_files(folder, tmp_path):
    words = ("report", folder / "paper.skyfill", "-o", tmp_path / "page.html")
    said = run(*words, "--figures", tmp_path / "figures", "--pair", "V=18.5,K")
    assert said.exit_code == 0, said.output
    found = {path.name: path.read_bytes()[:4] for path in (tmp_path / "figures").iterdir()}
    assert found == {"network.png": b"\x89PNG", "pair.png": b"\x89PNG"}
    for wrong in ("V", "V=faint,K"):
        said = run(*words, "--figures", tmp_path / "figures", "--pair", wrong)
        assert said.exit_code == 2
        assert "name two features, as in V,J or V=18.5,J" in said.output


def test_options_of_mixtures_are_refused(folder, tmp_path):
    said = run(
        "train", folder / "train.parquet", "--network", "k2", "--fits", 3, "-o", tmp_path / "x"
    )
    assert said.exit_code == 2
    assert "--fits: is for mixtures" in said.output
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("word", "orders"), [("printed", "own"), ("k2", "shared")])
def test_algorithm_1_as_printed_is_a_word_of_network(folder, tmp_path, word, orders):
    """A chain of six features: along orders of their own, arc reversals give more arcs."""
    rng = np.random.default_rng(3)
    X = np.cumsum(rng.normal(size=(300, 6)), axis=1)
    X[rng.random(X.shape) < 0.2] = np.nan
    names = [f"x{j}" for j in range(6)]
    write_table(Table.from_columns(dict(zip(names, X.T, strict=True))), tmp_path / "chain.parquet")
    out = tmp_path / "chain.skyfill"
    words = ("--features", ",".join(names), "--network", word, "-o", out)
    said = run("train", tmp_path / "chain.parquet", *words)
    assert said.exit_code == 0, said.output
    expected = learn_network(X, names, orders=orders, rng=0).network
    assert set(load_model(out).network.arcs()) == set(expected.arcs)
    assert (len(expected.arcs) > 8) == (word == "printed")


def test_the_papers_pipeline_takes_algorithm_1_as_printed(folder, tmp_path):
    words = ("--label", "class", "--method", "paper", "--network", "printed", "--trees", 5)
    said = run("train", folder / "train.parquet", *words, "-o", tmp_path / "own.skyfill")
    assert said.exit_code == 0, said.output
    assert "one network of" in said.stderr
    imputer = classifiers(["paper-printed"])["paper-printed"]().imputer
    assert imputer.orders == imputers(["paper-printed"])["paper-printed"]().orders == "own"
