"""`train` says how good a model is, as `evaluate` and fresh rows do; so do its file and page."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, read_table, write_table
from skyfill.classify import CatalogClassifier
from skyfill.classify.class_quality import class_quality
from skyfill.cli import main
from skyfill.cli.quality_lines import class_lines, quality_lines
from skyfill.errors import ModelError
from skyfill.evaluate import cross_validate
from skyfill.impute import NetworkImputer
from skyfill.model import load_model, save_model
from skyfill.model.results import CLASS, TRAINED_ON, class_columns, results_prefix
from skyfill.report.page import Report, export_report

QUICK = ["--components", "2", "--fits", "1", "--method", "forest", "--trees", "60"]
SCORES = ("accuracy", "macro_f", "log_loss", "brier")


def run(*words):
    return CliRunner().invoke(main, [*map(str, words)])


def ran(*words):
    done = run(*words)
    assert done.exit_code == 0, done.output
    return done


def stars(n, seed, kinds=("LPV", "QSO", "RRL")):
    rng = np.random.default_rng(seed)
    k = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    X = rng.normal(size=(n, 4)) + 1.6 * np.eye(3, 4)[k]
    X[:, 3] += X[:, 0]
    X = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    words = np.array(kinds)[k].tolist()
    columns = dict(zip(("V", "I", "J", "K"), X.T, strict=True)) | {"kind": words}
    return Table.from_columns(columns | {"id": np.arange(seed * n, seed * n + n)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("quality")
    write_table(stars(900, 1), folder / "stars.parquet")
    write_table(stars(4000, 2), folder / "new.parquet")
    done = ran("train", folder / "stars.parquet", "--features", "V,I,J,K", "--label", "kind",
               *QUICK, "--json", "-o", folder / "m.skyfill")  # fmt: skip
    (folder / "said.json").write_text(done.stdout)
    (folder / "said.txt").write_text(done.stderr)
    ran("classify", folder / "m.skyfill", folder / "new.parquet", "-o", folder / "new.csv")
    return folder


def agree(one, two):
    """Compare scores of two sets of objects, within three standard errors of their difference."""
    (one,), (two,) = one["methods"], two["methods"]
    for score in SCORES:
        a, b = one[score], two[score]
        assert abs(a["value"] - b["value"]) < 3 * np.hypot(a["error"], b["error"]), score
    for a, b in zip(one["by_class"], two["by_class"], strict=True):
        share = b["recall"]
        spread = np.sqrt(share * (1 - share) * (1 / a["support"] + 1 / b["support"]))
        assert abs(a["recall"] - share) < 3 * spread, a["class"]


def test_stated_quality_agrees_with_fresh_rows(folder):
    stated = json.loads((folder / "said.json").read_text())["quality"]["classes"]
    scored = ran("evaluate", folder / "new.csv", "--label", "kind", "--json").stdout
    fresh = json.loads(scored)
    assert (stated["apart"], stated["objects"]) == ("folds", 900)
    assert (fresh["apart"], fresh["objects"]) == ("new", 4000)
    agree(stated, fresh)


def test_stated_quality_agrees_with_a_cross_validation(folder):
    table, stated = read_table(folder / "stars.parquet"), load_model(folder / "m.skyfill").quality

    def classifier():
        imputer = NetworkImputer(2, n_fits=1, gaps="auto", refine=None)
        return CatalogClassifier("forest", n_trees=60, imputer=imputer)

    X, words = table.numbers("V", "I", "J", "K"), table.column("kind").to_pylist()
    found = cross_validate(X, words, {"this model": classifier}, folds=5)
    agree(stated["classes"], found.to_dict())


def test_results_are_scored_by_hand_as_by_the_command(folder):
    table = read_table(folder / "new.csv")
    fresh = json.loads(ran("evaluate", folder / "new.csv", "--label", "kind", "--json").stdout)
    columns = class_columns(table)
    P, words = table.numbers(*columns.values()), np.array(table.column("kind").to_pylist())
    said = np.array(table.column(results_prefix(table) + CLASS).to_pylist())
    assert fresh["methods"][0]["accuracy"]["value"] == pytest.approx((said == words).mean())
    place = [list(columns).index(word) for word in words]
    loss = -np.log(P[np.arange(len(P)), place]).mean()
    assert fresh["methods"][0]["log_loss"]["value"] == pytest.approx(loss, rel=1e-5)
    lines = ran("evaluate", folder / "new.csv", "--label", "kind").stdout.splitlines()
    assert lines == list(class_lines(fresh))
    assert lines[0].startswith("on 4000 rows that taught the model nothing: accuracy 0.")
    assert lines[1].split() == ["class", "objects", "precision", "recall", "F1"]


def test_objects_that_taught_the_model_are_not_scored(folder, tmp_path):
    both = tmp_path / "both.parquet"
    write_table(Table(pa.concat_tables([stars(900, 1).arrow, stars(900, 2).arrow])), both)
    ran("classify", folder / "m.skyfill", both, "-o", tmp_path / "both.csv")
    done = ran("evaluate", tmp_path / "both.csv", "--label", "kind", "--json")
    found = json.loads(done.stdout)
    assert found["objects"] + found["trained_on"] == 1800
    assert found["trained_on"] == pytest.approx(900, abs=10)  # rows of gaps alone are not known
    assert "left out that taught the model" in done.stderr
    known = tmp_path / "known.parquet"
    ran("classify", folder / "m.skyfill", folder / "stars.parquet", "-o", known)
    table = read_table(known)
    marks = table.column(results_prefix(table) + TRAINED_ON)
    write_table(Table(table.arrow.filter(marks)), known)
    done = run("evaluate", known, "--label", "kind")
    assert done.exit_code == 2
    assert "of them taught the model" in done.stderr


def test_labels_that_results_cannot_have_are_named(folder, tmp_path):
    table = read_table(folder / "new.csv")
    words = table.column("kind").to_pylist()
    words[:7] = ["SN"] * 3 + ["unid"] * 4
    write_table(table.with_column("kind", words), tmp_path / "new.csv")
    done = ran("evaluate", tmp_path / "new.csv", "--label", "kind", "--json")
    assert json.loads(done.stdout)["objects"] == 3993
    assert "classes that the results do not know, left out: SN (3)" in done.stderr
    assert "labels that count as unlabelled: unid (4 rows)" in done.stderr
    own = results_prefix(table) + CLASS
    done = run("evaluate", folder / "new.csv", "--label", own)
    assert done.exit_code == 2
    assert "name that of the true classes" in done.stderr
    done = run("evaluate", folder / "new.csv", "--label", "kimd")
    assert done.exit_code == 2
    assert "no column 'kimd'" in done.stderr


def test_methods_are_compared_on_results_if_asked_for(folder):
    done = ran("evaluate", folder / "new.csv", "--label", "kind", "--methods", "nan-forest",
               "--folds", "2", "--json")  # fmt: skip
    assert [one["method"] for one in json.loads(done.stdout)["methods"]] == ["nan-forest"]


def test_training_ends_with_its_quality_and_the_file_keeps_it(folder):
    facts = json.loads((folder / "said.json").read_text())
    lines = list(class_lines(facts["quality"]["classes"]))
    said = (folder / "said.txt").read_text().splitlines()
    assert said[-len(lines) - 1 : -1] == lines
    assert lines[0].startswith("on 900 rows that each fold did not learn from: accuracy 0.")
    assert [line.split()[0] for line in lines[1:]] == ["class", "LPV", "QSO", "RRL"]
    shown = ran("inspect", folder / "m.skyfill").stdout
    assert all(f"\n  {line}\n" in shown for line in quality_lines(facts["quality"]))
    described = json.loads(ran("inspect", folder / "m.skyfill", "--json").stdout)
    assert described["quality"] == facts["quality"]
    assert load_model(folder / "m.skyfill").quality == facts["quality"]


def test_quality_says_nothing_about_what_a_model_computes(folder, tmp_path):
    model = load_model(folder / "m.skyfill")
    assert replace(model, quality={}).identifier == model.identifier
    for forged in ([1], {"classes": 3}, {"classes": {"x": [float("nan")]}}):
        save_model(replace(model, quality={}), tmp_path / "m.skyfill")
        other = replace(model, quality={})
        other.__dict__["quality"] = forged
        try:
            save_model(other, tmp_path / "m.skyfill")
        except (TypeError, ValueError):
            continue  # it cannot even be written
        with pytest.raises(ModelError, match="quality"):
            load_model(tmp_path / "m.skyfill")


def test_classes_beyond_fourteen_are_shown_together():
    names = [f"c{k:02d}" for k in range(20)]
    truth = np.repeat(np.arange(20), np.arange(40, 20, -1))
    P = np.full((len(truth), 20), 0.01)
    P[np.arange(len(truth)), truth] = 0.81
    lines = list(class_lines(class_quality(P, truth, names, apart="folds")))
    assert len(lines) == 2 + 15
    rare = sum(range(40 - 19, 40 - 13))
    assert lines[-1].split() == ["6", "others", str(rare), "1.000", "1.000", "1.000"]


def test_what_was_not_measured_is_said(folder, tmp_path):
    words = ["train", folder / "stars.parquet", "--features", "V,I,J,K", "-o", tmp_path / "m"]
    done = ran(*words, "--label", "kind", *QUICK, "--no-calibration")
    assert "classes not measured: no folds are made with --no-calibration" in done.stderr
    done = ran(*words, "--components", "1", "--fits", "1", "--refine", "off")
    assert "filled values not measured: no cells are hidden with --refine off" in done.stderr
    done = ran(*words, "--label", "kind", "--method", "paper", "--trees", "20")
    assert "rows that each tree did not learn from (out of bag): accuracy 0." in done.stderr


def test_a_class_in_no_fold_is_counted_and_named(tmp_path):
    table = stars(300, 3)
    words = table.column("kind").to_pylist()
    words[0] = "SN"
    write_table(table.with_column("kind", words), tmp_path / "stars.parquet")
    done = ran("train", tmp_path / "stars.parquet", "--features", "V,I,J,K", "--label", "kind",
               *QUICK, "--min-class", "1", "-o", tmp_path / "m.skyfill")  # fmt: skip
    assert "on 299 rows that each fold did not learn from" in done.stderr
    assert "objects that were not measured, being in no fold: SN (1)" in done.stderr


def test_out_of_core_the_classes_are_judged_by_the_same_folds(folder, tmp_path):
    done = ran("train", folder / "stars.parquet", "--features", "V,I,J,K", "--label", "kind",
               *QUICK, "--out-of-core", "--json", "-o", tmp_path / "m.skyfill")  # fmt: skip
    stated = json.loads((folder / "said.json").read_text())["quality"]["classes"]
    found = json.loads(done.stdout)["quality"]["classes"]
    assert found["objects"] == 900
    agree(found, stated)


def test_the_page_shows_it_under_the_names_of_the_class_and_the_file(folder, tmp_path):
    model = load_model(folder / "m.skyfill")
    data, own = export_report(Report(model)), model.quality["classes"]
    assert data["classification"]["methods"] == own["methods"]
    assert data["classification"]["apart"] == "folds"
    fill = tmp_path / "f.skyfill"
    ran("train", folder / "stars.parquet", "--features", "V,I,J,K", "--components", "1",
        "--fits", "1", "-o", fill)  # fmt: skip
    names = [one["name"] for one in export_report(Report(load_model(fill)))["filling"]["features"]]
    assert names == ["V", "I", "J", "K"]
    for path, title in ((folder / "m.skyfill", "kind of stars.parquet"), (fill, "stars.parquet")):
        ran("report", path, "-o", tmp_path / "page.html")
        assert f"<title>{title}</title>" in (tmp_path / "page.html").read_text()


def test_the_page_takes_scores_of_results_as_an_evaluation(folder, tmp_path):
    scored = ran("evaluate", folder / "new.csv", "--label", "kind", "--json").stdout
    (tmp_path / "scores.json").write_text(scored)
    ran("report", folder / "m.skyfill", "--evaluation", tmp_path / "scores.json",
        "-o", tmp_path / "page.html")  # fmt: skip
    assert '"support":' in (tmp_path / "page.html").read_text()
