"""Cross-validate classifiers of incomplete objects: everything is fitted inside the fold."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.training_set import Labels, deal_folds, label_texts, read_labels
from skyfill.errors import DataError
from skyfill.evaluate.class_comparison import ClassComparison, OutOfFold
from skyfill.evaluate.class_scores import Array, Codes
from skyfill.impute import as_numbers

Factory = Callable[[], Any]
Progress = Callable[[int, int, str], None]


class Fold(NamedTuple):
    """One part of the objects to be classified by what the others, and all unlabelled, teach."""

    repeat: int
    train: Codes
    test: Codes


def cross_validate(
    X: Any,
    y: Iterable[Any],
    methods: Mapping[str, Factory],
    *,
    folds: int = 10,
    repeats: int = 1,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
) -> ClassComparison:
    """Let every method classify each object after learning from the other folds.

    Parameters
    ----------
    X : array of shape (n, p), or a table
        What `skyfill.impute.as_numbers` accepts; NaN and null are gaps.
    y : sequence of n labels
        An object without a label (None, NaN, blank) is not scored; it is given to methods that
        can learn from it: `CatalogClassifier`, and what has an attribute ``learns_unlabeled``.
    methods : mapping of str to callable
        Each call gives a new classifier with ``fit(X, y)`` and ``predict_proba(X)``. Every
        parameter ``random_state`` that is None gets a seed that follows from repeat and fold.
    folds, repeats : int
        Every class is dealt evenly to the folds, anew in each repeat.
    rng : int or numpy.random.Generator
        The same seed gives the same folds, whatever the methods.
    progress : callable, optional
        Called with the number of fits done, of all fits, and the name of the method.

    Returns
    -------
    ClassComparison

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["QSO", "RRL"], 50)
    >>> X = rng.normal(size=(100, 2)) + 3 * (y == "QSO")[:, None]
    >>> found = cross_validate(X, y, {"bayes": GaussianNB}, folds=5)
    >>> found.mean("accuracy", "bayes").value > 0.9
    True
    """
    numbers, labels = as_numbers(X).X, read_labels(label_texts(y))
    _check(numbers, labels, methods, repeats, folds)
    seed = int(np.random.default_rng(rng).integers(2**31))
    plan = list(_plan(labels, folds, repeats, seed))
    trial = _Trial(numbers, labels)
    runs = []
    for place, (name, factory) in enumerate(methods.items()):
        steps = _told(plan, progress, place, (len(methods), name))
        runs += trial.run(name, factory, steps)
    if progress:
        progress(len(plan) * len(methods), len(plan) * len(methods), "")
    return ClassComparison(
        tuple(labels.classes), labels.codes, tuple(runs), np.flatnonzero(labels.known)
    )


def _plan(labels: Labels, folds: int, repeats: int, seed: int) -> Iterator[Fold]:
    for repeat in range(repeats):
        dealt = np.full(len(labels.known), -1)
        rng = np.random.default_rng([seed, repeat])
        dealt[labels.known] = deal_folds(labels.codes, folds, rng)
        for fold in range(folds):
            yield Fold(repeat, np.flatnonzero(dealt != fold), np.flatnonzero(dealt == fold))


def _told(
    plan: Sequence[Fold], progress: Progress | None, place: int, of: tuple[int, str]
) -> Iterator[Fold]:
    n_methods, name = of
    for done, fold in enumerate(plan):
        if progress:
            progress(place * len(plan) + done, n_methods * len(plan), name)
        yield fold


class _Trial(NamedTuple):
    """The objects that all methods are tried on."""

    X: Array
    labels: Labels

    def run(self, name: str, factory: Factory, plan: Iterable[Fold]) -> list[OutOfFold]:
        """Gather the folds of each repeat."""
        found: dict[int, Array] = {}
        seconds: dict[int, Array] = {}
        for step, fold in enumerate(plan):
            shape = (len(self.X), len(self.labels.classes))
            p = found.setdefault(fold.repeat, np.full(shape, np.nan))
            p[fold.test], spent = self._fold(factory, fold, step)
            seconds[fold.repeat] = seconds.get(fold.repeat, np.zeros(2)) + spent
        known = self.labels.known
        return [OutOfFold(name, r, p[known], *map(float, seconds[r])) for r, p in found.items()]

    def _fold(self, factory: Factory, fold: Fold, step: int) -> tuple[Array, Array]:
        model = seeded(factory(), step)
        rows = fold.train
        if not _learns_unlabeled(model):
            rows = rows[self.labels.known[rows]]
        start = time.perf_counter()
        model.fit(self.X[rows], self._words(rows))
        fitted = time.perf_counter()
        p = np.asarray(model.predict_proba(self.X[fold.test]))
        done = time.perf_counter()
        return self._aligned(p, model), np.array([fitted - start, done - fitted])

    def _words(self, rows: Codes) -> NDArray[Any]:
        words = np.full(len(self.X), None, dtype=object)
        words[self.labels.known] = self.labels.classes[self.labels.codes]
        return words[rows] if None in words[rows] else words[rows].astype(str)

    def _aligned(self, p: Array, model: Any) -> Array:
        """Put the columns in the order of all classes; a class that was not learned has 0."""
        out = np.zeros((len(p), len(self.labels.classes)))
        out[:, np.searchsorted(self.labels.classes, [str(name) for name in model.classes_])] = p
        if not np.isfinite(p).all():
            raise DataError(f"{type(model).__name__} gave probabilities that are not numbers")
        return out


def _learns_unlabeled(model: Any) -> bool:
    from skyfill.classify import CatalogClassifier

    return isinstance(model, CatalogClassifier) or getattr(model, "learns_unlabeled", False)


def seeded(model: Any, seed: int) -> Any:
    """Give every open ``random_state`` of a model and of its parts a seed."""
    asked = model.get_params() if hasattr(model, "get_params") else {}
    mine = {
        key: seed
        for key, value in asked.items()
        if value is None and key.rpartition("__")[2] == "random_state"
    }
    return model.set_params(**mine) if mine else model


def _check(
    X: Array, labels: Labels, methods: Mapping[str, Factory], repeats: int, folds: int
) -> None:
    """Refuse what cannot be compared, and labels from which a fold would have nothing to learn."""
    if not methods:
        raise DataError("no methods to compare; give at least one")
    if repeats < 1:
        raise DataError(f"repeats must be at least 1, not {repeats}")
    if len(labels.known) != len(X):
        raise DataError(f"{len(labels.known)} labels for {len(X)} rows; give one for each row")
    for name, count in zip(labels.classes, np.bincount(labels.codes), strict=True):
        if count < 2:
            raise DataError(
                f"class {str(name)!r} has 1 object: without it nothing is left to learn the class "
                "from; merge the class with another or drop it"
            )
    n = len(labels.codes)
    if not 2 <= folds <= n:
        raise DataError(f"{folds} folds for {n} labelled objects; ask for 2 to {n}")
