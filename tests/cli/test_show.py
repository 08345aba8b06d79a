import json

import numpy as np
import pytest
from click.testing import CliRunner

from skyfill.catalog import ColumnInfo, Table
from skyfill.classify import CatalogClassifier
from skyfill.cli import main
from skyfill.impute import NetworkImputer
from skyfill.model import save_model, train, train_classifier


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


@pytest.fixture(scope="module")
def classifier(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("show") / "classifier.skyfill"
    imputer = NetworkImputer(1, n_fits=1, gaps="informative")
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
