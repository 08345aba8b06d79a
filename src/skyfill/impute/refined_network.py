"""A second stage of filling: mixtures whose posteriors forests shift and scale."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.impute.refinement import Pull, Refinement, ratio, trust
from skyfill.network import Cells, MixtureNetwork, Posterior
from skyfill.network.cells import as_cells
from skyfill.threads import chunks, map_threads

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RefinedNetwork:
    """A mixture of networks whose posteriors are shifted and scaled by forests.

    Means are moved as they are; quantiles and draws as normal scores, so that they stay in the
    range of the column and values that many rows share stay such values. Draws are moved like
    quantiles: the gaps of a row keep their dependence. Gaps with limits are left to the mixtures.

    Parameters
    ----------
    mixture : MixtureNetwork
    refinement : Refinement
    """

    mixture: MixtureNetwork
    refinement: Refinement

    @cached_property
    def _calibrated(self) -> tuple[MixtureNetwork, MixtureNetwork]:
        """The mixtures with the levels of the refined columns; for rows that lack families too."""
        before = self.mixture.calibration
        if before is None:
            steps = np.linspace(0.0, 1.0, self.refinement.levels.shape[1])
            before = np.tile(steps, (len(self.mixture), 1))
        usual, apart = (self.refinement.calibrate(before, apart=each) for each in (False, True))
        return replace(self.mixture, calibration=usual), replace(self.mixture, calibration=apart)

    def posterior(self, X: ArrayLike | Cells, *, denoise: bool = False) -> Posterior:
        """Give mean and standard deviation of every cell, as `MixtureNetwork.posterior`."""
        cells, pull = as_cells(X, len(self.mixture)), self.refinement.mean
        post = self.mixture.posterior(cells, denoise=denoise)
        mean, sd = post.mean.copy(), post.sd.copy()

        def move(i: int, j: int, rows: IntArray, spread: Array, found: Array) -> None:
            mine = pull.of(i)
            mean[rows, j] += mine[0] * trust(spread, mine[1]) * (found - mean[rows, j])
            sd[rows, j] *= ratio(spread, mine)

        self._each(cells, post, pull, move)
        return Posterior(mean, sd)

    def quantiles(self, X: ArrayLike | Cells, levels: Sequence[float]) -> Array:
        """Give quantiles of every cell, as `MixtureNetwork.quantiles`."""
        cells, (usual, other) = as_cells(X, len(self.mixture)), self._calibrated
        found, apart = usual.quantiles(cells, levels), self._lies_apart(cells)
        rows = np.flatnonzero(apart.any(axis=1))
        if len(rows):
            others = other.quantiles(cells.take(rows), levels)
            found[:, rows] = np.where(apart[rows], others, found[:, rows])
        return self._moved(found, cells)

    def _lies_apart(self, cells: Cells) -> NDArray[np.bool_]:
        """Which gaps lie in rows that lack the family of their column."""
        is_lost = np.isnan(cells.values)
        return is_lost & ~cells.is_limited & self.refinement.lies_apart(is_lost)

    def draws(self, X: ArrayLike | Cells, n_draws: int, rng: Any = None) -> Array:
        """Draw each row's gaps jointly, as `MixtureNetwork.draws`."""
        cells = as_cells(X, len(self.mixture))
        return self._moved(self.mixture.draws(cells, n_draws, rng), cells)

    def _moved(self, values: Array, cells: Cells) -> Array:
        """Shift and scale quantiles or draws about the medians."""
        pull, post = self.refinement.shape, self.mixture.posterior(cells)
        middle = self.mixture.quantiles(cells, [0.5])[0]

        def move(i: int, j: int, rows: IntArray, spread: Array, found: Array) -> None:
            mine, margin = pull.of(i), self.mixture.margins[j]
            score = margin.to_normal
            way = score(found) - score(post.mean[rows, j])
            about = score(middle[rows, j])
            old = np.stack([score(some) for some in values[:, rows, j]])
            to = about + mine[0] * trust(spread, mine[1]) * way
            values[:, rows, j] = margin.from_normal(to + ratio(spread, mine) * (old - about))

        self._each(cells, post, pull, move)
        return values

    def _each(self, cells: Cells, post: Posterior, pull: Pull, move: Callable[..., None]) -> None:
        """Move each refined column; takes its place, rows, their spreads and what forests say."""
        is_lost, refinement = np.isnan(cells.values), self.refinement
        wanted, distances = is_lost & ~cells.is_limited, self.mixture.distances(cells)
        scores = self.mixture.scores(np.where(is_lost, post.mean, cells.values))

        def work(i: int) -> None:
            j = int(refinement.columns[i])
            mine = wanted[:, j] & refinement.is_for(i, is_lost)
            known = refinement.reaches(i, post.mean[:, j], distances[:, j])
            places = np.flatnonzero(mine & known)
            for part in chunks(len(places)):
                rows = places[part]
                spread = post.sd[rows, j] / refinement.unit[i]
                move(i, j, rows, spread, refinement.predict(i, scores[rows], spread, is_lost[rows]))

        map_threads(work, np.flatnonzero(pull.weight > 0).tolist())


def refined(
    mixture: MixtureNetwork, refinement: Refinement | None
) -> MixtureNetwork | RefinedNetwork:
    """Give what fills gaps: the mixtures, or these with forests if there are any."""
    return mixture if refinement is None else RefinedNetwork(mixture, refinement)
