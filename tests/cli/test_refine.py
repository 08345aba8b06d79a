"""`skyfill train` and its --refine: forests in the model file, used wherever gaps are filled."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_allclose, assert_array_equal

from skyfill.catalog import Table, read_table, write_table
from skyfill.classify import CatalogClassifier
from skyfill.cli import main
from skyfill.evaluate.methods import IMPUTERS
from skyfill.model import load_model, save_model
from skyfill.network import Cells
from skyfill.network.mixture.random_keys import keys_of_cells, numbered
from skyfill.report.page import Report, export_report

NAMES = ("V", "I", "W")
QUICK = ["--components", "1", "--fits", "1", "--features", ",".join(NAMES)]


def run(*words):
    return CliRunner().invoke(main, [*map(str, words)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """W is the size of V - 18: a rule that one Gaussian cannot see. W and I often lack together."""
    folder, rng = tmp_path_factory.mktemp("refined"), np.random.default_rng(3)
    V, color, noise = rng.normal(18, 1, (3, 400))
    X = np.column_stack([V, color, np.abs(V - 18) + 0.05 * noise])
    X = np.where(rng.random(X.shape) < 0.12, np.nan, X)
    X[rng.random(400) < 0.15, 1:] = np.nan
    columns = dict(zip(NAMES, X.T, strict=True)) | {"kind": ["a", "b"] * 200}
    write_table(Table.from_columns(columns), folder / "stars.parquet")
    said = run("train", folder / "stars.parquet", *QUICK, "--json", "-o", folder / "m.skyfill")
    assert said.exit_code == 0, said.output
    (folder / "said.json").write_text(said.stdout)
    return folder


def test_train_says_what_is_refined_and_show_reads_it_from_the_file(folder):
    facts = json.loads((folder / "said.json").read_text())
    assert "W" in facts["refined"]
    lines = run("show", folder / "m.skyfill").stdout.splitlines()
    assert f"refined by forests: {', '.join(facts['refined'])}" in lines
    shown = json.loads(run("show", folder / "m.skyfill", "--json").stdout)
    assert list(dict.fromkeys(each["name"] for each in shown["refined"])) == facts["refined"]
    kinds = [each for each in shown["refined"] if each["name"] == "W"]
    assert [each.get("without", each.get("with")) for each in kinds] == [["I"], ["I"]]
    assert all(0 <= each["mean"] <= 1 for each in shown["refined"])


def test_impute_fills_as_the_refined_imputer_does(folder):
    out, table = folder / "filled.parquet", read_table(folder / "stars.parquet")
    said = run("impute", folder / "m.skyfill", folder / "stars.parquet", "-o", out,
               "--quantiles", "0.16,0.84", "--draws", "2")  # fmt: skip
    assert said.exit_code == 0, said.output
    X, filled, model = table.numbers(*NAMES), read_table(out), load_model(folder / "m.skyfill")
    found = model.filler.posterior(X)
    assert_allclose(filled.numbers(*NAMES), found.mean, rtol=1e-12)
    assert (found.mean != model.network.posterior(X).mean).any()
    lost = np.isnan(X[:, 2])
    assert_allclose(filled.numbers("W_sd")[lost, 0], found.sd[lost, 2], rtol=1e-12)
    low, high = model.filler.quantiles(X, [0.16, 0.84])[:, lost, 2]
    assert_allclose(filled.numbers("W_q16", "W_q84")[lost].T, [low, high], rtol=1e-12)
    draws = model.filler.draws(Cells(X, keys=numbered(keys_of_cells(Cells(X), 0), 0)), 2)
    assert_allclose(filled.numbers("W_draw1")[lost, 0], draws[0, lost, 2], rtol=1e-12)


def test_parts_of_a_table_are_filled_as_the_table(folder):
    model = load_model(folder / "m.skyfill")
    X = read_table(folder / "stars.parquet").numbers(*NAMES)
    parts = [model.filler.posterior(X[a : a + 97]).mean for a in range(0, len(X), 97)]
    assert_allclose(np.vstack(parts), model.filler.posterior(X).mean, rtol=1e-9)


def test_a_copy_on_a_worker_fills_alike(folder):
    model = load_model(folder / "m.skyfill")
    X = read_table(folder / "stars.parquet").numbers(*NAMES)[:20]
    found = model.filler.quantiles(X, [0.1, 0.9])
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301 - what Dask sends
    assert_array_equal(copy.filler.quantiles(X, [0.1, 0.9]), found)


def test_the_file_keeps_the_forests(folder, tmp_path):
    model = load_model(folder / "m.skyfill")
    save_model(model, tmp_path / "again.skyfill")
    again = load_model(tmp_path / "again.skyfill")
    assert again.identifier == model.identifier
    for name, array in model.refinement.arrays().items():
        assert_array_equal(again.refinement.arrays()[name], array)


def test_out_of_core_the_forests_are_learned_from_the_sample(folder, tmp_path):
    out = tmp_path / "large.skyfill"
    said = run("train", folder / "stars.parquet", *QUICK, "--out-of-core", "-o", out)
    assert said.exit_code == 0, said.output
    assert "forests for" in said.stderr
    # All rows are the sample here.
    assert load_model(out).identifier == load_model(folder / "m.skyfill").identifier


def test_a_classifier_has_forests_for_gaps(folder, tmp_path):
    out = tmp_path / "classes.skyfill"
    said = run("train", folder / "stars.parquet", *QUICK, "--label", "kind", "--method",
               "forest", "--trees", "5", "-o", out)  # fmt: skip
    assert said.exit_code == 0, said.output
    model = load_model(out)
    assert model.refinement is not None
    assert model.scorer is not None


def test_the_page_says_that_it_computes_without_forests(folder):
    model = load_model(folder / "m.skyfill")
    assert "skyfill impute also uses its forests" in export_report(Report(model))["summary"]
    plain = replace(model, refinement=None)
    assert "forests" not in export_report(Report(plain))["summary"]


def test_evaluate_knows_skyfill_with_and_without_forests():
    found = {name: make().refine for name, make in IMPUTERS.items() if name.startswith("skyfill")}
    both = dict.fromkeys(("skyfill", "skyfill-refined", "skyfill-thorough"), "auto")
    assert found == both | {"skyfill-unrefined": None, "skyfill-quick": None}


def test_one_network_has_no_forests(folder, tmp_path):
    said = run("train", folder / "stars.parquet", "--features", "V,I", "--network", "bic",
               "--refine", "auto", "-o", tmp_path / "no.skyfill")  # fmt: skip
    assert said.exit_code == 2
    assert "--refine" in said.stderr
    assert not (tmp_path / "no.skyfill").exists()


def test_off_leaves_the_mixtures_alone(folder, tmp_path):
    out, before = tmp_path / "off.skyfill", load_model(folder / "m.skyfill")
    said = run("train", folder / "stars.parquet", *QUICK, "--refine", "off", "-o", out)
    assert said.exit_code == 0, said.output
    model = load_model(out)
    assert model.refinement is None
    assert_array_equal(model.network.fits[0].means, before.network.fits[0].means)


def test_classes_are_learned_without_forests_unless_the_imputer_has_them(folder):
    table = read_table(folder / "stars.parquet")
    X, y = table.numbers(*NAMES)[:250], table.column("kind").to_pylist()[:250]
    fitted = CatalogClassifier("forest", n_trees=2, calibrate=False, random_state=0).fit(X, y)
    assert fitted.imputer_.refinement_ is None
