"""Scores as they would be in a field where the shares of the classes are others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from skyfill.catalog.class_labels import label_texts
from skyfill.classify.class_scores import Array
from skyfill.classify.held_out import keep_held_out
from skyfill.classify.known_gaps import learn_gaps
from skyfill.classify.likeness import learn_looks
from skyfill.classify.prior import (
    FieldShares,
    estimate_shares,
    judge_shares,
    rows_behind,
    shift_prior,
)
from skyfill.classify.training_set import read_labels
from skyfill.errors import DataError
from skyfill.evaluate.class_comparison import ClassComparison
from skyfill.evaluate.classification import Objects
from skyfill.evaluate.methods import Factory

# Rival classifiers give probabilities of exactly 0; no class is impossible.
FLOOR = 1e-6


class FieldScores(NamedTuple):
    """Estimated shares of the classes in the field, and the comparison as it would be there."""

    shares: FieldShares
    comparison: ClassComparison


def score_in_field(
    found: ClassComparison,
    X: Array,
    y: Iterable[Any],
    methods: Mapping[str, Factory],
    field: Array,
    *,
    seed: int = 0,
) -> FieldScores:
    """Convert held-out probabilities to the shares of a field, and weigh the objects by them.

    The last method is trained once more, on all objects, and classifies the field; the shares are
    those for which its mean probabilities there are a mixture of the held-out ones
    (`estimate_shares`). What the scores assume is that objects of a class look alike in both: faint
    objects that the training set lacks are not in them.

    Parameters
    ----------
    found : ClassComparison
        From `cross_validate`.
    X, y, methods
        What it was given.
    field : array of shape (m, p)
        Objects of the field.
    seed : int
        Of the method that classifies the field.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skyfill.evaluate import cross_validate
    >>> rng, methods = np.random.default_rng(0), {"bayes": GaussianNB}
    >>> y, kind = np.repeat(["QSO", "star"], 200), rng.random(3000) < 0.95
    >>> X = rng.normal(size=(400, 2)) + 2 * (y == "star")[:, None]
    >>> field = rng.normal(size=(3000, 2)) + 2 * kind[:, None]
    >>> there = score_in_field(cross_validate(X, y, methods, folds=5), X, y, methods, field)
    >>> bool(there.shares.low[0] < 0.05 < there.shares.high[0])
    True
    """
    last = found.methods[-1]
    P = _classify_field(methods[last], np.asarray(X), y, np.asarray(field), seed)
    n = np.bincount(found.truth, minlength=len(found.classes))
    old = n / n.sum()
    held_out = keep_held_out(_positive(found.of(last)[0].probabilities), found.truth)
    mine = np.asarray(X)[found.rows]
    known = ~learn_gaps(mine).unlike(field)
    shares = estimate_shares(P, old, held_out, known)
    looks = learn_looks(mine, found.truth, len(old))
    shares = judge_shares(shares, old, field[rows_behind(known)], looks)
    runs = tuple(
        replace(run, probabilities=shift_prior(_positive(run.probabilities), old, shares.shares))
        for run in found.runs
    )
    weights = (shares.shares / old)[found.truth]
    return FieldScores(shares, replace(found, runs=runs, weights=weights))


def _classify_field(factory: Factory, X: Array, y: Iterable[Any], field: Array, seed: int) -> Array:
    if field.shape[1] != X.shape[1]:
        raise DataError(f"the field has {field.shape[1]} columns, the objects have {X.shape[1]}")
    labels = read_labels(label_texts(y))
    new = np.arange(len(X) + len(field)) >= len(X)
    labels = labels._replace(known=np.concatenate([labels.known, np.zeros(len(field), bool)]))
    return _positive(Objects(np.concatenate([X, field]), labels).classify(factory, new, seed)[0])


def _positive(P: Array) -> Array:
    inside = np.maximum(P, FLOOR)
    return np.asarray(inside / inside.sum(axis=1, keepdims=True))
