"""Regression trees as flat arrays: no pickle, and no scikit-learn to predict with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Single = NDArray[np.float32]
TYPES = {"starts": np.int64, "feature": np.int32, "number": np.float32, "right": np.int32}
MAX_NODES = 1 << 27


class RegressionTrees(NamedTuple):
    """Trees in the order in which a walk to the left meets their nodes.

    The left child of split i is ``i + 1``. Values up to the threshold go left.

    Attributes
    ----------
    starts : int array of shape (n_trees + 1,)
        First node of each tree.
    feature : int array of shape (n_nodes,)
        Feature that a split looks at; -1 at a leaf.
    number : float array of shape (n_nodes,)
        Threshold of a split, value of a leaf.
    right : int array of shape (n_nodes,)
        Right child of a split, counted over all trees; 0 at a leaf.
    """

    starts: NDArray[np.int64]
    feature: NDArray[np.int32]
    number: Single
    right: NDArray[np.int32]

    def mean(self, X: Single, first: int, last: int) -> NDArray[np.float64]:
        """Mean over the trees from `first` to before `last` of the leaves that rows reach."""
        total = np.zeros(len(X))
        _add_leaves(X, first, last, *self, total)
        return total / (last - first)

    def check(self, n_features: int) -> None:
        """Raise ValueError unless every walk ends at a leaf of its tree and gives a number."""
        n, starts, split = len(self.feature), self.starts, self.feature >= 0
        if any(a.dtype != TYPES[k] or a.ndim != 1 for k, a in self._asdict().items()):
            raise ValueError("the arrays of the trees have the wrong type or shape")
        if not 0 < n <= MAX_NODES or len(self.number) != n or len(self.right) != n:
            raise ValueError("the arrays of the trees' nodes differ in length or are too long")
        if len(starts) < 2 or starts[0] != 0 or starts[-1] != n:
            raise ValueError("the trees do not cover the nodes")
        # Compared, not subtracted: the difference of malicious numbers could wrap around.
        if not (starts[1:] > starts[:-1]).all() or not np.isfinite(self.number).all():
            raise ValueError("a tree has no nodes, or a node no finite number")
        if not ((self.feature >= -1) & (self.feature < n_features)).all():
            raise ValueError("a split uses a feature that does not exist")
        node = np.flatnonzero(split)
        end = starts[np.searchsorted(starts, node, side="right")]
        # Walks only go forward, so they end; they end within their tree.
        if not ((self.right[node] > node + 1) & (self.right[node] < end)).all():
            raise ValueError("a child must follow its parent within its tree")


@njit(nogil=True, cache=True)
def _add_leaves(X, first, last, starts, feature, number, right, total):  # type: ignore[no-untyped-def]
    for t in range(first, last):
        root = starts[t]
        for r in range(X.shape[0]):
            node = root
            while feature[node] >= 0:
                node = node + 1 if X[r, feature[node]] <= number[node] else right[node]
            total[r] += number[node]


def flatten_trees(trees: Sequence[Any]) -> RegressionTrees:
    """Take the nodes of scikit-learn's trees, whose nodes are in the same order.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> grown = DecisionTreeRegressor(max_depth=1).fit([[0.0], [1.0]], [2.0, 4.0])
    >>> flat = flatten_trees([grown.tree_])
    >>> flat.feature.tolist(), flat.number.tolist()
    ([0, -1, -1], [0.5, 2.0, 4.0])
    """
    starts = np.concatenate([[0], np.cumsum([tree.node_count for tree in trees])])
    feature, number, right = [], [], []
    for tree, start in zip(trees, starts[:-1], strict=True):
        is_leaf = tree.children_left < 0
        cut = tree.threshold.astype(np.float32)
        # scikit-learn compares single with double precision: no cut may move above a value.
        cut = np.where(cut > tree.threshold, np.nextafter(cut, np.float32(-np.inf)), cut)
        feature.append(np.where(is_leaf, -1, tree.feature))
        number.append(np.where(is_leaf, tree.value[:, 0, 0], cut))
        right.append(np.where(is_leaf, 0, tree.children_right + start))
    parts = (feature, number, right)
    arrays = (
        np.concatenate(p).astype(t) for p, t in zip(parts, list(TYPES.values())[1:], strict=True)
    )
    return RegressionTrees(starts.astype(np.int64), *arrays)


def join_trees(parts: Sequence[RegressionTrees]) -> RegressionTrees:
    """Put trees one after another."""
    n_nodes = np.cumsum([0, *(len(part.feature) for part in parts)])
    starts = [part.starts[:-1] + n for part, n in zip(parts, n_nodes, strict=False)]
    right = [
        np.where(part.feature >= 0, part.right + n, 0)
        for part, n in zip(parts, n_nodes, strict=False)
    ]
    return RegressionTrees(
        np.concatenate([*starts, n_nodes[-1:]]).astype(np.int64),
        np.concatenate([part.feature for part in parts]),
        np.concatenate([part.number for part in parts]),
        np.concatenate(right).astype(np.int32),
    )
