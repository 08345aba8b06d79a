"""Forests and boostings as flat arrays: no pickle, and no scikit-learn to score with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.classify.bodies import walk_trees
from skyfill.classify.forest_layout import Packed, Trees, pack_trees, rounded
from skyfill.device import Device, Outbox, gpu_for, in_batches
from skyfill.errors import DataError
from skyfill.threads import map_rows

Arrays = Mapping[str, NDArray[Any]]
# Copies of trees on devices, kept as long as the trees.
_COPIES: WeakKeyDictionary[Trees, dict[str, tuple[Any, ...]]] = WeakKeyDictionary()
KINDS = ("mean", "boost")
MAX_NODES = 1 << 26
MAX_FEATURES = 1 << 14
MAX_CLASSES = 1 << 12
MAX_SCORE = 1e9
# Rows times trees that take longer on the cores of this machine than on a GPU; rows at once there.
WORTH_A_GPU, ROWS_AT_ONCE = 1_000_000, 1 << 18
TYPES = {
    "shape": np.int64,
    "starts": np.int64,
    "feature": np.int32,
    "threshold": np.float64,
    "missing_left": np.uint8,
    "target": np.int32,
    "values": np.float32,
    "baseline": np.float64,
}
# Only in files of forests that need it.
EXACT = "exact"


@dataclass(frozen=True, eq=False)
class FlatForest(Trees):
    """Trees that give class probabilities; scoring needs NumPy and Numba only.

    Made by `flatten_forest`, `boost` or `from_arrays`; the fields are those of `Trees`.

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

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the fields: a copy packs its trees when it needs them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_trees(self) -> int:
        """Number of trees, counted over all classes."""
        return len(self.starts) - 1

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return class probabilities for each row of X; NaN goes where the trees send gaps."""
        table = np.ascontiguousarray(X, np.float64)
        if table.ndim != 2 or table.shape[1] != self.n_features:
            raise DataError(
                f"the trees have {self.n_features} features, the table has shape {table.shape}"
            )
        packed = self.packed
        total = np.zeros((len(table), max(self.values.shape[1], len(self.baseline))))

        def work(rows: slice) -> None:
            packed.add(table[rows], total[rows])

        device = gpu_for(len(table) * self.n_trees, WORTH_A_GPU)
        if device is not None:
            self._walk(device, table, total)
        else:
            map_rows(work, len(table))
        is_mean = self.kind == "mean"
        return total / total.sum(axis=1, keepdims=True) if is_mean else self._soften(total)

    def _walk(self, device: Device, X: NDArray[np.float64], total: NDArray[np.float64]) -> None:
        """Add the values of the leaves on a device."""
        names = ("starts", "feature", "threshold", "missing_left", "target", "values")
        with device.alone():
            copies = _COPIES.setdefault(self, {})
            if device.name not in copies:
                copies[device.name] = tuple(device.array(getattr(self, name)) for name in names)

            def work(rows: slice) -> None:
                # Forests compare in single precision.
                some = rounded(X[rows], self.exact) if self.kind == "mean" else X[rows]
                if not len(self.exact):
                    some = some.astype(np.float32 if self.kind == "mean" else np.float64)
                out = device.empty(total[rows].shape, fill=0)
                device.run(walk_trees, len(some), device.array(some), *copies[device.name], out)
                outbox.send([(out, total[rows])])

            outbox = Outbox(device)
            in_batches(device, len(X), ROWS_AT_ONCE, work)
            outbox.close()

    def _soften(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = total + self.baseline
        if scores.shape[1] == 1:
            scores = np.hstack([np.zeros_like(scores), scores])
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))

    @cached_property
    def packed(self) -> Packed:
        """The trees in the form that the compiled kernels need."""
        return pack_trees(self)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file."""
        shape = np.array([self.n_features, self.n_classes, KINDS.index(self.kind)])
        arrays = {name: shape if name == "shape" else getattr(self, name) for name in TYPES}
        return arrays | ({EXACT: self.exact} if len(self.exact) else {})

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> FlatForest:
        """Build from `arrays()`; ValueError where they are malicious or damaged."""
        checked = {name: _typed(arrays, name) for name in TYPES}
        if EXACT in arrays:
            checked[EXACT] = _typed(arrays, EXACT, np.int32)
        n_features, n_classes, kind = _shape_of(checked.pop("shape"))
        forest = cls(n_features, n_classes, KINDS[kind], **checked)
        _check(forest)
        # Packed now, so that a tree that is too deep is found here and not when it is used.
        _ = forest.packed
        return forest


