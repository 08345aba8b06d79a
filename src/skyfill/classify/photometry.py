"""Photometric likelihood of counterparts: two mixtures with gaps, counterparts and field."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from skyfill.classify.photometric_ratio import (
    STRANGE_FIELD,
    Array,
    BoundRatio,
    Density,
    LearnedRatio,
    Magnitudes,
    Rows,
    log_ratio,
    of_associations,
)
from skyfill.classify.ratio_curve import fit_curves
from skyfill.errors import DataError
from skyfill.network import Cells
from skyfill.sky.associations import Associations
from skyfill.sky.posterior import pattern_members, patterns_of

# Secure by position alone: what the first mixture of counterparts is learned from.
SECURE = 0.8
# Fewer counterparts than this do not give a mixture.
LEAST_COUNTERPARTS = 30
# Field sources that are enough for a mixture, and to judge it by; the least for the latter.
MOST_FIELD, MOST_JUDGES, LEAST_FIELD = 20_000, 100_000, 500
# Share of counterparts that look like the field: where its estimate starts, and its least.
STRANGE, LEAST_STRANGE, STRANGE_ROUNDS = 0.1, 0.01, 100
FOLDS = 5


@dataclass(frozen=True)
class MixturePhotometry:
    """Likelihood ratio of an association's magnitudes, learned from the associations themselves.

    ``p(magnitudes | counterpart, base) / p(magnitudes | field)``, all bands of all surveys at once,
    given the surveys that see the source; bands in which it was not seen count as such, and a limit
    says how faint it is in them. The mixture of an object's counterparts is learned without that
    object (in five parts), so that no object testifies for itself.

    Parameters
    ----------
    magnitudes : Magnitudes
        Of the base objects, if any bear on their counterparts, X-ray flux for instance, and of the
        sources of each survey.
    field_rows : integer array of shape (f, k)
        Sources away from the base objects, as rows of the surveys (-1: none).
    known : array of shape (m, b + sum of the p_k), optional
        Values of counterparts that are known already, in place of those found here.
    seed : int
    """

    magnitudes: Magnitudes
    field_rows: Rows
    known: Array | None = None
    seed: int = 0
    _cache: dict[str, Any] = field(default_factory=dict, repr=False)

    def learn(self, found: Associations, p: Array) -> BoundRatio:
        """Learn both mixtures from associations of these probabilities.

        Counterparts are drawn from the probabilities, one association for each object; in the
        first round only those that are secure by position. The ratio is then calibrated by field
        sources and by the probabilities of the first round, which know positions alone.
        """
        magnitudes = self.magnitudes
        if self.known is not None:
            return self._learn_known(magnitudes, self.known)
        objects, chosen = self._draw(found, p)
        if len(objects) < LEAST_COUNTERPARTS:
            raise DataError(
                f"{len(objects)} counterparts are secure enough to learn their magnitudes from; "
                f"{LEAST_COUNTERPARTS} are needed: switch photometry off (--photometry none)"
            )
        rows, parts = found.rows[chosen], magnitudes.parts[objects]
        cells = magnitudes.of_sets(objects, rows)
        others = [np.flatnonzero(parts % FOLDS != k) for k in range(FOLDS)]
        mine = [Density.learn(cells.take(o), rows[o], self.seed + k) for k, o in enumerate(others)]
        ratio, sources = self._ratio(magnitudes, mine, (parts, cells, rows))
        # Positions alone do not know the magnitudes that they calibrate.
        by_position = self._cache.setdefault("by position", p)
        judge = partial(log_ratio, ratio.mine, ratio.theirs)
        raw = of_associations(judge, magnitudes, found)
        curves = fit_curves(found, by_position, raw, sources)
        return BoundRatio(replace(ratio, curves=curves), magnitudes)

    def _learn_known(self, magnitudes: Magnitudes, known: Array) -> BoundRatio:
        """Learn from known counterparts: all objects share one mixture."""
        widths = (len(cells.values.T) for cells in (magnitudes.base, *magnitudes.surveys))
        parts = [known[:, a:b] for a, b in itertools.pairwise(np.cumsum([*widths]))]
        seen = np.stack([np.isfinite(part).any(axis=1) for part in parts], axis=1)
        rows, cells = np.where(seen, 0, -1), Cells(known)
        nobody = np.zeros(len(known), dtype=np.int64)
        mine = [Density.learn(cells, rows, self.seed)]
        return BoundRatio(self._ratio(magnitudes, mine, (nobody, cells, rows))[0], magnitudes)

    def _ratio(
        self,
        magnitudes: Magnitudes,
        mine: Sequence[Density],
        learned: tuple[Rows, Cells, Rows],
    ) -> tuple[LearnedRatio, tuple[Array, Rows]]:
        """Ratio of any associations, and that of field sources; `learned` gave the mixtures."""
        theirs, (parts, cells, rows) = self._field(magnitudes), learned
        strange = max(_fit_strange(log_ratio(mine, theirs, parts, cells, rows)), LEAST_STRANGE)
        sources = self._judge_field(magnitudes, mine, theirs)
        like_mine = _like_mine(*sources, rows.shape[1])
        return LearnedRatio(tuple(mine), theirs, strange, like_mine), sources

    def _judge_field(
        self, magnitudes: Magnitudes, mine: Sequence[Density], theirs: Density
    ) -> tuple[Array, Rows]:
        """Raw log ratios of field sources, and the set of surveys that sees each of them.

        They are sources that the mixture was not learned from, where there are enough, each taken
        for the counterpart of a random object.
        """
        rng, n = np.random.default_rng(self.seed), len(self.field_rows)
        order = rng.permutation(n)[MOST_FIELD if n > 2 * MOST_FIELD else 0 :]
        rows = _with_parts(self.field_rows[order[:MOST_JUDGES]], rng)
        objects = rng.integers(len(magnitudes.parts), size=len(rows))
        cells, parts = magnitudes.of_sets(objects, rows), magnitudes.parts[objects]
        return log_ratio(mine, theirs, parts, cells, rows), patterns_of(rows)

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

    def _field(self, magnitudes: Magnitudes) -> Density:
        if "field" not in self._cache:
            rng = np.random.default_rng(self.seed)
            some = rng.permutation(len(self.field_rows))[:MOST_FIELD]
            rows = _with_parts(self.field_rows[some], rng)
            parts = Magnitudes.of(np.empty((0, 0)), magnitudes.surveys, depths=magnitudes.depths)
            self._cache["field"] = Density.learn(parts.of_sets(None, rows), rows, self.seed)
        density: Density = self._cache["field"]
        return density


def _with_parts(rows: Rows, rng: np.random.Generator) -> Rows:
    """Add parts of groups where a set of surveys sees hardly any field source by itself.

    Wrong candidates of such a set are sources of larger groups, the rest of which was passed over.
    """
    codes, n_surveys = patterns_of(rows), rows.shape[1]
    out = [rows]
    for code, members in enumerate(pattern_members(1 << n_surveys, n_surveys)):
        larger = np.flatnonzero((codes & code == code) & (codes != code))
        lacking = LEAST_FIELD - np.count_nonzero(codes == code)
        if code and lacking > 0:
            some = rng.permutation(larger)[:lacking]
            out.append(np.where(members, rows[some], -1))
    return np.concatenate(out)


def _like_mine(raw: Array, sets: Rows, n_surveys: int) -> Array:
    """Share of field sources that look like counterparts, for each set of surveys.

    With the most likely share, the mean ratio of densities over the field is one, as it must be.
    """
    share = np.full(1 << n_surveys, STRANGE_FIELD)
    for k in np.unique(sets):
        if np.count_nonzero(sets == k) >= LEAST_FIELD:
            share[k] = max(_fit_strange(-raw[sets == k]), STRANGE_FIELD)
    return share


def _fit_strange(log_ratio: Array) -> float:
    """Estimate by EM which share of some sources is like the others, given log ratios to them."""
    ratio, share = np.exp(np.clip(log_ratio, -50, 50)), STRANGE
    for _ in range(STRANGE_ROUNDS):
        share = float(np.mean(share / ((1 - share) * ratio + share)))
    return share
