"""Likelihood ratio of magnitudes: that of counterparts over that of the field, once learned."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.classify.ratio_curve import Curve
from skyfill.network import Cells, MixtureNetwork, learn_mixture
from skyfill.network.cells import as_cells
from skyfill.sky.associations import Associations
from skyfill.sky.posterior import patterns_of

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
# Least share of field sources that look like counterparts: those elsewhere may not be all kinds.
STRANGE_FIELD = 1e-3
# Associations below this share of the best one keep the ratio 1: nothing can raise them enough.
NEGLIGIBLE = 1e-7
FITS = 3
_SIDES = ("lower", "upper")


@dataclass(frozen=True)
class Magnitudes:
    """Magnitudes of base objects and of the sources around them.

    Parameters
    ----------
    base : Cells
        Of the n base objects; may have no columns.
    surveys : sequence of Cells
        Of the sources of each survey, with limits where a band was not detected.
    parts : integer array of shape (n,)
        Objects of one part are judged by what was learned from the other parts.
    depths : sequence of Cells
        For each survey, limits at the n base objects: what is known of objects it does not see.
    """

    base: Cells
    surveys: tuple[Cells, ...]
    parts: Rows
    depths: tuple[Cells, ...] = field(default=())

    @classmethod
    def of(
        cls,
        base: ArrayLike | Cells,
        surveys: Sequence[ArrayLike | Cells],
        parts: Rows | None = None,
        depths: Sequence[Cells] | None = None,
    ) -> Magnitudes:
        """Take arrays, in which NaN is a gap, or cells; without parts, rows take turns."""
        mine, n = _cells(base), len(_cells(base))
        theirs = tuple(_cells(values) for values in surveys)
        if depths is None:
            depths = [no_cells(n, s.values.shape[1]) for s in theirs]
        return cls(mine, theirs, np.arange(n) if parts is None else parts, tuple(depths))

    def of_sets(self, objects: Rows | None, rows: Rows) -> Cells:
        """Columns of the base, then of each survey, of objects and rows of the surveys.

        Where there is no row, the depth of the survey is known at best. For field sources, which
        have no object, it is the median depth.
        """
        n, n_base = len(rows), self.base.values.shape[1]
        parts = [no_cells(n, n_base) if objects is None else self.base.take(objects)]
        for k, survey in enumerate(self.surveys):
            depth = self.depths[k]
            beyond = depth.take(objects) if objects is not None else _median(depth, n)
            parts.append(_chosen(survey, rows[:, k], beyond))
        return _side_by_side(parts)


def _cells(values: ArrayLike | Cells) -> Cells:
    # A table without columns is no table to `as_cells`.
    if isinstance(values, Cells) or np.asarray(values).shape[1]:
        return as_cells(values)
    return no_cells(len(np.asarray(values)), 0)


def no_cells(n: int, p: int) -> Cells:
    """Make a table of gaps, which may have no columns."""
    empty = object.__new__(Cells)
    object.__setattr__(empty, "values", np.full((n, p), np.nan))
    for name in (*_SIDES, "errors"):
        object.__setattr__(empty, name, None)
    return empty


def side_of(cells: Cells, name: str) -> Array:
    """Lower or upper limits; NaN where there is none."""
    found = getattr(cells, name)
    return np.full(cells.values.shape, np.nan) if found is None else found


def _median(depth: Cells, n: int) -> Cells:
    if depth.is_plain:
        return no_cells(n, depth.values.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # bands without a depth
        middle = [np.nanmedian(side_of(depth, name), axis=0) for name in _SIDES]
    whole = [np.broadcast_to(one, (n, len(one))) for one in middle]
    return Cells(np.full(whole[0].shape, np.nan), *whole)


def _chosen(survey: Cells, rows: Rows, beyond: Cells) -> Cells:
    """Take rows of a survey; where there is none, the limits of objects that it does not see."""
    absent = (rows < 0)[:, None]
    taken = survey.take(np.maximum(rows, 0)) if len(survey) else no_cells(*beyond.values.shape)
    values = np.where(absent, np.nan, taken.values)
    if taken.is_plain and beyond.is_plain:
        return taken if not absent.any() else Cells(values) if values.size else beyond
    sides = [np.where(absent, side_of(beyond, s), side_of(taken, s)) for s in _SIDES]
    return Cells(values, *sides)


def _side_by_side(parts: Sequence[Cells]) -> Cells:
    values = np.concatenate([part.values for part in parts], axis=1)
    if all(part.is_plain for part in parts):
        return Cells(values)
    sides = [np.concatenate([side_of(part, s) for part in parts], axis=1) for s in _SIDES]
    return Cells(values, *sides)


@dataclass(frozen=True)
class Density:
    """Density of magnitudes given the surveys that see a source."""

    network: MixtureNetwork
    log_shares: Array  # of each set of surveys among the rows learned from

    @classmethod
    def learn(cls, cells: Cells, rows: Rows, seed: int) -> Density:
        """Learn it from magnitudes of sets of rows of the surveys."""
        counts = np.bincount(patterns_of(rows), minlength=1 << rows.shape[1]) + 0.5
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a mixture that has not settled is good enough here
            # Densities alone are used: no levels of quantiles are needed.
            learned = learn_mixture(
                cells, margins=False, gaps="informative", calibrate=False, n_fits=FITS, rng=seed
            )
        return cls(learned.network, np.log(counts / counts.sum()))

    def log_density(self, cells: Cells, rows: Rows) -> Array:
        """Log density of seen cells, limits and gaps, per unit of the columns' own scales."""
        found = self.network.loglik(cells) - self.log_shares[patterns_of(rows)]
        return np.asarray(found - np.isfinite(cells.values) @ np.log(self._widths))

    def log_density_of_base(self, base: Array) -> Array:
        """Log density of the columns of the base alone, whatever the surveys see."""
        n, n_base = base.shape
        if not n_base or not n:
            return np.zeros(n)
        alone = np.full((n, len(self._widths)), np.nan)
        alone[:, :n_base] = base
        return np.asarray(
            self.network.look(alone).seen - np.isfinite(base) @ np.log(self._widths[:n_base])
        )

    @property
    def _widths(self) -> Array:
        return np.array([margin.x[-1] - margin.x[0] for margin in self.network.margins])


