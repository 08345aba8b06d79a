"""Probabilities for a field where the shares of the classes differ from the training set's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.errors import DataError

Array = NDArray[np.float64]
MAX_STEPS, TOLERANCE = 1000, 1e-7


def shift_prior(P: Array, old: Array, new: Array) -> Array:
    """Convert probabilities from class shares `old` to class shares `new`.

    Examples
    --------
    >>> shift_prior(np.array([[0.5, 0.5]]), np.array([0.5, 0.5]), np.array([0.9, 0.1]))
    array([[0.9, 0.1]])
    """
    odds = P * (new / old)
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def estimate_prior(P: Array, old: Array) -> Array:
    """Estimate the shares of the classes among new rows by EM (Saerens et al. 2002).

    Parameters
    ----------
    P : array of shape (n, classes)
        Probabilities for the new rows, under the shares `old`.
    old : array of shape (classes,)
        Shares that the classifier was trained with.

    Examples
    --------
    >>> P = np.repeat([[0.95, 0.05], [0.05, 0.95]], [900, 100], axis=0)
    >>> estimate_prior(P, np.array([0.5, 0.5])).round(2)
    array([0.94, 0.06])
    """
    if not len(P):
        return old
    shares = old
    for _ in range(MAX_STEPS):
        last, shares = shares, shift_prior(P, old, shares).mean(axis=0)
        # A class that the rows rule out keeps a tiny share, to avoid a division by zero.
        shares = np.maximum(shares, 1e-12) / np.maximum(shares, 1e-12).sum()
        if np.abs(shares - last).max() < TOLERANCE:
            break
    return np.asarray(shares)


def as_prior(prior: Mapping[Any, float] | Sequence[float], classes: Iterable[Any]) -> Array:
    """Check shares of the classes, given by name or in the order of `classes`.

    Examples
    --------
    >>> as_prior({"QSO": 1, "RRL": 3}, ["QSO", "RRL"])
    array([0.25, 0.75])
    """
    names = [str(name) for name in classes]
    if isinstance(prior, Mapping):
        given = {str(name): value for name, value in prior.items()}
        wrong = [name for name in (*given, *names) if name not in names or name not in given]
        if wrong:
            raise DataError(
                f"prior: class {wrong[0]!r} is not in both; the classes are {', '.join(names)}"
            )
        prior = [given[name] for name in names]
    shares = np.asarray(prior, dtype=np.float64)
    if shares.shape != (len(names),) or not (np.isfinite(shares) & (shares > 0)).all():
        raise DataError(f"prior: give a positive share for each of {', '.join(names)}")
    return np.asarray(shares / shares.sum())
