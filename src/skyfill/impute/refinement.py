"""A second stage of filling: forests that correct what mixtures say of some columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.impute.regression_trees import RegressionTrees
from skyfill.network import Cells, MixtureNetwork, Posterior
from skyfill.network.cells import as_cells
from skyfill.threads import chunks, map_threads

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
# Names of the arrays of a refinement; those of its trees start with TREES.
NUMBERS, PULLS, TREES = ("columns", "center", "unit", "levels"), ("mean", "shape"), "trees."
REACH = "reach"
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
        The refined columns, rising; all others are left to the mixtures.
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
    """

    columns: NDArray[np.int64]
    center: Array
    unit: Array
    mean: Pull
    shape: Pull
    levels: Array
    trees: RegressionTrees
    reach: Array | None = None

    @property
    def n_trees(self) -> int:
        """Trees of each column."""
        return (len(self.trees.starts) - 1) // len(self.columns)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays for a model file."""
        own = {name: getattr(self, name) for name in NUMBERS}
        pulls = {name: np.stack(getattr(self, name)) for name in PULLS}
        trees = {TREES + name: array for name, array in self.trees._asdict().items()}
        return own | pulls | trees | ({} if self.reach is None else {REACH: self.reach})

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], n_columns: int) -> Refinement:
        """Build from `arrays()`; ValueError where they are malicious or damaged.

        What `levels` must be is for the caller to check.
        """
        trees = RegressionTrees(*(arrays[TREES + name] for name in RegressionTrees._fields))
        columns, n = arrays["columns"], len(arrays["columns"])
        if columns.dtype != np.int64 or columns.ndim != 1 or not n:
            raise ValueError("the refined columns must be whole numbers")
        if not (np.diff(columns) > 0).all() or columns[0] < 0 or columns[-1] >= n_columns:
            raise ValueError("the refined columns must be columns of the table, and rise")
        shapes = {"center": (n,), "unit": (n,)} | dict.fromkeys(PULLS, (len(Pull._fields), n))
        shapes |= {REACH: (2, n)} if REACH in arrays else {}
        for name in ("levels", *shapes):
            array = arrays[name]
            if array.dtype != np.float64 or array.shape != shapes.get(name, array.shape):
                raise ValueError(f"array {name!r} of the refinement has the wrong type or shape")
            if not np.isfinite(array).all():
                raise ValueError(f"array {name!r} of the refinement must be finite")
        mean, shape = (Pull(*arrays[name]) for name in PULLS)
        for pull in (mean, shape):
            pull.check()
        if not (arrays["unit"] > 0).all() or (len(trees.starts) - 1) % n:
            raise ValueError("units must be positive, and each refined column needs as many trees")
        trees.check(2 * n_columns + 1)
        columns, center, unit, levels = (arrays[name] for name in NUMBERS)
        return cls(columns, center, unit, mean, shape, levels, trees, arrays.get(REACH))

    def reaches(self, i: int, mean: Array) -> NDArray[np.bool_]:
        """Whether the forest of the i-th refined column knows cells with such means."""
        if self.reach is None:
            return np.ones(mean.shape, bool)
        return np.asarray((mean >= self.reach[0, i]) & (mean <= self.reach[1, i]))

    def predict(self, i: int, scores: Array, spread: Array, is_lost: NDArray[np.bool_]) -> Array:
        """Give what the forest of the i-th refined column says of its cell in some rows."""
        first = i * self.n_trees
        found = self.trees.mean(view_of(scores, spread, is_lost), first, first + self.n_trees)
        return np.asarray(self.center[i] + self.unit[i] * found)


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