def _check(forest: Trees) -> None:
    """Raise ValueError unless every walk ends at a leaf and gives probabilities."""
    _check_sizes(forest)
    if not ((forest.exact >= 0) & (forest.exact < forest.n_features)).all():
        raise ValueError("the forest compares features that do not exist")
    _check_walks(forest)
    _check_values(forest)


def _typed(arrays: Arrays, name: str, kind: Any = None) -> NDArray[Any]:
    """Take one array; ValueError where it has the wrong type or number of axes."""
    if name not in arrays:
        raise ValueError(f"the forest lacks the array {name!r}")
    array = np.asarray(arrays[name])
    if array.dtype != (kind or TYPES[name]) or array.ndim != (2 if name == "values" else 1):
        raise ValueError(f"array {name!r} of the forest has the wrong type or shape")
    return np.ascontiguousarray(array)


def _shape_of(shape: NDArray[np.int64]) -> tuple[int, int, int]:
    """Take the numbers of features and classes, and the kind; check their bounds."""
    bounds = (MAX_FEATURES, MAX_CLASSES, len(KINDS) - 1)
    if len(shape) != 3 or not (shape >= (1, 1, 0)).all() or not (shape <= bounds).all():
        raise ValueError(f"the forest's shape {shape.tolist()} is out of bounds {bounds}")
    return int(shape[0]), int(shape[1]), int(shape[2])


def _check_sizes(forest: Trees) -> None:
    n = len(forest.feature)
    starts = forest.starts
    per_node = (forest.threshold, forest.missing_left, forest.target)
    if not 0 < n <= MAX_NODES or any(len(array) != n for array in per_node):
        raise ValueError("the arrays of the forest's nodes differ in length or are too long")
    if len(starts) < 2 or len(starts) > n + 1 or starts[0] != 0 or starts[-1] != n:
        raise ValueError("the trees do not cover the nodes")
    # Compared, not subtracted: the difference of malicious numbers could wrap around.
    if not (starts[1:] > starts[:-1]).all():
        raise ValueError("a tree has no nodes")
    n_scores = 0 if forest.kind == "mean" else (1 if forest.n_classes == 2 else forest.n_classes)
    width = forest.n_classes if forest.kind == "mean" else 1
    if len(forest.baseline) != n_scores or forest.values.shape[1] != width:
        raise ValueError("values or baseline do not fit the number of classes")
    if n_scores and (len(starts) - 1) % n_scores:
        raise ValueError("a boosting needs the same number of trees for every class")


def _check_walks(forest: Trees) -> None:
    """Check that every node but the roots has one parent, before it: all walks end at leaves."""
    feature, target = forest.feature, forest.target
    split = feature >= 0
    if not ((feature >= -1) & (feature < forest.n_features)).all():
        raise ValueError("a split uses a feature that does not exist")
    if not (forest.missing_left <= 1).all():
        raise ValueError("missing_left must be 0 or 1")
    if not ((target >= 0) & (target < np.where(split, len(feature), len(forest.values)))).all():
        raise ValueError("a child or a leaf's value is out of range")
    node = np.flatnonzero(split)
    tree_end = forest.starts[np.searchsorted(forest.starts, node, side="right")]
    if not ((target[node] > node + 1) & (target[node] < tree_end)).all():
        raise ValueError("a child must follow its parent within its tree")
    parents = np.bincount(node + 1, minlength=len(feature))
    parents += np.bincount(target[node], minlength=len(feature))
    parents[forest.starts[:-1]] += 1
    if not (parents == 1).all():
        raise ValueError("every node of a tree must have one parent")


def _check_values(forest: Trees) -> None:
    for name in ("threshold", "values", "baseline"):
        if not np.isfinite(getattr(forest, name)).all():
            raise ValueError(f"{name} must be finite")
    if (
        forest.kind == "boost"
        and max(_largest(forest.values), _largest(forest.baseline)) > MAX_SCORE
    ):
        raise ValueError(f"scores above {MAX_SCORE} would overflow")
    if forest.kind == "mean":
        sums = forest.values.sum(axis=1, dtype=np.float64)
        if (forest.values < 0).any() or (abs(sums - 1) > 1e-5).any():
            raise ValueError("the shares of a leaf must not be negative and must add up to 1")


def _largest(array: NDArray[Any]) -> float:
    return float(abs(array).max(initial=0.0))
