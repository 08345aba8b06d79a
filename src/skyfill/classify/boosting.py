"""Gradient boosting of small trees, compiled: thousands of them take a second.

The trees are those of scikit-learn's `HistGradientBoostingClassifier` (the tests compare them), in
one loop without Python between them: a training set of a few thousand objects and several classes
needs ten thousand trees and more, and there the calls between the steps, not the sums, take the
time. Columns are known by the bins of their values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.boosting_kernels import GAP, MOST_BINS, grow_rounds
from skyfill.classify.forest import KINDS, TYPES, FlatForest

Array = NDArray[np.float64]


class Steps(NamedTuple):
    """How a boosting proceeds.

    Attributes
    ----------
    n_rounds : int
    rate : float
        Part of a step that is taken.
    n_leaves : int
        Most leaves of a tree.
    least_in_leaf : int
        Least rows of a leaf.
    ridge : float
        Added to the second derivatives.
    n_columns : int, optional
        How many columns a split chooses from, drawn anew for each; by default all.
    """

    n_rounds: int = 200
    rate: float = 0.05
    n_leaves: int = 8
    least_in_leaf: int = 3
    ridge: float = 3.0
    n_columns: int | None = None


def boost(table: Array, y: NDArray[np.intp], weights: Array, steps: Steps, seed: int) -> FlatForest:
    """Grow a boosting that gives the probabilities of the classes 0, 1, ...; NaN is a gap.

    Examples
    --------
    >>> x = np.arange(20.0)[:, None]
    >>> trees = boost(x, (x[:, 0] > 9).astype(int), np.ones(20), Steps(100, rate=0.3), seed=0)
    >>> trees.predict_proba([[3.0], [14.0]]).round(2)
    array([[0.99, 0.01],
           [0.01, 0.99]])
    """
    edges = find_edges(table)
    codes = encode(table, edges)
    n_classes = int(y.max()) + 1
    n_scores = 1 if n_classes <= 2 else n_classes
    wanted = (y[:, None] == np.arange(n_classes)[None, -n_scores:]).astype(np.float64)
    baseline = _baseline(wanted, weights)
    n_tried = min(steps.n_columns or table.shape[1], table.shape[1])
    has_gaps = np.isnan(table).any(axis=0)
    n_bins = np.array([len(cuts) + 1 for cuts in edges])
    room = steps.n_rounds * n_scores, 2 * steps.n_leaves - 1
    nodes = Nodes(
        np.full(room, -1, np.int32),
        np.zeros(room, np.int32),
        np.zeros(room, np.uint8),
        np.zeros(room, np.int32),
        np.zeros(room),
        np.zeros(room[0], np.int64),
    )
    scores = np.repeat(baseline[None], len(table), axis=0)
    rate, ridge = float(steps.rate), float(steps.ridge)  # whole numbers would be compiled for anew
    facts = (rate, steps.n_leaves, steps.least_in_leaf, ridge, n_tried, seed)
    grow_rounds(codes, wanted, weights, n_bins, has_gaps, scores, facts, nodes)
    return _flat(nodes, edges, table.shape[1], n_classes, baseline)


class Nodes(NamedTuple):
    """Nodes of all trees, one row per tree; the left child of a split is the one after it."""

    feature: NDArray[np.int32]
    cut: NDArray[np.int32]
    gaps_left: NDArray[np.uint8]
    right: NDArray[np.int32]
    value: Array
    size: NDArray[np.int64]


def find_edges(table: Array) -> list[Array]:
    """Divide every column into bins: one per value where these are few, else of equal counts.

    A value on an edge lies below it.
    """
    return [_edges(column[~np.isnan(column)]) for column in table.T]


def _edges(seen: Array) -> Array:
    values = np.unique(seen)
    if len(values) <= MOST_BINS:
        # Halved first: the sum of two large values could overflow.
        return np.asarray(values[:-1] / 2 + values[1:] / 2)
    shares = np.arange(1, MOST_BINS) / MOST_BINS
    return np.unique(np.quantile(seen, shares, method="averaged_inverted_cdf"))


def encode(table: Array, edges: list[Array]) -> NDArray[np.uint8]:
    """Return the bin of every value, and 127 for gaps.

    Examples
    --------
    >>> table = np.array([[1.0], [3.0], [np.nan]])
    >>> encode(table, find_edges(table)).T
    array([[  0,   1, 127]], dtype=uint8)
    """
    codes = np.empty(table.shape, np.uint8)
    for j, cuts in enumerate(edges):
        codes[:, j] = np.searchsorted(cuts, table[:, j])
    codes[np.isnan(table)] = GAP
    return codes


def _baseline(wanted: Array, weights: Array) -> Array:
    """Return the scores that fit best before the first tree: logits of the classes' shares."""
    tiny = np.finfo(np.float32).eps
    shares = np.clip(weights @ wanted / weights.sum(), tiny, 1 - tiny)
    if len(shares) == 1:
        return np.asarray(np.log(shares / (1 - shares)))
    return np.asarray(np.log(shares) - np.log(shares).mean())


def _flat(
    nodes: Nodes, edges: list[Array], n_features: int, n_classes: int, baseline: Array
) -> FlatForest:
    """Join the trees; cuts between bins become thresholds between values."""
    used = np.arange(nodes.feature.shape[1]) < nodes.size[:, None]
    starts = np.concatenate([[0], np.cumsum(nodes.size)])
    feature, cut = nodes.feature[used], nodes.cut[used]
    leaf = feature < 0
    threshold = np.zeros(len(feature))
    for j, cuts in enumerate(edges):
        here = feature == j
        # A cut above all bins separates values from gaps.
        threshold[here] = np.append(cuts, np.finfo(np.float64).max)[cut[here]]
    values, places = np.unique(nodes.value[used][leaf].astype(np.float32), return_inverse=True)
    target = nodes.right[used] + np.repeat(starts[:-1], nodes.size)
    target[leaf] = places
    arrays = {
        "shape": np.array([n_features, n_classes, KINDS.index("boost")]),
        "starts": starts,
        "feature": feature,
        "threshold": threshold,
        "missing_left": np.where(leaf, 0, nodes.gaps_left[used]),
        "target": target,
        "values": values[:, None],
        "baseline": baseline,
    }
    return FlatForest.from_arrays({name: arrays[name].astype(TYPES[name]) for name in TYPES})
