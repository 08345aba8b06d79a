"""Photometric likelihood of counterparts: two mixtures with gaps, counterparts and field."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skyfill.errors import DataError
from skyfill.network import MixtureNetwork, learn_mixture
from skyfill.sky.associations import Associations
from skyfill.sky.counterparts import Ratio

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
# Secure by position alone: what the first mixture of counterparts is learned from.
SECURE = 0.8
# Fewer counterparts than this do not give a mixture.
LEAST_COUNTERPARTS = 30
# Field sources that are enough for a mixture.
MOST_FIELD = 20_000
# No object is so unlike all others that it could not be a field source.
STRANGE_FIELD = 1e-3
# Share of counterparts that look like the field: where its estimate starts, and its least.
STRANGE, LEAST_STRANGE, STRANGE_ROUNDS = 0.1, 0.01, 100
# Associations below this share of the best one keep the ratio 1: nothing can raise them enough.
NEGLIGIBLE = 1e-7
FOLDS = 5
FITS = 3


@dataclass(frozen=True)
class MixturePhotometry:
    """Likelihood ratio of an association's magnitudes, learned from the associations themselves.

    ``p(magnitudes | counterpart, base) / p(magnitudes | field)``, all bands of all surveys at once,
    given the surveys that see the source; bands in which it was not seen count as such. The mixture
    of an object's counterparts is learned without that object (in five parts), so that no object
    testifies for itself.

    Parameters
    ----------
    base : array of shape (n, b)
        Values of the base objects that bear on their counterparts, X-ray flux for instance; may
        have no columns.
    surveys : sequence of arrays of shapes (n_k, p_k)
        Magnitudes of each survey; NaN is a gap.
    field_rows : integer array of shape (f, k)
        Sources away from the base objects, as rows of the surveys (-1: none).
    known : array of shape (m, b + sum of the p_k), optional
        Values of counterparts that are known already, in place of those found here.
    seed : int
    """

    base: Array
    surveys: Sequence[Array]
    field_rows: Rows
    known: Array | None = None
    seed: int = 0
    _cache: dict[str, _Density] = field(default_factory=dict, repr=False)

    def learn(self, found: Associations, p: Array) -> Ratio:
        """Learn both mixtures from associations of these probabilities.

        Counterparts are drawn from the probabilities, one association for each object; in the
        first round only those that are secure by position.
        """
        if self.known is not None:
            return self._learn_known(self.known)
        objects, chosen = self._draw(found, p)
        if len(objects) < LEAST_COUNTERPARTS:
            raise DataError(
                f"{len(objects)} counterparts are secure enough to learn their magnitudes from; "
                f"{LEAST_COUNTERPARTS} are needed: switch photometry off (--photometry none)"
            )
        values = self._values(objects, found.rows[chosen])
        others = [np.flatnonzero(objects % FOLDS != k) for k in range(FOLDS)]
        rows = found.rows[chosen]
        mine = [_learn(values[o], rows[o], self.seed + k) for k, o in enumerate(others)]
        return self._ratio(mine, objects, rows, values)

    def _learn_known(self, known: Array) -> Ratio:
        """Learn from known counterparts: all objects share one mixture."""
        ends = np.cumsum([self.base.shape[1], *(v.shape[1] for v in self.surveys)])
        parts = [known[:, a:b] for a, b in itertools.pairwise(ends)]
        seen = np.stack([np.isfinite(part).any(axis=1) for part in parts], axis=1)
        rows = np.where(seen, 0, -1)
        everyone = np.zeros(len(known), dtype=np.int64)
        return self._ratio([_learn(known, rows, self.seed)], everyone, rows, known)

    def _ratio(self, mine: Sequence[_Density], objects: Rows, rows: Rows, learned: Array) -> Ratio:
        """Return the ratio of any associations; the mixtures were learned from `learned`."""
        theirs = self._field()

        def raw(owners: Rows, values: Array, of: Rows) -> Array:
            return _log_ratio(owners, values, of, mine, theirs)

        strange = _fit_strange(raw(objects, learned, rows))

        def ratio(other: Associations) -> Array:
            asked = _asked(other)
            who, which = other.base[asked], other.rows[asked]
            out = np.zeros(len(other))
            out[asked] = _bounded(raw(who, self._values(who, which), which), strange)
            return out

        return ratio

    def _draw(self, found: Associations, p: Array) -> tuple[Rows, Rows]:
        """Draw an association for each object, and keep the objects that got a counterpart."""
        first = not self._cache.get("field")
        rng = np.random.default_rng(self.seed)
        target = np.repeat(rng.uniform(size=found.n_base), np.diff(found.starts))
        above = np.cumsum(p)
        before = np.repeat(above[found.starts[:-1]] - p[found.starts[:-1]], np.diff(found.starts))
        inside = (above - before > target) & (above - before - p <= target)
        chosen = np.flatnonzero(inside & (found.rows >= 0).any(axis=1))
        secure = chosen[p[chosen] > SECURE]
        if first and len(secure) >= LEAST_COUNTERPARTS * 2:
            chosen = secure
        return found.base[chosen], chosen

    def _values(self, objects: Rows | None, rows: Rows) -> Array:
        """Columns of the base, then of each survey; NaN where an association has no row."""
        if objects is None:
            parts = [np.full((len(rows), self.base.shape[1]), np.nan)]
        else:
            parts = [self.base[objects]]
        for k, values in enumerate(self.surveys):
            taken = values[np.maximum(rows[:, k], 0)].copy()
            taken[rows[:, k] < 0] = np.nan
            parts.append(taken)
        return np.concatenate(parts, axis=1)

    def _field(self) -> _Density:
        if "field" not in self._cache:
            rng = np.random.default_rng(self.seed)
            some = rng.permutation(len(self.field_rows))[:MOST_FIELD]
            values = self._values(None, self.field_rows[some])[:, self.base.shape[1] :]
            self._cache["field"] = _learn(values, self.field_rows[some], self.seed)
        return self._cache["field"]


def _log_ratio(
    owners: Rows, values: Array, rows: Rows, mine: Sequence[_Density], theirs: _Density
) -> Array:
    """Log ratio of the densities; object i is judged by the mixture learned without it."""
    n_base = values.shape[1] - len(theirs.network)
    log_ratio = -theirs.log_density(values[:, n_base:], rows)
    for k, density in enumerate(mine):
        part = np.flatnonzero(owners % len(mine) == k)
        log_ratio[part] += density.log_density(values[part], rows[part])
        log_ratio[part] -= density.log_density_of_base(values[part, :n_base])
    return log_ratio


def _asked(found: Associations) -> Rows:
    """Choose the associations that are not beyond hope by their position."""
    best = np.maximum.reduceat(found.log_weight, found.starts[:-1])
    near = found.log_weight > best[found.base] + np.log(NEGLIGIBLE)
    return np.flatnonzero(near & (found.rows >= 0).any(axis=1))


def _fit_strange(log_ratio: Array) -> float:
    """Estimate by EM which share of the counterparts the mixture does not know: like the field."""
    ratio, share = np.exp(np.clip(log_ratio, -50, 50)), STRANGE
    for _ in range(STRANGE_ROUNDS):
        share = float(np.mean(share / ((1 - share) * ratio + share)))
    return max(share, LEAST_STRANGE)


@dataclass(frozen=True)
class _Density:
    """Density of magnitudes given the surveys that see a source."""

    network: MixtureNetwork
    log_shares: Array  # of each set of surveys among the rows learned from

    def log_density(self, values: Array, rows: Rows) -> Array:
        """Log density of seen cells and gaps, per unit of the columns' own scales."""
        found = self.network.loglik(values) - self.log_shares[_patterns(rows)]
        return np.asarray(found - np.isfinite(values) @ np.log(self._widths))

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


def _patterns(rows: Rows) -> Rows:
    return np.asarray((rows >= 0) @ (1 << np.arange(rows.shape[1])))


def _learn(values: Array, rows: Rows, seed: int) -> _Density:
    counts = np.bincount(_patterns(rows), minlength=1 << rows.shape[1]) + 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a mixture that has not settled is good enough here
        # Densities alone are used: no levels of quantiles are needed.
        learned = learn_mixture(
            values, margins=False, gaps="informative", calibrate=False, n_fits=FITS, rng=seed
        )
    return _Density(learned.network, np.log(counts / counts.sum()))


def _bounded(log_ratio: Array, strange: float) -> Array:
    """Mix a little of the other density into each, so that no single object decides by tails."""
    ratio = np.exp(np.clip(log_ratio, -50, 50))
    mixed = ((1 - strange) * ratio + strange) / ((1 - STRANGE_FIELD) + STRANGE_FIELD * ratio)
    return np.asarray(np.log(mixed))
