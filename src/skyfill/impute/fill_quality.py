"""How good filled values are: cells of the training table that were hidden and filled again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.impute.hidden_views import Kind, Views
from skyfill.network import Cells

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class HeldResult(NamedTuple):
    """What the forest of a column makes of hidden cells that it did not learn from.

    Its blend weights were chosen on other cells. `error` is None where means are left to the
    mixtures, `inside`, whether the truth is in the 90 % interval, where intervals are.
    """

    kind: Kind
    ok: Mask  # which cells of the views
    error: Array | None
    inside: Mask | None


class FillQuality(NamedTuple):
    """Errors of hidden cells of each column, and how many true values are in 90 % intervals.

    Attributes
    ----------
    cells : int array of shape (p,)
        Hidden cells; 0 where a column was not measured.
    error, mean_error : arrays of shape (p,)
        Root mean square error of the filled values, and of the column's mean in their place.
    inside : array of shape (p,)
        Fraction of the true values that lie in their 90 % interval.
    """

    cells: NDArray[np.int64]
    error: Array
    mean_error: Array
    inside: Array


def measure_filling(
    cells: Cells, kinds: list[Kind], views: list[Views], forests: list[HeldResult]
) -> FillQuality:
    """Compare what was filled into hidden cells with their values.

    Parameters
    ----------
    cells : Cells
        The rows whose cells were hidden.
    kinds, views : lists
        Kinds of gaps, and their hidden cells as the mixtures fill them (`make_views`).
    forests : list of HeldResult
        What forests make of them, where these correct the mixtures.
    """
    p = cells.values.shape[1]
    found = FillQuality(np.zeros(p, np.int64), *np.full((3, p), np.nan))
    for j in range(p):
        places = [i for i, kind in enumerate(kinds) if kind.place == j]
        if not sum(len(views[i].row) for i in places):
            continue
        sides = [_filled(kinds[i], views[i], forests) for i in places]
        error, inside = (np.concatenate(side) for side in zip(*sides, strict=True))
        truth = np.concatenate([views[i].truth for i in places])
        found.cells[j] = len(truth)
        found.error[j], found.inside[j] = root_mean_square(error), inside.mean()
        found.mean_error[j] = root_mean_square(truth - np.nanmean(cells.values[:, j]))
    return found


def _filled(kind: Kind, views: Views, forests: list[HeldResult]) -> tuple[Array, Mask]:
    """Errors of the cells of a kind of gaps, and whether their truth is in the 90 % interval."""
    error, low, high = views.truth - views.mean, views.quantiles[0], views.quantiles[-1]
    inside = (views.truth >= low) & (views.truth <= high)
    for held in forests:
        if held.kind is kind:
            error[held.ok] = error[held.ok] if held.error is None else held.error
            inside[held.ok] = inside[held.ok] if held.inside is None else held.inside
    return error, inside


def root_mean_square(values: Array) -> float:
    """Root mean square, also of values whose squares would overflow."""
    most = float(np.abs(values).max())
    return most * float(np.sqrt(np.mean((values / most) ** 2))) if 0 < most < np.inf else 0.0
