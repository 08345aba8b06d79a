"""`skyfill next`: gains of objects, summary by feature and by survey, mistakes."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import Table, read_table, write_table
from skyfill.classify import CatalogClassifier
from skyfill.cli import main
from skyfill.impute import NetworkImputer
from skyfill.model import save_model, train, train_classifier

NAMES = ["V", "J_nir", "K_nir", "x_ray"]


@pytest.fixture
def run():
    return lambda *words: CliRunner().invoke(main, ["next", *map(str, words)])


def kinds(n, seed):
    """Two kinds of objects that only the near infrared tells apart."""
    rng = np.random.default_rng(seed)
    y = rng.choice(["QSO", "RRL"], n)
    X = rng.normal(size=(n, 4))
    X[:, 1] += 4.0 * (y == "QSO")
    X[:, 2] = X[:, 1] + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < 0.2] = np.nan
    return Table.from_columns({**dict(zip(NAMES, X.T, strict=True)), "class": y})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("next")
    table = kinds(1000, 0)
    small = CatalogClassifier(
        "forest",
        n_trees=30,
        n_folds=2,
        imputer=NetworkImputer(3, n_fits=1, refine=None),
        random_state=0,
    )
    model, _ = train_classifier(table, NAMES, "class", classifier=small)
    save_model(model, folder / "m.skyfill")
    save_model(train(table, NAMES, n_components=1, n_fits=1)[0], folder / "plain.skyfill")
    new = {
        "id": ["a", "b", "c"],
        "V": [0.0, None, 0.1],
        "J_nir": [None, None, 4.0],
        "K_nir": [None, None, 4.1],
        "x_ray": [None, 0.3, 0.2],
    }
    objects = Table.from_columns(new).with_meta(match_nir="{}")
    write_table(objects, folder / "objects.parquet")
    return folder


def test_the_telling_feature_comes_first(run, folder, tmp_path):
    done = run(folder / "m.skyfill", folder / "objects.parquet", "-o", tmp_path / "plan.csv")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith("| measurement | objects without | bits in all | bits each |")
    assert lines[2].split(" | ")[0] in ("| J_nir", "| K_nir")
    plan = read_table(tmp_path / "plan.csv").arrow.to_pylist()
    assert {row["sf_next"] for row in plan[:2]} <= {"J_nir", "K_nir"}
    bits = [[row[f"sf_bits_{name}"] or 0.0 for name in NAMES] for row in plan[:2]]
    assert [row["sf_next_bits"] for row in plan[:2]] == [max(row) for row in bits]
    assert plan[0]["sf_bits_J_nir"] > 5 * plan[0]["sf_bits_x_ray"]
    assert plan[0]["sf_bits_V"] is None
    assert plan[2]["sf_next"] is plan[2]["sf_next_bits"] is None
    assert plan[0]["sf_next_entropy"] > plan[2]["sf_next_entropy"]


def test_by_survey_the_columns_are_measured_together(run, folder, tmp_path):
    done = run(folder / "m.skyfill", folder / "objects.parquet", "--by", "survey", "--json")
    found = json.loads(done.stdout)
    assert found["objects"] == 3
    best = found["measurements"][0]
    assert (best["name"], best["missing"], best["best"]) == ("nir", 2, 2)
    assert {m["name"] for m in found["measurements"]} == {"nir", "V", "x_ray"}


def test_surveys_may_be_named(run, folder):
    words = ("--survey", "nir=J_nir,K_nir", "--survey", "other=V,x_ray", "--json")
    found = json.loads(run(folder / "m.skyfill", folder / "objects.parquet", *words).stdout)
    assert [m["name"] for m in found["measurements"]] == ["nir", "other"]


def test_a_sample_is_enough_for_the_summary(run, folder):
    done = run(folder / "m.skyfill", folder / "objects.parquet", "--sample", "2", "--json")
    assert json.loads(done.stdout)["objects"] == 2


def test_a_feature_that_the_catalogue_lacks_can_be_measured(run, folder, tmp_path):
    write_table(read_table(folder / "objects.parquet").drop(["J_nir"]), tmp_path / "less.fits")
    done = run(folder / "m.skyfill", tmp_path / "less.fits", "--json")
    counts = {m["name"]: m["missing"] for m in json.loads(done.stdout)["measurements"]}
    assert counts["J_nir"] == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{}/plain.skyfill", "{}/objects.parquet"], "trained without labels"),
        (["{}/m.skyfill", "{}/absent.csv"], "absent.csv"),
        (["{}/m.skyfill", "{}/objects.parquet", "--survey", "wise"], "no feature 'wise'"),
    ],
)
def test_mistakes_are_one_line_and_exit_code_2(run, folder, words, message):
    done = run(*(word.format(folder) for word in words))
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output


def test_a_table_without_surveys_asks_for_their_names(run, folder, tmp_path):
    write_table(Table.from_columns({"V": [1.0]}), tmp_path / "bare.csv")
    done = run(folder / "m.skyfill", tmp_path / "bare.csv", "--by", "survey")
    assert (done.exit_code, "--survey NAME" in done.stderr) == (2, True)


def test_a_table_of_other_things_is_refused(run, folder, tmp_path):
    write_table(Table.from_columns({"W1": [1.0]}), tmp_path / "other.csv")
    done = run(folder / "m.skyfill", tmp_path / "other.csv")
    assert (done.exit_code, "has none of the model's features" in done.stderr) == (2, True)
