"""Seen cells, hidden the way real gaps are, in rows filled by mixtures that do not know them.

Every seen cell of a column is hidden once, with or without what is missing beside it elsewhere. A
column that is often missing with a family of others, as those of a survey, has two kinds of gaps:
those in rows that lack the family, and all others; there every seen cell is hidden in both ways.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skyfill.impute.refinement import lacks_family
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.mixture.calibration import HIDDEN, STEPS
from skyfill.network.mixture.fit import Plan
from skyfill.network.mixture.learn import fit_alike

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
# Parts of the rows that are held out in turn, most fits that fill them, and cells of all columns.
FOLDS, FITS, MOST_CELLS = 4, 4, 200_000
# Share of the rows that lack only the column, and fewest rows without it whose gaps are copied.
ALONE, LEAST_DONORS = 0.5, 20
# Columns are of the family of another if they are missing so much more often where it is missing.
TOGETHER = 0.2
# Levels of the quantiles that forests are judged by.
LEVELS = STEPS[2:-2:2]


class Views(NamedTuple):
    """Hidden cells of one column, in rows filled by mixtures that do not know these rows."""

    row: IntArray  # (m,)
    truth: Array  # (m,)
    scores: Array  # (m, p)
    is_lost: NDArray[np.bool_]  # (m, p)
    mean: Array  # (m,)
    sd: Array  # (m,)
    quantiles: Array  # (levels, m)


class Kind(NamedTuple):
    """Gaps of a column: with its family or without it, or all of them."""

    place: int
    family: NDArray[np.bool_]  # (p,)
    apart: bool

    @property
    def alone(self) -> float:
        """Share of the rows in which only the column is hidden."""
        return 1.0 - self.apart if self.family.any() else ALONE

    def is_of(self, lost: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether rows with such gaps are of this kind."""
        return np.asarray(lacks_family(lost, self.family) == self.apart)


def kinds_of(cells: Cells, j: int) -> list[Kind]:
    """Find the family of a column, and the kinds of gaps that it has."""
    lost = np.isnan(cells.values)
    gaps = lost & ~cells.is_limited
    without, family = gaps[gaps[:, j]], np.zeros(lost.shape[1], bool)
    if len(without) >= LEAST_DONORS:
        family = without.mean(axis=0) - gaps[~lost[:, j]].mean(axis=0) > TOGETHER
        family[j] = False
    return [Kind(j, family, apart) for apart in (False, True)[: 1 + family.any()]]


def make_views(
    network: MixtureNetwork, plan: Plan, cells: Cells, kinds: list[Kind], rng: Generator
) -> list[Views]:
    """Fill hidden cells of each part of the rows with mixtures fitted to the others."""
    part_of = np.arange(len(cells)) % FOLDS
    found: list[list[Views]] = [[] for _ in kinds]
    most = MOST_CELLS // (len(network) * FOLDS)
    for part in range(FOLDS):
        model = fit_alike(network, cells.take(part_of != part), plan, rng, FITS)
        for kind, parts in zip(kinds, found, strict=True):
            j = kind.place
            rows = np.flatnonzero((part_of == part) & ~np.isnan(cells.values[:, j]))[:most]
            lost = cells.take(rows).hide(hide_column(cells, rows, j, rng, alone=kind.alone))
            mine = kind.is_of(np.isnan(lost.values))
            rows, lost = rows[mine], lost.take(mine)
            post = model.posterior(lost)
            is_lost = np.isnan(lost.values)
            scores = network.scores(np.where(is_lost, post.mean, lost.values))
            quantiles = model.quantiles(lost, LEVELS.tolist(), column=j)[:, :, j]
            truth, mean, sd = (a[:, j] for a in (cells.take(rows).values, post.mean, post.sd))
            parts.append(Views(rows, truth, scores, is_lost, mean, sd, quantiles))
    return [_joined(parts) for parts in found]


def hide_column(
    cells: Cells, rows: IntArray, j: int, rng: Generator, *, alone: float = ALONE
) -> NDArray[np.bool_]:
    """Hide a column of rows that have it, in some of them with what is missing together with it.

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
    hidden[rng.random(len(rows)) < alone] = False
    hidden[:, j] = True
    # Where nothing would be left, nothing else is hidden.
    hidden[(hidden | lost[rows]).all(axis=1)] = np.arange(lost.shape[1]) == j
    return np.asarray(hidden & ~lost[rows])


def _joined(parts: list[Views]) -> Views:
    """Put views of a column together; all but the quantiles have rows in front."""
    sides = zip(Views._fields, zip(*parts, strict=True), strict=True)
    return Views(**{k: np.concatenate(side, axis=int(k == "quantiles")) for k, side in sides})