@dataclass(frozen=True, eq=False)
class RefinedNetwork:
    """A mixture of networks whose posteriors are shifted and scaled by forests.

    Means are moved as they are; quantiles and draws as normal scores, so that they stay in the
    range of the column and values that many rows share stay such values. Draws are moved like
    quantiles: the gaps of a row keep their dependence. Gaps with limits are left to the mixtures.

    Parameters
    ----------
    mixture : MixtureNetwork
    refinement : Refinement
    """

    mixture: MixtureNetwork
    refinement: Refinement

    @cached_property
    def _calibrated(self) -> MixtureNetwork:
        """The mixtures with the levels of the refined columns."""
        new, before = self.refinement.levels, self.mixture.calibration
        steps = np.linspace(0.0, 1.0, new.shape[1])
        levels = np.tile(steps, (len(self.mixture), 1)) if before is None else before.copy()
        levels[self.refinement.columns] = new
        return replace(self.mixture, calibration=levels)

    def posterior(self, X: ArrayLike | Cells, *, denoise: bool = False) -> Posterior:
        """Give mean and standard deviation of every cell, as `MixtureNetwork.posterior`."""
        cells, pull = as_cells(X, len(self.mixture)), self.refinement.mean
        post = self.mixture.posterior(cells, denoise=denoise)
        mean, sd = post.mean.copy(), post.sd.copy()

        def move(i: int, j: int, rows: IntArray, spread: Array, found: Array) -> None:
            mine = pull.of(i)
            mean[rows, j] += mine[0] * trust(spread, mine[1]) * (found - mean[rows, j])
            sd[rows, j] *= ratio(spread, mine)

        self._each(cells, post, pull, move)
        return Posterior(mean, sd)

    def quantiles(self, X: ArrayLike | Cells, levels: Sequence[float]) -> Array:
        """Give quantiles of every cell, as `MixtureNetwork.quantiles`."""
        cells = as_cells(X, len(self.mixture))
        return self._moved(self._calibrated.quantiles(cells, levels), cells)

    def draws(self, X: ArrayLike | Cells, n_draws: int, rng: Any = None) -> Array:
        """Draw each row's gaps jointly, as `MixtureNetwork.draws`."""
        cells = as_cells(X, len(self.mixture))
        return self._moved(self.mixture.draws(cells, n_draws, rng), cells)

    def _moved(self, values: Array, cells: Cells) -> Array:
        """Shift and scale quantiles or draws about the medians."""
        pull, post = self.refinement.shape, self.mixture.posterior(cells)
        middle = self.mixture.quantiles(cells, [0.5])[0]

        def move(i: int, j: int, rows: IntArray, spread: Array, found: Array) -> None:
            mine, margin = pull.of(i), self.mixture.margins[j]
            score = margin.to_normal
            way = score(found) - score(post.mean[rows, j])
            about = score(middle[rows, j])
            old = np.stack([score(some) for some in values[:, rows, j]])
            to = about + mine[0] * trust(spread, mine[1]) * way
            values[:, rows, j] = margin.from_normal(to + ratio(spread, mine) * (old - about))

        self._each(cells, post, pull, move)
        return values

    def _each(self, cells: Cells, post: Posterior, pull: Pull, move: Callable[..., None]) -> None:
        """Move each refined column; takes its place, rows, their spreads and what forests say."""
        is_lost, refinement = np.isnan(cells.values), self.refinement
        # Forests do not know what lies beyond the rows that they learned from.
        wanted = is_lost & ~cells.is_limited & ~self.mixture.is_beyond(cells)
        scores = self.mixture.scores(np.where(is_lost, post.mean, cells.values))

        def work(i: int) -> None:
            j = int(refinement.columns[i])
            places = np.flatnonzero(wanted[:, j] & refinement.reaches(i, post.mean[:, j]))
            for part in chunks(len(places)):
                rows = places[part]
                spread = post.sd[rows, j] / refinement.unit[i]
                move(i, j, rows, spread, refinement.predict(i, scores[rows], spread, is_lost[rows]))

        map_threads(work, np.flatnonzero(pull.weight > 0).tolist())


def refined(
    mixture: MixtureNetwork, refinement: Refinement | None
) -> MixtureNetwork | RefinedNetwork:
    """Give what fills gaps: the mixtures, or these with forests if there are any."""
    return mixture if refinement is None else RefinedNetwork(mixture, refinement)
