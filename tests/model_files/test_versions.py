"""Models of every format that was ever written load, and give the numbers they gave then.

`version-N.skyfill` was written by the first skyfill that knew format N, and `version-N.json` holds
what that skyfill computed with it. Neither is ever made anew; a new format gets new files.
"""

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from skyfill.model import FACTS, load_model, save_model
from skyfill.model.pipeline import FORMAT
from skyfill.network import Cells

HERE = Path(__file__).parent
VERSIONS = range(1, FORMAT + 1)
CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def then(version):
    """Rows, and what the model gave for them when it was new."""
    facts = json.loads((HERE / f"version-{version}.json").read_text())
    return np.array(facts["rows"], float), facts


def now(version):
    return load_model(HERE / f"version-{version}.skyfill")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_format_has_a_small_file_that_says_so(version):
    path = HERE / f"version-{version}.skyfill"
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read(FACTS))["format"] == version
    assert path.stat().st_size < 32_000


@pytest.mark.parametrize("version", VERSIONS)
def test_a_model_of_an_older_format_fills_as_it_did(version):
    (X, facts), model = then(version), now(version)
    filled = model.filler.posterior(X)
    assert facts["identifier"] in (model.identifier, model.earlier_identifier)
    assert np.isnan(X).any(axis=1).sum() >= 4
    assert_allclose(filled.mean, facts["mean"], **CLOSE)
    assert_allclose(filled.sd, facts["sd"], **CLOSE)
    assert_allclose(model.filler.quantiles(X, facts["levels"]), facts["quantiles"], **CLOSE)
    assert_allclose(model.network.loglik(X), facts["loglik"], **CLOSE)


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_a_model_of_an_older_format_classifies_as_it_did(version):
    (X, facts), scorer = then(version), now(version).scorer
    found = scorer.score(X)
    assert list(scorer.classes) == facts["classes"]
    assert_allclose(found.probabilities, facts["probabilities"], **CLOSE)
    assert_allclose(found.outlier_score, facts["outlier_score"], **CLOSE)


def test_a_model_of_the_third_format_fills_beyond_limits_as_it_did():
    (X, facts), model = then(3), now(3)
    lower, errors = np.array(facts["lower"], float), np.array(facts["errors"], float)
    cells = Cells(X, lower, errors=errors)
    assert cells.is_limited.sum() >= 4
    assert cells.is_noisy.sum() >= 4
    filled, wanted = model.network.posterior(cells, denoise=True), facts["known"]
    assert_allclose(filled.mean, wanted["mean"], **CLOSE)
    assert_allclose(filled.sd, wanted["sd"], **CLOSE)
    assert_allclose(model.network.quantiles(cells, facts["levels"]), wanted["quantiles"], **CLOSE)
    assert_allclose(model.scorer.probabilities(cells), wanted["probabilities"], **CLOSE)
    assert [detection.side for detection in model.detections] == [None, "lower", None]


def test_the_first_format_knows_units_and_graphs_and_no_classes():
    model = now(1)
    assert model.scorer is None
    assert model.names == ("V", "V_I", "n_obs", "zero")
    assert (model.features[0].unit, model.features[0].ucd) == ("mag", "phot.mag;em.opt.V")
    assert [len(fit.parents) for fit in model.network.fits] == [2, 2]
    assert model.network.by_spread is None


@pytest.mark.parametrize("version", VERSIONS)
def test_a_model_of_an_older_format_is_written_again_without_loss(version, tmp_path):
    (X, _), model = then(version), now(version)
    save_model(model, tmp_path / "again.skyfill")
    again = load_model(tmp_path / "again.skyfill")
    assert again.identifier == model.identifier
    assert np.array_equal(again.network.posterior(X).mean, model.network.posterior(X).mean)


def test_the_fourth_format_knows_what_was_declared_about_the_training_table():
    facts, model = then(4)[1], now(4)
    assert model.declared.to_dict() == facts["declared"]
    assert facts["declared"]["V"] == {"sentinels": [-99], "unit": "mag"}


def test_the_fifth_format_knows_forests_that_correct_the_mixtures():
    (X, _), model = then(5), now(5)
    assert model.refinement is not None
    refined = model.filler.posterior(X).mean != model.network.posterior(X).mean
    assert set(np.flatnonzero(refined.any(axis=0))) <= set(model.refinement.columns.tolist())
    assert refined.sum() >= 4


def test_the_seventh_format_knows_logarithms():
    (X, facts), model = then(7), now(7)
    cells = Cells(X, upper=np.array(facts["upper"], float), errors=np.array(facts["errors"], float))
    filled, wanted = model.network.posterior(cells, denoise=True), facts["known"]
    assert model.network.logarithmic.tolist() == [False, False, True]
    assert_allclose(filled.mean, wanted["mean"], **CLOSE)
    assert_allclose(filled.sd, wanted["sd"], **CLOSE)
    assert_allclose(model.network.quantiles(cells, facts["levels"]), wanted["quantiles"], **CLOSE)
    assert_allclose(model.scorer.probabilities(cells), wanted["probabilities"], **CLOSE)


def test_the_sixth_format_knows_a_mixture_of_the_classes():
    (X, facts), scorer = then(6), now(6).scorer
    assert scorer.mixture.classes.shape[1] == len(facts["classes"])
    assert_allclose(scorer.mixture.look(Cells(X)), facts["look"], **CLOSE)
    without = replace(scorer, mixture=None).probabilities(X)
    assert np.abs(without - facts["probabilities"]).max() > 0.05


def test_the_eighth_format_knows_what_was_found_to_mean_gaps():
    facts, model = then(8)[1], now(8)
    assert model.found == {"V_I": (-999.0,), "e_V": (9.99,)}
    assert {name: list(values) for name, values in model.found.items()} == facts["found"]
