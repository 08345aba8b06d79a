"""Importance of features: closed forms."""

import numpy as np
from scipy.special import expit

from skyfill.network import Cells, learn_mixture
from skyfill.report.importance import importance_for_classes, importance_for_features


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
