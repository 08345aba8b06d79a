"""How members are combined, as held-out log losses decide: logs or means, with a mixture or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from skyfill.classify.class_calibration import (
    FOLDS,
    Array,
    Calibration,
    calibrate_held_out,
    fit_calibration,
    fit_odds,
    held_out_loss,
    is_clearly_better,
    no_calibration,
)
from skyfill.classify.class_mixture import ClassMixture, Part, with_mixture
from skyfill.classify.class_mixture_fit import out_of_fold
from skyfill.classify.field_mixture import FieldRows
from skyfill.classify.held_out import keep_held_out
from skyfill.classify.members import pool_members
from skyfill.classify.prior import FieldShares, find_profiles
from skyfill.classify.scorer import Scorer
from skyfill.classify.training_set import Codes
from skyfill.network import Cells

Parts = list[Part]
# Objects of a class for each of its components, tried in this order while held-out classes are
# predicted better; the first is one component for each class.
ROWS_PER_COMPONENT = (math.inf, 25.0)
# Weights tried; the mixture is left out where no one predicts held-out classes clearly better.
WEIGHTS = (0.2, 0.35, 0.5, 0.65)


class Known(NamedTuple):
    """Labelled rows; class, weight and fold of each; what trees say of those that are in a fold.

    The last `n_copies` rows are the same objects with the gaps of a field (`with_gaps_of`). They
    calibrate; to a mixture, which needs not learn what gaps mean, they would say nothing new.
    """

    cells: Cells
    y: Codes
    weights: Array
    fold: Codes
    trees: Parts
    n_copies: int = 0

    @property
    def n(self) -> int:
        """Number of objects."""
        return len(self.y) - self.n_copies

    @property
    def objects(self) -> tuple[Cells, Codes]:
        """The objects themselves, and their classes."""
        return self.cells.take(slice(self.n)), self.y[: self.n]

    @property
    def held_out(self) -> tuple[Codes, Array, Codes]:
        """Class, weight and fold of the rows that are in a fold; there are `FOLDS` of these."""
        inside = self.fold >= 0
        return self.y[inside], self.weights[inside], self.fold[inside] % FOLDS

    @property
    def n_held_out(self) -> int:
        """Number of objects that are in a fold."""
        return int((self.fold[: self.n] >= 0).sum())


class Fitted(NamedTuple):
    """A scorer, and what was said of each row without it (NaN for rows that are in no fold).

    `field` holds the shares of the classes in the field, where they were asked for.
    """

    scorer: Scorer
    out_of_fold: Array
    field: FieldShares | None = None


class Combined(NamedTuple):
    """How the probabilities of the members become one, and what comes out for held-out rows.

    For `P` all of these calibrate, for `apart` only those of the other folds.
    """

    pool: str
    calibration: Calibration
    P: Array
    apart: Array

    def finalize(self, scorer: Scorer, known: Known) -> Fitted:
        """Tell a scorer how its members are combined, and what it says of held-out objects."""
        inside = known.fold[: known.n] >= 0
        out = np.full((known.n, len(scorer.classes)), np.nan)
        P = self.P[: inside.sum()]
        out[inside] = self.apart[: inside.sum()]
        y = known.y[: known.n][inside]
        scorer = replace(
            scorer,
            calibration=self.calibration,
            pool=self.pool,
            profiles=find_profiles(P, y),
            held_out=keep_held_out(P, y),
        )
        return Fitted(scorer, out)


def combine(
    held_out: Parts, known: Known, rng: np.random.Generator, common: int | None = None
) -> Combined:
    """Combine members, and calibrate them on what they say of held-out rows; rows may be none.

    For a field of which most is of one class, `common`, odds against that class are calibrated: one
    slope for all would come from classes that are often confused, and those hardly matter there.
    """
    (y, weights, fold), n, n_classes = known.held_out, known.n_held_out, int(known.y.max()) + 1
    if not n:
        return Combined("mean", no_calibration(n_classes), *np.empty((2, 0, n_classes)))
    pool = choose_pool(held_out, y, weights, fold, n)
    P = pool_members(held_out, pool)
    if common is None:
        calibration, apart = fit_calibration(P, y, weights, rng, n)
    else:
        fit = partial(fit_odds, common=common)
        calibration, apart = fit(P, y, weights), calibrate_held_out(fit, P, y, weights, fold)
    return Combined(pool, calibration, calibration(P), apart)


def choose_pool(held_out: Parts, y: Codes, weights: Array, fold: Codes, n: int) -> str:
    """Combine members by the logs of their probabilities, unless their mean is clearly better.

    See `is_clearly_better`.
    """
    if len(held_out) == 1:
        return "mean"
    mean, logs = (pool_members(held_out, pool) for pool in ("mean", "logs"))
    return "mean" if is_clearly_better(mean, logs, y, weights, fold, n) else "logs"


class Choice(NamedTuple):
    """How a mixture of the classes does beside trees: its weight, the held-out loss, all parts."""

    rows_per_component: float
    weight: float
    loss: float
    parts: Parts


def choose_mixture(
    fit: Callable[..., ClassMixture], known: Known
) -> tuple[ClassMixture | None, Choice]:
    """Choose components and weight of a mixture of the classes; none unless clearly better.

    Parameters
    ----------
    fit : callable
        Fits one to rows and their classes, with some `rows_per_component`.
    known : Known

    Returns
    -------
    ClassMixture or None, Choice
        The mixture, and the probabilities of the trees with its own.
    """
    trees, best = known.trees, Choice(math.nan, math.nan, math.inf, known.trees)
    for rows in ROWS_PER_COMPONENT:
        now = weigh(partial(fit, rows_per_component=rows), rows, known)
        if now.loss >= best.loss:
            break
        best = now
    judges = (*known.held_out, known.n_held_out)
    alone = pool_members(trees, choose_pool(trees, *judges))
    if not is_clearly_better(pool_members(best.parts, "logs"), alone, *judges):
        return None, best._replace(parts=trees)
    mixture = fit(*known.objects, rows_per_component=best.rows_per_component)
    return replace(mixture, weight=best.weight), best


def weigh(fit: Callable[..., ClassMixture], rows: float, known: Known) -> Choice:
    """Choose the weight of a mixture of the classes beside trees."""
    inside = known.fold >= 0
    seen = out_of_fold(fit, known.cells, known.y, known.fold, known.n)[inside]
    joined = {weight: with_mixture(known.trees, weight, seen) for weight in WEIGHTS}
    losses = {
        weight: held_out_loss(pool_members(parts, "logs"), *known.held_out)
        for weight, parts in joined.items()
    }
    best = min(losses, key=lambda weight: losses[weight])
    return Choice(rows, best, losses[best], joined[best])


def choose_field_mixture(
    fit: Callable[..., ClassMixture], field: FieldRows, without: Choice, known: Known
) -> tuple[ClassMixture, Parts] | None:
    """Let a field teach the density of its most common class.

    None where less than half of what densities gain for held-out classes would be left: then
    objects of the field are not what the training set calls them.

    Parameters
    ----------
    fit : callable
        Fits a mixture to rows, their classes and a `field`.
    field : FieldRows
    without : Choice
        What was chosen without a field.
    known : Known
    """
    again = partial(fit, rows_per_component=without.rows_per_component, field=field)
    found = weigh(again, without.rows_per_component, known)
    trees = held_out_loss(pool_members(known.trees, "logs"), *known.held_out)
    if found.loss > (without.loss + trees) / 2:
        return None
    return replace(again(*known.objects), weight=found.weight), found.parts
