"""Scores of class probabilities: counts, losses and calibration, optionally weighted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

# Guo et al. (2017) use fifteen bins of equal width.
N_BINS = 15
SCALARS = ("accuracy", "macro_f", "weighted_f", "log_loss", "brier", "ece")
# All others are errors: lower is better.
HIGH_IS_GOOD = frozenset({"accuracy", "macro_f", "weighted_f"})


class ClassScores(NamedTuple):
    """Scores of every class; the last axis is that of the classes."""

    precision: Array
    recall: Array
    f: Array
    support: Array


class Reliability(NamedTuple):
    """Mean probability, fraction correct and number of objects in bins; NaN in empty ones."""

    probability: Array
    share: Array
    n: Array


def confusion(
    truth: Codes, predicted: Codes, n_classes: int, weights: Array | None = None
) -> Array:
    """Count objects by true class (rows) and predicted class (columns).

    Examples
    --------
    >>> confusion(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    array([[1., 1.],
           [0., 1.]])
    """
    counts = np.bincount(truth * n_classes + predicted, weights, n_classes**2)
    return counts.reshape(n_classes, n_classes).astype(np.float64)


def class_scores(counts: Array) -> ClassScores:
    """Precision, recall and F of every class; 0 where a class was not predicted or is empty.

    Parameters
    ----------
    counts : array of shape (..., c, c)
        From `confusion`.

    Examples
    --------
    >>> scores = class_scores(np.array([[8.0, 2.0], [4.0, 6.0]]))
    >>> scores.precision.round(3), scores.recall, scores.f.round(3)
    (array([0.667, 0.75 ]), array([0.8, 0.6]), array([0.727, 0.667]))
    """
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    support, named = counts.sum(axis=-1), counts.sum(axis=-2)
    # F = 2 TP / (2 TP + FP + FN): defined wherever a class occurs or was predicted.
    return ClassScores(
        _ratio(hits, named), _ratio(hits, support), _ratio(2 * hits, support + named), support
    )


def averages(scores: ClassScores, kind: str) -> tuple[float, float, float]:
    """Mean precision, recall and F over classes: "weighted" by support, or "macro".

    Classes without an object do not count.
    """
    occurs = scores.support > 0
    weights = scores.support if kind == "weighted" else occurs.astype(np.float64)
    share = weights / weights.sum()
    return tuple(float(value @ share) for value in scores[:3])  # type: ignore[return-value]


def log_losses(probabilities: Array, truth: Codes) -> Array:
    """Minus the log of the probability of each object's true class, in nats."""
    p = probabilities[np.arange(len(truth)), truth]
    return -np.log(np.clip(p, np.finfo(np.float64).eps, 1.0))


def brier_scores(probabilities: Array, truth: Codes) -> Array:
    """Squared distance of each object's probabilities from its true class; between 0 and 2."""
    hit = np.eye(probabilities.shape[1])[truth]
    return np.asarray(((probabilities - hit) ** 2).sum(axis=1))


def scalar_scores(probabilities: Array, truth: Codes, weights: Array) -> dict[str, Array]:
    """Every score of `SCALARS`, for each row of `weights`.

    Parameters
    ----------
    probabilities : array of shape (n, c)
    truth : integer array of shape (n,)
    weights : array of shape (b, n)
        Weight of each object: ones, or the counts of bootstrap samples.

    Returns
    -------
    dict of str to array of shape (b,)
    """
    total, n_classes = weights.sum(axis=1), probabilities.shape[1]
    predicted = probabilities.argmax(axis=1)
    counts = np.stack([confusion(truth, predicted, n_classes, row) for row in weights])
    scores = class_scores(counts)
    occurs = scores.support > 0
    return {
        "accuracy": weights @ (predicted == truth) / total,
        "macro_f": (scores.f * occurs).sum(axis=1) / occurs.sum(axis=1),
        "weighted_f": (scores.f * scores.support).sum(axis=1) / total,
        "log_loss": weights @ log_losses(probabilities, truth) / total,
        "brier": weights @ brier_scores(probabilities, truth) / total,
        "ece": _calibration_errors(probabilities, truth, weights),
    }


def _calibration_errors(probabilities: Array, truth: Codes, weights: Array) -> Array:
    """Mean difference between confidence and fraction correct, over bins of confidence."""
    confidence = probabilities.max(axis=1)
    excess = confidence - (probabilities.argmax(axis=1) == truth)
    bins = _bin(confidence)
    sums = np.stack([np.bincount(bins, row * excess, N_BINS) for row in weights])
    return np.asarray(np.abs(sums).sum(axis=1) / weights.sum(axis=1))


def calibration_error(probabilities: Array, truth: Codes) -> float:
    """Return the expected calibration error of the most probable class (Guo et al. 2017).

    Examples
    --------
    >>> p = np.array([[0.9, 0.1]] * 10)
    >>> round(calibration_error(p, np.array([0] * 8 + [1] * 2)), 3)
    0.1
    """
    return float(_calibration_errors(probabilities, truth, np.ones((1, len(truth))))[0])


def reliability(
    probability: Array, success: NDArray[np.bool_], weights: Array | None = None
) -> Reliability:
    """Compare probabilities with the fraction of successes, in bins of equal width.

    Examples
    --------
    >>> found = reliability(np.array([0.9, 0.92, 0.1]), np.array([True, False, False]))
    >>> found.share[13], found.n[1]
    (np.float64(0.5), np.float64(1.0))
    """
    bins, w = _bin(probability), np.ones(len(probability)) if weights is None else weights
    count, stated, hits = (
        np.bincount(bins, w * values, N_BINS).astype(np.float64)
        for values in (np.ones(len(bins)), probability, success.astype(np.float64))
    )
    known = np.where(count > 0, count, np.nan)
    return Reliability(stated / known, hits / known, count)


def _bin(probability: Array) -> Codes:
    return np.minimum((probability * N_BINS).astype(np.int64), N_BINS - 1)


def _ratio(part: Array, whole: Array) -> Array:
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)
