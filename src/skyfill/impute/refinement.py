"""Forests that correct what mixtures say of some columns, and how far they are followed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.impute.regression_trees import RegressionTrees

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
# Names of the arrays of a refinement; those of its trees start with TREES.
NUMBERS, PULLS, TREES = ("columns", "center", "unit", "levels"), ("mean", "shape"), "trees."
# Arrays that older models do not have.
MORE = REACH, FAMILY, APART, DISTANCE = "reach", "family", "apart", "distance"
MAX_SCALE = 10.0


class Pull(NamedTuple):
    """How far posteriors are moved towards forests, of shape (c,) each.

    A cell whose posterior has the spread s is moved by ``weight * s**2 / (s**2 + doubt**2)`` of the
    way: where mixtures are sure, the forest, which averages over other objects, adds noise.
    """

    weight: Array  # from 0 to 1
    doubt: Array  # in units of the column
    scale: Array  # of the spread, where no doubt is left

    def check(self) -> None:
        """Raise ValueError for numbers that no pull has."""
        if not ((self.weight >= 0) & (self.weight <= 1)).all():
            raise ValueError("weights of forests must lie between 0 and 1")
        if not ((self.doubt >= 0) & (self.scale > 0) & (self.scale <= MAX_SCALE)).all():
            raise ValueError("doubts must not be negative, and scales must be positive")

    def of(self, i: int) -> tuple[float, float, float]:
        """Give the numbers of the i-th column."""
        return float(self.weight[i]), float(self.doubt[i]), float(self.scale[i])


def trust(spread: Array, doubt: float) -> Array:
    """Share of the way to a forest that posteriors of some spread are moved.

    Examples
    --------
    >>> trust(np.array([0.0, 1.0, 2.0]), 1.0)
    array([0. , 0.5, 0.8])
    """
    size = np.hypot(spread, doubt)
    return np.asarray(np.divide(spread, size, out=np.zeros_like(size), where=size > 0) ** 2)


def ratio(spread: Array, pull: Sequence[float]) -> Array:
    """Ratio of the spreads of moved posteriors to what they were; `pull` holds single numbers."""
    return np.asarray(1.0 + trust(spread, pull[1]) * (pull[2] - 1.0))


@dataclass(frozen=True, eq=False)
class Refinement:
    """Forests of some columns, and how far they are followed.

    Attributes
    ----------
    columns : int array of shape (c,)
        The refined columns, rising; all others are left to the mixtures. A column has two forests
        where it is often missing with a family of others: for these cells, and for all others.
    center, unit : arrays of shape (c,)
        Zero and unit of a column in its forest.
    mean : Pull
        How means and standard deviations are moved.
    shape : Pull
        How quantiles and draws are moved.
    levels : array of shape (c, levels)
        Calibration of the refined columns: as ``MixtureNetwork.calibration``.
    trees : RegressionTrees
        The same number for each column, in the order of `columns`.
    reach : array of shape (2, c), optional
        Means of the mixtures from and up to which the forests are followed: they cannot
        extrapolate. None, as in older models: everywhere.
    family : bool array of shape (c, p), optional
        Columns that are missing together with the refined one. None, as in older models: none.
    apart : bool array of shape (c,), optional
        Whether a forest is for the cells of rows that lack half of the family or more.
    distance : array of shape (c,), optional
        How far from what its column was learned from a gap may lie for its forest to be followed
        (`MixtureNetwork.distances`). None, as in older models: 0.
    """

    columns: NDArray[np.int64]
    center: Array
    unit: Array
    mean: Pull
    shape: Pull
    levels: Array
    trees: RegressionTrees
    reach: Array | None = None
    family: NDArray[np.bool_] | None = None
    apart: NDArray[np.bool_] | None = None
    distance: Array | None = None

    @property
    def n_trees(self) -> int:
        """Trees of each column."""
        return (len(self.trees.starts) - 1) // len(self.columns)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file."""
        own = {name: getattr(self, name) for name in NUMBERS}
        pulls = {name: np.stack(getattr(self, name)) for name in PULLS}
        trees = {TREES + name: array for name, array in self.trees._asdict().items()}
        more = {name: getattr(self, name) for name in MORE}
        return own | pulls | trees | {name: a for name, a in more.items() if a is not None}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_columns: int) -> Refinement:
        """Build from `arrays()`; ValueError where they are malicious or damaged.

        What `levels` must be is for the caller to check.
        """
        trees = RegressionTrees(*(arrays[TREES + name] for name in RegressionTrees._fields))
        columns, n = arrays["columns"], len(arrays["columns"])
        if columns.dtype != np.int64 or columns.ndim != 1 or not n:
            raise ValueError("the refined columns must be whole numbers")
        _check_families(arrays, n_columns)
        # A column may come twice: the second forest is for rows that lack its family.
        rise = 2 * columns + arrays.get(APART, np.zeros(n, bool))
        if not (np.diff(rise) > 0).all() or columns[0] < 0 or columns[-1] >= n_columns:
            raise ValueError("the refined columns must be columns of the table, and rise")
        shapes = {"center": (n,), "unit": (n,)} | dict.fromkeys(PULLS, (len(Pull._fields), n))
        shapes |= {REACH: (2, n)} if REACH in arrays else {}
        shapes |= {DISTANCE: (n,)} if DISTANCE in arrays else {}
        for name in ("levels", *shapes):
            array = arrays[name]
            if array.dtype != np.float64 or array.shape != shapes.get(name, array.shape):
                raise ValueError(f"array {name!r} of the refinement has the wrong type or shape")
            if not np.isfinite(array).all():
                raise ValueError(f"array {name!r} of the refinement must be finite")
        mean, shape = (Pull(*arrays[name]) for name in PULLS)
        for pull in (mean, shape):
            pull.check()
        if (arrays.get(DISTANCE, np.zeros(n)) < 0).any():
            raise ValueError("distances must not be negative")
        if not (arrays["unit"] > 0).all() or (len(trees.starts) - 1) % n:
            raise ValueError("units must be positive, and each refined column needs as many trees")
        trees.check(2 * n_columns + 1)
        columns, center, unit, levels = (arrays[name] for name in NUMBERS)
        more = (arrays.get(name) for name in MORE)
        return cls(columns, center, unit, mean, shape, levels, trees, *more)

    def reaches(self, i: int, mean: Array, distance: Array) -> NDArray[np.bool_]:
        """Whether the forest of the i-th refined column knows cells with such means, so far out."""
        known = distance <= (0.0 if self.distance is None else self.distance[i])
        if self.reach is None:
            return np.asarray(known)
        return np.asarray(known & (mean >= self.reach[0, i]) & (mean <= self.reach[1, i]))

    def is_for(self, i: int, is_lost: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether the i-th forest is for the cells of its column in rows with such gaps."""
        if self.family is None or self.apart is None:
            return np.ones(len(is_lost), bool)
        return np.asarray(lacks_family(is_lost, self.family[i]) == self.apart[i])

    def lies_apart(self, is_lost: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether cells are in rows that lack the family of their column, of shape (n, p)."""
        found = np.zeros(is_lost.shape, bool)
        if self.family is not None:
            for j, family in zip(self.columns, self.family, strict=True):
                found[:, j] = lacks_family(is_lost, family)
        return found

    def calibrate(self, levels: Array, *, apart: bool) -> Array:
        """Put the levels of the forests for these cells in those of all columns."""
        levels, which = levels.copy(), np.full(len(self.columns), not apart)
        which = which if self.apart is None else self.apart == apart
        levels[self.columns[which]] = self.levels[which]
        return levels

    def predict(self, i: int, scores: Array, spread: Array, is_lost: NDArray[np.bool_]) -> Array:
        """Give what the forest of the i-th refined column says of its cell in some rows."""
        first = i * self.n_trees
        found = self.trees.mean(view_of(scores, spread, is_lost), first, first + self.n_trees)
        return np.asarray(self.center[i] + self.unit[i] * found)


def lacks_family(is_lost: NDArray[np.bool_], family: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether rows lack half of the columns of a family or more; no row lacks an empty one.

    Examples
    --------
    >>> lacks_family(np.array([[True, False, True], [False, True, False]]), np.arange(3) < 2)
    array([ True,  True])
    """
    size = int(family.sum())
    return np.asarray(2 * is_lost[:, family].sum(axis=1) >= size) & (size > 0)


def _check_families(arrays: Mapping[str, NDArray[Any]], n_columns: int) -> None:
    """Raise ValueError unless families are sets of columns, and there for every forest or none."""
    if (FAMILY in arrays) != (APART in arrays):
        raise ValueError("the forests of families are not complete")
    n = len(arrays["columns"])
    for name, shape in ((FAMILY, (n, n_columns)), (APART, (n,))):
        found = arrays.get(name, np.zeros(shape, bool))
        if found.dtype != np.bool_ or found.shape != shape:
            raise ValueError(f"array {name!r} of the refinement has the wrong type or shape")


def view_of(scores: Array, spread: Array, is_lost: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Give what the trees of a column see: the filled row, how uncertain the cell is, and the gaps.

    Parameters
    ----------
    scores : array of shape (n, p)
        Normal scores; gaps, the cell itself among them, are filled with posterior means.
    spread : array of shape (n,)
        Standard deviation of the cell, in units of the column.
    is_lost : bool array of shape (n, p)
        Which cells were gaps. Trees of older models do not look at them.

    Examples
    --------
    >>> view_of(np.array([[0.5, -1.0]]), np.array([0.25]), np.array([[False, True]])).tolist()
    [[0.5, -1.0, 0.25, 0.0, 1.0]]
    """
    return np.column_stack([scores, spread, is_lost]).astype(np.float32)
