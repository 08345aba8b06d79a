"""Mixtures of Gaussian networks on monotone margins: several kinds of objects at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from skyfill.device import gpu_for
from skyfill.errors import DataError
from skyfill.network._array import Array, BoolArray, Rng, as_table, check_finite
from skyfill.network.cells import Cells, as_cells
from skyfill.network.mixture.kernels import Components
from skyfill.network.mixture.margin import Logarithm, Margin
from skyfill.network.mixture.margin_kernels import Knots, Maps, lay_back, lay_out, score_columns
from skyfill.network.mixture.margin_moments import MarginMoments, moments_of, tabulated_moments
from skyfill.network.mixture.mixture import Mixture, in_blocks
from skyfill.network.mixture.on_device import WORTH_A_GPU, DeviceMixture, load_mixture
from skyfill.network.mixture.on_processor import ProcessorMixture
from skyfill.network.mixture.random_keys import Keys, Words, codes_of, keys_of_rows
from skyfill.network.mixture.row_kernels import NARROWEST
from skyfill.network.mixture.support import Support
from skyfill.network.mixture.widening import box_of, find_gaps_beyond, widen_sd, widen_values
from skyfill.network.single.gaussian import GaussianNetwork
from skyfill.network.single.graph import Parents
from skyfill.network.single.parameters import as_network
from skyfill.network.single.posterior import Posterior

# Copies of mixtures on devices, kept as long as the mixtures.
_COPIES: WeakKeyDictionary[MixtureNetwork, dict[str, DeviceMixture]] = WeakKeyDictionary()


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
    within_limits : array of shape (p, levels), optional
        The calibration of gaps that have limits.
    strength : array of shape (p, p), optional
        Of one network: share of bootstrap samples in which two columns are linked.
    support : Support, optional
        Ranges of the rows that each column was learned from: posteriors beyond are widened.

    Tables are arrays, NaN where a value is missing, or `Cells`, which hold limits and errors too.
    """

    names: tuple[str, ...]
    margins: tuple[Margin, ...]
    fits: tuple[Mixture, ...]
    calibration: Array | None = None
    by_spread: BySpread | None = None
    within_limits: Array | None = None
    strength: Array | None = None
    support: Support | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what follows from the fields: a copy computes it when it needs it."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_components(self) -> tuple[int, ...]:
        """Components of each fit."""
        return tuple(len(fit.weights) for fit in self.fits)

    @property
    def tabulated(self) -> bool:
        """Whether it is of an earlier version, less exact beside atoms and in long tails."""
        return any(margin.tabulated for margin in self.margins)

    @cached_property
    def logarithmic(self) -> BoolArray:
        """Which columns are mapped by their logarithms, shape (p,)."""
        return np.array([isinstance(margin, Logarithm) for margin in self.margins], bool)

    @property
    def graph(self) -> Parents | None:
        """Parents of each column, where the model is one network with arcs."""
        graphs = [graph for fit in self.fits for graph in fit.parents or ()]
        return graphs[0] if len(graphs) == sum(self.n_components) == 1 else None

    @cached_property
    def _components(self) -> Components:
        return in_blocks(self.fits)

    @cached_property
    def _codes(self) -> Words:
        return codes_of(self.names)

    @cached_property
    def _knots(self) -> Knots:
        return lay_out(self.margins)

    @cached_property
    def _maps(self) -> Maps | tuple[Array]:
        return (self._grids,) if self.tabulated else lay_back(self.margins)

    @cached_property
    def _moments(self) -> MarginMoments:
        return tabulated_moments(self._grids) if self.tabulated else moments_of(self.margins)

    @property
    def _grids(self) -> Array:
        return np.stack([margin.grid() for margin in self.margins])

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Smallest and largest values of the columns that put no gap beyond what was learned."""
        if self.support is None:
            return np.full(len(self), -np.inf), np.full(len(self), np.inf)
        return box_of(self.margins, self.support)

    @property
    def columns_beyond(self) -> dict[str, float]:
        """Columns with gaps of objects unlike all that have them: share of such gaps in training.

        Their posteriors are widened there, by distance.
        """
        if self.support is None or self.support.beyond is None:
            return {}
        shares = zip(self.names, self.support.beyond.tolist(), strict=True)
        return {name: share for name, share in shares if share > 0}

    def distances(self, cells: Cells) -> Array:
        """Distance of each gap, of shape (n, p), from what its column was learned from.

        In normal scores; 0 within, and for gaps with limits (`Support.distance`).
        """
        found = np.zeros(cells.values.shape)
        if (beyond := find_gaps_beyond(self, cells)) is not None:
            found[beyond.rows[beyond.row_of], beyond.column_of] = beyond.distance
        return found

    def _cells(self, X: ArrayLike | Cells) -> Cells:
        """Check a table; limits at or below zero say nothing of a positive quantity."""
        return as_cells(X, len(self)).above_zero(self.logarithmic, self.names)

    @property
    def _here(self) -> ProcessorMixture:
        return ProcessorMixture(self.score_cells, self._components, self._moments)

    def _at(self, cells: Cells) -> ProcessorMixture | DeviceMixture:
        """Return the mixture where a table shall be computed: here, or its copy on a GPU."""
        if (device := gpu_for(len(cells), WORTH_A_GPU)) is None:
            return self._here
        check_finite(cells.values, self.names)
        with device.alone():
            copies = _COPIES.setdefault(self, {})
            if device.name not in copies:
                margins = (self.margins, self._knots, self._moments)
                copies[device.name] = load_mixture(device, self.fits, *margins)
            return copies[device.name]

    def scores(self, X: ArrayLike) -> Array:
        """Give the normal scores of a table of numbers; gaps stay NaN."""
        X = as_table(X, len(self))
        check_finite(X, self.names)
        out = np.empty(X.shape)
        score_columns(X, self._knots, out)
        for j in set(range(len(self))).difference(self._knots.columns.tolist()):
            out[:, j] = self.margins[j].to_normal(X[:, j])
        return out

    def score_cells(self, X: ArrayLike | Cells) -> Cells:
        """Give the normal scores of values, limits and errors."""
        cells = self._cells(X)
        Z = self.scores(cells.values)
        if cells.is_plain:
            return Cells(Z)
        lower, upper = (None if a is None else self.scores(a) for a in (cells.lower, cells.upper))
        if lower is not None and upper is not None:
            # Two limits can have one score: in a constant column, or beyond the reach of scores.
            upper = np.where(upper <= lower, lower + NARROWEST, upper)
        return Cells(Z, lower, upper, self._score_errors(cells))

    def _score_errors(self, cells: Cells) -> Array | None:
        """Errors in normal scores: half of what they span there, around the value or the limit."""
        if cells.errors is None:
            return None
        center = cells.centers
        ends = (self.scores(center + cells.errors), self.scores(center - cells.errors))
        found = (ends[0] - ends[1]) / 2
        for j, margin in enumerate(self.margins):
            if isinstance(margin, Logarithm):
                found[:, j] = margin.score_errors(center[:, j], cells.errors[:, j])
        return found

    def loglik(self, X: ArrayLike | Cells) -> Array:
        """Log density of each row's seen cells, per unit of normal score, shape (n,).

        With informative gaps the probability of the row's pattern of gaps is included, and with
        limits that of lying within them.
        """
        cells = self._cells(X)
        return self._at(cells).likelihoods(cells)["loglik"]

    def responsibilities(self, X: ArrayLike | Cells) -> Array:
        """Probability of each component of each fit for each row, over the number of fits."""
        cells = self._cells(X)
        return self._at(cells).likelihoods(cells, responsibilities=True)["resp"]

    def posterior(self, X: ArrayLike | Cells, *, denoise: bool = False) -> Posterior:
        """Posterior mean and standard deviation of every cell.

        Seen cells come back as they are; with `denoise`, those with an error come back as what
        they would be without it.
        """
        return self.look(X, denoise=denoise).posterior

    def look(
        self, X: ArrayLike | Cells, *, responsibilities: bool = False, denoise: bool = False
    ) -> Inferred:
        """Give posterior, likelihood and, if asked for, responsibilities at the cost of one."""
        cells = self._cells(X)
        found = self._at(cells).look(cells, responsibilities=responsibilities, denoise=denoise)
        posterior = Posterior(found["mean"], found["sd"])
        if (beyond := find_gaps_beyond(self, cells)) is not None:
            widen_sd(self, beyond, *posterior)
        return Inferred(posterior, found["seen"], found.get("resp"))

    def quantiles(
        self, X: ArrayLike | Cells, levels: Sequence[float], *, column: int | None = None
    ) -> Array:
        """Quantiles of every cell's posterior, shape (levels, n, p); a seen cell is itself.

        With `column`, gaps of other columns may stay NaN, which takes less time.
        """
        cells = self._cells(X)
        at = np.asarray(levels, dtype=np.float64)
        if not ((at > 0) & (at < 1)).all():
            raise DataError(f"quantile levels must lie between 0 and 1, got {at.tolist()}")
        found = self._quantiles(cells, at, column)
        if (beyond := find_gaps_beyond(self, cells)) is not None:
            widen_values(self, cells, beyond, found)
        return found

    def middle(self, cells: Cells) -> Array:
        """Give the median of every cell, of shape (n, p)."""
        return self._quantiles(cells, np.array([0.5]), None)[0]

    def _quantiles(self, cells: Cells, at: Array, column: int | None) -> Array:
        return self._at(cells).quantiles(cells, self._maps, (at, *self._calibration), column)

    @property
    def _calibration(self) -> tuple[Array, Array, Array, Array]:
        """Levels of the columns, spreads, levels at these, and levels within limits."""
        none = np.tile([0.0, 1.0], (len(self), 1))
        columns = none if self.calibration is None else self.calibration
        steps = np.linspace(0.0, 1.0, columns.shape[1])
        knots, levels = self.by_spread or BySpread(np.arange(2.0), np.tile(steps, (2, 1)))
        return columns, knots, levels, none if self.within_limits is None else self.within_limits

    def pit(self, X: ArrayLike | Cells, truth: ArrayLike, rng: Rng = None) -> Array:
        """Probability integral transform of the true values of a table's gaps, NaN elsewhere.

        Uniform where the posteriors are right. An atom is spread over its interval at random. The
        calibration is not used.
        """
        cells, truth = self._cells(X), as_table(truth, len(self))
        pairs = [m.score_interval(truth[:, j]) for j, m in enumerate(self.margins)]
        ends = [np.stack(side, axis=1) for side in zip(*pairs, strict=True)]
        share = np.random.default_rng(rng).random(truth.shape)
        low, high = self._here.levels(cells, *ends)
        return low + share * (high - low)

    def spreads(self, X: ArrayLike | Cells) -> Array:
        """Give the standard deviation of each gap's normal score, NaN elsewhere."""
        return self._here.spreads(self._cells(X))

    def draws(
        self,
        X: ArrayLike | Cells,
        n_draws: int,
        rng: Rng = None,
        *,
        first: int = 0,
        denoise: bool = False,
    ) -> Array:
        """Joint posterior draws of each row's gaps, shape (n_draws, n, p).

        The numbers of a row follow from its key, or from `rng` and its place where cells have no
        keys, from the number of the draw, which begins with `first`, and the name of the column.
        With `denoise`, values seen with an error are drawn as what they would be without it.
        """
        cells = self._cells(X)
        keys = Keys(keys_of_rows(cells, rng), self._codes, first, n_draws)
        there = self._at(cells) if n_draws else self._here
        out = there.draws(cells, keys, self._maps, denoise=denoise)
        if n_draws and (beyond := find_gaps_beyond(self, cells)) is not None:
            widen_values(self, cells, beyond, out)
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
