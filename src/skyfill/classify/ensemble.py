"""The ensemble of trees behind a classifier: what is grown on which view, folds, calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.class_mixture_fit import fit_class_mixture
from skyfill.classify.combining import Fitted, Known, Parts, choose_mixture, combine
from skyfill.classify.field import with_field
from skyfill.classify.field_gaps import with_gaps_of
from skyfill.classify.forest import FlatForest
from skyfill.classify.known_gaps import learn_gaps
from skyfill.classify.likeness import learn_looks
from skyfill.classify.members import Member
from skyfill.classify.outlier import fit_outlier_rule
from skyfill.classify.scorer import Scorer
from skyfill.classify.sklearn_trees import Growth, grow_trees, row_weights
from skyfill.classify.training_set import Codes, Labels, deal_folds
from skyfill.classify.views import VIEWS, WITH_CONTRASTS, Array, choose_contrasts, gather_facts
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.cells import as_cells
from skyfill.network.mixture.fit import Plan
from skyfill.threads import map_threads, one_blas_thread

# Boostings of each view that are averaged: log loss on Chandra falls from 0.218 to 0.215.
N_BOOSTINGS = 3


class Recipe(NamedTuple):
    """One kind of trees on one view; the weights of a method's recipes sum to 1."""

    view: str
    kind: str
    weight: float


def _boostings(view: str, weight: float) -> tuple[Recipe, ...]:
    """Several boostings that differ in the columns they try: a single one depends on chance."""
    return (Recipe(view, "boosting", weight / N_BOOSTINGS),) * N_BOOSTINGS


METHODS: dict[str, tuple[Recipe, ...]] = {
    "both": (
        *_boostings("contrasts", 0.5),
        *_boostings("differences", 0.25),
        Recipe("contrasts", "extra", 0.25),
    ),
    "forest": (Recipe("contrasts", "extra", 0.5), Recipe("gaps", "forest", 0.5)),
    "boosting": (*_boostings("contrasts", 0.65), *_boostings("differences", 0.35)),
    "paper": (Recipe("filled", "forest", 1.0),),
}


