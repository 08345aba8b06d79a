"""Cross-validate classifiers of incomplete objects: everything is fitted inside the fold."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog.class_labels import label_texts
from skyfill.classify.class_scores import Array
from skyfill.classify.training_set import Labels, deal_folds, read_labels
from skyfill.errors import DataError
from skyfill.evaluate.class_comparison import ClassComparison, OutOfFold
from skyfill.evaluate.methods import Factory, Progress, check_comparison, counted, seeded
from skyfill.impute import as_numbers

Mask = NDArray[np.bool_]


def cross_validate(
    X: Any,
    y: Iterable[Any],
    methods: Mapping[str, Factory],
    *,
    folds: int = 10,
    repeats: int = 1,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
    groups: NDArray[np.intp] | None = None,
) -> ClassComparison:
    """Let every method classify each object after training on the other folds.

    Parameters
    ----------
    X : array of shape (n, p), or a table
        What `skyfill.impute.as_numbers` accepts; NaN and null are gaps.
    y : sequence of n labels
        An object without a label (None, NaN, blank) is not scored; it is given to methods that
        can learn from it: those with a true attribute ``learns_unlabeled``.
    methods : mapping of str to callable
        Each call gives a new classifier with ``fit(X, y)`` and ``predict_proba(X)``. Every
        parameter ``random_state`` that is None gets a seed that follows from repeat and fold.
    folds, repeats : int
        Every class is distributed evenly over the folds, differently in each repeat.
    rng : int or numpy.random.Generator
        The same seed gives the same folds for any methods.
    progress : callable, optional
        Called with the number of fits done, of all fits, and the name of the method.
    groups : int array of shape (n,), optional
        Rows with the same number are of one object, and in one fold.

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
    check_comparison(methods, repeats)
    _check_labels(labels, len(numbers), folds)
    seed = int(np.random.default_rng(rng).integers(2**31))
    objects = Objects(numbers, labels, groups)
    _check_groups(objects)
    begin = counted(progress, len(methods) * repeats * folds)
    runs = []
    for name, factory in methods.items():
        for repeat in range(repeats):
            p, seconds = np.full((len(numbers), len(labels.classes)), np.nan), np.zeros(2)
            for k, test in enumerate(objects.folds(folds, [seed, repeat])):
                begin(name)
                p[test], spent = objects.classify(factory, test, repeat * folds + k)
                seconds += spent
            runs.append(OutOfFold(name, repeat, p[labels.known], *map(float, seconds)))
    begin("")
    rows = np.flatnonzero(labels.known)
    return ClassComparison(tuple(labels.classes), labels.codes, tuple(runs), rows)


class Objects(NamedTuple):
    """The objects that all methods are tried on."""

    X: Array
    labels: Labels
    groups: NDArray[np.intp] | None = None

    def folds(self, n_folds: int, seed: list[int]) -> list[Mask]:
        """Deal the labelled objects to folds; mark those of each."""
        fold = np.full(len(self.X), -1)
        rng = np.random.default_rng(seed)
        mine = None if self.groups is None else self.groups[self.labels.known]
        fold[self.labels.known] = deal_folds(self.labels.codes, n_folds, rng, mine)
        return [fold == k for k in range(n_folds)]

    def classify(self, factory: Factory, test: Mask, seed: int) -> tuple[Array, Array]:
        """Learn from the other objects and classify those of a fold; also seconds for both."""
        model = seeded(factory(), seed)
        train = ~test if getattr(model, "learns_unlabeled", False) else ~test & self.labels.known
        start = time.perf_counter()
        model.fit(self.X[train], self._words(train), **self._grouped(model, train))
        fitted = time.perf_counter()
        p = np.asarray(model.predict_proba(self.X[test]))
        done = time.perf_counter()
        return self._aligned(p, model), np.array([fitted - start, done - fitted])

    def _grouped(self, model: Any, rows: Mask) -> dict[str, Any]:
        """Give groups to methods that know them; their own folds must not divide an object."""
        takes = "groups" in inspect.signature(model.fit).parameters
        return {"groups": self.groups[rows]} if takes and self.groups is not None else {}

    def _words(self, rows: Mask) -> NDArray[Any]:
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


def _check_labels(labels: Labels, n_rows: int, folds: int) -> None:
    """Refuse labels from which a fold would have nothing to learn."""
    if len(labels.known) != n_rows:
        raise DataError(f"{len(labels.known)} labels for {n_rows} rows; give one for each row")
    for name, count in zip(labels.classes, np.bincount(labels.codes), strict=True):
        if count < 2:
            raise DataError(
                f"class {str(name)!r} has 1 object: there is no other to learn from; merge the "
                "class with another or drop it"
            )
    n = len(labels.codes)
    if not 2 <= folds <= n:
        raise DataError(f"{folds} folds for {n} labelled objects; choose 2 to {n}")


def _check_groups(objects: Objects) -> None:
    """Refuse classes of a single object: nothing could be learned about them without it."""
    labels = objects.labels
    if objects.groups is None:
        return
    pairs = np.unique(np.stack([labels.codes, objects.groups[labels.known]]), axis=1)
    alone = labels.classes[np.flatnonzero(np.bincount(pairs[0]) < 2)]
    if len(alone):
        raise DataError(
            f"class {', '.join(map(repr, map(str, alone)))}: all rows are of one object; merge the "
            "class with another or drop it"
        )


def without_surveys(
    X: Array,
    y: Iterable[Any],
    methods: Mapping[str, Factory],
    *,
    columns: Sequence[int],
    found: ClassComparison,
    **options: Any,
) -> dict[str, ClassComparison]:
    """Repeat a comparison without some columns; split the objects by whether they have them.

    Parameters
    ----------
    columns : sequence of int
        The columns to leave out.
    found : ClassComparison
        The result of `cross_validate` with all columns and the same options.
    **options
        Those of `cross_validate`; the seed must be the same.

    Returns
    -------
    dict
        For ``all``, ``matched`` (objects with any of the columns) and ``unmatched`` objects: each
        method with the columns and, as "<method> without", without them. A part without objects
        is left out.
    """
    kept = [j for j in range(X.shape[1]) if j not in set(columns)]
    if not kept:
        raise DataError("without these columns there is nothing left to classify by")
    bare = cross_validate(X[:, kept], y, methods, **options).renamed(" without")
    both = found + bare
    matched = np.asarray(~np.isnan(X[:, list(columns)]).all(axis=1))
    parts: dict[str, Mask] = {
        "all": np.ones(len(X), dtype=bool),
        "matched": matched,
        "unmatched": np.logical_not(matched),
    }
    return {name: both.subset(rows) for name, rows in parts.items() if rows[both.rows].any()}
