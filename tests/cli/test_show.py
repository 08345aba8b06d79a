import json
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Table
from skyfill.classify import CatalogClassifier
from skyfill.cli import main
from skyfill.impute import NetworkImputer
from skyfill.model import (
    ARRAYS,
    FACTS,
    describe_model,
    load_model,
    save_model,
    train,
    train_classifier,
)
from tests.model.test_cells import radio


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    V = np.concatenate([rng.normal(15, 0.5, 60), rng.normal(19, 0.5, 60)])
    K = V - 2 + rng.normal(0, 0.1, 120)
    K[::4] = np.nan
    info = {"V": ColumnInfo("mag", description="Visual"), "K": ColumnInfo("mag")}
    columns = {"V": V, "K": K, "kind": ["CEPH"] * 60 + ["QSO"] * 60}
    return Table.from_columns(columns, info=info)


@pytest.fixture(scope="module")
def plain(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("show") / "plain.skyfill"
    made = {"command": "skyfill train t.fits", "seed": 4}
    model, _ = train(table, ["V", "K"], provenance=made, n_components=1, n_fits=2, arcs="shared")
    save_model(model, path)
    return path, model


def test_features_mapped_by_their_logarithms_are_named(tmp_path):
    table = radio()[0]
    save_model(train(table, ["V", "S"], n_components=1, n_fits=1)[0], tmp_path / "m.skyfill")
    shown = CliRunner().invoke(main, ["show", str(tmp_path / "m.skyfill")])
    assert "\nmapped by their logarithms: S\n" in shown.output


@pytest.fixture(scope="module")
def classifier(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("show") / "classifier.skyfill"
    imputer = NetworkImputer(1, n_fits=1, refine=None, gaps="informative")
    quick = CatalogClassifier("forest", imputer=imputer, n_trees=5, random_state=0)
    model, _ = train_classifier(table, ["V", "K"], "kind", classifier=quick)
    save_model(model, path)
    return path, model


def shown(path, *words):
    said = CliRunner().invoke(main, ["show", str(path), *words])
    assert said.exit_code == 0, said.output
    return said.stdout


def test_a_model_without_classes_says_so_and_how_it_was_made(plain):
    path, model = plain
    text = shown(path)
    words = (model.identifier, "Visual", "no classes", "V -> K", "skyfill train t.fits", "seed: 4")
    for word in words:
        assert word in text or word.replace("V -> K", "K -> V") in text


def test_the_range_of_a_feature_is_that_of_the_training_table(plain, table):
    path, _ = plain
    V, K = json.loads(shown(path, "--json"))["features"]
    assert V["range"] == pytest.approx([table.numbers("V").min(), table.numbers("V").max()])
    assert (V["unit"], V["description"], V["gaps"]) == ("mag", "Visual", None)


def test_a_classifier_lists_its_classes_with_shares_and_gaps(classifier):
    path, model = classifier
    facts = json.loads(shown(path, "--json"))
    assert [each["class"] for each in facts["classes"]["shares"]] == ["CEPH", "QSO"]
    assert [each["training"] for each in facts["classes"]["shares"]] == [0.5, 0.5]
    assert {tree["kind"] for tree in facts["classes"]["trees"]} == {"forest"}
    assert facts["gaps"] == "informative"
    assert facts["features"][1]["gaps"] == pytest.approx(0.25, abs=0.02)
    text = shown(path)
    assert "2 classes" in text
    assert "25% gaps" in text


def test_arcs_of_a_model_with_full_covariances_come_from_one_network_for_it(classifier):
    path, _ = classifier
    facts = json.loads(shown(path, "--json"))
    assert facts["arcs_learned"] is False
    assert {(arc["parent"], arc["child"]) for arc in facts["arcs"]} <= {("V", "K"), ("K", "V")}
    assert len(facts["arcs"]) == 1
    assert "of one network for all components" in shown(path)


COMPILERS = ("numba", "sklearn", "scipy", "pandas", "pyarrow", "astropy")
ALONE = f"""
import sys
from skyfill.cli import main
main(["show", *sys.argv[1:]], standalone_mode=False)
loaded = [name for name in {COMPILERS} if name in sys.modules]
sys.exit(f"imported: {{loaded}}" if loaded else 0)
"""


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_model_is_shown_without_compilers_and_trees(classifier, words):
    path, _ = classifier
    command = [sys.executable, "-c", ALONE, str(path), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown(path, *words)


def test_what_is_shown_describes_the_model_that_is_loaded(plain, classifier):
    for path, _ in (plain, classifier):
        facts = json.loads(shown(path, "--json"))
        del facts["input"]
        assert facts == json.loads(json.dumps(describe_model(load_model(path))))


def changed(path, out, change):
    with zipfile.ZipFile(path) as archive:
        facts, arrays = json.loads(archive.read(FACTS)), archive.read(ARRAYS)
    change(facts)
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(FACTS, json.dumps(facts))
        archive.writestr(ARRAYS, arrays)
    return out


def test_a_file_without_a_description_shows_the_same(classifier, tmp_path):
    old = changed(classifier[0], tmp_path / "old.skyfill", lambda facts: facts.pop("description"))
    assert shown(old) == shown(classifier[0])


@pytest.mark.parametrize("description", [{}, {"components": 5}, {"components": [1]}])
def test_a_description_that_is_none_is_an_error(classifier, tmp_path, description):
    path = tmp_path / "odd.skyfill"
    changed(classifier[0], path, lambda facts: facts.update(description=description))
    said = CliRunner().invoke(main, ["show", str(path)])
    assert said.exit_code == 2
    assert "the model is damaged" in said.stderr


def test_a_file_whose_arrays_are_of_another_model_is_damaged(classifier, tmp_path):
    path = tmp_path / "odd.skyfill"
    changed(classifier[0], path, lambda facts: facts["scorer"].update(classes=["CEPH", "STAR"]))
    said = CliRunner().invoke(main, ["show", str(path)])
    assert said.exit_code == 2
    assert "does not match its identifier" in said.stderr