def recipes_for(method: str, views: Sequence[str] | None = None) -> tuple[Recipe, ...]:
    """Return the recipes of a method, or its kinds of trees on other views.

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
class Training:
    """What to grow and how.

    Attributes
    ----------
    recipes : tuple of Recipe
    growth : Growth
    n_folds : int
        Folds for the calibration; 0 for none.
    prior : array of shape (classes,), optional
        Shares of the classes in the field.
    groups : int array of shape (labelled rows,), optional
        Rows of one object have the same number, and are in one fold.
    weights : array of shape (labelled rows,), optional
        Of the rows, besides those of their classes.
    densities : bool
        Whether a mixture of the classes may help the trees.
    field : bool array of shape (n,), optional
        Rows that are a sample of the field, where shares of the classes are to be found there.
    bagged : bool
        Whether rows are judged by the trees of a forest that did not learn from them: no folds.
    """

    recipes: tuple[Recipe, ...]
    growth: Growth
    n_folds: int
    prior: Array | None = None
    groups: Codes | None = None
    weights: Array | None = None
    densities: bool = False
    field: NDArray[np.bool_] | None = None
    bagged: bool = False


# Fits to calibrate with have a few parameters each: threads of BLAS would only wait for another.
@one_blas_thread()
def fit_scorer(
    network: MixtureNetwork,
    X: Array | Cells,
    labels: Labels,
    *,
    training: Training,
    plan: Plan,
    rng: np.random.Generator,
) -> Fitted:
    """Grow trees on the labelled rows, calibrate them, and learn what ordinary rows look like.

    Parameters
    ----------
    network : MixtureNetwork
        Learned from all rows.
    X : array of shape (n, p), or Cells
        All rows.
    labels : Labels
        From `read_labels`.
    training : Training
    plan : Plan
        What the network was fitted with.
    rng : numpy.random.Generator
    """
    y, cells = labels.codes, as_cells(X)
    mine = cells.take(labels.known)
    n, copies, given, groups = len(mine), None, training.weights, training.groups
    none = np.full(n, -1)
    if training.field is not None:
        copies = with_gaps_of(cells.take(training.field), mine, rng)
    fold = deal_folds(y, training.n_folds, rng, training.groups) if training.n_folds else none
    if copies is not None:
        mine, rows = mine.joined(copies), np.arange(n + len(copies)) % n
        y, fold, groups = y[rows], fold[rows], rows if groups is None else groups[rows]
        # All copies of an object together count as much as the object.
        counts = np.repeat([1.0, n / len(copies)], [n, len(copies)])
        given = counts if given is None else counts * given[rows]
    views, contrasts = _views(network, mine, training.recipes, n)
    growth = replace(training.growth, bagged=training.bagged, groups=groups)
    grown = grow(views, y, training.recipes, growth=growth, fold=fold, weights=given)
    weights = row_weights(y, training.growth.class_weight, given=given) * n / len(y)
    shares = np.bincount(y, weights) / weights.sum()
    inside = fold >= 0
    trees: Parts = [(weight, P[inside]) for weight, P in grown.out_of_fold]
    known, mixture, choice = Known(mine, y, weights, fold, trees, len(mine) - n), None, None
    how = {"shares": shares, "plan": plan, "seed": training.growth.seed}
    if training.densities and training.weights is None and inside.any():
        fit = partial(fit_class_mixture, network, **how)
        mixture, choice = choose_mixture(fit, known)
    combined = combine(trees if choice is None else choice.parts, known, rng)
    scorer = Scorer(
        tuple(str(name) for name in labels.classes),
        network,
        grown.members,
        combined.calibration,
        shares,
        shares if training.prior is None else training.prior,
        contrasts,
        fit_outlier_rule(cells, plan, rng, given=network),
        gaps=learn_gaps(mine.values[:n]),
        mixture=mixture,
        looks=learn_looks(mine.values[:n], y[:n], len(shares)),
        field_gaps=None if copies is None else learn_gaps(copies.values),
    )
    fitted = combined.finalize(scorer, known)
    if grown.out_of_bag is not None:
        fitted = fitted._replace(out_of_fold=grown.out_of_bag[:n])
    if training.field is None:
        return fitted
    used = None if mixture is None else choice
    return with_field(fitted, cells.take(training.field), used, known, rng=rng, **how)


def _views(
    network: MixtureNetwork, cells: Cells, recipes: tuple[Recipe, ...], n: int
) -> tuple[dict[str, Array], Array]:
    """Return the views of the labelled rows, and the contrasts that some of them may use."""
    names = {recipe.view for recipe in recipes}
    facts = gather_facts(network, cells, names)
    contrasts = choose_contrasts(facts.filled[:n]) if names & WITH_CONTRASTS else np.empty((0, 4))
    return {name: VIEWS[name](facts, contrasts) for name in names}, contrasts


class Grown(NamedTuple):
    """Members of the classifier; weights and out-of-fold probabilities of each kind of them."""

    members: tuple[Member, ...]
    out_of_fold: list[tuple[float, Array]]  # 0 outside folds
    out_of_bag: Array | None = None  # NaN for rows that all trees know


def merged(recipes: Sequence[Recipe]) -> list[Recipe]:
    """Return each kind of recipe once, with the weight of all of its kind.

    Examples
    --------
    >>> merged([Recipe("raw", "boosting", 0.25), Recipe("raw", "boosting", 0.25)])
    [Recipe(view='raw', kind='boosting', weight=0.5)]
    """
    weights: dict[tuple[str, str], float] = {}
    for view, kind, weight in recipes:
        weights[view, kind] = weights.get((view, kind), 0.0) + weight
    return [Recipe(view, kind, weight) for (view, kind), weight in weights.items()]


def grow(
    views: Mapping[str, Array],
    y: Codes,
    recipes: tuple[Recipe, ...],
    *,
    growth: Growth,
    fold: Codes,
    weights: Array | None = None,
) -> Grown:
    """Grow every recipe on all rows, and again without each fold to classify that fold.

    Where no row is in a fold, only the former. Within folds one of several equal recipes stands
    for all of them: calibrations and scores are the same, in half of the time.
    """
    folds = range(int(fold.max()) + 1)
    jobs = [(recipe, -1) for recipe in recipes]
    jobs += [(recipe, k) for k in folds for recipe in merged(recipes)]
    seeds = np.random.default_rng(growth.seed).integers(2**31, size=len(jobs))

    def work(i: int) -> tuple[FlatForest, Array | None]:
        (view, kind, _), k = jobs[i]
        rows = (fold != k) | (k < 0)
        given = None if weights is None else weights[rows]
        mine = replace(growth, seed=int(seeds[i]), weights=given)
        return grow_trees(kind, views[view][rows], y[rows], mine)

    with one_blas_thread():
        forests, votes = zip(*map_threads(work, list(range(len(jobs)))), strict=True)
    out = {recipe: np.zeros((len(y), int(y.max()) + 1)) for recipe in merged(recipes)}
    for (recipe, k), forest in zip(jobs[len(recipes) :], forests[len(recipes) :], strict=True):
        test = fold == k
        out[recipe][test] = forest.predict_proba(views[recipe.view][test])
    members = [Member(recipe.view, forests[i], recipe.weight) for i, recipe in enumerate(recipes)]
    parts = [(recipe.weight, P) for recipe, P in out.items()]
    said = zip(recipes, votes, strict=False) if growth.bagged else ()
    bagged = [recipe.weight * P for recipe, P in said if P is not None]
    return Grown(tuple(members), parts, np.sum(bagged, axis=0) if bagged else None)
