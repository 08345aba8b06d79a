"""The most common class of a field, learned from the field: Bayes' rule, what it gains, guards."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from skyfill.classify import CatalogClassifier
from skyfill.classify.class_mixture_fit import fit_class_mixture
from skyfill.classify.combining import Known, choose_field_mixture, weigh
from skyfill.classify.field_mixture import FieldRows, expect_field, fit_field_mixture, sample_field
from skyfill.impute import NetworkImputer
from skyfill.network import Cells, learn_mixture
from skyfill.network.mixture.fit import Plan
from skyfill.network.mixture.mixture import Mixture, expect_mixture, split

PLAN = Plan(1, 5.0)
SHARES = np.array([0.98, 0.02])


def columns(n, rng):
    return rng.normal(size=(n, 3))


def stars(n, n_rare, seed):
    """A common class in two clumps and a rare one between them; classes 0 and 1."""
    rng = np.random.default_rng(seed)
    faint = rng.random(n) < 0.5
    common = columns(n, rng) + np.where(faint, 6.0, 0.0)[:, None] * [1.0, -1.0, 0.0]
    rare = 0.6 * columns(n_rare, rng) + [4.5, -1.5, 2.0]
    return common, faint, rare


def training_set(seed=0):
    """Of the common class only the first clump is labelled, that of bright objects."""
    common, faint, rare = stars(400, 40, seed)
    X = np.concatenate([common[~faint], rare])
    return Cells(X), np.repeat([0, 1], [(~faint).sum(), len(rare)])


def field_of(seed=1):
    common, _, rare = stars(2940, 60, seed)
    return Cells(np.concatenate([common, rare])), np.repeat([0, 1], [len(common), len(rare)])


def learned(cells):
    return learn_mixture(cells, n_components=2, n_fits=1, calibrate=False).network


def test_a_field_counts_for_the_common_class_by_bayes_rule():
    x = np.array([[-1.0], [0.5], [2.0], [3.5]])
    mixture = Mixture(
        np.array([0.3, 0.7]), np.array([[0.0], [3.0]]), np.ones((2, 1, 1)), None, None
    )
    field = FieldRows(split(x), SHARES, 0, None)
    found = expect_field(field, np.arange(2), mixture)
    density = SHARES * norm.pdf(x, [0.0, 3.0], 1.0)
    mine = density[:, 0] / density.sum(axis=1)
    assert_allclose(found.weight, [mine.sum(), 0.0], rtol=1e-12)
    assert_allclose(found.total[:, 0], [mine @ x[:, 0], 0.0], atol=1e-12)
    assert not found.cross[1].any()


def test_a_field_of_one_class_counts_as_its_own_rows():
    x = np.random.default_rng(0).normal(size=(50, 2))
    x[::7, 1] = np.nan
    mixture = Mixture(
        np.array([0.4, 0.6]),
        np.array([[0.0] * 2, [1.0] * 2]),
        np.tile(np.eye(2), (2, 1, 1)),
        None,
        None,
    )
    field = FieldRows(split(x), np.ones(1), 0, None)
    found, plain = (
        expect_field(field, np.zeros(2, int), mixture),
        expect_mixture(split(x)[0], mixture),
    )
    for name in ("weight", "total", "cross", "gaps", "loglik"):
        assert_allclose(getattr(found, name), getattr(plain, name), rtol=1e-12)


def test_a_clump_of_the_common_class_without_labels_is_known_from_the_field():
    cells, y = training_set()
    field, truth = field_of()
    network = learned(cells.joined(field))
    how = {"shares": np.bincount(y) / len(y), "plan": PLAN, "seed": 0, "rows_per_component": 50.0}
    rows = sample_field(network, field, SHARES, PLAN, 0)
    without = fit_class_mixture(network, cells, y, **how).look(field)
    taught = fit_field_mixture(network, cells, y, field=rows, **how).look(field)
    # Every second object of the common class is of the clump without labels: there trees would be
    # alone to decide, because the mixture without a field takes it for background.
    known = [seen[truth == 0, 2].mean() for seen in (without, taught)]
    assert known[0] < 0.6
    assert known[1] > 0.95
    assert (taught[truth == 1, 1] > 0.5).mean() > 0.9
    assert (taught[truth == 0, 1] > 0.5).mean() < 0.01


def test_without_a_common_class_a_field_teaches_none():
    field, _ = field_of()
    assert sample_field(learned(field), field, np.array([0.45, 0.3, 0.25]), PLAN, 0) is None


@pytest.mark.parametrize("misleads", [False, True])
def test_a_field_that_contradicts_held_out_objects_is_left_out(misleads):
    cells, y = training_set()
    # A misleading field lies where labelled objects are of the rare class.
    rare = np.random.default_rng(0).normal([4.5, -1.5, 2.0], 0.6, (2000, 3))
    field = Cells(rare) if misleads else field_of()[0]
    network = learned(cells.joined(field))
    fold = np.arange(len(y)) % 5
    # Trees are right in nine of ten cases.
    said = np.where(np.random.default_rng(1).random(len(y)) < 0.1, 1 - y, y)
    trees = [(1.0, np.where(said[:, None] == np.arange(2), 0.9, 0.1))]
    known = Known(cells, y, np.ones(len(y)), fold, trees)
    how = {"shares": np.bincount(y) / len(y), "plan": PLAN, "seed": 0}
    supervised = partial(fit_class_mixture, network, rows_per_component=50.0, **how)
    without = weigh(supervised, 50.0, known)
    rows = sample_field(network, field, SHARES, PLAN, 0)
    fit = partial(fit_field_mixture, network, **how)
    found = choose_field_mixture(fit, rows, without, known)
    assert (found is None) == misleads


def test_a_classifier_learns_from_the_field():
    cells, y = training_set()
    field, truth = field_of()
    X = np.concatenate([cells.values, field.values])
    labels = np.concatenate([np.array(["NV", "QSO"])[y], np.full(len(truth), None)]).astype(object)
    few = {"n_trees": 30, "n_rounds": 20, "random_state": 0}
    imputer = NetworkImputer(3, n_fits=1, refine=None, random_state=0)
    plain, taught = (
        CatalogClassifier(imputer=imputer, prior=prior, **few).fit(X, labels)
        for prior in ("estimate", "field")
    )
    assert plain.scorer_.mixture is not None
    assert len(taught.scorer_.mixture.classes) > len(plain.scorer_.mixture.classes)
    P = [
        model.predict_proba(field.values)[np.arange(len(truth)), truth] for model in (plain, taught)
    ]
    losses = [-np.log(np.maximum(p, 1e-6)).mean() for p in P]
    assert losses[1] < 0.7 * losses[0]
    assert taught.field_shares_.taught == 0
    assert taught.scorer_.calibration.kind == "odds"
    assert taught.field_shares_.low[1] <= 0.02 <= taught.field_shares_.high[1]
    # Of a catalogue that lacks a column, gaps are no evidence, whether densities know rates or not.
    bare = replace(taught.scorer_).without([2])
    hidden = Cells(np.where(np.arange(3) == 2, np.nan, field.values))
    assert np.isfinite(bare.probabilities(hidden, n_draws=0)).all()
