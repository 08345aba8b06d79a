"""Out-of-fold probabilities of several methods: scores, paired differences, curves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.class_scores import (
    SCALARS,
    Array,
    ClassScores,
    Codes,
    Reliability,
    class_scores,
    confusion,
    reliability,
    scalar_scores,
)
from skyfill.errors import DataError
from skyfill.evaluate import score_tables
from skyfill.evaluate.score_tables import Difference, Mean

# Bootstrap samples of the objects behind standard errors and intervals.
N_SAMPLES = 400
INTERVAL = (2.5, 97.5)


class ScoreCurve(NamedTuple):
    """Points of a curve and the area under it (for precision and recall: average precision)."""

    x: Array
    y: Array
    area: float


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Probabilities by one method in one repeat, for each object from the fold without it."""

    method: str
    repeat: int
    probabilities: Array
    fit_seconds: float
    score_seconds: float


@dataclass(frozen=True, eq=False)
class ClassComparison:
    """Probabilities by every method, in every repeat, for the same objects in the same folds.

    Standard errors and intervals are over objects: bootstrap samples within classes, the same for
    all methods, so that differences are paired. Every score is the mean over repeats.

    Attributes
    ----------
    classes : tuple of str
    truth : integer array of shape (n,)
        True class of each labelled object.
    runs : tuple of OutOfFold
    rows : integer array of shape (n,)
        Rows of the objects in the table that was given.
    weights : array of shape (n,), optional
        How many objects each stands for; 1 where not given.

    Examples
    --------
    >>> sure = np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> runs = (OutOfFold("a", 0, sure, 0.0, 0.0), OutOfFold("b", 0, sure[::-1], 0.0, 0.0))
    >>> found = ClassComparison(("QSO", "RRL"), np.array([0, 1]), runs, np.arange(2))
    >>> found.mean("accuracy", "a").value, found.difference("accuracy", "b", "a").value
    (1.0, -1.0)
    """

    classes: tuple[str, ...]
    truth: Codes
    runs: tuple[OutOfFold, ...]
    rows: Codes
    weights: Array | None = None

    def _repr_html_(self) -> str:
        return score_tables.tables_html(self.summary_table(), self.class_table())

    def __add__(self, other: ClassComparison) -> ClassComparison:
        """Add the methods of another comparison of the same objects."""
        same = self.classes == other.classes and np.array_equal(self.rows, other.rows)
        if not same or not np.array_equal(self.truth, other.truth):
            raise DataError("the two comparisons are not about the same objects")
        return replace(self, runs=self.runs + other.runs)

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        return tuple(dict.fromkeys(run.method for run in self.runs))

    def renamed(self, suffix: str) -> ClassComparison:
        """Add a suffix to the name of every method."""
        runs = tuple(replace(run, method=run.method + suffix) for run in self.runs)
        return replace(self, runs=runs)

    def only(self, methods: Sequence[str]) -> ClassComparison:
        """Keep only some methods, in the given order."""
        runs = tuple(run for method in methods for run in self.of(method))
        return replace(self, runs=runs)

    def merged(self, names: Sequence[str]) -> ClassComparison:
        """Take classes for one where they get the same name; their probabilities are added.

        Parameters
        ----------
        names : sequence of str
            A name for each class.
        """
        classes = tuple(dict.fromkeys(names))
        code = np.array([classes.index(name) for name in names])
        of = np.eye(len(classes))[code]
        runs = tuple(replace(run, probabilities=run.probabilities @ of) for run in self.runs)
        return replace(self, classes=classes, truth=code[self.truth], runs=runs)

    def subset(self, keep: NDArray[np.bool_]) -> ClassComparison:
        """Keep only some objects.

        Parameters
        ----------
        keep : boolean array
            For each row of the table that was given.
        """
        mine = np.asarray(keep, dtype=bool)[self.rows]
        runs = tuple(replace(run, probabilities=run.probabilities[mine]) for run in self.runs)
        weights = None if self.weights is None else self.weights[mine]
        return ClassComparison(self.classes, self.truth[mine], runs, self.rows[mine], weights)

    def of(self, method: str) -> tuple[OutOfFold, ...]:
        """Return the repeats of one method."""
        found = tuple(run for run in self.runs if run.method == method)
        if not found:
            raise DataError(f"no method {method!r}; they are {', '.join(self.methods)}")
        return found

    def confusion(self, method: str) -> Array:
        """Objects by true class (rows) and predicted class (columns), mean over repeats."""
        c = len(self.classes)
        runs = (run.probabilities.argmax(axis=1) for run in self.of(method))
        counts = [confusion(self.truth, q, c, self.weights) for q in runs]
        return np.asarray(np.mean(counts, axis=0))

    def by_class(self, method: str) -> ClassScores:
        """Precision, recall, F and support of each class, means over repeats."""
        c = len(self.classes)
        runs = (run.probabilities.argmax(axis=1) for run in self.of(method))
        counts = (confusion(self.truth, predicted, c, self.weights) for predicted in runs)
        found = [class_scores(each) for each in counts]
        return ClassScores(*(np.mean(values, axis=0) for values in zip(*found, strict=True)))

    def mean(self, score: str, method: str) -> Mean:
        """Return a score of `SCALARS` with its standard error over objects."""
        samples = self._samples(score, method)
        return Mean(float(samples[0]), float(samples[1:].std()))

    def difference(self, score: str, method: str, reference: str) -> Difference:
        """Return the score of `method` minus that of `reference`, with a paired 95 % interval."""
        gap = self._samples(score, method) - self._samples(score, reference)
        return Difference(float(gap[0]), *map(float, np.percentile(gap[1:], INTERVAL)))

    def seconds(self, method: str) -> tuple[float, float]:
        """Seconds to fit and to score all folds, means over repeats."""
        runs = self.of(method)
        fit, score = zip(*((run.fit_seconds, run.score_seconds) for run in runs), strict=True)
        return float(np.mean(fit)), float(np.mean(score))

    def reliability(self, method: str, name: str | None = None) -> Reliability:
        """Probabilities against fractions correct, of the most probable class or of one class."""
        stated, hits = [], []
        for run in self.of(method):
            p = run.probabilities
            pick = p.argmax(axis=1) if name is None else np.full(len(p), self._code(name))
            stated.append(p[np.arange(len(p)), pick])
            hits.append(pick == self.truth)
        weights = None if self.weights is None else np.tile(self.weights, len(stated))
        return reliability(np.concatenate(stated), np.concatenate(hits), weights)

    def roc(self, method: str, name: str) -> ScoreCurve:
        """Return the true against the false positive rate of a class; first repeat."""
        from sklearn.metrics import auc, roc_curve

        x, y, _ = roc_curve(*self._versus_rest(method, name), sample_weight=self.weights)
        return ScoreCurve(x, y, float(auc(x, y)))

    def precision_recall(self, method: str, name: str) -> ScoreCurve:
        """Precision against recall of a class; first repeat."""
        from sklearn.metrics import average_precision_score, precision_recall_curve

        pair = self._versus_rest(method, name)
        weights = {"sample_weight": self.weights}
        precision, recall, _ = precision_recall_curve(*pair, **weights)
        return ScoreCurve(recall, precision, float(average_precision_score(*pair, **weights)))

    def class_table(self) -> str:
        """Write precision, recall and F of every class and method as Markdown."""
        scores = {method: self.by_class(method) for method in self.methods}
        return score_tables.class_table(self.classes, scores)

    def summary_table(self) -> str:
        """Write each method's scores over all objects, with standard errors, as Markdown."""
        means = {score: [self.mean(score, method) for method in self.methods] for score in SCALARS}
        seconds = {method: sum(self.seconds(method)) for method in self.methods}
        return score_tables.summary_table(means, seconds)

    def difference_table(self, reference: str) -> str:
        """Write scores of the other methods minus those of one, with intervals, as Markdown."""
        found = {
            f"{method} minus {reference}": {
                score: self.difference(score, method, reference) for score in SCALARS
            }
            for method in self.methods
            if method != reference
        }
        return score_tables.difference_table(found)

    def confusion_table(self, method: str) -> str:
        """Write the counts of `confusion` as Markdown."""
        return score_tables.confusion_table(method, self.classes, self.confusion(method))

    def to_dict(self) -> dict[str, Any]:
        """Return scores, differences from the first method, confusion and curves as values."""
        return {
            "classes": list(self.classes),
            "support": np.bincount(self.truth, self.weights, len(self.classes)).tolist(),
            "methods": [self._facts(method) for method in self.methods],
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def _facts(self, method: str) -> dict[str, Any]:
        scores, first = self.by_class(method), self.methods[0]
        fit, score = self.seconds(method)
        curve = self.reliability(method)
        seen = curve.n > 0
        return {
            "method": method,
            "fit_seconds": fit,
            "score_seconds": score,
            **{name: self.mean(name, method)._asdict() for name in SCALARS},
            "minus_first": {n: self.difference(n, method, first)._asdict() for n in SCALARS},
            "by_class": [self._class_facts(method, scores, k) for k in range(len(self.classes))],
            "confusion": self.confusion(method).tolist(),
            "reliability": {
                name: values[seen].tolist() for name, values in curve._asdict().items()
            },
        }

    def _class_facts(self, method: str, scores: ClassScores, k: int) -> dict[str, Any]:
        name = self.classes[k]
        facts = {"class": name, **{key: float(v[k]) for key, v in scores._asdict().items()}}
        if 0 < scores.support[k] < len(self.truth):
            facts["roc_area"] = self.roc(method, name).area
            facts["average_precision"] = self.precision_recall(method, name).area
        return facts

    def _versus_rest(self, method: str, name: str) -> tuple[NDArray[np.bool_], Array]:
        code = self._code(name)
        return self.truth == code, self.of(method)[0].probabilities[:, code]

    def _code(self, name: str) -> int:
        if name not in self.classes:
            raise DataError(f"no class {name!r}; they are {', '.join(self.classes)}")
        return self.classes.index(name)

    @cached_property
    def _weights(self) -> Array:
        """Weight of each object, then times its counts in bootstrap samples within classes."""
        rng = np.random.default_rng(0)
        weights = np.ones((1 + N_SAMPLES, len(self.truth)))
        for code in np.unique(self.truth):
            mine = np.flatnonzero(self.truth == code)
            even = np.full(mine.size, 1 / mine.size)
            weights[1:, mine] = rng.multinomial(mine.size, even, size=N_SAMPLES)
        return weights if self.weights is None else weights * self.weights

    @cached_property
    def _scored(self) -> dict[str, dict[str, Array]]:
        """Every method's scores for each row of `_weights`."""
        return {method: self._score(self.of(method)) for method in self.methods}

    def _score(self, runs: Sequence[OutOfFold]) -> dict[str, Array]:
        found = [scalar_scores(run.probabilities, self.truth, self._weights) for run in runs]
        return {name: np.mean([one[name] for one in found], axis=0) for name in SCALARS}

    def _samples(self, score: str, method: str) -> Array:
        if score not in SCALARS:
            raise DataError(f"no score {score!r}; the scores are {', '.join(SCALARS)}")
        self.of(method)
        return self._scored[method][score]