@dataclass(frozen=True)
class LearnedRatio:
    """What was learned of magnitudes, for any objects and sources.

    Attributes
    ----------
    mine : tuple of Density
        Of counterparts: object i is judged by the one of its part.
    theirs : Density
        Of the field.
    strange : float
        Share of the counterparts that look like the field.
    like_mine : array of shape (2**k,)
        Share of the field sources that look like counterparts, by the set of surveys that sees
        them.
    curves : tuple of Curve or None
        Calibration of the raw log ratio for each set of surveys; where there is none, the two
        shares above bound it.
    """

    mine: tuple[Density, ...]
    theirs: Density
    strange: float
    like_mine: Array
    curves: tuple[Curve | None, ...] = ()

    def of_cells(self, parts: Rows, cells: Cells, rows: Rows) -> Array:
        """Log ratio of associations with these magnitudes and rows."""
        raw, sets = log_ratio(self.mine, self.theirs, parts, cells, rows), patterns_of(rows)
        out = bounded(raw, self.strange, self.like_mine[sets])
        for k, curve in enumerate(self.curves):
            if curve is not None:
                out[sets == k] = curve(raw[sets == k])
        return out

    def of(self, magnitudes: Magnitudes, found: Associations) -> Array:
        """Log ratio of all associations; 0 for "none" and for those far too unlikely."""
        return of_associations(self.of_cells, magnitudes, found)


def of_associations(
    judge: Callable[[Rows, Cells, Rows], Array], magnitudes: Magnitudes, found: Associations
) -> Array:
    """Judge parts, cells and rows of all associations but "none" and those far too unlikely: 0."""
    asked = _asked(found)
    who, which = found.base[asked], found.rows[asked]
    out = np.zeros(len(found))
    if len(asked):
        out[asked] = judge(magnitudes.parts[who], magnitudes.of_sets(who, which), which)
    return out


def log_ratio(
    mine: Sequence[Density], theirs: Density, parts: Rows, cells: Cells, rows: Rows
) -> Array:
    """Log ratio of the densities; an object is judged by the mixture learned without its part."""
    n_base = cells.values.shape[1] - len(theirs.network)
    found = -theirs.log_density(_columns_from(cells, n_base), rows)
    for k, density in enumerate(mine):
        part = np.flatnonzero(parts % len(mine) == k)
        if len(part):
            found[part] += density.log_density(cells.take(part), rows[part])
            found[part] -= density.log_density_of_base(cells.values[part, :n_base])
    return found


def _columns_from(cells: Cells, first: int) -> Cells:
    sides = [None if (s := getattr(cells, n)) is None else s[:, first:] for n in _SIDES]
    return Cells(cells.values[:, first:], *sides)


def _asked(found: Associations) -> Rows:
    """Choose the associations that are not beyond hope by their position."""
    best = np.maximum.reduceat(found.log_weight, found.starts[:-1])
    near = found.log_weight > best[found.base] + np.log(NEGLIGIBLE)
    return np.flatnonzero(near & (found.rows >= 0).any(axis=1))


def bounded(log_ratio: Array, strange: float, like_mine: Array) -> Array:
    """Mix a little of the other density into each, so that no single object decides by tails."""
    ratio = np.exp(np.clip(log_ratio, -50, 50))
    mixed = ((1 - strange) * ratio + strange) / ((1 - like_mine) + like_mine * ratio)
    return np.asarray(np.log(mixed))


@dataclass(frozen=True)
class BoundRatio:
    """A learned ratio for the objects and sources of some tables."""

    learned: LearnedRatio
    magnitudes: Magnitudes

    def __call__(self, found: Associations) -> Array:
        """Log ratio of all associations."""
        return self.learned.of(self.magnitudes, found)
