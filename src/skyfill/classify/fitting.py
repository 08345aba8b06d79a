"""From a fitted network and labels to a scorer: views, trees, calibration, outlier rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from skyfill.classify.calibration import Calibration, fit_calibration, no_calibration
from skyfill.classify.growing import Codes, Growth, Recipe, deal_folds, grow, row_weights
from skyfill.classify.labels import Labels
from skyfill.classify.outlier import fit_outlier_rule
from skyfill.classify.scorer import Scorer
from skyfill.classify.views import VIEWS, Array, choose_contrasts, look
from skyfill.network import MixtureNetwork
from skyfill.network.mixture.mixture import Plan


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
    """

    recipes: tuple[Recipe, ...]
    growth: Growth
    n_folds: int
    prior: Array | None = None


class Fitted(NamedTuple):
    """A scorer, and calibrated out-of-fold probabilities (NaN for rows that are in no fold)."""

    scorer: Scorer
    out_of_fold: Array


def fit_scorer(
    network: MixtureNetwork,
    X: Array,
    labels: Labels,
    *,
    training: Training,
    plan: Plan,
    rng: np.random.Generator,
) -> Fitted:
    """Grow trees on the labelled rows, calibrate them, learn what an ordinary row is like.

    Parameters
    ----------
    network : MixtureNetwork
        Learned from all rows.
    X : array of shape (n, p)
        All rows.
    labels : Labels
        Of `read_labels`.
    training : Training
    plan : Plan
        What the network was fitted with.
    rng : numpy.random.Generator
    """
    y = labels.codes
    views, contrasts = _look(network, X[labels.known], training.recipes)
    none = np.full(len(y), -1)
    fold = deal_folds(y, training.n_folds, rng) if training.n_folds else none
    grown = grow(views, y, training.recipes, growth=training.growth, fold=fold)
    weights = row_weights(y, training.growth.class_weight)
    shares = np.bincount(y, weights) / weights.sum()
    inside = fold >= 0
    calibration = _calibrate(grown.out_of_fold[inside], y[inside], weights[inside], rng)
    out = np.full(grown.out_of_fold.shape, np.nan)
    out[inside] = calibration(grown.out_of_fold[inside])
    scorer = Scorer(
        tuple(str(name) for name in labels.classes),
        network,
        grown.members,
        calibration,
        shares,
        shares if training.prior is None else training.prior,
        contrasts,
        fit_outlier_rule(X, plan, rng),
    )
    return Fitted(scorer, out)


def _look(
    network: MixtureNetwork, X: Array, recipes: tuple[Recipe, ...]
) -> tuple[dict[str, Array], Array]:
    """Give the views of the labelled rows, and the contrasts that one of them may hold."""
    names = {recipe.view for recipe in recipes}
    facts = look(network, X, names)
    contrasts = choose_contrasts(facts.filled) if "contrasts" in names else np.empty((0, 4))
    return {name: VIEWS[name](facts, contrasts) for name in names}, contrasts


def _calibrate(P: Array, y: Codes, weights: Array, rng: np.random.Generator) -> Calibration:
    if not len(y):
        return no_calibration(P.shape[1])
    return fit_calibration(P, y, weights, rng)
