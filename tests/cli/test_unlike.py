"""Objects unlike the training set: `classify` notes them, `candidates` and `report` repeat it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, read_table, write_table
from skyfill.classify import CatalogClassifier
from skyfill.cli import main
from skyfill.impute import NetworkImputer
from skyfill.model import Scoring, classify_table, load_model, save_model, train_classifier

FEATURES = ["logflux", "curvature", "variability"]


def run(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def record_of(table):
    return json.loads(table.meta["classified"])["sf_"]


def sources(n, rng, *, faint=False):
    """Gamma-ray sources: pulsars have curved spectra, and blazars vary.

    Of faint sources both are measured badly, and there are fewer pulsars among them.
    """
    is_pulsar = rng.random(n) < (0.15 if faint else 0.4)
    logflux = rng.normal(-1.0 if faint else 0.0, 0.4, n)
    noise = np.where(logflux < -0.5, 1.5, 0.6)
    return Table.from_columns(
        {
            "name": [f"s{i}" for i in range(n)],
            "logflux": logflux,
            "curvature": 1.5 * is_pulsar + noise * rng.normal(size=n),
            "variability": 1.5 * ~is_pulsar + noise * rng.normal(size=n),
            "truth": np.where(is_pulsar, "psr", "agn"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("gamma"), np.random.default_rng(0)
    small = CatalogClassifier(
        "forest", n_trees=40, n_folds=3, imputer=NetworkImputer(3, n_fits=1), random_state=0
    )
    model, _ = train_classifier(sources(1500, rng), FEATURES, "truth", classifier=small)
    save_model(model, folder / "bright.skyfill")
    for name, faint in (("alike", False), ("faint", True)):
        write_table(sources(3000, rng, faint=faint), folder / f"{name}.parquet")
    return folder


def classified(folder, name, output, *more, model=None, suffix=".parquet"):
    catalog = folder / f"{name}{suffix}"
    done = run("classify", (model or folder) / "bright.skyfill", catalog, *more,
               "-o", output, "--gap-draws", 0)  # fmt: skip
    assert done.exit_code == 0, done.output
    return done


def listed(results, output, *more):
    done = run("candidates", results, "--class", "psr", "--min-probability", 0.48, *more,
               "-o", output, "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout), " ".join(done.stderr.split())


@pytest.mark.parametrize("extension", ["parquet", "fits", "vot", "ecsv"])
def test_no_purity_is_stated_of_objects_unlike_the_training_set(folder, tmp_path, extension):
    said = " ".join(classified(folder, "faint", tmp_path / f"out.{extension}").stderr.split())
    assert "of the objects are unlike the training set, first of all in logflux" in said
    assert "--prior estimate" in said
    facts, said = listed(tmp_path / f"out.{extension}", tmp_path / "list.parquet")
    found = read_table(tmp_path / "list.parquet")
    p, truth = found.numbers("sf_probability")[:, 0], np.array(found.column("truth").to_pylist())
    # The number would have been wrong.
    assert p.mean() - (truth == "psr").mean() > 0.2
    assert "how many of them are psr is not stated: at least" in said
    assert "of the objects taken for psr are unlike the training set" in said
    assert "of the list" not in said
    assert facts["doubt"] in said
    assert facts["expected"]["purity"] is None
    assert all(each["completeness"] is None for each in facts["thresholds"])


@pytest.mark.parametrize("extension", ["parquet", "fits", "vot", "ecsv"])
def test_the_purity_is_stated_of_objects_like_the_training_set(folder, tmp_path, extension):
    said = classified(folder, "alike", tmp_path / f"out.{extension}").stderr
    assert "objects are unlike" not in said
    facts, said = listed(tmp_path / f"out.{extension}", tmp_path / "list.parquet")
    truth = np.array(read_table(tmp_path / "list.parquet").column("truth").to_pylist()) == "psr"
    assert facts["expected"]["purity"] == pytest.approx(truth.mean(), abs=0.04)
    assert f"expected to be psr: {facts['expected']['purity']:.2g} of the list" in said
    assert facts.get("doubt") is None
    assert "not known" not in said


def test_objects_that_were_checked_give_a_purity_all_the_same(folder, tmp_path):
    classified(folder, "faint", tmp_path / "out.parquet")
    table = read_table(tmp_path / "out.parquet")
    write_table(table.select(["name", "truth"]), tmp_path / "checked.csv")
    more = ("--checked", tmp_path / "checked.csv", "--label", "truth", "--id", "name")
    facts, said = listed(tmp_path / "out.parquet", tmp_path / "list.parquet", *more)
    truth = np.array(read_table(tmp_path / "list.parquet").column("truth").to_pylist()) == "psr"
    assert facts["expected"]["purity"] == pytest.approx(truth.mean(), abs=0.05)
    assert "of the list" in said


def test_few_rows_cannot_be_checked_and_that_is_said_in_place_of_a_number(folder, tmp_path):
    few = Table(read_table(folder / "alike.parquet").arrow.slice(0, 60))
    write_table(few, tmp_path / "few.parquet")
    classified(tmp_path, "few", tmp_path / "out.ecsv", model=folder)
    facts, said = listed(tmp_path / "out.ecsv", tmp_path / "list.parquet")
    assert "could not be checked (only 60 rows)" in said
    assert facts["expected"]["purity"] is None


def test_listed_outliers_are_unlike_the_training_set_too(folder, tmp_path):
    """Of a catalogue that is like the training set but for the objects of one list."""
    classified(folder, "alike", tmp_path / "out.parquet")
    table = read_table(tmp_path / "out.parquet")
    is_listed = table.numbers("sf_p_psr")[:, 0] >= 0.48
    rows = np.flatnonzero(is_listed)
    for share, is_said in ((0.09, False), (0.12, True)):
        odd = np.isin(np.arange(len(table)), rows[: int(share * len(rows))])
        write_table(table.with_column("sf_outlier", odd), tmp_path / "odd.parquet")
        facts, said = listed(tmp_path / "odd.parquet", tmp_path / "list.parquet")
        assert ("of them are unlike the training set (sf_outlier)" in said) is is_said
        assert (facts["expected"]["purity"] is None) is is_said


def test_results_that_do_not_remember_are_said_not_to(folder, tmp_path):
    classified(folder, "alike", tmp_path / "out.csv")
    table = read_table(tmp_path / "out.csv")
    facts, said = listed(tmp_path / "out.csv", tmp_path / "list.parquet")
    assert facts["rows"] == len(table)
    assert "of the list" in said
    assert "whether they are like the training set is not known" in said


@pytest.mark.parametrize("name", ["alike", "faint"])
def test_the_page_repeats_it(folder, tmp_path, name):
    classified(folder, name, tmp_path / "out.parquet")
    done = run("report", folder / "bright.skyfill", tmp_path / "out.parquet", "-o",
               tmp_path / "page.html", "--max-objects", 50)  # fmt: skip
    assert done.exit_code == 0, done.output
    words = "of the objects are unlike the training set, first of all in logflux"
    assert (words in (tmp_path / "page.html").read_text()) is (name == "faint")


def test_files_folders_and_clusters_write_the_same_and_rows_do_not_depend_on_it(folder, tmp_path):
    whole = read_table(folder / "faint.parquet")
    (tmp_path / "in").mkdir()
    for place in range(3):
        part = Table(whole.arrow.slice(1000 * place, 1000))
        write_table(part, tmp_path / "in" / f"{place}.parquet")
    classified(folder, "faint", tmp_path / "whole.parquet")
    classified(tmp_path, "in", tmp_path / "folder", model=folder, suffix="")
    classified(tmp_path, "in", tmp_path / "file.fits", model=folder, suffix="")
    expected = read_table(tmp_path / "whole.parquet")
    parts = [read_table(path) for path in sorted((tmp_path / "folder").glob("*.parquet"))]
    for table in (*parts, read_table(tmp_path / "file.fits")):
        assert record_of(table) == record_of(expected)
        assert record_of(table)["likeness"]["unlike"] > 0.5
    names = [f"sf_p_{name}" for name in ("agn", "psr")]
    model = load_model(folder / "bright.skyfill")
    alone = classify_table(model, Table(whole.arrow.slice(0, 50)), Scoring(n_draws=0))
    assert np.array_equal(alone.numbers(*names), expected.numbers(*names)[:50])


def test_a_cluster_writes_it_too(folder, tmp_path):
    pytest.importorskip("distributed", reason="needs Dask: pip install skyfill[dask]")
    more = ("--scheduler", "local")
    classified(folder, "faint", tmp_path / "out", *more)
    part = next((tmp_path / "out").glob("*.parquet"))
    assert record_of(read_table(part))["likeness"]["feature"] == "logflux"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_hats_catalogue_remembers_it_too(folder, tmp_path):
    pytest.importorskip(
        "lsdb", reason="needs LSDB: pip install skyfill[lsdb]", exc_type=ImportError
    )
    from skyfill.scale import open_source
    from skyfill.scale.hats import write_hats

    rng = np.random.default_rng(0)
    table = read_table(folder / "faint.parquet")
    table = table.with_column("ra", rng.uniform(70, 90, len(table)))
    table = table.with_column("dec", rng.uniform(-70, -60, len(table)))
    write_hats(table, tmp_path / "in", partition_rows=1000)
    done = run("classify", folder / "bright.skyfill", f"hats://{tmp_path / 'in'}", "--gap-draws", 0,
               "-o", f"hats://{tmp_path / 'out'}")  # fmt: skip
    assert done.exit_code == 0, done.output
    found = record_of(open_source(f"hats://{tmp_path / 'out'}").table())
    assert found["likeness"]["feature"] == "logflux"
