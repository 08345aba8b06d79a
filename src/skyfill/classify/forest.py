"""Forests and boostings as flat arrays: no pickle, and no scikit-learn to score with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.classify import forest_kernels as kernels
from skyfill.classify.forest_checks import KINDS, TYPES, Arrays, check, shape_of, typed
from skyfill.classify.forest_pack import Packed, Trees, pack
from skyfill.errors import DataError
from skyfill.threads import map_rows

LARGEST = kernels.LARGEST


@dataclass(frozen=True, eq=False)
class FlatForest(Trees):
    """Trees that give class probabilities; scoring needs NumPy and Numba only.

    Made by `flatten_forest`, `flatten_boosting` or `from_arrays`; the fields are those of `Trees`.

    Examples
    --------
    One split at 0.5, gaps to the right:

    >>> forest = FlatForest.from_arrays({
    ...     "shape": np.array([1, 2, 0]), "starts": np.array([0, 3]),
    ...     "feature": np.array([0, -1, -1], np.int32), "threshold": np.array([0.5, 0, 0]),
    ...     "missing_left": np.zeros(3, np.uint8), "target": np.array([2, 0, 1], np.int32),
    ...     "values": np.eye(2, dtype=np.float32), "baseline": np.zeros(0)})
    >>> forest.predict_proba([[0.5], [0.6], [np.nan]])
    array([[1., 0.],
           [0., 1.],
           [0., 1.]])
    """

    @property
    def n_trees(self) -> int:
        """Number of trees, counted over all classes."""
        return len(self.starts) - 1

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Give class probabilities, one row per row of X; NaN goes where the trees send gaps."""
        table = np.ascontiguousarray(X, np.float64)
        if table.ndim != 2 or table.shape[1] != self.n_features:
            raise DataError(
                f"the trees know {self.n_features} features, the table has shape {table.shape}"
            )
        packed = self.packed
        total = np.zeros((len(table), max(self.values.shape[1], len(self.baseline))))

        def work(rows: slice) -> None:
            packed.add(table[rows], total[rows])

        map_rows(work, len(table))
        return self._mean(total) if self.kind == "mean" else self._soften(total)

    def _mean(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(total / total.sum(axis=1, keepdims=True))

    def _soften(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = total + self.baseline
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    @cached_property
    def packed(self) -> Packed:
        """The trees as the compiled kernels want them."""
        return pack(self)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Give the arrays for a model file."""
        shape = np.array([self.n_features, self.n_classes, KINDS.index(self.kind)])
        return {name: shape if name == "shape" else getattr(self, name) for name in TYPES}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> FlatForest:
        """Build from `arrays()`; ValueError where they are hostile or damaged."""
        checked = {name: typed(arrays, name) for name in TYPES}
        n_features, n_classes, kind = shape_of(checked.pop("shape"))
        forest = cls(n_features, n_classes, KINDS[kind], **checked)
        check(forest)
        # Packed now: a tree that is too deep is found here, not when it is used.
        _ = forest.packed
        return forest


class _Tree(NamedTuple):
    """One tree as it was grown; `value` has one row per node."""

    left: NDArray[Any]
    right: NDArray[Any]
    feature: NDArray[Any]
    threshold: NDArray[Any]
    missing_left: NDArray[Any]
    value: NDArray[Any]


def flatten_forest(forest: Any) -> FlatForest:
    """Flatten a fitted `RandomForestClassifier` or `ExtraTreesClassifier` of scikit-learn."""
    if forest.n_outputs_ != 1:
        raise ValueError("a forest with several outputs cannot be flattened; fit one per output")
    trees = (_forest_tree(estimator.tree_) for estimator in forest.estimators_)
    shape = (forest.n_features_in_, forest.n_classes_, KINDS.index("mean"))
    return _flatten(shape, trees, np.zeros(0))


def flatten_boosting(boosting: Any) -> FlatForest:
    """Flatten a fitted `HistGradientBoostingClassifier` whose features are all numbers."""
    if boosting.is_categorical_ is not None and np.any(boosting.is_categorical_):
        raise ValueError("a boosting with categorical features cannot be flattened")
    trees = (_boosting_tree(tree.nodes) for step in boosting._predictors for tree in step)
    shape = (boosting.n_features_in_, len(boosting.classes_), KINDS.index("boost"))
    return _flatten(shape, trees, boosting._baseline_prediction.astype(np.float64).ravel())


def _forest_tree(tree: Any) -> _Tree:
    shares = tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True)
    left, right = tree.children_left.astype(np.int64), tree.children_right.astype(np.int64)
    missing = np.asarray(tree.missing_go_to_left).astype(np.uint8)
    return _Tree(left, right, tree.feature, tree.threshold, missing, shares)


def _boosting_tree(nodes: NDArray[Any]) -> _Tree:
    leaf = nodes["is_leaf"].astype(bool)
    left, right = (np.where(leaf, -1, nodes[name].astype(np.int64)) for name in ("left", "right"))
    missing = nodes["missing_go_to_left"].astype(np.uint8)
    value = nodes["value"][:, None]
    return _Tree(left, right, nodes["feature_idx"], nodes["num_threshold"], missing, value)


def _flatten(
    shape: tuple[int, int, int], trees: Iterable[_Tree], baseline: NDArray[np.float64]
) -> FlatForest:
    parts = [_in_order(tree) for tree in trees]
    sizes = [len(tree.feature) for tree in parts]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    joined = _Tree(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    leaf = joined.left < 0
    target = joined.right + np.repeat(starts[:-1], sizes)
    values, places = np.unique(joined.value[leaf].astype(np.float32), axis=0, return_inverse=True)
    target[leaf] = places.ravel()
    arrays = {
        "shape": np.array(shape),
        "starts": starts,
        "feature": np.where(leaf, -1, joined.feature),
        # An infinite threshold parts the gaps from all values; so does the largest number.
        "threshold": np.where(leaf, 0.0, np.clip(joined.threshold, -LARGEST, LARGEST)),
        "missing_left": np.where(leaf, 0, joined.missing_left),
        "target": target,
        "values": values,
        "baseline": baseline,
    }
    return FlatForest.from_arrays({name: arrays[name].astype(TYPES[name]) for name in TYPES})


def _in_order(tree: _Tree) -> _Tree:
    order = kernels.depth_first(tree.left, tree.right)
    place = np.empty(len(order) + 1, np.int64)
    place[order], place[-1] = np.arange(len(order)), -1
    moved = _Tree(*(column[order] for column in tree))
    return moved._replace(left=place[moved.left], right=place[moved.right])
