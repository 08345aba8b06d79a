"""Held-out objects of the training set, which show what a classifier says of each class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Objects of a class that stand for it: the errors of their means are small enough.
MOST_KEPT = 5000


class HeldOut(NamedTuple):
    """Calibrated probabilities of objects that a classifier had not seen, and their classes.

    Attributes
    ----------
    P : array of shape (n, classes)
        Under the shares of the training set.
    y : int array of shape (n,)
        Codes of the classes; each has at least two objects.
    """

    P: Array
    y: NDArray[np.intp]


def keep_held_out(P: Array, y: NDArray[np.intp]) -> HeldOut | None:
    """Keep at most `MOST_KEPT` objects of each class; None where one has fewer than two.

    Examples
    --------
    >>> keep_held_out(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 1])) is None
    True
    """
    each = [np.flatnonzero(y == c) for c in range(P.shape[1])]
    if min(map(len, each)) < 2:
        return None
    even = [np.linspace(0, len(rows) - 1, min(len(rows), MOST_KEPT)).astype(int) for rows in each]
    kept = np.sort(np.concatenate([rows[some] for rows, some in zip(each, even, strict=True)]))
    return HeldOut(P[kept], y[kept])


def held_out_arrays(held_out: HeldOut | None) -> dict[str, Array]:
    """Return the arrays of held-out objects for a model file, where all are of floats."""
    if held_out is None:
        return {}
    return {"held_out.P": held_out.P, "held_out.y": held_out.y.astype(np.float64)}


def read_held_out(arrays: Mapping[str, NDArray[Any]]) -> HeldOut | None:
    """Build from `held_out_arrays`; None for older model files."""
    if "held_out.P" not in arrays:
        return None
    return HeldOut(arrays["held_out.P"], arrays["held_out.y"].astype(np.intp))


def check_held_out(held_out: HeldOut | None, n_classes: int) -> None:
    """Raise ValueError where held-out objects are not those of a classifier."""
    if held_out is None:
        return
    P, y = held_out
    if P.ndim != 2 or P.shape[1] != n_classes or y.shape != (len(P),):
        raise ValueError("the held-out objects have the wrong shape")
    if not (P >= 0).all() or not (np.abs(P.sum(axis=1) - 1) <= 1e-4).all():
        raise ValueError("the held-out objects must have probabilities")
    if not ((y >= 0) & (y < n_classes)).all() or np.bincount(y, minlength=n_classes).min() < 2:
        raise ValueError("each class needs two held-out objects")
