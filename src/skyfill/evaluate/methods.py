"""Imputers and classifiers by name, for comparisons: one name for one way to fill gaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted

from skyfill.classify import CatalogClassifier
from skyfill.classify.training_set import label_texts, read_labels
from skyfill.errors import DataError
from skyfill.impute import (
    ForestImputer,
    GaussianMixtureImputer,
    MeanImputer,
    NeighborsImputer,
    NetworkImputer,
    OneNetworkImputer,
)

Factory = Callable[[], Any]
Progress = Callable[[int, int, str], None]

N_TREES = 300


class FilledClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fill the gaps, then classify the filled table as if all values had been measured.

    Parameters
    ----------
    imputer : estimator with ``fit`` and ``transform``
        It learns from all rows, including those without a label.
    classifier : estimator with ``fit`` and ``predict_proba``
    random_state : int or None
        Seed of both, unless they have their own.

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
        """Learn to fill from all rows, and to classify from the labelled ones."""
        seed = 0 if self.random_state is None else self.random_state
        labels = read_labels(label_texts(y))
        self.classes_ = labels.classes
        self.imputer_ = seeded(clone(self.imputer), seed).fit(X)
        filled = np.asarray(self.imputer_.transform(X))[labels.known]
        self.classifier_ = seeded(clone(self.classifier), seed).fit(filled, labels.codes)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        return np.asarray(self.classifier_.predict_proba(self.imputer_.transform(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def _forest() -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(N_TREES, n_jobs=-1)


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier()


def _filled(imputer: Factory) -> FilledClassifier:
    return FilledClassifier(imputer(), _forest())


# What `skyfill train` learns with --quick and with --thorough. The likelihood of EM with limits
# wavers by more than a small tolerance: for a first look that of trials is enough.
_QUICK = partial(NetworkImputer, 6, n_fits=1, refine=None, tol=5e-3)
_THOROUGH = partial(NetworkImputer, n_fits=16)
# Name -> what makes a new imputer.
IMPUTERS: dict[str, Factory] = {
    "mean": MeanImputer,
    "mixture": GaussianMixtureImputer,
    "knn": NeighborsImputer,
    "missforest": partial(ForestImputer, n_jobs=-1),
    "paper": OneNetworkImputer,
    "paper-bic": partial(OneNetworkImputer, "bic"),
    "skyfill": NetworkImputer,
    # What "skyfill" was before forests were its default, and what they were called then.
    "skyfill-unrefined": partial(NetworkImputer, refine=None),
    "skyfill-refined": NetworkImputer,
    "skyfill-quick": _QUICK,
    "skyfill-thorough": _THOROUGH,
}
# Name -> what makes a new classifier: a forest on filled values, trees that handle gaps themselves,
# the paper's pipeline and our own. The paper compares itself with "mixture" filled by draws.
CLASSIFIERS: dict[str, Factory] = {
    "mean": partial(_filled, IMPUTERS["mean"]),
    "mixture": partial(_filled, partial(GaussianMixtureImputer, "sample")),
    "knn": partial(_filled, IMPUTERS["knn"]),
    "missforest": partial(_filled, IMPUTERS["missforest"]),
    "skyfill-unrefined": partial(_filled, IMPUTERS["skyfill-unrefined"]),
    "skyfill-refined": partial(_filled, IMPUTERS["skyfill-refined"]),
    "nan-forest": _forest,
    "nan-boosting": _boosting,
    "paper": lambda: CatalogClassifier("paper", imputer=OneNetworkImputer()),
    "paper-bic": lambda: CatalogClassifier("paper", imputer=OneNetworkImputer("bic")),
    "skyfill": CatalogClassifier,
    "skyfill-quick": lambda: CatalogClassifier("forest", imputer=_QUICK(gaps="auto"), n_trees=60),
    "skyfill-thorough": lambda: CatalogClassifier(
        imputer=NetworkImputer(n_fits=8, gaps="auto", refine=None), n_trees=500
    ),
}


def imputers(names: Sequence[str]) -> dict[str, Factory]:
    """Look imputers up by name.

    Examples
    --------
    >>> list(imputers(["mixture", "skyfill"]))
    ['mixture', 'skyfill']
    """
    return _look_up(names, IMPUTERS)


def classifiers(names: Sequence[str]) -> dict[str, Factory]:
    """Look classifiers up by name.

    Examples
    --------
    >>> list(classifiers(["mixture", "skyfill"]))
    ['mixture', 'skyfill']
    """
    return _look_up(names, CLASSIFIERS)


def _look_up(names: Sequence[str], known: Mapping[str, Factory]) -> dict[str, Factory]:
    for name in names:
        if name not in known:
            raise DataError(f"no method {name!r}; the methods are {', '.join(known)}")
    return {name: known[name] for name in names}


def seeded(model: Any, seed: int) -> Any:
    """Set every ``random_state`` that is None, of a model and of its parts."""
    asked = model.get_params() if hasattr(model, "get_params") else {}
    mine = {
        key: seed
        for key, value in asked.items()
        if value is None and key.rpartition("__")[2] == "random_state"
    }
    return model.set_params(**mine) if mine else model


def counted(progress: Progress | None, total: int) -> Callable[[str], None]:
    """Count steps for `progress`: call what is given with a method as its next step begins."""
    done = count()
    return lambda name: progress(next(done), total, name) if progress else None


def check_comparison(methods: Mapping[str, Factory], repeats: int) -> None:
    """Refuse a comparison of nothing."""
    if not methods:
        raise DataError("no methods to compare; give at least one")
    if repeats < 1:
        raise DataError(f"repeats must be at least 1, not {repeats}")
