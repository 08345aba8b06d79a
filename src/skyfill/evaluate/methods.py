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

from skyfill.catalog.class_labels import label_texts
from skyfill.classify import CatalogClassifier
from skyfill.classify.training_set import read_labels
from skyfill.errors import DataError
from skyfill.impute import (
    ForestImputer,
    GaussianMixtureImputer,
    MeanImputer,
    NeighborsImputer,
    NetworkImputer,
    OneNetworkImputer,
    as_numbers,
)

Factory = Callable[[], Any]
Progress = Callable[[int, int, str], None]

N_TREES = 300
# A column with values in this share of the rows is complete: its gaps are 0 % when rounded, as in
# the paper's tables of missing values.
COMPLETE = 0.995


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


class CompleteClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learn from a complete subset of a table: some columns, and the rows without a gap in them.

    An object with a gap in these columns cannot be classified: it gets the shares of the classes
    in the training set, as does every object where no row or column is complete.

    Parameters
    ----------
    classifier : estimator with ``fit`` and ``predict_proba``
    least : float
        Columns with values in fewer than this share of the labelled rows are left out; 0: none.
    random_state : int or None
        Seed of the classifier, unless it has its own.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X = [[0.0, 1.0], [0.2, 1.2], [5.0, 6.0], [5.2, 6.2], [5.1, np.nan]]
    >>> model = CompleteClassifier(GaussianNB()).fit(X, ["RRL", "RRL", "QSO", "QSO", "QSO"])
    >>> model.predict_proba([[0.1, 1.1], [0.1, np.nan]]).round(1)
    array([[0. , 1. ],
           [0.6, 0.4]])
    """

    def __init__(self, classifier: Any, *, least: float = 0.0, random_state: Any = None) -> None:
        self.classifier = classifier
        self.least = least
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from the rows that have a label and no gap."""
        labels = read_labels(label_texts(y))
        numbers = as_numbers(X).X[labels.known]
        seen = ~np.isnan(numbers)
        self.classes_ = labels.classes
        self.shares_ = np.bincount(labels.codes) / len(labels.codes)
        self.columns_ = np.flatnonzero(seen.mean(axis=0) >= self.least)
        whole = seen[:, self.columns_].all(axis=1)
        self.classifier_ = None
        if self.columns_.size and whole.any():
            seed = 0 if self.random_state is None else self.random_state
            model = seeded(clone(self.classifier), seed)
            self.classifier_ = model.fit(numbers[whole][:, self.columns_], labels.codes[whole])
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, in the order of ``classes_``."""
        check_is_fitted(self)
        numbers = as_numbers(X).X[:, self.columns_]
        out = np.tile(self.shares_, (len(numbers), 1))
        whole = np.flatnonzero(~np.isnan(numbers).any(axis=1))
        if self.classifier_ is not None and whole.size:
            out[whole] = 0.0
            p = self.classifier_.predict_proba(numbers[whole])
            out[np.ix_(whole, self.classifier_.classes_)] = p
        return out

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class CompleteRowsImputer(NetworkImputer):  # type: ignore[misc]
    """A `NetworkImputer` that learns from the rows without a gap alone.

    Examples
    --------
    >>> V = np.linspace(17, 19, 50)
    >>> X = np.column_stack([V, V - 0.8])
    >>> X[::2, 1] = np.nan
    >>> imputer = CompleteRowsImputer(1, n_fits=1, refine=None, random_state=0).fit(X)
    >>> imputer.transform([[18.2, np.nan]]).round(1)
    array([[18.2, 17.4]])
    """

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the complete rows of a table."""
        numbers = as_numbers(X).X
        whole = ~np.isnan(numbers).any(axis=1)
        if whole.sum() < 2:
            raise DataError(
                f"complete-rows: {whole.sum()} of {len(whole)} rows to learn from have all "
                f"{numbers.shape[1]} columns; hide fewer cells, or leave out columns of many gaps"
            )
        super().fit(numbers[whole])
        return self


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
    "paper-printed": partial(OneNetworkImputer, orders="own"),
    "paper-bic": partial(OneNetworkImputer, "bic"),
    "complete-rows": CompleteRowsImputer,
    "skyfill": NetworkImputer,
    # What "skyfill" was before forests were its default, and what they were called then.
    "skyfill-unrefined": partial(NetworkImputer, refine=None),
    "skyfill-refined": NetworkImputer,
    "skyfill-quick": _QUICK,
    "skyfill-thorough": _THOROUGH,
}
# Name -> what makes a new classifier: a forest on filled values, trees that handle gaps themselves,
# a forest on what is complete, the paper's pipeline and our own. The paper compares itself with
# "mixture" filled by draws.
CLASSIFIERS: dict[str, Factory] = {
    "mean": partial(_filled, IMPUTERS["mean"]),
    "mixture": partial(_filled, partial(GaussianMixtureImputer, "sample")),
    "knn": partial(_filled, IMPUTERS["knn"]),
    "missforest": partial(_filled, IMPUTERS["missforest"]),
    "skyfill-unrefined": partial(_filled, IMPUTERS["skyfill-unrefined"]),
    "skyfill-refined": partial(_filled, IMPUTERS["skyfill-refined"]),
    "nan-forest": _forest,
    "nan-boosting": _boosting,
    "complete-rows": lambda: CompleteClassifier(_forest()),
    "complete-columns": lambda: CompleteClassifier(_forest(), least=COMPLETE),
    "paper": lambda: CatalogClassifier("paper", imputer=OneNetworkImputer()),
    "paper-printed": lambda: CatalogClassifier("paper", imputer=OneNetworkImputer(orders="own")),
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
