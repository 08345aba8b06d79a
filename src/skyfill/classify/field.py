"""What the rows of a field say about a classifier: shares and densities of the classes there."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.combining import Choice, Fitted, Known, choose_field_mixture, combine
from skyfill.classify.field_mixture import fit_field_mixture, sample_field
from skyfill.classify.prior import (
    Array,
    FieldShares,
    estimate_shares,
    judge_shares,
    rows_behind,
)
from skyfill.classify.scorer import Scorer
from skyfill.network import Cells
from skyfill.network.mixture.fit import Plan


def shares_among(scorer: Scorer, cells: Cells) -> FieldShares:
    """Estimate the shares of the classes among rows without labels; see `estimate_shares`."""
    plain = replace(scorer, prior=scorer.shares)
    P = plain.probabilities(cells, n_draws=0)
    return shares_for(scorer, P, cells.values, scorer.known(cells))


def shares_for(scorer: Scorer, P: Array, X: Array, known: NDArray[np.bool_]) -> FieldShares:
    """Estimate shares from probabilities under the training set's shares, without draws.

    Parameters
    ----------
    scorer : Scorer
    P : array of shape (n, classes)
    X : array of shape (n, p)
        The rows that these are for, by which the shares are judged.
    known : bool array of shape (n,)
        Rows with gaps as training objects have them.
    """
    reference = scorer.profiles if scorer.held_out is None else scorer.held_out
    found = estimate_shares(P, scorer.shares, reference, known)
    return judge_shares(found, scorer.shares, X[rows_behind(known)], scorer.looks)


def with_field(
    fitted: Fitted,
    cells: Cells,
    without: Choice | None,
    known: Known,
    *,
    plan: Plan,
    shares: Array,
    seed: int,
    rng: np.random.Generator,
) -> Fitted:
    """Give a classifier the shares of its classes in a field, and what else the field teaches.

    Where the classifier uses densities of the classes, that of the field's most common class is
    learned from the field as well (`fit_field_mixture`), and all is calibrated again. That
    may be what explains how the field differs, so shares are judged after it.

    Parameters
    ----------
    fitted : Fitted
        The classifier without a field.
    cells : Cells
        A sample of the field.
    without : Choice or None
        Its densities of the classes, where it uses them.
    known : Known
        Labelled rows.
    plan, shares, seed
        As in `fit_class_mixture`.
    rng : numpy.random.Generator
    """
    scorer, found = fitted.scorer, shares_among(fitted.scorer, cells)
    if without is not None:
        field = sample_field(scorer.network, cells, found.shares, plan, seed)
        fit = partial(fit_field_mixture, scorer.network, plan=plan, shares=shares, seed=seed)
        chosen = None if field is None else choose_field_mixture(fit, field, without, known)
        if field is not None and chosen is not None:
            mixture, parts = chosen
            combined = combine(parts, known, rng, field.common)
            fitted = combined.finalize(replace(scorer, mixture=mixture), known)
            found = shares_among(fitted.scorer, cells)._replace(taught=field.common)
    return Fitted(replace(fitted.scorer, prior=found.shares), fitted.out_of_fold, found)
