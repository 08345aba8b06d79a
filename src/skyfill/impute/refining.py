"""Learn what forests can correct, from seen cells that are hidden the way real gaps are.

Every seen cell of a column is hidden once, with or without what is missing beside it elsewhere. Its
forest sees what it will see later: rows filled by mixtures that were not fitted to them. How far it
is followed is chosen on cells that it did not see; often that is not at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skyfill.impute.pulls import Held, HeldShapes, Rule
from skyfill.impute.refinement import Pull, Refinement, view_of
from skyfill.impute.regression_trees import RegressionTrees, flatten_trees, join_trees
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.mixture.calibration import HIDDEN, STEPS
from skyfill.network.mixture.fit import Plan
from skyfill.network.mixture.learn import fit_again
from skyfill.network.mixture.margin import Margin
from skyfill.progress import fit_cost, forest_cost, spent
from skyfill.threads import map_threads, one_blas_thread

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
# Parts of the rows that are held out in turn, and fits that fill them.
FOLDS, FITS = 4, 2
# Most rows to learn from, fewest of a table; most cells of all columns, fewest of a column.
MOST_ROWS, LEAST_ROWS, MOST_CELLS, LEAST_CELLS = 6000, 200, 200_000, 100
# Share of the rows that lack only the column, and fewest rows without it whose gaps are copied.
ALONE, LEAST_DONORS = 0.5, 20
# Trees of a column, share of the rows that each sees, and cells of a leaf.
TREES, BAG, LEAST_IN_LEAF = 50, 0.67, 3
# A forest is bounded to all but this share of its cells at either end of their means, if more than
# this share of the gaps lies beyond.
EDGE, BEYOND = 0.005, 0.05
# Levels of the quantiles that forests are judged by.
LEVELS = STEPS[2:-2:2]
# When a forest is followed: where held-out cells gain clearly, or at all.
RULES = {"auto": Rule(gain=0.01, sure=1.0), "trees": Rule(gain=0.0, sure=0.0)}


def check_refine(refine: str | None) -> str | None:
    """Refuse a kind of refinement that does not exist."""
    if refine is not None and refine not in RULES:
        raise ValueError(f"refine must be {', '.join(RULES)} or None, not {refine!r}")
    return refine


class Views(NamedTuple):
    """Hidden cells of one column, in rows filled by mixtures that do not know these rows."""

    row: IntArray  # (m,)
    truth: Array  # (m,)
    scores: Array  # (m, p)
    is_lost: NDArray[np.bool_]  # (m, p)
    mean: Array  # (m,)
    sd: Array  # (m,)
    quantiles: Array  # (levels, m)


def refinement_cost(n_rows: int, n_features: int, n_components: int) -> float:
    """Expect the cost of `learn_refinement`: see `progress`.

    Examples
    --------
    >>> round(refinement_cost(3030, 12, 32))
    7
    """
    n = min(n_rows, MOST_ROWS)
    if n < LEAST_ROWS:
        return 0.0
    fits = FOLDS * FITS * fit_cost(n - n // FOLDS, n_features, n_components)
    return fits + n_features * forest_cost(min(n, MOST_CELLS // n_features), TREES)


def learn_refinement(
    network: MixtureNetwork, plan: Plan, cells: Cells, rng: Generator, *, refine: str | None
) -> Refinement | None:
    """Learn forests of the columns that gain from them; None where no column does.

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
        return None
    rule = RULES[str(refine)]
    cells = cells.take(rng.permutation(len(cells))[:MOST_ROWS])
    with one_blas_thread():
        exact = ~cells.is_noisy.any(axis=0)
        enough = (~np.isnan(cells.values)).sum(axis=0) >= LEAST_CELLS
        columns = np.flatnonzero(exact & enough).tolist()
        views = _make_views(network, plan, cells, columns, rng)
        means = network.posterior(cells).mean
        gaps = np.isnan(cells.values) & ~cells.is_limited
        seeds = dict(zip(columns, rng.spawn(len(columns)), strict=True))

        def work(j: int) -> Column | None:
            reach = find_reach(views[j].mean, means[gaps[:, j], j])
            return _refine_column(j, views[j], network.margins[j], reach, rule, seeds[j])

        found = map_threads(work, columns)
    kept = [column for column in found if column is not None]
    return _collect(kept, network) if kept else None


