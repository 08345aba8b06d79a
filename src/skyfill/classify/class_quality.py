"""How good classes are: what was said of objects without their labels, against these labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from skyfill.classify.class_scores import (
    SCALARS,
    Array,
    Codes,
    brier_scores,
    class_scores,
    confusion,
    log_losses,
    reliability,
    scalar_scores,
)

# Samples of the objects, within classes, behind the errors of F; digits that are kept.
N_SAMPLES, DIGITS = 400, 6
# How the objects were kept apart from what classified them.
FOLDS, BAGS, NEW = "folds", "bags", "new"


def class_quality(
    P: Array,
    truth: Codes,
    classes: Sequence[str],
    *,
    apart: str,
    fractions: Array | None = None,
) -> dict[str, Any]:
    """Score class probabilities of objects whose classes are known, as plain values.

    Parameters
    ----------
    P : array of shape (n, classes)
        NaN for objects of which nothing was said.
    truth : int array of shape (n,)
    classes : sequence of str
    apart : {"folds", "bags", "new"}
        Why what was said of an object does not rest on its label: it is in another fold, was not
        in the sample of a tree, or was not learned from.
    fractions : array of shape (classes,), optional
        Class fractions that the probabilities assume; by default those of the objects.

    Returns
    -------
    dict
        ``methods`` holds the scores, each with its standard error, as `ClassComparison.to_dict`
        writes them; ``unmeasured`` counts the objects of each class of which nothing was said,
        ``stated`` and ``true`` are the class fractions.

    Examples
    --------
    >>> P = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [np.nan, np.nan]])
    >>> found = class_quality(P, np.array([0, 1, 1, 1]), ["QSO", "RRL"], apart="folds")
    >>> found["objects"], found["unmeasured"], found["methods"][0]["accuracy"]
    (3, {'RRL': 1}, {'value': 0.666667, 'error': 0.272166})
    """
    names, lost = [str(name) for name in classes], np.isnan(P).any(axis=1)
    counts = np.bincount(truth[lost], minlength=len(names)).tolist()
    unmeasured = {name: n for name, n in zip(names, counts, strict=True) if n}
    P, truth = P[~lost], truth[~lost]
    facts = {"apart": apart, "objects": len(truth), "classes": names, "unmeasured": unmeasured}
    if not len(truth):
        return facts
    support = np.bincount(truth, minlength=len(names))
    true = support / len(truth) if fractions is None else fractions * (support > 0)
    weights = (true / np.maximum(support, 1))[truth]
    return facts | {
        "support": support.tolist(),
        "stated": _rounded(weights @ P / weights.sum()),
        "true": _rounded(true / true.sum()),
        "methods": [_scores(P, truth, names)],
    }


def _scores(P: Array, truth: Codes, names: list[str]) -> dict[str, Any]:
    n, predicted = len(truth), P.argmax(axis=1)
    values = scalar_scores(P, truth, np.ones((1, n)))
    each = {
        "accuracy": (predicted == truth).astype(np.float64),
        "log_loss": log_losses(P, truth),
        "brier": brier_scores(P, truth),
    }
    errors: dict[str, float | None] = {
        name: float(score.std() / np.sqrt(n)) for name, score in each.items()
    }
    counts = confusion(truth, predicted, len(names))
    scores, curve = class_scores(counts), reliability(P.max(axis=1), predicted == truth)
    drawn = class_scores(_resampled(counts)).f
    errors["macro_f"] = float(drawn[:, scores.support > 0].mean(axis=1).std())
    errors["weighted_f"] = float((drawn @ scores.support / n).std())
    by_class = zip(names, *(_rounded(column) for column in scores), strict=True)
    return {
        "method": "this model",
        **{
            name: {"value": _round(values[name][0]), "error": _round(errors.get(name))}
            for name in SCALARS
        },
        "by_class": [dict(zip(("class", *scores._fields), line, strict=True)) for line in by_class],
        "confusion": counts.tolist(),
        "reliability": {k: _rounded(v[curve.n > 0]) for k, v in curve._asdict().items()},
    }


def _resampled(counts: Array) -> Array:
    """Count objects again that are drawn, within each true class, with replacement."""
    rng, out = np.random.default_rng(0), np.zeros((N_SAMPLES, *counts.shape))
    for c, row in enumerate(counts):
        if row.sum():
            out[:, c] = rng.multinomial(int(row.sum()), row / row.sum(), size=N_SAMPLES)
    return out


def _round(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{DIGITS}g}")


def _rounded(values: Array) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
