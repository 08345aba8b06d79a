"""What `train` and `evaluate` are expected to cost, in seconds of one core: see `progress`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skyfill.cli.train_classes import components_of
from skyfill.errors import counted
from skyfill.progress import fit_cost

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.scale import Source

# Components that "auto" often ends with, and the fits besides those that are averaged: trials of
# maps, shrinkages and gaps, rehearsals, factors of wide tables, and with classes the outlier rule.
USUAL_COMPONENTS, MORE_FITS, FACTOR_FITS, CLASS_FITS = 16, 7, 10, 2
# How often all fits that are averaged are repeated to calibrate them.
CALIBRATIONS = 2
# The single network of the paper, in fits of one component.
ONE_NETWORK = 60
# Steps of EM over all rows of a large table, each some share of a whole fit.
LARGE_STEPS, STEP_SHARE = 30, 0.03
LARGE_ROWS = 2_000_000
# Seconds of a method for a thousand rows of eight features, training and use together.
ROWS, FEATURES = 1000, 8
# Below this share of that size the time hardly depends on the table.
LEAST_SIZE = 0.25
FILLING = {
    "mean": 0.01,
    "mixture": 0.5,
    "knn": 0.1,
    "missforest": 5.0,
    "complete-rows": 4.0,
    "paper": 4.0,
    "paper-printed": 4.0,
    "paper-bic": 0.2,
    "skyfill": 6.0,
    "skyfill-quick": 1.2,
    "skyfill-refined": 6.0,
    "skyfill-thorough": 9.0,
    "skyfill-unrefined": 2.3,
}
CLASSIFYING = {
    "mean": 0.6,
    "mixture": 0.9,
    "knn": 0.7,
    "missforest": 5.4,
    "nan-forest": 0.7,
    "nan-boosting": 10.0,
    "complete-columns": 0.7,
    "complete-rows": 0.7,
    "paper": 2.3,
    "paper-printed": 2.3,
    "paper-bic": 0.9,
    "skyfill": 7.7,
    "skyfill-quick": 2.0,
    "skyfill-refined": 6.6,
    "skyfill-thorough": 12.0,
    "skyfill-unrefined": 2.9,
}


class Expected(NamedTuple):
    """Work ahead: seconds of one core, and in words."""

    seconds: float
    words: str


def expect_train(
    found: Source | Table, names: Sequence[str], options: Mapping[str, Any]
) -> Expected:
    """Expect what `skyfill train` costs, on a table in memory or a large catalogue."""
    from skyfill.catalog import Table

    if not isinstance(found, Table):
        return _expect_large(found.count_rows(), len(names), options)
    label = options["label"]
    n_classes = len(set(found.column(label).to_pylist()) - {None}) if label else 0
    return _expect_in_memory(len(found), len(names), n_classes, options)


def _expect_in_memory(
    n_rows: int, n_features: int, n_classes: int, options: Mapping[str, Any]
) -> Expected:
    """Expect the cost of learning from a table; `n_classes` is 0 without labels."""
    from skyfill.impute.refining import refinement_cost
    from skyfill.network.mixture.fit import PLAN_ROWS
    from skyfill.network.mixture.plan_choice import COMPONENTS, WIDE

    if options["network"] != "mixture":
        n_fits = 1 + int(options["bootstrap"] or 0)
        network = n_fits * ONE_NETWORK * fit_cost(n_rows, n_features, 1)
    else:
        is_auto, few = options["components"] == "auto", min(n_rows, PLAN_ROWS)
        tried = [k for k in COMPONENTS if is_auto and k <= 2 * USUAL_COMPONENTS]
        k = _components(options)
        beside = len(tried) + MORE_FITS + (CLASS_FITS if n_classes else 0)
        beside += CALIBRATIONS * options["fits"]
        beside += FACTOR_FITS if n_features >= WIDE and options["arcs"] == "none" else 0
        network = sum(fit_cost(few, n_features, trial) for trial in tried)
        network += (beside - len(tried)) * fit_cost(few, n_features, k)
        network += options["fits"] * fit_cost(n_rows, n_features, k)
        n_fits = beside + options["fits"]
        if options["refine"] != "off":
            network += refinement_cost(n_rows, n_features, k)
    words = f"{counted(fit=n_fits)} of the network"
    if not n_classes:
        return Expected(network, words)
    trees, n_trees = _expect_trees(n_rows, n_features, n_classes, options)
    return Expected(network + trees, f"{words}, {counted(ensemble=n_trees)} of trees")


def _expect_trees(
    n_rows: int, n_features: int, n_classes: int, options: Mapping[str, Any]
) -> tuple[float, int]:
    from skyfill.classify.classifier import CatalogClassifier
    from skyfill.classify.ensemble import merged, recipes_for
    from skyfill.classify.sklearn_trees import growth_cost

    usual = CatalogClassifier()
    recipes = recipes_for(options["method"])
    is_plain = options["no_calibration"] or options["method"] == "paper"
    folds = 0 if is_plain else usual.n_folds
    grown = [*recipes, *(merged(recipes) * folds)]
    pairs = n_features * (n_features + 1) // 2
    rounds, trees = usual.n_rounds, options["trees"] or usual.n_trees
    cost = sum(
        growth_cost(each.kind, (n_rows, pairs if each.view == "contrasts" else n_features),
                    n_classes, n_trees=trees, n_rounds=rounds)
        for each in grown
    )  # fmt: skip
    return cost, len(grown)


def _expect_large(n_rows: int | None, n_features: int, options: Mapping[str, Any]) -> Expected:
    """Expect the cost of learning from all rows of a large catalogue, if it says how many."""
    n_rows = LARGE_ROWS if n_rows is None else n_rows
    k = _components(options)
    step = STEP_SHARE * fit_cost(n_rows, n_features, k)
    n_steps = options["fits"] * LARGE_STEPS
    return Expected(n_steps * step, f"some {n_steps} passes over {n_rows:,} rows")


def _components(options: Mapping[str, Any]) -> int:
    asked = components_of(options["components"])
    return USUAL_COMPONENTS if isinstance(asked, str) else asked


def expect_methods(
    table: Mapping[str, float], methods: Sequence[str], n_rows: int, n_features: int
) -> dict[str, float]:
    """Expect the cost of one fit of each method, and of its use.

    Examples
    --------
    >>> expect_methods(FILLING, ["mixture"], 2000, 16)
    {'mixture': 2.0}
    """
    size = max(n_rows / ROWS * n_features / FEATURES, LEAST_SIZE)
    return {name: max(table.get(name, 1.0) * size, 1e-3) for name in methods}
