"""Mixtures of Gaussian networks on monotone margins: several kinds of objects at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skyfill.errors import DataError
from skyfill.network._array import Array, Rng, as_table, check_finite
from skyfill.network.mixture import gap_kernels
from skyfill.network.mixture.kernels import Components
from skyfill.network.mixture.margin import Knots, Margin, lay_out, score_columns
from skyfill.network.mixture.mixture import ROWS_AT_ONCE, Mixture, Sorted, in_blocks, sort_rows
from skyfill.network.single.gaussian import GaussianNetwork
from skyfill.network.single.parameters import as_network
from skyfill.network.single.posterior import Posterior
from skyfill.threads import map_threads


class Parts(NamedTuple):
    """Responsibilities, likelihood and posteriors of gaps by every component, for some rows."""

    resp: Array  # (n, c)
    mean: Array  # (gaps, c)
    sd: Array  # (gaps, c)
    loglik: Array  # (n,)
    seen: Array  # (n,): the same without the chance of the pattern of gaps


class Inferred(NamedTuple):
    """Results of one pass over a table: posterior of gaps, likelihood and components of rows.

    `seen` is the log density of each row's seen cells, without the chance of its pattern of gaps.
    """

    posterior: Posterior
    seen: Array  # (n,)
    responsibilities: Array | None  # (n, components)


class BySpread(NamedTuple):
    """Levels for probabilities in even steps, linear between the spreads (in scores) of `knots`."""

    knots: Array  # (b,), rising
    levels: Array  # (b, steps), rising


@dataclass(frozen=True, eq=False)
class MixtureNetwork:
    """Mixtures of Gaussian networks over columns mapped to normal scores, averaged over fits.

    Made by `learn_mixture`. Every fit is a mixture; the posterior of a gap is the mean of the
    fits' posteriors. All results are on the columns' own scales.

    Attributes
    ----------
    names : tuple of str
        The columns.
    margins : tuple of Margin
        Each column's map to normal scores.
    fits : tuple of Mixture
        The averaged mixtures.
    calibration : array of shape (p, levels), optional
        Level of each column's posterior at which held-out cells lie with probability 0 to 1 in
        even steps; `quantiles` uses it.
    by_spread : BySpread, optional
        Level to ask the calibration for, where much or little is known of a gap.
    """

    names: tuple[str, ...]
    margins: tuple[Margin, ...]
    fits: tuple[Mixture, ...]
    calibration: Array | None = None
    by_spread: BySpread | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def n_components(self) -> tuple[int, ...]:
        """Components of each fit."""
        return tuple(len(fit.weights) for fit in self.fits)

    @cached_property
    def _components(self) -> Components:
        return in_blocks(self.fits)

    @cached_property
    def _knots(self) -> Knots:
        return lay_out(self.margins)

    @cached_property
    def _grids(self) -> Array:
        return np.stack([margin.grid() for margin in self.margins])

    def scores(self, X: ArrayLike) -> Array:
        """Give the normal scores of a table; gaps stay NaN."""
        X = as_table(X, len(self))
        check_finite(X, self.names)
        out = np.empty(X.shape)
        score_columns(X, self._knots, out)
        for j in set(range(len(self))).difference(self._knots.columns.tolist()):
            out[:, j] = self.margins[j].to_normal(X[:, j])
        return out

    def loglik(self, X: ArrayLike) -> Array:
        """Log density of each row's seen cells, per unit of normal score, shape (n,).

        With informative gaps the probability of the row's pattern of gaps is included.
        """
        return self._gather(X, lambda rows, parts: parts.loglik, ())

    def responsibilities(self, X: ArrayLike) -> Array:
        """Probability of each component of each fit for each row, over the number of fits."""
        c = sum(self.n_components)
        return self._gather(X, lambda rows, parts: parts.resp[:, :c], (c,))

    def posterior(self, X: ArrayLike) -> Posterior:
        """Posterior mean and standard deviation of every cell; seen cells come back as they are."""
        return self.look(X).posterior

    def look(self, X: ArrayLike, *, responsibilities: bool = False) -> Inferred:
        """Give posterior, likelihood and, if asked for, responsibilities at the cost of one."""
        X = as_table(X, len(self))
        mean, sd, seen = np.zeros(X.shape), np.zeros(X.shape), np.empty(len(X))
        resp = np.empty((len(X), sum(self.n_components))) if responsibilities else None
        # Moments about the middle and by the reach of a column: squares cannot overflow.
        middle = self._grids[:, self._grids.shape[1] // 2]
        reach = 2 * np.abs(self._grids / 2 - middle[:, None] / 2).max(axis=1)
        reach[reach == 0] = 1.0
        grids = (self._grids - middle[:, None]) / reach[:, None]

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            gaps = (part.row_of, part.column_of, parts.resp, parts.mean, parts.sd)
            gap_kernels.fill_gaps(*gaps, grids, mean[rows], sd[rows])
            seen[rows] = parts.seen
            if resp is not None:
                resp[rows] = parts.resp[:, : resp.shape[1]]

        self._each(X, work)
        filled = np.where(np.isnan(X), middle + reach * mean, X)
        return Inferred(Posterior(filled, sd * reach), seen, resp)

    def quantiles(self, X: ArrayLike, levels: Sequence[float]) -> Array:
        """Quantiles of every cell's posterior, shape (levels, n, p); a seen cell is itself."""
        X = as_table(X, len(self))
        at = np.asarray(levels, dtype=np.float64)
        if not ((at > 0) & (at < 1)).all():
            raise DataError(f"quantile levels must lie between 0 and 1, got {at.tolist()}")
        out = np.repeat(X[None], len(at), axis=0)

        calibration = (at, *self._calibration)

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            gaps = (part.row_of, part.column_of, parts.resp, parts.mean, parts.sd)
            gap_kernels.gap_quantiles(*gaps, self._grids, calibration, out[:, rows])

        self._each(X, work)
        return out

    @property
    def _calibration(self) -> tuple[Array, Array, Array]:
        """Levels of the columns, spreads, and levels at these."""
        none = np.tile([0.0, 1.0], (len(self), 1))
        columns = none if self.calibration is None else self.calibration
        steps = np.linspace(0.0, 1.0, columns.shape[1])
        knots, levels = self.by_spread or BySpread(np.arange(2.0), np.tile(steps, (2, 1)))
        return columns, knots, levels

    def pit(self, X: ArrayLike, truth: ArrayLike, rng: Rng = None) -> Array:
        """Probability integral transform of the true values of a table's gaps, NaN elsewhere.

        Uniform where the posteriors are right. An atom is spread over its interval at random. The
        calibration is not used.
        """
        X, truth = as_table(X, len(self)), as_table(truth, len(self))
        out = np.full(X.shape, np.nan)
        pairs = [m.score_interval(truth[:, j]) for j, m in enumerate(self.margins)]
        ends = [np.stack(side, axis=1) for side in zip(*pairs, strict=True)]
        share = np.random.default_rng(rng).random(X.shape)

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            cells = (part.row_of, part.column_of)
            low, high = np.empty(len(part.row_of)), np.empty(len(part.row_of))
            for end, level in zip(ends, (low, high), strict=True):
                gap_kernels.gap_levels(part.row_of, *parts[:3], end[rows][cells], level)
            out[rows][cells] = low + share[rows][cells] * (high - low)

        self._each(X, work)
        return out

    def spreads(self, X: ArrayLike) -> Array:
        """Give the standard deviation of each gap's normal score, NaN elsewhere."""
        X = as_table(X, len(self))
        out = np.full(X.shape, np.nan)

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            spread = np.empty(len(part.row_of))
            gap_kernels.gap_spreads(part.row_of, *parts[:3], spread)
            out[rows][part.row_of, part.column_of] = spread

        self._each(X, work)
        return out

    def draws(self, X: ArrayLike, n_draws: int, rng: Rng = None) -> Array:
        """Joint posterior draws of each row's gaps, shape (n_draws, n, p)."""
        X = as_table(X, len(self))
        rng = np.random.default_rng(rng)
        uniform = rng.random((n_draws, len(X)))
        normal = rng.standard_normal((n_draws, int(np.isnan(X).sum())))
        before = np.concatenate([[0], np.cumsum(np.isnan(X).sum(axis=1))])
        out = np.repeat(X[None], n_draws, axis=0)

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            mine = normal[:, before[rows.start] : before[rows.stop]]
            random = np.ascontiguousarray(uniform[:, rows]), np.ascontiguousarray(mine)
            found = (*part[:3], self._components, parts.resp, parts.mean, part.first_gap)
            gap_kernels.draw_gaps(*found, *random, self._grids, out[:, rows])

        self._each(X, work)
        return out

    def condition(self, given: Mapping[str, float], of: Sequence[str] | None = None) -> Posterior:
        """Posterior mean and sd of some variables (by default all others) for given values."""
        unknown = [name for name in (*given, *(of or ())) if name not in self.names]
        if unknown:
            raise DataError(f"no column is called {unknown[0]!r}; they are {', '.join(self.names)}")
        row = np.array([[given.get(name, np.nan) for name in self.names]], dtype=np.float64)
        names = [name for name in self.names if name not in given] if of is None else of
        wanted = [self.names.index(name) for name in names]
        post = self.posterior(row)
        return Posterior(post.mean[0, wanted], post.sd[0, wanted])

    def components(self, fit: int = 0) -> tuple[GaussianNetwork, ...]:
        """Components of one fit as networks over normal scores."""
        mixture = self.fits[fit]
        complete = tuple(tuple(range(j)) for j in range(len(self)))
        graphs = mixture.parents or (complete,) * len(mixture.weights)
        return tuple(
            as_network(self.names, graph, mean, cov)
            for mean, cov, graph in zip(mixture.means, mixture.covs, graphs, strict=True)
        )

    def arcs(self) -> dict[tuple[str, str], float]:
        """Arcs of the components' graphs with the share of the total weight that has them."""
        strength: dict[tuple[str, str], float] = {}
        for fit in self.fits:
            for weight, graph in zip(fit.weights, fit.parents or (), strict=False):
                for child, family in enumerate(graph):
                    for parent in family:
                        arc = (self.names[parent], self.names[child])
                        strength[arc] = strength.get(arc, 0.0) + float(weight) / len(self.fits)
        return dict(sorted(strength.items(), key=lambda item: -item[1]))

    def _each(self, X: Array, work: Callable[[slice, Sorted, Parts], None]) -> None:
        """Let `work` see each part of a table with what the components make of it."""

        def one(start: int) -> None:
            rows = slice(start, min(start + ROWS_AT_ONCE, len(X)))
            part = sort_rows(self.scores(X[rows]))
            work(rows, part, self._weigh(part))

        map_threads(one, list(range(0, len(X), ROWS_AT_ONCE)))

    def _weigh(self, part: Sorted) -> Parts:
        components, n_gaps = self._components, len(part.row_of)
        n, c = len(part.Z), components.log_norms.size
        gaps = np.empty((n_gaps, c)), np.empty((n_gaps, c))
        parts = Parts(np.empty((n, c)), *gaps, np.empty(n), np.empty(n))
        gap_kernels.weigh_rows(*part[:3], components, part.first_gap, *parts)
        return parts

    def _gather(self, X: ArrayLike, pick: Callable[..., Array], shape: tuple[int, ...]) -> Array:
        X = as_table(X, len(self))
        out = np.empty((len(X), *shape))

        def work(rows: slice, part: Sorted, parts: Parts) -> None:
            out[rows] = pick(rows, parts)

        self._each(X, work)
        return out
