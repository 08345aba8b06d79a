"""How members are combined, as held-out log losses decide: logs or means, with a mixture or not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from skyfill.classify.class_calibration import FOLDS, Array, held_out_loss, is_clearly_better
from skyfill.classify.class_mixture import (
    ROWS_PER_COMPONENT,
    WEIGHTS,
    ClassMixture,
    Part,
    out_of_fold,
    with_mixture,
)
from skyfill.classify.members import pool_members
from skyfill.classify.training_set import Codes
from skyfill.network import Cells

Parts = list[Part]


def choose_pool(held_out: Parts, y: Codes, weights: Array, fold: Codes) -> str:
    """Combine members by the logs of their probabilities, unless their mean is clearly better."""
    if len(held_out) == 1:
        return "mean"
    mean, logs = (pool_members(held_out, pool) for pool in ("mean", "logs"))
    return "mean" if is_clearly_better(mean, logs, y, weights, fold % FOLDS) else "logs"


class Choice(NamedTuple):
    """How a mixture of the classes does beside trees: its weight, the held-out loss, all parts."""

    rows_per_component: float
    weight: float
    loss: float
    parts: Parts


def choose_mixture(
    fit: Callable[..., ClassMixture],
    cells: Cells,
    held_out: Parts,
    *,
    y: Codes,
    weights: Array,
    fold: Codes,
) -> tuple[ClassMixture | None, Parts]:
    """Choose components and weight of a mixture of the classes; none unless clearly better.

    Parameters
    ----------
    fit : callable
        Fits one to rows and their classes, with some `rows_per_component`.
    cells : Cells
        Labelled rows.
    held_out : list of (weight, probabilities)
        Of the trees, for the rows that are in a fold.
    y, weights, fold : arrays of shape (n,)
        Class, weight and fold of each row.

    Returns
    -------
    ClassMixture or None, list of (weight, probabilities)
        The mixture, and the probabilities of the trees with its own.
    """
    inside = fold >= 0
    known = (y[inside], weights[inside], fold[inside] % FOLDS)
    best = Choice(math.nan, math.nan, math.inf, held_out)
    for rows in ROWS_PER_COMPONENT:
        seen = out_of_fold(partial(fit, rows_per_component=rows), cells, y, fold)[inside]
        joined = {weight: with_mixture(held_out, weight, seen) for weight in WEIGHTS}
        found = [_weighed(rows, *item, known) for item in joined.items()]
        now = min(found, key=lambda choice: choice.loss)
        if now.loss >= best.loss:
            break
        best = now
    trees = pool_members(held_out, choose_pool(held_out, *known))
    if not is_clearly_better(pool_members(best.parts, "logs"), trees, *known):
        return None, held_out
    mixture = fit(cells, y, rows_per_component=best.rows_per_component)
    return replace(mixture, weight=best.weight), best.parts


def _weighed(rows: float, weight: float, parts: Parts, known: tuple[Codes, Array, Codes]) -> Choice:
    return Choice(rows, weight, held_out_loss(pool_members(parts, "logs"), *known), parts)
