"""Importance of features: closed forms."""

import json
import re

import numpy as np
import pytest
from scipy.special import expit

from skyfill.catalog import Table
from skyfill.classify import CatalogClassifier
from skyfill.impute import NetworkImputer
from skyfill.model import Scoring, classify_table, train_classifier
from skyfill.network import Cells, learn_mixture
from skyfill.report import Report, build_page
from skyfill.report.importance import importance_for_classes, importance_for_features
from skyfill.report.objects import gather_results


def test_importance_is_the_mean_squared_correlation():
    rng = np.random.default_rng(0)
    X = rng.multivariate_normal([0, 0, 0], [[1, 0.8, 0], [0.8, 1, 0], [0, 0, 1]], 4000)
    found = importance_for_features(learn_mixture(X, n_components=1, n_fits=1).network)
    np.testing.assert_allclose(found, [0.32, 0.32, 0.0], atol=0.02)


class Logistic:
    """Looks at the first feature only; a gap counts as 0."""

    def probabilities(self, X):
        p = expit(np.nan_to_num(X.values[:, 0]))
        return np.stack([p, 1 - p], axis=1)


def test_a_feature_that_the_class_does_not_use_does_not_matter():
    X = np.array([[2.0, 1.0, np.nan], [-2.0, 0.0, np.nan]])
    found = importance_for_classes(Logistic(), Cells(X))
    p = expit(2)
    divergence = p * np.log2(p / 0.5) + (1 - p) * np.log2((1 - p) / 0.5)
    np.testing.assert_allclose(found, [divergence, 0, 0])


def test_on_the_page_it_is_the_change_of_the_probabilities_that_classify_gives():
    """Of a catalogue that lacks a column, whose gaps are then no evidence."""
    rng, n = np.random.default_rng(0), 300
    y = np.arange(n) % 2
    X = rng.normal(size=(n, 3)) + y[:, None]
    X[rng.random(n) < 0.2 + 0.6 * y, 2] = np.nan
    table = Table.from_columns({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "kind": y.astype(str)})
    imputer = NetworkImputer(2, n_fits=1, gaps="informative", refine=None)
    small = CatalogClassifier("forest", n_trees=20, n_folds=2, imputer=imputer, random_state=0)
    model, _ = train_classifier(table, ["a", "b", "c"], "kind", classifier=small)
    asked = table.select(["a", "b"])

    def probabilities(rows):
        found = classify_table(model, rows, Scoring(n_draws=0))
        return np.maximum(found.numbers("sf_p_0", "sf_p_1"), 1e-6)

    P = probabilities(asked)
    bare = probabilities(asked.with_column("a", np.full(n, np.nan)))
    empty = Table(asked.arrow.slice(0, 0))
    found = gather_results([asked], model.features, 400, empty=empty)
    page = build_page(Report(model, found))
    payload = json.loads(re.search(r'id="payload">(.*?)</script>', page, re.DOTALL)[1])
    divergence = (P * np.log2(P / bare)).sum(axis=1).mean()
    assert payload["importance"]["classes"][0] == pytest.approx(divergence, rel=1e-6)