def _make_views(
    network: MixtureNetwork, plan: Plan, cells: Cells, columns: list[int], rng: Generator
) -> dict[int, Views]:
    """Fill hidden cells of each part of the rows with mixtures fitted to the others."""
    part_of = np.arange(len(cells)) % FOLDS
    found: dict[int, list[Views]] = {j: [] for j in columns}
    most = MOST_CELLS // (len(network) * FOLDS)
    for part in range(FOLDS):
        model = fit_again(network, cells.take(part_of != part), plan, rng, FITS)
        for j in columns:
            rows = np.flatnonzero((part_of == part) & ~np.isnan(cells.values[:, j]))[:most]
            lost = cells.take(rows).hide(hide_column(cells, rows, j, rng))
            post = model.posterior(lost)
            is_lost = np.isnan(lost.values)
            scores = network.scores(np.where(is_lost, post.mean, lost.values))
            quantiles = model.quantiles(lost, LEVELS.tolist(), column=j)[:, :, j]
            truth, mean, sd = (a[:, j] for a in (cells.take(rows).values, post.mean, post.sd))
            found[j].append(Views(rows, truth, scores, is_lost, mean, sd, quantiles))
    return {j: _joined(parts) for j, parts in found.items()}


def hide_column(cells: Cells, rows: IntArray, j: int, rng: Generator) -> NDArray[np.bool_]:
    """Hide a column of rows that have it, in half of them with what is missing together with it.

    There the gaps of another row without the column are copied, each with a probability such that,
    with the gaps that the rows have anyway, others are missing as they are where this column is.
    Non-detections are no pattern to copy: a bright object would have been detected. Where too few
    rows lack the column, other cells are hidden at random: any kind of gaps may come.
    """
    lost = np.isnan(cells.values)
    gaps, shape = lost & ~cells.is_limited, (len(rows), lost.shape[1])
    without = gaps[gaps[:, j]]
    if len(without) < LEAST_DONORS:
        hidden = rng.random(shape) < HIDDEN
    else:
        share, anyway = without.mean(axis=0), gaps[~lost[:, j]].mean(axis=0)
        more = np.maximum(share - anyway, 0.0)
        copied = np.divide(more, share * (1 - anyway), out=np.zeros_like(more), where=more > 0)
        hidden = without[rng.integers(len(without), size=len(rows))] & (rng.random(shape) < copied)
    hidden[rng.random(len(rows)) < ALONE] = False
    hidden[:, j] = True
    # Where nothing would be left, nothing else is hidden.
    hidden[(hidden | lost[rows]).all(axis=1)] = np.arange(lost.shape[1]) == j
    return np.asarray(hidden & ~lost[rows])


def _joined(parts: list[Views]) -> Views:
    """Put views of a column together; all but the quantiles have rows in front."""
    sides = zip(Views._fields, zip(*parts, strict=True), strict=True)
    return Views(**{k: np.concatenate(side, axis=int(k == "quantiles")) for k, side in sides})


class Column(NamedTuple):
    """A refined column; the pulls hold single numbers."""

    place: int
    center: float
    unit: float
    mean: tuple[float, float, float]
    shape: tuple[float, float, float]
    levels: Array
    trees: RegressionTrees
    reach: Array


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


def _refine_column(  # noqa: PLR0913, PLR0917 - what is known of a column, and how to choose
    j: int, views: Views, margin: Margin, reach: Array, rule: Rule, rng: Generator
) -> Column | None:
    """Grow the forest of a column; None if it is of no use."""
    true, mean = views.truth, views.mean
    center = float(np.median(true))
    unit = _size(true - center)
    if not 0 < unit < np.inf:
        return None
    spread = views.sd / unit
    target = (true - center) / unit
    spent(forest_cost(len(true), TREES))
    trees, found = _grow(view_of(views.scores, spread, views.is_lost), target, views.row, rng)
    ok = ~np.isnan(found) & (mean >= reach[0]) & (mean <= reach[1])
    held = Held(target[ok], (mean[ok] - center) / unit, spread[ok], found[ok])
    move = margin.to_normal(center + unit * found[ok]) - margin.to_normal(mean[ok])
    mine = views.quantiles[:, ok]
    quantiles = np.stack([margin.to_normal(each) for each in mine])
    shapes = HeldShapes(held, margin, unit, true[ok], move, quantiles, LEVELS)
    pulls = held.pull_mean(rule), shapes.pull(rule)
    if not max(pull[0] for pull in pulls) > 0:
        return None
    return Column(j, center, unit, *pulls, shapes.levels(pulls[1], rng), trees, reach)


def _size(values: Array) -> float:
    """Root mean square, also of values whose squares would overflow."""
    most = float(np.abs(values).max())
    return most * float(np.sqrt(np.mean((values / most) ** 2))) if 0 < most < np.inf else 0.0


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


def _collect(columns: list[Column], network: MixtureNetwork) -> Refinement:
    places = np.array([column.place for column in columns], np.int64)
    levels = np.array([column.levels for column in columns])
    if network.calibration is not None:
        pairs = zip(levels, network.calibration[places], strict=True)
        levels = np.stack([np.interp(new, STEPS, old) for new, old in pairs])
    return Refinement(
        places,
        np.array([column.center for column in columns]),
        np.array([column.unit for column in columns]),
        Pull(*np.array([column.mean for column in columns]).T),
        Pull(*np.array([column.shape for column in columns]).T),
        levels,
        join_trees([column.trees for column in columns]),
        np.stack([column.reach for column in columns], axis=1),
    )
