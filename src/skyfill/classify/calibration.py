"""Probabilities that mean what they say: an affine map of log probabilities, fitted out of fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

# Trees may say 0; no class is impossible.
FLOOR = 1e-4
# Ridges towards the identity, in nats over all rows: a map may only turn where many rows say so.
SLOPE_RIDGE, BIAS_RIDGE = 2.0, 0.5
FOLDS = 5


@dataclass(frozen=True, eq=False)
class Calibration:
    """Map class probabilities p to ``softmax(slopes * log p + bias)``.

    Attributes
    ----------
    kind : str
        Which family was chosen: "temperature" (one slope), "vector"; or "none".
    slopes, bias : array of shape (classes,)

    Examples
    --------
    >>> cooler = Calibration("temperature", np.array([2.0, 2.0]), np.zeros(2))
    >>> cooler(np.array([[0.75, 0.25]])).round(2)
    array([[0.9, 0.1]])
    """

    kind: str
    slopes: Array
    bias: Array

    def __call__(self, P: Array) -> Array:
        """Give calibrated probabilities."""
        if self.kind == "none":
            return P
        return np.asarray(softmax(_logits(P) * self.slopes + self.bias, axis=1))


def no_calibration(n_classes: int) -> Calibration:
    """Leave probabilities as they are."""
    return Calibration("none", np.ones(n_classes), np.zeros(n_classes))


def fit_calibration(P: Array, y: Labels, weights: Array, rng: np.random.Generator) -> Calibration:
    """Choose a map by cross-validated log loss of out-of-fold probabilities, then fit it.

    Parameters
    ----------
    P : array of shape (n, classes)
        Probabilities of rows that the classifier had not seen.
    y : int array of shape (n,)
        Their classes.
    weights : array of shape (n,)
        Weights of the rows.
    rng : numpy.random.Generator
        Deals the rows to folds.
    """
    fold = rng.permutation(len(y)) % FOLDS
    losses = dict.fromkeys(FAMILIES, 0.0)
    for kind, fit in FAMILIES.items():
        for k in range(FOLDS):
            train, test = fold != k, fold == k
            if train.any() and test.any():
                found = fit(P[train], y[train], weights[train])
                losses[kind] += _loss(found(P[test]), y[test], weights[test])
    return FAMILIES[min(losses, key=losses.__getitem__)](P, y, weights)


def _temperature(P: Array, y: Labels, weights: Array) -> Calibration:
    C = P.shape[1]
    shared = np.repeat([[1.0], [0.0]], C, axis=0)
    return Calibration("temperature", *_climb(P, y, weights, shared))


def _vector(P: Array, y: Labels, weights: Array) -> Calibration:
    return Calibration("vector", *_climb(P, y, weights, np.eye(2 * P.shape[1])))


FAMILIES: dict[str, Callable[[Array, Labels, Array], Calibration]] = {
    "temperature": _temperature,
    "vector": _vector,
}


def _climb(P: Array, y: Labels, weights: Array, design: Array) -> tuple[Array, Array]:
    """Minimise weighted log loss plus ridge; log slopes and bias are `design` @ parameters."""
    L, rows, C = _logits(P), np.arange(len(y)), P.shape[1]
    ridge = np.repeat([SLOPE_RIDGE, BIAS_RIDGE], C)

    def loss(parameters: Array) -> tuple[float, Array]:
        theta = design @ parameters
        slopes = np.exp(theta[:C])
        logs = log_softmax(L * slopes + theta[C:], axis=1)
        pull = np.exp(logs) * weights[:, None]
        pull[rows, y] -= weights
        gradient = np.concatenate([(pull * L).sum(axis=0) * slopes, pull.sum(axis=0)])
        value = (ridge * theta**2).sum() - (weights * logs[rows, y]).sum()
        return float(value), design.T @ (gradient + 2 * ridge * theta)

    theta = design @ minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B").x
    return np.exp(theta[:C]), theta[C:]


def _logits(P: Array) -> Array:
    return np.log(np.maximum(P, FLOOR))


def _loss(P: Array, y: Labels, weights: Array) -> float:
    chosen = np.maximum(P[np.arange(len(y)), y], FLOOR)
    return float(-(weights * np.log(chosen)).sum())
