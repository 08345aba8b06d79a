"""Members of a classifier: trees, the view that they look at, and their weight."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.class_calibration import Array, log_probabilities
from skyfill.classify.forest import FlatForest
from skyfill.classify.views import VIEWS

# How the probabilities of members are combined. Of means the largest member decides how sure a
# classifier can be; a field in which a class is a thousand times rarer needs the odds themselves.
POOLS = ("mean", "logs")


class Member(NamedTuple):
    """Trees and the view of a row that they look at; the weights of all members sum to 1."""

    view: str
    forest: FlatForest
    weight: float


def pool_members(parts: Sequence[tuple[float | Array, Array]], pool: str) -> Array:
    """Combine weighted probabilities: their mean, or the mean of their logs, normalized.

    A weight is that of all rows, or an array of shape (n, 1).

    Examples
    --------
    >>> sure, unsure = np.array([[0.99, 0.01]]), np.array([[0.6, 0.4]])
    >>> pool_members([(0.5, sure), (0.5, unsure)], "mean").round(3)
    array([[0.795, 0.205]])
    >>> pool_members([(0.5, sure), (0.5, unsure)], "logs").round(3)
    array([[0.924, 0.076]])
    """
    if pool == "mean":
        total = sum(weight * P for weight, P in parts)
    else:
        total = np.exp(sum(weight * log_probabilities(P) for weight, P in parts))
    return np.asarray(total / np.sum(total, axis=1, keepdims=True))


def rebuild_member(item: Mapping[str, Any], i: int, arrays: Mapping[str, NDArray[Any]]) -> Member:
    """Build a member from its facts and, by its number, its arrays."""
    start = f"forests.{i}."
    mine = {k.removeprefix(start): a for k, a in arrays.items() if k.startswith(start)}
    return Member(str(item["view"]), FlatForest.from_arrays(mine), float(item["weight"]))


def check_members(members: Sequence[Member], n_classes: int, width: Callable[[str], int]) -> None:
    """Raise ValueError where weights are no weights, or trees do not fit their view."""
    weights = np.array([member.weight for member in members])
    if not len(weights) or not (weights > 0).all() or not abs(weights.sum() - 1) <= 1e-6:
        raise ValueError("the weights of the trees must be positive, with sum 1")
    for view, forest, _ in members:
        if view not in VIEWS:
            raise ValueError(f"no view {view!r}")
        if (forest.n_features, forest.n_classes) != (width(view), n_classes):
            raise ValueError(f"the trees do not fit the view {view!r}")
