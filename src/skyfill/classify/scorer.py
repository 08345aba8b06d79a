"""The part of a classifier that scores new rows: plain arrays, saved in the model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.classify.class_calibration import Calibration
from skyfill.classify.class_mixture import (
    ClassMixture,
    Part,
    check_class_mixture,
    class_mixture_arrays,
    read_class_mixture,
    with_mixture,
)
from skyfill.classify.class_tree import ClassTree
from skyfill.classify.forest import FlatForest
from skyfill.classify.gap_draws import (
    AUTO,
    N_DRAWS,
    Draws,
    average_over_draws,
    entropy_bits,
    gap_share,
    normalize,
)
from skyfill.classify.held_out import HeldOut, check_held_out, held_out_arrays, read_held_out
from skyfill.classify.known_gaps import KnownGaps, check_gaps, gap_arrays, read_gaps
from skyfill.classify.likeness import Looks, check_looks, looks_arrays, read_looks
from skyfill.classify.members import POOLS, Member, check_members, pool_members, rebuild_member
from skyfill.classify.outlier import OutlierRule, check_rule, range_score
from skyfill.classify.prior import Profiles
from skyfill.classify.scorer_checks import check_classes, check_contrasts, check_profiles
from skyfill.classify.views import VIEWS, Array, Facts, gather_facts, width
from skyfill.device import gpu_for
from skyfill.errors import DataError
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.cells import as_cells
from skyfill.network.mixture.on_device import WORTH_A_GPU
from skyfill.network.mixture.random_keys import keyed

# Rows at a time, so that their draws and views stay small.
ROWS_AT_ONCE, ROWS_ON_GPU = 1 << 14, 1 << 17


class Scores(NamedTuple):
    """The results of each row.

    `entropy` is that of the class in bits; `gap_share` the share of it that would vanish if the
    gaps were measured, on average (0 where there is no gap); `outlier_score` minus log10 of the
    share of ordinary rows that are less likely.
    """

    probabilities: Array  # (n, classes)
    entropy: Array
    gap_share: Array
    outlier: NDArray[np.bool_]
    outlier_score: Array


@dataclass(frozen=True, eq=False)
class Scorer:
    """Class probabilities of rows with gaps.

    Attributes
    ----------
    classes : tuple of str
    network : MixtureNetwork
        Fills the gaps.
    members : tuple of Member
        Forests and boostings, each with its view and weight.
    calibration : Calibration
    shares : array of shape (classes,)
        Shares of the classes for which the trees are calibrated.
    prior : array of shape (classes,)
        Shares of the classes in the field; equal to `shares` where they are not known.
    contrasts : array of shape (pairs, 4)
        From `choose_contrasts`; empty where no view uses them.
    rule : OutlierRule
    profiles : Profiles, optional
        Mean probabilities of held-out objects of each class; None without calibration.
    gaps : KnownGaps, optional
        Gaps of the training objects; None in older model files, for which "auto" is no draw.
    tree : ClassTree, optional
        Groups of the classes.
    pool : str
        One of `POOLS`: how the members are combined; "mean" in older model files.
    held_out : HeldOut, optional
        Objects behind `profiles`; None in older model files.
    mixture : ClassMixture, optional
        Densities of the classes, one more member; None where they do not help.
    looks : Looks, optional
        Values of labelled objects of each class; None in older model files.
    field_gaps : KnownGaps, optional
        Gaps of a field that the trees have learned from too; None without one.
    """

    classes: tuple[str, ...]
    network: MixtureNetwork
    members: tuple[Member, ...]
    calibration: Calibration
    shares: Array
    prior: Array
    contrasts: Array
    rule: OutlierRule
    profiles: Profiles | None = None
    gaps: KnownGaps | None = None
    tree: ClassTree | None = None
    pool: str = "mean"
    held_out: HeldOut | None = None
    mixture: ClassMixture | None = None
    looks: Looks | None = None
    field_gaps: KnownGaps | None = None

    @property
    def forests(self) -> tuple[tuple[str, FlatForest], ...]:
        """View and trees of every member."""
        return tuple((member.view, member.forest) for member in self.members)

    def probabilities(self, X: ArrayLike | Cells, *, n_draws: Draws = AUTO, rng: Any = 0) -> Array:
        """Return the probability of every class for each row.

        Parameters
        ----------
        X : array of shape (n, p), or Cells
            NaN is a gap. `Cells` hold limits and errors too.
        n_draws : int or "auto"
            0: the trees see the posterior means of the gaps, where the gaps are, and the
            responsibilities of the components. Otherwise: the mean over this number of joint draws
            of the gaps, each classified as if measured. "auto": 0 for rows with gaps like those
            of training objects, which the calibration knows; for others 8 draws, or 32 where 8
            are too few.
        rng : int or numpy.random.Generator
            Seed of the draws. Those of a row follow from it and from the numbers of the row alone.

        Returns
        -------
        array of shape (n, classes)
            Rows sum to 1.
        """
        cells = self._cells(X, rng)
        odds = self._by_chunks(cells)
        self._weigh_gaps(cells, odds, 0, n_draws)
        return normalize(odds)

    def score(
        self,
        X: ArrayLike | Cells,
        *,
        n_draws: int = N_DRAWS,
        average: Draws = AUTO,
        rng: Any = 0,
    ) -> Scores:
        """Return probabilities, entropy, the share of it that is due to gaps, and outliers.

        Parameters
        ----------
        X : array of shape (n, p), or Cells
        n_draws : int
            Draws of the gaps for `gap_share`; with fewer than 2 it is NaN.
        average : int or "auto"
            Draws of the gaps that the probabilities average over, as in `probabilities`.
        rng : int or numpy.random.Generator
        """
        cells = self._cells(X, rng)
        seen: list[Array] = []
        odds = self._by_chunks(cells, seen)
        unusual = self.rule.score(np.concatenate([np.empty(0), *seen]), cells.values)
        unusual = np.maximum(unusual, range_score(self.network.margins, cells.values))
        share = self._weigh_gaps(cells, odds, n_draws, average)
        P = normalize(odds)
        return Scores(P, entropy_bits(P), share, self.rule.flag(unusual), unusual)

    def known(self, X: ArrayLike | Cells) -> NDArray[np.bool_]:
        """Mark the rows with gaps like those of training objects; all where these are not known."""
        values = self._cells(X, 0).values
        return np.ones(len(values), bool) if self.gaps is None else ~self.gaps.unlike(values)

    def _is_new(self, cells: Cells) -> NDArray[np.bool_]:
        """Mark rows with gaps that the trees have not learned from."""
        new = ~self.known(cells)
        return new if self.field_gaps is None else new & self.field_gaps.unlike(cells.values)

    def _weigh_gaps(self, cells: Cells, odds: Array, n_draws: int, average: Draws) -> Array:
        """Average odds over draws where asked; return the share of the entropy due to gaps."""
        share = np.zeros(len(cells))
        size = ROWS_AT_ONCE if gpu_for(len(cells), WORTH_A_GPU) is None else ROWS_ON_GPU
        for start in range(0, len(cells), size):
            rows = np.arange(start, min(start + size, len(cells)))
            rows = rows[np.isnan(cells.values[rows]).any(axis=1)]
            if not rows.size:
                continue
            part = cells.take(rows)
            drawn = self._drawn(part, n_draws) if n_draws > 1 else None
            share[rows] = np.nan if drawn is None else gap_share(drawn)
            if isinstance(average, str):
                draw = partial(self._drawn, for_trees=True)
                made = drawn if self.mixture is None else None
                odds[rows] = average_over_draws(draw, part, odds[rows], made, self._is_new(part))
            elif average:
                odds[rows] = self._drawn(part, average, for_trees=True).mean(axis=0)
        return share

    def _drawn(
        self, cells: Cells, n_draws: int, first: int = 0, *, for_trees: bool = False
    ) -> Array:
        """Return odds for draws of the gaps as if measured, of shape (draws, n, classes).

        `first` is the number of the first draw. A mixture of the classes integrates over gaps by
        itself: with `for_trees`, only the trees see the draws.
        """
        tables = self.network.draws(cells, n_draws, first=first)
        whole = self._mixed(cells) if for_trees else None
        return np.stack([self._by_chunks(Cells(table), mixed=whole) for table in tables])

    def _by_chunks(
        self, cells: Cells, seen: list[Array] | None = None, mixed: Array | None = None
    ) -> Array:
        """Return odds; append the log-likelihoods of the rows to `seen`, if given.

        `mixed` holds what the mixture of the classes says, if it does not look at these rows.
        """
        parts = [np.empty((0, len(self.classes)))]
        views = [member.view for member in self.members]
        size = ROWS_AT_ONCE if gpu_for(len(cells), WORTH_A_GPU) is None else ROWS_ON_GPU
        for start in range(0, len(cells), size):
            rows = cells.take(slice(start, start + size))
            facts = gather_facts(self.network, rows, views, likelihood=seen is not None)
            own = self._mixed(rows) if mixed is None else mixed[start : start + size]
            parts.append(self._weigh(facts, own))
            if seen is not None and facts.seen is not None:
                seen.append(facts.seen)
        return np.concatenate(parts)

    def _mixed(self, cells: Cells) -> Array | None:
        return None if self.mixture is None else self.mixture.look(cells)

    def _weigh(self, facts: Facts, mixed: Array | None) -> Array:
        """Probabilities times the change of the shares, by which draws count in the field."""
        X, views = facts.X, {member.view for member in self.members}
        seen = {view: VIEWS[view](facts, self.contrasts) for view in views}
        parts: list[Part] = [
            (weight, forest.predict_proba(seen[view])) for view, forest, weight in self.members
        ]
        if self.mixture is not None and mixed is not None:
            parts = with_mixture(parts, self.mixture.weight, mixed)
        P = self.calibration(pool_members(parts, self.pool))
        # For an object without any measurement only the shares of the classes are known.
        P[np.isnan(X).all(axis=1)] = self.shares
        return P if np.array_equal(self.prior, self.shares) else P * (self.prior / self.shares)

    def _cells(self, X: ArrayLike | Cells, rng: Any) -> Cells:
        cells = as_cells(X, len(self.network))
        if np.isinf(cells.values).any():
            raise DataError("the table contains infinity, which is neither a value nor a gap")
        return keyed(cells, rng)

    def without(self, columns: Sequence[int]) -> Scorer:
        """Return the scorer for a catalogue that lacks columns, whose gaps are not evidence."""
        if not len(columns):
            return self
        mixture = self.mixture
        if mixture is not None:
            mixture = replace(mixture, network=_neutral(mixture.network, columns))
        return replace(self, network=_neutral(self.network, columns), mixture=mixture)

    def facts(self) -> dict[str, Any]:
        """Return everything that is not an array, for a model file."""
        members = [{"view": view, "weight": weight} for view, _, weight in self.members]
        facts: dict[str, Any] = {"classes": list(self.classes), "members": members}
        facts["calibration"] = self.calibration.kind
        if self.tree is not None:
            facts["tree"] = dict(self.tree.parents)
        if self.pool != "mean":
            facts["pool"] = self.pool
        return facts

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return its arrays for a model file, except those of the network."""
        arrays: dict[str, NDArray[Any]] = {
            "slopes": self.calibration.slopes,
            "bias": self.calibration.bias,
            "shares": self.shares,
            "prior": self.prior,
            "contrasts": self.contrasts,
        }
        arrays |= {f"rule.{name}": getattr(self.rule, name) for name in _RULE}
        arrays |= held_out_arrays(self.held_out) | class_mixture_arrays(self.mixture)
        arrays |= looks_arrays(self.looks)
        if self.profiles is not None:
            arrays["profiles"] = np.stack(self.profiles)
        arrays |= gap_arrays(self.gaps, "gaps.") | gap_arrays(self.field_gaps, "field_gaps.")
        for i, member in enumerate(self.members):
            arrays |= {f"forests.{i}.{k}": a for k, a in member.forest.arrays().items()}
        return arrays

    @classmethod
    def from_arrays(
        cls, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], network: MixtureNetwork
    ) -> Scorer:
        """Build from `facts()` and `arrays()`; ValueError where they are inconsistent."""
        members = tuple(rebuild_member(item, i, arrays) for i, item in enumerate(facts["members"]))
        scorer = cls(
            tuple(str(name) for name in facts["classes"]),
            network,
            members,
            Calibration(str(facts["calibration"]), arrays["slopes"], arrays["bias"]),
            arrays["shares"],
            arrays["prior"],
            arrays["contrasts"],
            OutlierRule(*(arrays[f"rule.{name}"] for name in _RULE)),
            Profiles(*arrays["profiles"]) if "profiles" in arrays else None,
            read_gaps(arrays, "gaps."),
            ClassTree.from_facts(facts["tree"]) if "tree" in facts else None,
            str(facts.get("pool", "mean")),
            read_held_out(arrays),
            read_class_mixture(arrays, network),
            read_looks(arrays),
            read_gaps(arrays, "field_gaps."),
        )
        _check(scorer)
        return scorer


