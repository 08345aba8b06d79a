"""Rivals of the classification benchmark, each sensibly set; fit(X, y) and predict_proba(X)."""

import warnings
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from rivals import AbsentError
from skyfill.classify import CatalogClassifier
from skyfill.evaluate import FilledClassifier
from skyfill.evaluate.methods import CLASSIFIERS
from skyfill.impute import (
    ForestImputer,
    GaussianMixtureImputer,
    MeanImputer,
    NeighborsImputer,
    NetworkImputer,
)
from skyfill.impute.refined_network import refined
from skyfill.network import MixtureNetwork

# As many trees as the forests of skyfill, and as long a boosting as small steps need.
TREES, ROUNDS, RATE = 500, 400, 0.05


class Coded(ClassifierMixin, BaseEstimator):
    """A package that wants classes as numbers from 0."""

    def __init__(self, make, random_state=None):
        self.make, self.random_state = make, random_state

    def fit(self, X, y):
        """Learn."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.model_ = self.make(0 if self.random_state is None else self.random_state)
        self.model_.fit(X, codes)
        return self

    def predict_proba(self, X):
        """Give the probabilities."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self.model_.predict_proba(X))

    def predict(self, X):
        """Give the most probable class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def lightgbm(seed):
    try:
        from lightgbm import LGBMClassifier
    except ImportError as error:
        raise AbsentError(f"{error}; pip install lightgbm") from None
    return LGBMClassifier(
        n_estimators=ROUNDS,
        learning_rate=RATE,
        num_leaves=16,
        min_child_samples=10,
        colsample_bytree=0.6,
        subsample=0.8,
        subsample_freq=1,
        reg_lambda=1.0,
        random_state=seed,
        verbose=-1,
    )


def xgboost(seed):
    try:
        from xgboost import XGBClassifier
    except ImportError as error:
        raise AbsentError(f"{error}; pip install xgboost") from None
    return XGBClassifier(
        n_estimators=ROUNDS,
        max_depth=5,
        learning_rate=RATE,
        colsample_bytree=0.6,
        subsample=0.8,
        random_state=seed,
        verbosity=0,
    )


def catboost(seed):
    try:
        from catboost import CatBoostClassifier
    except ImportError as error:
        raise AbsentError(f"{error}; pip install catboost") from None
    return CatBoostClassifier(
        iterations=1000,
        random_seed=seed,
        verbose=False,
        allow_writing_files=False,
        loss_function="MultiClass",
    )


def forest():
    return RandomForestClassifier(TREES, n_jobs=-1)


def boosting():
    """scikit-learn's boosting, set like the others: small steps, few columns each."""
    return HistGradientBoostingClassifier(
        learning_rate=RATE,
        max_iter=200,
        max_leaf_nodes=16,
        max_features=0.6,
        l2_regularization=1.0,
        early_stopping=False,
    )


def filled(imputer):
    return FilledClassifier(imputer(), forest())


class Limited(ClassifierMixin, BaseEstimator):
    """skyfill on a table whose last columns are limits of some of the others, as magnitudes have.

    The limited columns are those just before them.
    """

    def __init__(self, n_limited=6, random_state=None):
        self.n_limited, self.random_state = n_limited, random_state

    def fit(self, X, y):
        values, lower = self._split(X)
        self.model_ = CatalogClassifier(random_state=self.random_state)
        self.model_.fit(values, y, lower=lower)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        values, lower = self._split(X)
        return self.model_.predict_proba(values, lower=lower)

    def _split(self, X):
        values, limits = X[:, : -self.n_limited], X[:, -self.n_limited :]
        nothing = np.full((len(X), values.shape[1] - self.n_limited), np.nan)
        return values, np.hstack([nothing, limits])


@dataclass(frozen=True, eq=False)
class RefinedLook(MixtureNetwork):
    """Mixtures that fill gaps with what forests make of them."""

    refinement: Any = None

    def look(self, X, **how):
        """Look as mixtures do, and correct the means."""
        own = [getattr(self, field.name) for field in fields(MixtureNetwork)]
        better = refined(MixtureNetwork(*own), self.refinement).posterior(X).mean
        found = super().look(X, **how)
        return found._replace(posterior=found.posterior._replace(mean=better))


class RefinedViews(CatalogClassifier):
    """skyfill whose trees see the gaps as forests fill them; by itself it takes the mixtures."""

    def _fit_imputer(self, X, rng, **known):
        seed = int(rng.integers(2**31))
        imputer = NetworkImputer(n_fits=3, gaps="auto", random_state=seed).fit(X, **known)
        own = [getattr(imputer.network_, field.name) for field in fields(MixtureNetwork)]
        imputer.network_ = RefinedLook(*own, imputer.refinement_)
        return imputer


METHODS = {
    "skyfill": CatalogClassifier,
    "skyquick": CLASSIFIERS["skyfill-quick"],
    "skythorough": CLASSIFIERS["skyfill-thorough"],
    "skylimits": Limited,
    "skyrefined": RefinedViews,
    "skyforest": partial(CatalogClassifier, "forest"),
    "skyboosting": partial(CatalogClassifier, "boosting"),
    "paper": partial(CatalogClassifier, "paper"),
    "forest": forest,
    "boosting": boosting,
    "boosting0": HistGradientBoostingClassifier,
    "lightgbm": partial(Coded, lightgbm),
    "xgboost": partial(Coded, xgboost),
    "catboost": partial(Coded, catboost),
    "mean": partial(filled, MeanImputer),
    "knn": partial(filled, NeighborsImputer),
    "missforest": partial(filled, partial(ForestImputer, n_jobs=-1)),
    "mixture": partial(filled, partial(GaussianMixtureImputer, "sample")),
}
TITLES = {
    "skyfill": "skyfill",
    "skyquick": "skyfill --quick",
    "skythorough": "skyfill --thorough",
    "skylimits": "skyfill, limits recognized",
    "skyrefined": "skyfill, gaps filled with forests",
    "skyforest": "skyfill, forest only",
    "skyboosting": "skyfill, boosting only",
    "paper": "skyfill, plain forest on filled values",
    "forest": "random forest, its own gaps",
    "boosting": "HistGradientBoosting, its own gaps",
    "boosting0": "HistGradientBoosting, defaults",
    "lightgbm": "LightGBM",
    "xgboost": "XGBoost",
    "catboost": "CatBoost",
    "mean": "column mean + forest",
    "knn": "kNN filling + forest",
    "missforest": "missForest + forest",
    "mixture": "independent mixtures + forest (the paper's baseline)",
}
