"""Trees walked on a GPU, or on an imitation of one, give the same probabilities."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from skyfill.classify.boosting import Steps, boost
from skyfill.classify.sklearn_trees import flatten_forest
from skyfill.device import using
from tests.devices import DEVICES


def table(rng):
    X = rng.normal(size=(60, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X, (np.nan_to_num(X[:, 0]) > 0).astype(int) + (np.nan_to_num(X[:, 1]) > 0.5)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("kind", ["forest", "boosting", "two classes"])
def test_probabilities_are_bit_for_bit_the_same(name, kind):
    X, y = table(np.random.default_rng(0))
    if kind == "forest":
        trees = flatten_forest(RandomForestClassifier(5, random_state=0).fit(X, y))
    else:
        y = y if kind == "boosting" else np.minimum(y, 1)
        trees = boost(X, y, np.ones(len(y)), Steps(4, rate=0.3), seed=0)
    expected = trees.predict_proba(X)
    with using(name):
        assert np.array_equal(trees.predict_proba(X), expected)
