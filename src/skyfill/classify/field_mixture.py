"""The most common class of a field, whose density is learned from the field itself.

A training set holds few objects of the class that nearly all objects of a field belong to, and
these are brighter and better observed. The field has thousands of them, if without labels. So the
components of that class are fitted to its labelled objects and to the field, in which those of the
other classes take what they explain better. Other classes learn their places from labelled objects
alone: a component of a few dozen objects would grow until it takes all that is unlike the rest.
Their covariances are drawn to those that all have in common, of which the field knows more.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.class_mixture import Array, ClassMixture
from skyfill.classify.class_mixture_fit import (
    MOST_COMPONENTS,
    SHRINKAGE,
    expect_classes,
    side_by_side,
    start_classes,
    with_background,
)
from skyfill.classify.training_set import Codes
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.mixture.fit import Plan, first_moments
from skyfill.network.mixture.mixture import Mixture, Sorted, expect_parts, split
from skyfill.network.mixture.weighing import draw_scores
from skyfill.network.moments import Moments
from skyfill.threads import map_threads

# A class is learned from the field if it has at least this share there: objects that are unlike all
# classes are taken for it.
COMMON = 0.5
# Rows of the field that are learned from.
FIELD_ROWS = 4000


class FieldRows(NamedTuple):
    """A sample of a field in normal scores, and its most common class.

    Attributes
    ----------
    parts : list of Sorted
    shares : array of shape (classes,)
        Of the classes in the field.
    common : int
        Code of the most common one.
    moments : Moments
        First components of all rows.
    """

    parts: list[Sorted]
    shares: Array
    common: int
    moments: Moments


def sample_field(
    network: MixtureNetwork, cells: Cells, shares: Array, plan: Plan, seed: int
) -> FieldRows | None:
    """Take rows of a field, and components that describe them; None where no class is common."""
    common = int(shares.argmax())
    if shares[common] < COMMON:
        return None
    rng = np.random.default_rng(seed)
    scores = network.score_cells(cells.take(rng.permutation(len(cells))[:FIELD_ROWS]))
    full = draw_scores(scores, network.fits[:1], 1, rng)[0]
    many = plan._replace(n_components=MOST_COMPONENTS)
    return FieldRows(split(scores), shares, common, first_moments(scores.values, full, many, rng))


def fit_field_mixture(
    network: MixtureNetwork,
    cells: Cells,
    y: Codes,
    *,
    field: FieldRows,
    shares: Array,
    plan: Plan,
    **how: Any,
) -> ClassMixture:
    """Fit components to the objects of each class, and those of the most common one to the field.

    Gaps are no evidence: a field has more of them than labelled objects, in all classes.

    Parameters
    ----------
    network, cells, y, shares, plan, **how
        As in `fit_class_mixture`.
    field : FieldRows
    """
    mine = plan._replace(shrinkage=SHRINKAGE, arcs="full", informative=False)
    start = start_classes(network, cells, y, plan=mine, **how)
    both = [
        side_by_side([each, field.moments]) if c == field.common else each
        for c, each in zip(start.present, start.moments, strict=True)
    ]
    start = start._replace(moments=both)
    known = partial(expect_classes, start.parts, start.owner)
    owner = start.present[start.owner]
    found = start.climb(lambda mixture: known(mixture) + expect_field(field, owner, mixture), mine)
    return with_background(network, found, owner, shares)


def expect_field(field: FieldRows, owner: NDArray[np.intp], mixture: Mixture) -> Moments:
    """Expect the moments of the most common class in a field; those of others are 0.

    Parameters
    ----------
    field : FieldRows
    owner : int array of shape (components,)
        Class of each component.
    mixture : Mixture
        The weights within each class count, not those of the classes.
    """
    within = np.bincount(owner, mixture.weights, len(field.shares))[owner]
    weights = mixture.weights / within * field.shares[owner]
    there = expect_parts(field.parts, mixture._replace(weights=weights), map_threads)
    mine = (owner == field.common).astype(np.float64)
    return replace(
        there,
        n=round(float(there.weight @ mine)),
        weight=there.weight * mine,
        total=there.total * mine[:, None],
        cross=there.cross * mine[:, None, None],
        gaps=there.gaps * mine[:, None],
    )
