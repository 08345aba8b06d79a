"""Calibrated class probabilities: an affine map of log probabilities, fitted out of fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

KINDS = ("none", "temperature", "vector", "odds")
# Trees may give a probability of 0, but no class is impossible.
FLOOR = 1e-4
# Ridges towards the identity, in nats over all rows: only many rows can move the map away from it.
SLOPE_RIDGE, BIAS_RIDGE = 2.0, 0.5
# The same for odds against the most common class. Where a class is a thousand times rarer than
# in the training set, its slope decides how sure a classifier can be of it: it may move. The bias
# is as good as a share, which is known. Chosen on held-out objects of eight simulated training
# sets (docs/benchmarks.md).
ODDS_SLOPE_RIDGE, ODDS_BIAS_RIDGE = 5.0, 20.0
FOLDS = 5
# Standard errors by which the map with more parameters must win.
SURE = 2.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """Map class probabilities p to ``softmax(slopes * log p + bias)``.

    Attributes
    ----------
    kind : str
        One of `KINDS`: "temperature" is one slope for all classes and no bias. "odds" takes odds
        against the most common class instead of p: how sure a rare class can be does not depend
        on how the others are confused. The most common class has a slope and a bias of 0.
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
        """Return calibrated probabilities."""
        if self.kind == "none":
            return P
        logs = log_probabilities(P)
        if self.kind == "odds":
            logs = _log_odds(logs, int(self.slopes.argmin()))
        return np.asarray(softmax(logs * self.slopes + self.bias, axis=1))


Fit = Callable[[Array, Labels, Array], Calibration]


def no_calibration(n_classes: int) -> Calibration:
    """Leave probabilities as they are."""
    return Calibration("none", np.ones(n_classes), np.zeros(n_classes))


def fit_calibration(
    P: Array, y: Labels, weights: Array, rng: np.random.Generator, n: int | None = None
) -> tuple[Calibration, Array]:
    """Fit a map to out-of-fold probabilities: one slope, or one of the odds of each class.

    Cross-validated log losses decide, also whether a free map of all classes is clearly better.

    Parameters
    ----------
    P : array of shape (n, classes)
        Probabilities of rows that the classifier had not seen.
    y : int array of shape (n,)
        Their classes.
    weights : array of shape (n,)
        Weights of the rows.
    rng : numpy.random.Generator
        Deals the objects to folds.
    n : int, optional
        Number of objects, if the rows are these objects several times; as many as rows otherwise.

    Returns
    -------
    Calibration
    array of shape (n, classes)
        The probabilities of each row by a map of the same kind that was fitted to the other folds.
    """
    n = len(y) if n is None else n
    fold = np.resize(rng.permutation(n) % FOLDS, len(y))
    fits: tuple[Fit, ...] = (_temperature, fit_odds, _vector)
    held = {fit: calibrate_held_out(fit, P, y, weights, fold) for fit in fits}
    losses = {fit: _losses(found, y, weights) for fit, found in held.items()}
    simple = min((_temperature, fit_odds), key=lambda fit: losses[fit].sum())
    # The bias of a rare class rests on few rows: without a clear gain the simple map is taken.
    clear = _is_clear(losses[simple] - losses[_vector], n)
    # Unpruned trees hardly respond to weights: the bias gives classes their weighted shares.
    weighted = np.ptp(weights[:n]) > 0
    chosen = _vector if clear or weighted else simple
    return chosen(P, y, weights), held[chosen]


def is_clearly_better(
    P: Array, other: Array, y: Labels, weights: Array, fold: Labels, n: int
) -> bool:
    """Check whether probabilities of n objects predict held-out classes better than others.

    Both are calibrated; rows may be these objects several times.
    """
    losses, others = (
        _losses(calibrate_held_out(_temperature, each, y, weights, fold), y, weights)
        for each in (P, other)
    )
    return _is_clear(others - losses, n)


def _is_clear(gains: Array, n: int) -> bool:
    """Check whether the sum of gains exceeds its error; several of one object are no evidence."""
    each = gains.reshape(-1, n).sum(axis=0)
    return bool(each.sum() > SURE * np.sqrt(n) * each.std())


def held_out_loss(P: Array, y: Labels, weights: Array, fold: Labels) -> float:
    """Return the log loss of probabilities, calibrated with one slope on the other folds."""
    found = calibrate_held_out(_temperature, P, y, weights, fold)
    return float(_losses(found, y, weights).sum())


def calibrate_held_out(fit: Fit, P: Array, y: Labels, weights: Array, fold: Labels) -> Array:
    """Calibrate the rows of each fold by what is fitted to the others."""
    found = P.copy()
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        if train.any() and test.any():
            found[test] = fit(P[train], y[train], weights[train])(P[test])
    return found


def _temperature(P: Array, y: Labels, weights: Array) -> Calibration:
    C = P.shape[1]
    shared = np.repeat([[1.0], [0.0]], C, axis=0)
    return Calibration("temperature", *_climb(log_probabilities(P), y, weights, shared))


def _vector(P: Array, y: Labels, weights: Array) -> Calibration:
    free = np.eye(2 * P.shape[1])
    return Calibration("vector", *_climb(log_probabilities(P), y, weights, free))


def fit_odds(P: Array, y: Labels, weights: Array, common: int | None = None) -> Calibration:
    """Fit a slope and a bias of the odds of each class against one, by default the most common."""
    C = P.shape[1]
    if common is None:
        common = int(np.bincount(y, weights, minlength=C).argmax())
    free = np.delete(np.eye(2 * C), [common, C + common], axis=1)
    ridge = np.repeat([ODDS_SLOPE_RIDGE, ODDS_BIAS_RIDGE], C)
    logs = _log_odds(log_probabilities(P), common)
    slopes, bias = _climb(logs, y, weights, free, ridge=ridge)
    return Calibration("odds", np.where(np.arange(C) == common, 0.0, slopes), bias)


def _log_odds(logs: Array, common: int) -> Array:
    return logs - logs[:, [common]]


def _climb(
    L: Array, y: Labels, weights: Array, design: Array, *, ridge: Array | None = None
) -> tuple[Array, Array]:
    """Minimize weighted log loss plus ridge; log slopes and bias are `design` @ parameters."""
    from scipy.optimize import minimize  # takes long to import, and only training needs it

    rows, C = np.arange(len(y)), L.shape[1]
    pull_back = np.repeat([SLOPE_RIDGE, BIAS_RIDGE], C) if ridge is None else ridge

    def loss(parameters: Array) -> tuple[float, Array]:
        theta = design @ parameters
        slopes = np.exp(theta[:C])
        logs = log_softmax(L * slopes + theta[C:], axis=1)
        pull = np.exp(logs) * weights[:, None]
        pull[rows, y] -= weights
        gradient = np.concatenate([(pull * L).sum(axis=0) * slopes, pull.sum(axis=0)])
        value = (pull_back * theta**2).sum() - (weights * logs[rows, y]).sum()
        return float(value), design.T @ (gradient + 2 * pull_back * theta)

    theta = design @ minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B").x
    return np.exp(theta[:C]), theta[C:]


def log_probabilities(P: Array) -> Array:
    """Take the logs of probabilities given by trees; no class is impossible."""
    return np.asarray(np.log(np.maximum(P, FLOOR)))


def _losses(P: Array, y: Labels, weights: Array) -> Array:
    chosen = np.maximum(P[np.arange(len(y)), y], FLOOR)
    return np.asarray(-weights * np.log(chosen))
