"""Flat trees in the form that the compiled kernels need: ranked cuts, nodes or masks of leaves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skyfill.classify import forest_kernels as kernels

# A walk takes as many steps as the tree is deep; grown trees have a few dozen levels.
MAX_DEPTH = 4096


@dataclass(frozen=True, eq=False)
class Trees:
    """Trees as flat arrays, in the order in which a walk to the left meets their nodes.

    The left child of split i is ``i + 1``. Values up to the threshold go left.

    Parameters
    ----------
    n_features, n_classes : int
    kind : {"mean", "boost"}
        Mean of the leaves' class shares, or softmax (sigmoid for two classes) of sums of scores.
    starts : int array of shape (n_trees + 1,)
        First node of each tree.
    feature : int array of shape (n_nodes,)
        Feature that a split looks at; -1 at a leaf.
    threshold : float array of shape (n_nodes,)
    missing_left : array of shape (n_nodes,)
        1 where a split sends gaps left.
    target : int array of shape (n_nodes,)
        Right child of a split, counted over all trees; at a leaf its row of `values`.
    values : float array of shape (n_distinct, n_classes) or (n_distinct, 1)
        Class shares, or scores: tree t of a boosting belongs to class ``t % n_scores``.
    baseline : float array of shape (n_scores,)
        Where a boosting starts; empty for a forest.
    exact : int array
        Features of which a forest compares values in double precision: single precision, of trees
        in scikit-learn, would confuse them.
    """

    n_features: int
    n_classes: int
    kind: str
    starts: NDArray[np.int64]
    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.uint8]
    target: NDArray[np.int32]
    values: NDArray[np.float32]
    baseline: NDArray[np.float64]
    exact: NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))


@dataclass(frozen=True, eq=False)
class Ranking:
    """Sorted cuts of every feature, and the columns of ranks that the splits look at.

    A column is a feature twice over, plus 1 for splits that send gaps left.
    """

    cuts: NDArray[np.float64]
    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    single: bool
    exact: NDArray[np.int32]

    def rank(
        self, X: NDArray[np.float64], lanes: int, top: np.unsignedinteger
    ) -> NDArray[np.unsignedinteger]:
        """Rank the values among the cuts; forests compare in single precision."""
        X = rounded(X, self.exact) if self.single else X.view()
        X.flags.writeable = False  # as some tables are: the kernel is compiled once for all
        shape = (-(-len(X) // lanes), max(len(self.columns), 1), lanes)
        ranks = np.zeros(shape, top.dtype)
        kernels.rank_rows(X, self.cuts, self.starts, self.columns, int(top), ranks)
        return ranks.ravel()


def rounded(X: NDArray[np.float64], exact: NDArray[np.int32]) -> NDArray[np.float64]:
    """Round values to single precision, except those of exact columns."""
    with np.errstate(over="ignore"):
        found = X.astype(np.float32).astype(np.float64)
    found[:, exact] = X[:, exact]
    return found


class Packed(Protocol):
    """Trees in a form that is fast to score."""

    def add(self, X: NDArray[np.float64], total: NDArray[np.float64]) -> None:
        """Add the values of the leaves that each row reaches to its totals."""


@dataclass(frozen=True, eq=False)
class Walk:
    """Trees of any size: nodes of four words, walked from the root."""

    trees: Trees
    ranking: Ranking
    nodes: NDArray[np.uint32]
    depths: NDArray[np.int64]

    def add(self, X: NDArray[np.float64], total: NDArray[np.float64]) -> None:
        """Add the values of the leaves that each row reaches to its totals."""
        ranks = self.ranking.rank(X, kernels.WALK_LANES, kernels.WALK_TOP)
        trees = self.trees
        kernels.walk_rows(ranks, trees.starts, self.depths, self.nodes, trees.values, total)


@dataclass(frozen=True, eq=False)
class Strike:
    """Small trees: splits that strike out leaves."""

    ranking: Ranking
    starts: NDArray[np.int64]
    columns: NDArray[np.int64]
    cuts: NDArray[np.uint8]
    masks: NDArray[np.uint8]
    values: NDArray[np.float32]

    def add(self, X: NDArray[np.float64], total: NDArray[np.float64]) -> None:
        """Add the values of the leaves that each row reaches to its totals."""
        n, n_totals = total.shape
        sums = np.zeros((-(-n // kernels.STRIKE_LANES), n_totals, kernels.STRIKE_LANES))
        ranks = self.ranking.rank(X, kernels.STRIKE_LANES, kernels.STRIKE_TOP)
        splits = (self.starts, self.columns, self.cuts, self.masks)
        kernels.strike_rows(ranks, *splits, kernels.FIRST_BIT, self.values, sums)
        total += sums.transpose(0, 2, 1).reshape(-1, n_totals)[:n]


def pack_trees(trees: Trees) -> Packed:
    """Pack checked trees; ValueError where one is too deep."""
    split = trees.feature >= 0
    cuts, cut_starts, rank = _cut(trees, split)
    codes = 2 * trees.feature.astype(np.int64) + trees.missing_left
    columns, places = np.unique(codes[split], return_inverse=True)
    column = np.full(len(split), -1)
    column[split] = places
    ranking = Ranking(cuts, cut_starts, columns, trees.kind == "mean", trees.exact)
    return _pack_small(trees, ranking, column, rank) or _pack_nodes(trees, ranking, column, rank)


def _pack_small(
    trees: Trees, ranking: Ranking, column: NDArray[np.int64], rank: NDArray[np.uint32]
) -> Strike | None:
    """Pack a boosting of small trees with few cuts; None where it is not one."""
    if trees.kind != "boost" or rank.max(initial=0) >= kernels.STRIKE_TOP:
        return None
    split = trees.feature >= 0
    masks, leaves = np.empty(len(split), np.uint8), np.empty(len(split), np.int64)
    if not kernels.mark_leaves(split, trees.target, trees.starts, masks, leaves):
        return None
    n_trees = len(trees.starts) - 1
    tree = np.repeat(np.arange(n_trees), np.diff(trees.starts))
    values = np.zeros((n_trees, kernels.LEAVES), np.float32)
    values[tree[~split], leaves[~split]] = trees.values[trees.target[~split], 0]
    starts = np.concatenate([[0], np.cumsum(split)])[trees.starts]
    cuts = rank[split].astype(np.uint8)
    return Strike(ranking, starts, column[split], cuts, masks[split], values.ravel())


def _pack_nodes(
    trees: Trees, ranking: Ranking, column: NDArray[np.int64], rank: NDArray[np.uint32]
) -> Walk:
    sizes = np.diff(trees.starts)
    roots = np.repeat(trees.starts[:-1], sizes)
    target = np.where(trees.feature >= 0, trees.target - roots, _leaf_codes(trees))
    nodes = np.empty(kernels.WORDS * len(target), np.uint32)
    depths = np.empty(len(sizes), np.int64)
    for t, (a, b) in enumerate(zip(trees.starts[:-1], trees.starts[1:], strict=True)):
        depths[t] = kernels.pack_tree(column[a:b], rank[a:b], target[a:b], a, nodes)
    if depths.max() > MAX_DEPTH:
        raise ValueError(f"a tree has {depths.max()} levels, more than {MAX_DEPTH}")
    return Walk(trees, ranking, nodes, depths)


def _leaf_codes(trees: Trees) -> NDArray[np.int64]:
    """Code leaves of a single class by that class: most leaves of a forest add 1 to one total."""
    target = trees.target.astype(np.int64)
    if trees.kind != "mean" or trees.values.shape[1] == 1:
        return target
    n_classes = trees.values.shape[1]
    values = np.arange(len(trees.values)) + n_classes
    pure = trees.values.max(axis=1) == 1
    values[pure] = trees.values[pure].argmax(axis=1)
    return np.asarray(values[np.minimum(target, len(values) - 1)])


def _cut(
    trees: Trees, split: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.uint32]]:
    """Sort the thresholds of each feature; give the rank, from 1, of each split's threshold."""
    feature, threshold = trees.feature[split], trees.threshold[split]
    order = np.lexsort((threshold, feature))
    feature, threshold = feature[order], threshold[order]
    is_new = np.ones(len(order), bool)
    is_new[1:] = (np.diff(feature) != 0) | (threshold[1:] != threshold[:-1])
    starts = np.searchsorted(feature[is_new], np.arange(trees.n_features + 1))
    rank = np.zeros(len(split), np.uint32)
    rank[np.flatnonzero(split)[order]] = np.cumsum(is_new) - starts[feature]
    return threshold[is_new], starts, rank
