"""Trees that classify: forests grown by scikit-learn, and boostings; all as flat arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.boosting import Steps, boost
from skyfill.classify.forest import KINDS, TYPES, FlatForest
from skyfill.classify.forest_kernels import LARGEST, depth_first
from skyfill.classify.training_set import Codes
from skyfill.progress import boosting_cost, forest_cost, spent
from skyfill.threads import one_blas_thread

Array = NDArray[np.float64]
# The boosting: many small steps of small trees, a ridge, and few columns per split: a fifth of
# them, but at least three.
RATE, LEAVES, LEAST_IN_LEAF, RIDGE, COLUMNS, LEAST_COLUMNS = 0.05, 8, 3, 3.0, 0.2, 3
# It learns frequent classes first and rare ones late, so a row weighs one over its class's count to
# this power: macro F1 improves by 0.01 on MACHO and Chandra, and so does log loss.
RARENESS = 0.5
# Columns with larger values, or a smaller spread, absolute or relative, are ranked for forests.
LARGEST_SINGLE, SMALLEST_SINGLE, COARSE = 1e30, 1e-30, 1e-4


@dataclass(frozen=True)
class Growth:
    """How trees grow: trees of a forest, rounds of a boosting, columns per split, weights."""

    n_trees: int
    n_rounds: int
    max_features: Any = "sqrt"
    class_weight: Mapping[int, float] | None = None
    seed: int = 0
    weights: Array | None = None  # of the rows
    bagged: bool = False  # whether trees of a forest judge the rows that they do not know
    groups: Codes | None = None  # rows of one object: a tree knows all of them, or none


def grow_trees(
    kind: str, table: Array, y: Codes, growth: Growth
) -> tuple[FlatForest, Array | None]:
    """Grow a forest ("forest"), extremely randomized trees ("extra") or a boosting ("boosting").

    Where `growth` asks for it, a forest also gives what its trees say of the rows that they did not
    learn from: an array of shape (n, classes), NaN for rows that every tree knows.
    """
    # Many small steps: threads within a step would mostly wait for one another.
    with one_blas_thread():
        grown = GROWERS[kind](table, y, growth)
    numbers = {"n_trees": growth.n_trees, "n_rounds": growth.n_rounds}
    spent(growth_cost(kind, table.shape, int(y.max()) + 1, **numbers))
    return grown


def growth_cost(
    kind: str, shape: tuple[int, ...], n_classes: int, *, n_trees: int, n_rounds: int
) -> float:
    """Expect the seconds that `grow_trees` takes for a table of some shape.

    Examples
    --------
    >>> round(growth_cost("extra", (3000, 119), 8, n_trees=200, n_rounds=200), 1)
    1.5
    """
    n_rows, n_columns = shape
    if kind == "boosting":
        return boosting_cost(n_rows, n_columns, n_classes, n_rounds)
    return forest_cost(n_rows, n_trees)


def _grow_forest(
    kind: str, table: Array, y: Codes, growth: Growth
) -> tuple[FlatForest, Array | None]:
    from sklearn import ensemble

    forest = getattr(ensemble, kind)(
        n_estimators=growth.n_trees,
        max_features=growth.max_features,
        class_weight=growth.class_weight,
        random_state=growth.seed,
    )
    ranked, values = rank_columns(table)
    forest.fit(ranked, y, growth.weights)
    votes = _out_of_bag(forest, ranked, growth.groups) if growth.bagged else None
    return _restored(flatten_forest(forest), values), votes


def _out_of_bag(forest: Any, table: Array, groups: Codes | None) -> Array:
    """Mean of what the trees say of the rows whose objects they did not learn from."""
    votes, n_trees = np.zeros((len(table), forest.n_classes_)), np.zeros(len(table))
    group, X = np.arange(len(table)) if groups is None else groups, table.astype(np.float32)
    for tree, bag in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        is_known = np.zeros(group.max() + 1, bool)
        is_known[group[bag]] = True
        rows = np.flatnonzero(~is_known[group])
        if len(rows):
            votes[rows] += tree.predict_proba(X[rows], check_input=False)
            n_trees[rows] += 1
    some, mean = n_trees > 0, np.full_like(votes, np.nan)
    mean[some] = votes[some] / n_trees[some, None]
    return mean


def _grow_boosting(table: Array, y: Codes, growth: Growth) -> tuple[FlatForest, None]:
    n_columns = max(int(COLUMNS * table.shape[1]), LEAST_COLUMNS)
    steps = Steps(growth.n_rounds, RATE, LEAVES, LEAST_IN_LEAF, RIDGE, n_columns)
    weights = row_weights(y, growth.class_weight, RARENESS, growth.weights)
    return boost(table, y, weights, steps, growth.seed), None


def row_weights(
    y: Codes,
    class_weight: Mapping[int, float] | None = None,
    rareness: float = 0.0,
    given: Array | None = None,
) -> Array:
    """Return the weight of each row, 1 on average: that of its class, larger for rare classes.

    Weights of the rows themselves multiply these.

    Examples
    --------
    >>> row_weights(np.array([0, 0, 0, 0, 1]), rareness=0.5).round(2)
    array([0.83, 0.83, 0.83, 0.83, 1.67])
    """
    counts = np.bincount(y, given)
    of_classes = [1.0 if class_weight is None else class_weight[c] for c in range(len(counts))]
    rare = np.where(counts > 0, counts, 1.0) ** rareness
    weights = (np.array(of_classes) / rare)[y] * (1.0 if given is None else given)
    return np.asarray(weights / weights.mean())


GROWERS: dict[str, Callable[[Array, Codes, Growth], tuple[FlatForest, Array | None]]] = {
    "forest": partial(_grow_forest, "RandomForestClassifier"),
    "extra": partial(_grow_forest, "ExtraTreesClassifier"),
    "boosting": _grow_boosting,
}


def rank_columns(table: Array) -> tuple[Array, dict[int, Array]]:
    """Replace values by ranks in columns that single precision, as of trees, would spoil.

    Returns
    -------
    array, dict
        The table, and the distinct values of each column that was ranked.

    Examples
    --------
    >>> ranked, values = rank_columns(np.array([[1e9 + 0.5, 1.0], [1e9, 2.0]]))
    >>> ranked.tolist(), list(values)
    ([[1.0, 1.0], [0.0, 2.0]], [0])
    """
    seen = {j: column[~np.isnan(column)] for j, column in enumerate(table.T)}
    values = {j: np.unique(column) for j, column in seen.items() if _is_coarse(column)}
    ranked = table.copy() if values else table
    for j, distinct in values.items():
        ranked[:, j] = np.searchsorted(distinct, table[:, j])
        ranked[np.isnan(table[:, j]), j] = np.nan
    return ranked, values


def _is_coarse(values: Array) -> bool:
    """Check whether single precision would confuse values that differ."""
    if not len(values):
        return False
    reach = float(np.abs(values).max())
    return reach > LARGEST_SINGLE or (
        0 < float(values.std()) < max(COARSE * reach, SMALLEST_SINGLE)
    )


def _restored(forest: FlatForest, values: Mapping[int, Array]) -> FlatForest:
    """Return trees for values from trees that were grown on ranks."""
    threshold = forest.threshold.copy()
    for j, distinct in values.items():
        # A cut above all ranks separates values from gaps, also in the units of the column.
        cut = (forest.feature == j) & (threshold < len(distinct) - 1)
        below = np.floor(threshold[cut]).astype(np.intp)
        # Halved first: the sum of two large values could overflow.
        threshold[cut] = distinct[below] / 2 + distinct[below + 1] / 2
    return replace(forest, threshold=threshold, exact=np.array(list(values), np.int32))


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


def _forest_tree(tree: Any) -> _Tree:
    shares = tree.value[:, 0, :] / tree.value[:, 0, :].sum(axis=1, keepdims=True)
    left, right = tree.children_left.astype(np.int64), tree.children_right.astype(np.int64)
    missing = np.asarray(tree.missing_go_to_left).astype(np.uint8)
    return _Tree(left, right, tree.feature, tree.threshold, missing, shares)


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
        # An infinite threshold separates gaps from all values; so does the largest number.
        "threshold": np.where(leaf, 0.0, np.clip(joined.threshold, -LARGEST, LARGEST)),
        "missing_left": np.where(leaf, 0, joined.missing_left),
        "target": target,
        "values": values,
        "baseline": baseline,
    }
    return FlatForest.from_arrays({name: arrays[name].astype(TYPES[name]) for name in TYPES})


def _in_order(tree: _Tree) -> _Tree:
    order = depth_first(tree.left, tree.right)
    place = np.empty(len(order) + 1, np.int64)
    place[order], place[-1] = np.arange(len(order)), -1
    moved = _Tree(*(column[order] for column in tree))
    return moved._replace(left=place[moved.left], right=place[moved.right])
