"""Mixtures on the processor: posteriors, likelihoods, quantiles and draws of tables with gaps.

It does what `on_device.DeviceMixture` does, part of a table by part, on all cores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from skyfill.network._array import Array
from skyfill.network.cells import Cells
from skyfill.network.mixture import gap_kernels
from skyfill.network.mixture.kernels import Components
from skyfill.network.mixture.margin_kernels import Maps
from skyfill.network.mixture.margin_moments import MarginMoments
from skyfill.network.mixture.mixture import ROWS_AT_ONCE, Sorted, sort_rows
from skyfill.network.mixture.random_keys import Keys
from skyfill.network.mixture.weighing import Parts, draw, keep_gaps, weigh, without_noisy
from skyfill.threads import map_threads


@dataclass(frozen=True)
class ProcessorMixture:
    """A mixture with its margins.

    Attributes
    ----------
    score : callable
        Gives the normal scores of cells.
    components : Components
        Of all fits.
    moments : MarginMoments
        Of the margins.
    """

    score: Callable[[Cells], Cells]
    components: Components
    moments: MarginMoments

    def likelihoods(self, cells: Cells, *, responsibilities: bool = False) -> dict[str, Array]:
        """Likelihoods and responsibilities of every row."""
        found = self._room(cells, responsibilities)

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            self._keep(found, rows, parts)

        self._each(cells, work)
        return found

    def look(
        self, cells: Cells, *, responsibilities: bool = False, denoise: bool = False
    ) -> dict[str, Array]:
        """Posterior mean and sd of every cell, likelihoods and responsibilities of every row."""
        found, X = self._room(cells, responsibilities), cells.values
        mean, sd = np.zeros(X.shape), np.zeros(X.shape)
        tables, middle, reach, ladder = self.moments

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            gaps = (part.row_of, part.column_of, *parts[:3], part.windows)
            wanted = denoise | np.isnan(part.Z[part.row_of, part.column_of])
            gap_kernels.fill_gaps(*gaps, wanted, tables, ladder, mean[rows], sd[rows])
            self._keep(found, rows, parts)

        self._each(cells, work, denoise=denoise)
        lost = np.isnan(X) | cells.is_noisy if denoise else np.isnan(X)
        found["mean"] = cells.within(np.where(lost, middle + reach * mean, X))
        return found | {"sd": np.where(lost, sd * reach, 0.0)}

    def quantiles(
        self,
        cells: Cells,
        maps: Maps | tuple[Array],
        calibration: tuple[Array, ...],
        column: int | None = None,
    ) -> Array:
        """Quantiles of every gap, (levels, n, p), or of those of a column alone."""
        found = np.repeat(cells.values[None], len(calibration[0]), axis=0)

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            part, parts = without_noisy(part, parts)
            if column is not None:
                part, parts = keep_gaps(part, parts, part.column_of == column)
            gaps = (part.row_of, part.column_of, *parts[:3], part.windows)
            gap_kernels.gap_quantiles(*gaps, maps, calibration, found[:, rows])

        self._each(cells, work)
        return cells.within(found)

    def levels(self, cells: Cells, *scores: Array) -> list[Array]:
        """Levels of each gap's distribution at tables of normal scores, NaN elsewhere."""
        found = [np.full(table.shape, np.nan) for table in scores]

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            part, parts = without_noisy(part, parts)
            at, level = (part.row_of, part.column_of), np.empty(len(part.row_of))
            gaps = (part.row_of, *parts[:3], part.windows)
            for table, out in zip(scores, found, strict=True):
                gap_kernels.gap_levels(*gaps, table[rows][at], level)
                out[rows][at] = level

        self._each(cells, work)
        return found

    def spreads(self, cells: Cells) -> Array:
        """Give the standard deviation of each gap's normal score, NaN elsewhere."""
        out = np.full(cells.values.shape, np.nan)

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            part, parts = without_noisy(part, parts)
            spread = np.empty(len(part.row_of))
            gap_kernels.gap_spreads(part.row_of, *parts[:3], spread)
            out[rows][part.row_of, part.column_of] = spread

        self._each(cells, work)
        return out

    def draws(
        self, cells: Cells, keys: Keys, maps: Maps | tuple[Array], *, denoise: bool = False
    ) -> Array:
        """Joint draws of every row's gaps, (draws, n, p); with `denoise`, of noisy values too."""
        seen, out = cells.values, np.repeat(cells.values[None], keys.n_draws, axis=0)

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            mine = keys._replace(rows=keys.rows[rows])
            found = draw(part, self.components, parts, mine, maps)
            # Where both are there, as in cells seen with an error, the first counts.
            first, other = (found, seen[rows]) if denoise else (seen[rows], found)
            out[:, rows] = np.where(np.isnan(first), other, first)

        self._each(cells, work)
        return cells.within(out)

    def _room(self, cells: Cells, responsibilities: bool) -> dict[str, Array]:
        found = {"loglik": np.empty(len(cells)), "seen": np.empty(len(cells))}
        if responsibilities:
            found["resp"] = np.empty((len(cells), self.components.bounds[-1]))
        return found

    def _keep(self, found: dict[str, Array], rows: slice, parts: Parts) -> None:
        found["loglik"][rows], found["seen"][rows] = parts.loglik, parts.seen
        if "resp" in found:
            found["resp"][rows] = parts.resp[:, : found["resp"].shape[1]]

    def _each(
        self, cells: Cells, work: Callable[[slice, Sorted, Parts], None], *, denoise: bool = False
    ) -> None:
        """Let `work` see each part of a table with what the components say of it."""

        def one(start: int) -> None:
            rows = slice(start, min(start + ROWS_AT_ONCE, len(cells)))
            part = sort_rows(self.score(cells.take(rows)))
            work(rows, part, weigh(part, self.components, denoise=denoise))

        map_threads(one, list(range(0, len(cells), ROWS_AT_ONCE)))
