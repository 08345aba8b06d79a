"""Learn what forests can correct, from seen cells that are hidden the way real gaps are.

A forest sees what it will see later: rows with such gaps, filled by mixtures that were not fitted
to them. How far it is followed is chosen on cells that it did not see; often that is not at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skyfill.impute.fill_quality import FillQuality, HeldResult, measure_filling, root_mean_square
from skyfill.impute.hidden_views import (
    FITS,
    FOLDS,
    LEAST_DONORS,
    LEVELS,
    MOST_CELLS,
    Kind,
    Views,
    kinds_of,
    make_views,
)
from skyfill.impute.pulls import NO_CHOICE, PARTS, Choice, Held, HeldShapes, Rule, chance_of
from skyfill.impute.refinement import Pull, Refinement, view_of
from skyfill.impute.regression_trees import RegressionTrees, flatten_trees, join_trees
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.mixture.calibration import STEPS
from skyfill.network.mixture.fit import Plan
from skyfill.network.mixture.margin import Margin
from skyfill.progress import fit_cost, forest_cost, spent
from skyfill.threads import map_threads, one_blas_thread

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
# Most rows to learn from, fewest of a table; fewest cells of a column.
MOST_ROWS, LEAST_ROWS, LEAST_CELLS = 6000, 200, 100
# Trees of a column, share of the rows that each sees, and cells of a leaf.
TREES, BAG, LEAST_IN_LEAF = 50, 0.67, 3
# A forest is bounded to all but this share of its cells at either end of their means, if more than
# this share of the gaps lies beyond.
EDGE, BEYOND = 0.005, 0.05
# A forest is followed up to this distance of a gap from what its column was learned from.
MOST_DISTANCE = 1.0
# When a forest is followed: where it surely knows something and held-out cells gain, or where they
# gain at all.
RULES = {"auto": Rule(gain=0.01, risk=0.2), "trees": Rule(gain=0.0, risk=1.0)}


def check_refine(refine: str | None) -> str | None:
    """Refuse a kind of refinement that does not exist."""
    if refine is not None and refine not in RULES:
        raise ValueError(f"refine must be {', '.join(RULES)} or None, not {refine!r}")
    return refine


def refinement_cost(n_rows: int, n_features: int, n_components: int) -> float:
    """Expect the cost of `learn_refinement`: see `progress`.

    Examples
    --------
    >>> round(refinement_cost(3030, 12, 32))
    11
    """
    n = min(n_rows, MOST_ROWS)
    if n < LEAST_ROWS:
        return 0.0
    fits = FOLDS * FITS * fit_cost(n - n // FOLDS, n_features, n_components)
    return fits + n_features * forest_cost(min(n, MOST_CELLS // n_features), TREES)


class Refining(NamedTuple):
    """Forests of the columns that gain from them, and how well hidden cells were filled.

    `refinement` is None where no column gains, `quality` where no cells were hidden.
    """

    refinement: Refinement | None = None
    quality: FillQuality | None = None


def learn_refinement(
    network: MixtureNetwork, plan: Plan, cells: Cells, rng: Generator, *, refine: str | None
) -> Refining:
    """Learn forests of the columns that gain from them.

    Parameters
    ----------
    network : MixtureNetwork
        Fitted to `cells`.
    plan : Plan
        Of its fits.
    cells : Cells
        Columns with errors are left to the mixtures: no tree sees values without errors. So is a
        table of fewer than 200 rows.
    rng : numpy.random.Generator
    refine : {"auto", "trees", None}
        Follow the forests where held-out cells gain clearly, wherever they gain, or nowhere.
    """
    if check_refine(refine) is None or len(cells) < LEAST_ROWS or len(network) < 2:
        return Refining()
    rule = RULES[str(refine)]
    cells = cells.take(rng.permutation(len(cells))[:MOST_ROWS])
    with one_blas_thread():
        exact = ~cells.is_noisy.any(axis=0)
        enough = (~np.isnan(cells.values)).sum(axis=0) >= LEAST_CELLS
        columns = np.flatnonzero(exact & enough).tolist()
        kinds = [kind for j in columns for kind in kinds_of(cells, j)]
        views = make_views(network, plan, cells, kinds, rng)
        means, lost = network.posterior(cells).mean, np.isnan(cells.values)
        seeds = rng.spawn(len(kinds))

        def work(i: int) -> Column | None:
            kind, mine = kinds[i], views[i]
            if len(mine.row) < LEAST_CELLS:
                return None
            gaps = lost[:, kind.place] & ~cells.is_limited[:, kind.place] & kind.is_of(lost)
            reach = find_reach(mine.mean, means[gaps, kind.place])
            return _refine_column(kind, mine, network.margins[kind.place], reach, seeds[i])

        found = map_threads(work, list(range(len(kinds))))
    kept = _followed([column for column in found if column is not None], rule)
    quality = measure_filling(cells, kinds, views, [column.held for column in kept])
    if not kept:
        return Refining(None, quality)
    return Refining(_collect(kept, network, find_distances(network, cells)), quality)


class Column(NamedTuple):
    """A column with its forest, and how far that is best followed."""

    kind: Kind
    center: float
    unit: float
    mean: Choice
    shape: Choice
    levels: Array
    trees: RegressionTrees
    reach: Array
    chance: float
    held: HeldResult


def find_reach(held: Array, gaps: Array) -> Array:
    """Give the means of the mixtures from and up to which a forest is followed.

    Forests cannot extrapolate. Where many gaps lie beyond the cells that could be hidden, as those
    of objects too faint for a survey, these are left to the mixtures. Elsewhere the forest is
    followed to the very end of these cells, and not beyond: a field may be fainter.

    Parameters
    ----------
    held, gaps : arrays
        Means of the hidden cells that the forest learns from, and of the gaps.

    Examples
    --------
    >>> find_reach(np.arange(1001.0), np.full(50, 2000.0))
    array([  5., 995.])
    >>> find_reach(np.arange(1001.0), np.full(50, 700.0))
    array([   0., 1000.])
    """
    edges = np.quantile(held, [EDGE, 1 - EDGE])
    beyond = (gaps < edges[0]) | (gaps > edges[1])
    is_bounded = len(gaps) >= LEAST_DONORS and beyond.mean() > BEYOND
    return edges if is_bounded else np.quantile(held, [0.0, 1.0])


def find_distances(network: MixtureNetwork, cells: Cells) -> Array:
    """Give how far from what its column was learned from a gap may lie, in normal scores.

    In a wide table many rows are odd in some column, and forests have learned from such rows. They
    have not where many gaps of a column lie beyond, as those of objects too faint for a survey, or
    where limits say that values do.
    """
    if cells.is_limited.any():
        return np.zeros(len(network))
    beyond = network.columns_beyond
    return np.array([0.0 if name in beyond else MOST_DISTANCE for name in network.names])


def _followed(columns: list[Column], rule: Rule) -> list[Column]:
    """Forget what is not followed, and columns of which nothing is left."""
    kept = []
    believed = rule.believes(np.array([column.chance for column in columns]))
    for column, is_believed in zip(columns, believed, strict=True):
        mean, shape = (is_believed and c.gain > rule.gain for c in (column.mean, column.shape))
        less = column if mean else column._replace(mean=NO_CHOICE)
        less = less if shape else less._replace(shape=NO_CHOICE, levels=STEPS)
        held = less.held
        held = held if mean else held._replace(error=None)
        held = held if shape else held._replace(inside=None)
        kept += [less._replace(held=held)] if mean or shape else []
    return kept


def _refine_column(
    kind: Kind, views: Views, margin: Margin, reach: Array, rng: Generator
) -> Column | None:
    """Grow the forest of a column; None if its cells are all alike."""
    true, mean = views.truth, views.mean
    center = float(np.median(true))
    unit = root_mean_square(true - center)
    if not 0 < unit < np.inf:
        return None
    spread = views.sd / unit
    target = (true - center) / unit
    spent(forest_cost(len(true), TREES))
    trees, found = _grow(view_of(views.scores, spread, views.is_lost), target, views.row, rng)
    ok = ~np.isnan(found) & (mean >= reach[0]) & (mean <= reach[1])
    # Rows are in random order; every part has rows of all folds.
    part = views.row[ok] // FOLDS % PARTS
    held = Held(target[ok], (mean[ok] - center) / unit, spread[ok], found[ok], part)
    says, before = margin.to_normal(center + unit * found[ok]), margin.to_normal(mean[ok])
    mine = views.quantiles[:, ok]
    quantiles = np.stack([margin.to_normal(each) for each in mine])
    shapes = HeldShapes(held, margin, unit, true[ok], says - before, quantiles, LEVELS)
    choice, parts = shapes.choose()
    levels = shapes.levels(choice.pull, rng)
    chance = chance_of(margin.to_normal(true[ok]), before, says)
    nearest, left = held.choose()
    result = HeldResult(kind, ok, unit * left, shapes.inside(parts, rng))
    return Column(kind, center, unit, nearest, choice, levels, trees, reach, chance, result)


def _grow(
    X: NDArray[np.float32], y: Array, row: IntArray, rng: Generator
) -> tuple[RegressionTrees, Array]:
    """Grow trees on some rows each; predict every cell by the trees that did not see its row."""
    from sklearn.tree import ExtraTreeRegressor

    total, count, trees = np.zeros(len(y)), np.zeros(len(y)), []
    for _ in range(TREES):
        # All columns at each split: a rule may hang on one or two of them.
        seed = int(rng.integers(2**31))
        tree = ExtraTreeRegressor(min_samples_leaf=LEAST_IN_LEAF, random_state=seed)
        inside = (rng.random(row.max() + 1) < BAG)[row]
        # X is in single precision and finite: what scikit-learn would check at length.
        tree.fit(X[inside], y[inside], check_input=False)
        total[~inside] += tree.tree_.predict(X[~inside])[:, 0]
        count += ~inside
        trees.append(tree.tree_)
    found = np.divide(total, count, out=np.full(len(y), np.nan), where=count > 0)
    return flatten_trees(trees), found


def _collect(columns: list[Column], network: MixtureNetwork, distances: Array) -> Refinement:
    kinds = [column.kind for column in columns]
    places = np.array([kind.place for kind in kinds], np.int64)
    family = np.stack([kind.family for kind in kinds])
    levels = np.array([column.levels for column in columns])
    if network.calibration is not None:
        pairs = zip(levels, network.calibration[places], strict=True)
        levels = np.stack([np.interp(new, STEPS, old) for new, old in pairs])
    return Refinement(
        places,
        np.array([column.center for column in columns]),
        np.array([column.unit for column in columns]),
        Pull(*np.array([column.mean.pull for column in columns]).T),
        Pull(*np.array([column.shape.pull for column in columns]).T),
        levels,
        join_trees([column.trees for column in columns]),
        np.stack([column.reach for column in columns], axis=1),
        family=family if family.any() else None,
        apart=np.array([kind.apart for kind in kinds]) if family.any() else None,
        distance=distances[places],
    )
