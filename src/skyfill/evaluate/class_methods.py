"""Classifiers by name, to be compared: that of skyfill, that of the paper, and the usual ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from skyfill.classify.training_set import label_texts, read_labels
from skyfill.errors import DataError
from skyfill.evaluate.classification import seeded
from skyfill.impute import (
    ForestImputer,
    GaussianMixtureImputer,
    MeanImputer,
    NeighborsImputer,
    NetworkImputer,
)

N_TREES = 300


class FilledClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fill the gaps, then classify the filled table as if it had been measured.

    Parameters
    ----------
    imputer : estimator with ``fit`` and ``transform``
        It learns from all rows, also from those without a label.
    classifier : estimator with ``fit`` and ``predict_proba``
    random_state : int or None
        Seed of both, where they have none of their own.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> model = FilledClassifier(MeanImputer(), GaussianNB())
    >>> X = [[0.0, 1.0], [0.2, np.nan], [5.0, 6.0], [5.2, np.nan], [5.1, 6.1]]
    >>> model.fit(X, ["RRL", "RRL", "QSO", "QSO", None]).predict([[5.0, np.nan]])
    array(['QSO'], dtype='<U3')
    """

    learns_unlabeled = True

    def __init__(self, imputer: Any, classifier: Any, *, random_state: Any = None) -> None:
        self.imputer = imputer
        self.classifier = classifier
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn to fill from all rows and to classify from the labelled ones."""
        seed = 0 if self.random_state is None else self.random_state
        labels = read_labels(label_texts(y))
        self.classes_ = labels.classes
        self.imputer_ = seeded(clone(self.imputer), seed).fit(X)
        filled = np.asarray(self.imputer_.transform(X))[labels.known]
        self.classifier_ = seeded(clone(self.classifier), seed).fit(filled, labels.codes)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Give the probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        return np.asarray(self.classifier_.predict_proba(self.imputer_.transform(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Give the most probable class."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(N_TREES, n_jobs=-1)


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier()


def _filled(imputer: Callable[[], Any]) -> FilledClassifier:
    return FilledClassifier(imputer(), _forest())


def _paper() -> Any:
    from skyfill.classify import CatalogClassifier

    return CatalogClassifier("paper", imputer=NetworkImputer(1, margins=False, n_fits=1))


def _skyfill() -> Any:
    from skyfill.classify import CatalogClassifier

    return CatalogClassifier()


def _quick() -> Any:
    """Give a small one for a first look: one fit, one forest per view."""
    from skyfill.classify import CatalogClassifier

    imputer = NetworkImputer(6, gaps="informative", n_fits=1, tol=1e-3)
    return CatalogClassifier("forest", imputer=imputer, n_trees=60)


# Name -> what makes a new classifier. "mixture" is what the paper compares itself with: it fills
# in draws, each column for itself.
METHODS: dict[str, Callable[[], Any]] = {
    "mean": partial(_filled, MeanImputer),
    "mixture": partial(_filled, partial(GaussianMixtureImputer, "sample")),
    "neighbors": partial(_filled, NeighborsImputer),
    "missforest": partial(_filled, partial(ForestImputer, n_jobs=-1)),
    "nan-forest": _forest,
    "nan-boosting": _boosting,
    "paper": _paper,
    "skyfill": _skyfill,
    "skyfill-quick": _quick,
}


def classifiers(names: Sequence[str]) -> dict[str, Callable[[], Any]]:
    """Look classifiers up by name.

    Examples
    --------
    >>> list(classifiers(["mixture", "skyfill"]))
    ['mixture', 'skyfill']
    """
    for name in names:
        if name not in METHODS:
            raise DataError(f"no method {name!r}; the methods are {', '.join(METHODS)}")
    return {name: METHODS[name] for name in names}
