"""Evaluations that the page shows."""

import json

import numpy as np
import pytest

from skyfill.errors import DataError
from skyfill.evaluate import ClassComparison, OutOfFold, compare_imputers
from skyfill.impute import GaussianMixtureImputer, MeanImputer
from skyfill.report import read_evaluations


@pytest.fixture(scope="module")
def filling(catalog):
    methods = {"mean": MeanImputer, "mixture": GaussianMixtureImputer}
    return compare_imputers(catalog.select(["V", "I", "J"]), methods, rates=[0.1, 0.2], repeats=2)


@pytest.fixture(scope="module")
def classes():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 40)
    runs = [OutOfFold(name, 0, rng.dirichlet([1, 1], 40), 1.0, 1.0) for name in ("a", "b")]
    return ClassComparison(("QSO", "RRL"), truth, tuple(runs), np.arange(40))


def test_scores_of_filling_are_those_of_the_comparison(filling, tmp_path):
    (tmp_path / "errors.json").write_text(filling.to_json())
    found = read_evaluations([tmp_path / "errors.json"])["imputation"]
    assert found["methods"] == ["mean", "mixture"]
    assert found["scores"]["nrmse"][1][0]["value"] == filling.mean("nrmse", "mixture", 0.1).value
    assert found["scores"]["coverage_90"][0][0]["value"] is None
    assert [pit["method"] for pit in found["pits"]] == ["mixture"]
    assert set(found["byFeature"]["values"]) == {"V", "I", "J"}
    assert not found["inSample"]


def test_the_page_says_when_methods_learned_from_what_they_filled(catalog, tmp_path):
    how = {"rates": [0.1], "repeats": 1, "train_fraction": None}
    inside = compare_imputers(catalog.select(["V", "I"]), {"mean": MeanImputer}, **how)
    (tmp_path / "errors.json").write_text(inside.to_json())
    assert read_evaluations([tmp_path / "errors.json"])["imputation"]["inSample"]


def test_scores_of_classes_are_those_of_the_comparison(classes, tmp_path):
    (tmp_path / "classes.json").write_text(classes.to_json())
    found = read_evaluations([tmp_path / "classes.json"])["classification"]
    assert found["methods"][0]["confusion"] == classes.confusion("a").tolist()
    assert found["surveys"] == []


def test_parts_with_and_without_a_survey_are_found_at_any_depth(classes, tmp_path):
    one = classes.to_dict()
    nested = {"comparison": one, "without": {"2MASS": {"all": one, "matched": one}}}
    (tmp_path / "both.json").write_text(json.dumps(nested))
    found = read_evaluations([tmp_path / "both.json"])["classification"]
    assert found["classes"] == ["QSO", "RRL"]
    assert [survey["title"] for survey in found["surveys"]] == ["2MASS"]
    assert [part["part"] for part in found["surveys"][0]["parts"]] == ["all", "matched"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[1, 2]", "neither an evaluation"),
        ('{"means": [{"method": "a"}], "runs": []}', "incomplete"),
    ],
)
def test_what_is_no_evaluation_is_refused_by_name(text, message, tmp_path):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(DataError, match=rf"bad\.json: .*{message}"):
        read_evaluations([tmp_path / "bad.json"])
