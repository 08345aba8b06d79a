"""Grow the trees of a classifier; folds give every row an opinion that never saw its label."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.forest import FlatForest, flatten_boosting, flatten_forest
from skyfill.classify.scorer import Member
from skyfill.classify.views import Array
from skyfill.threads import map_threads, one_blas_thread

Codes = NDArray[np.intp]

# The boosting: many small steps of small trees, a ridge, and few columns per split: in all a fifth
# of them and three at least.
RATE, LEAVES, LEAST_IN_LEAF, RIDGE, COLUMNS, LEAST_COLUMNS = 0.05, 8, 3, 3.0, 0.2, 3


class Recipe(NamedTuple):
    """One kind of trees on one view; the weights of a method's recipes sum to 1."""

    view: str
    kind: str
    weight: float


METHODS: dict[str, tuple[Recipe, ...]] = {
    "both": (
        Recipe("contrasts", "boosting", 0.5),
        Recipe("raw", "boosting", 0.25),
        Recipe("contrasts", "extra", 0.25),
    ),
    "forest": (Recipe("contrasts", "extra", 0.5), Recipe("gaps", "forest", 0.5)),
    "boosting": (Recipe("contrasts", "boosting", 0.65), Recipe("raw", "boosting", 0.35)),
    "paper": (Recipe("filled", "forest", 1.0),),
}


def recipes_for(method: str, views: Sequence[str] | None = None) -> tuple[Recipe, ...]:
    """Give the recipes of a method, or its kinds of trees over other views.

    Examples
    --------
    >>> recipes_for("both", ["filled"])
    (Recipe(view='filled', kind='boosting', weight=0.5),
     Recipe(view='filled', kind='extra', weight=0.5))
    """
    if views is None:
        return METHODS[method]
    kinds = dict.fromkeys(recipe.kind for recipe in METHODS[method])
    weight = 1.0 / (len(kinds) * len(views))
    return tuple(Recipe(view, kind, weight) for view in views for kind in kinds)


@dataclass(frozen=True)
class Growth:
    """How trees grow: trees of a forest, rounds of a boosting, columns per split, class weights."""

    n_trees: int
    n_rounds: int
    max_features: Any = "sqrt"
    class_weight: Mapping[int, float] | None = None
    seed: int = 0
    n_columns: int = 1


class Grown(NamedTuple):
    """Members of the classifier, and out-of-fold probabilities of the rows, 0 outside folds."""

    members: tuple[Member, ...]
    out_of_fold: Array


def deal_folds(y: Codes, n_folds: int, rng: np.random.Generator) -> Codes:
    """Deal the rows of every class to folds as evenly as can be.

    The only row of a class is in no fold (-1): all trees see it.
    """
    fold = np.full(len(y), -1, np.intp)
    dealt = 0
    for c in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == c))
        if len(rows) > 1:
            fold[rows] = (dealt + np.arange(len(rows))) % n_folds
            dealt += len(rows)
    return fold


def grow(
    views: Mapping[str, Array],
    y: Codes,
    recipes: tuple[Recipe, ...],
    *,
    growth: Growth,
    fold: Codes,
) -> Grown:
    """Grow every recipe on all rows, and once more without each fold to judge that fold.

    Where no row is in a fold, nothing is judged.
    """
    jobs = [(recipe, k) for k in range(-1, int(fold.max()) + 1) for recipe in recipes]
    seeds = np.random.default_rng(growth.seed).integers(2**31, size=len(jobs))

    def work(i: int) -> FlatForest:
        (view, kind, _), k = jobs[i]
        rows = (fold != k) | (k < 0)
        return _grow_one(kind, views[view][rows], y[rows], replace(growth, seed=int(seeds[i])))

    with one_blas_thread():
        forests = map_threads(work, list(range(len(jobs))))
    out = np.zeros((len(y), int(y.max()) + 1))
    for (recipe, k), forest in zip(jobs[len(recipes) :], forests[len(recipes) :], strict=True):
        test = fold == k
        out[test] += forest.predict_proba(views[recipe.view][test]) * recipe.weight
    members = [Member(recipe.view, forests[i], recipe.weight) for i, recipe in enumerate(recipes)]
    return Grown(tuple(members), out)


def _grow_one(kind: str, table: Array, y: Codes, growth: Growth) -> FlatForest:
    make, flatten = KINDS[kind]
    growth = replace(growth, n_columns=table.shape[1])
    # Many small steps: threads inside a step would wait for one another most of the time.
    with one_blas_thread():
        return flatten(make(growth).fit(table, y))


def _forest(growth: Growth) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(**_forest_options(growth))


def _extra(growth: Growth) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(**_forest_options(growth))


def _forest_options(growth: Growth) -> dict[str, Any]:
    return {
        "n_estimators": growth.n_trees,
        "max_features": growth.max_features,
        "class_weight": growth.class_weight,
        "random_state": growth.seed,
    }


def _boosting(growth: Growth) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        learning_rate=RATE,
        max_iter=growth.n_rounds,
        max_leaf_nodes=LEAVES,
        min_samples_leaf=LEAST_IN_LEAF,
        l2_regularization=RIDGE,
        max_features=min(max(COLUMNS, LEAST_COLUMNS / growth.n_columns), 1.0),
        early_stopping=False,
        class_weight=growth.class_weight,
        random_state=growth.seed,
    )


KINDS: dict[str, tuple[Callable[[Growth], Any], Callable[[Any], FlatForest]]] = {
    "forest": (_forest, flatten_forest),
    "extra": (_extra, flatten_forest),
    "boosting": (_boosting, flatten_boosting),
}