_RULE = ("center", "spread", "surprise")


def _neutral(network: MixtureNetwork, columns: Sequence[int]) -> MixtureNetwork:
    """Return a network to which gaps of some columns say nothing, if gaps are informative."""
    if any(fit.gap_rates is None for fit in network.fits):
        return network
    rates = [np.array(fit.gap_rates) for fit in network.fits]
    for each in rates:
        each[:, columns] = 0.5
    pairs = zip(network.fits, rates, strict=True)
    return replace(network, fits=tuple(fit._replace(gap_rates=each) for fit, each in pairs))


def _check(scorer: Scorer) -> None:
    C, p = len(scorer.classes), len(scorer.network)
    check_classes(scorer.classes, scorer.calibration, scorer.shares, scorer.prior)
    check_profiles(scorer.profiles, C)
    check_contrasts(scorer.contrasts, p)
    check_held_out(scorer.held_out, C)
    check_class_mixture(scorer.mixture, C, p)
    for gaps in (scorer.gaps, scorer.field_gaps):
        check_gaps(gaps, p)
    check_looks(scorer.looks, C, p)
    if scorer.tree is not None:
        scorer.tree.check(scorer.classes)
    if scorer.pool not in POOLS:
        raise ValueError(f"members cannot be combined by {scorer.pool!r}")
    check_rule(scorer.rule, p)
    check_members(
        scorer.members, C, partial(width, network=scorer.network, contrasts=scorer.contrasts)
    )
