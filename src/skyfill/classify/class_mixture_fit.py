"""Fitting densities of the classes: components of each class, from its own objects.

Covariances are drawn to those of all classes, of which more is known than of one class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.class_mixture import Array, ClassMixture, on_margins
from skyfill.classify.training_set import Codes
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.mixture.few_values import FEW_SEEN, isolate
from skyfill.network.mixture.fit import Plan, first_moments, maximize_mixture, strides
from skyfill.network.mixture.mixture import Mixture, Sorted, expect_parts, split
from skyfill.network.mixture.weighing import draw_scores
from skyfill.network.moments import Moments, em
from skyfill.threads import map_threads

# Largest number of components of a class; extra rows of the common covariance.
MOST_COMPONENTS, SHRINKAGE = 12, 5.0
# Share of the background, and how much broader than the classes it is. Chosen, like the numbers
# above, on simulations (docs/benchmarks.md).
BACKGROUND, BROADER = 0.02, 4.0
TOL, MAX_STEPS = 1e-3, 60


def fit_class_mixture(
    network: MixtureNetwork,
    cells: Cells,
    y: Codes,
    *,
    shares: Array,
    plan: Plan,
    rows_per_component: float,
    seed: int,
) -> ClassMixture:
    """Fit components to the objects of each class; covariances are drawn to common ones.

    Parameters
    ----------
    network : MixtureNetwork
        Its margins, and a first completion of the gaps.
    cells : Cells
        Labelled rows.
    y : int array of shape (n,)
        Codes of their classes. A class without a row is never more probable than its share.
    shares : array of shape (classes,)
        Of the classes, which the probabilities hold for.
    plan : Plan
        What the network was fitted with, for the pooling of its columns.
    rows_per_component : float
        Objects of a class for each of its components.
    seed : int
    """
    has_rates = network.fits[0].gap_rates is not None
    mine = plan._replace(shrinkage=SHRINKAGE, arcs="full", informative=has_rates)
    start = start_classes(
        network, cells, y, plan=mine, rows_per_component=rows_per_component, seed=seed
    )
    found = start.climb(partial(expect_classes, start.parts, start.owner), mine)
    return with_background(network, found, start.present[start.owner], shares)


class Start(NamedTuple):
    """Where fits to the objects of each class start.

    Attributes
    ----------
    present : int array
        Codes of the classes that have objects.
    moments : list of Moments
        First components of each of these.
    parts : list of lists of Sorted
        Their objects.
    few : bool array of shape (p,)
        Columns that hardly any object has.
    """

    present: NDArray[np.intp]
    moments: list[Moments]
    parts: list[list[Sorted]]
    few: NDArray[np.bool_]

    @property
    def owner(self) -> NDArray[np.intp]:
        """Place in `present` of the class of each component."""
        return np.repeat(np.arange(len(self.present)), [len(m.weight) for m in self.moments])

    def climb(self, expect: Callable[[Mixture], Moments], plan: Plan) -> Mixture:
        """Climb to the best components."""
        maximize = partial(maximize_classes, owner=self.owner, plan=plan)
        steps, first = strides if plan.pooling else em, maximize(side_by_side(self.moments))
        found = steps(expect, maximize, first, tol=TOL, max_iter=MAX_STEPS)
        return isolate(found.params, self.few)


def maximize_classes(moments: Moments, owner: NDArray[np.intp], plan: Plan) -> Mixture:
    """Best components for expected moments, those of a class about its mean: the M-step.

    Pooled regressions of one column on others hold for all classes, but pass through the mean of
    each class: a quasar is no star, and where few quasars have infrared magnitudes, the others must
    not be expected to have those of stars.

    Parameters
    ----------
    moments : Moments
        Of all components.
    owner : int array of shape (components,)
        Class of each; all from 0 on have a component.
    plan : Plan
    """
    if not plan.pooling:
        return maximize_mixture(moments, plan)
    total, count = (np.zeros((owner.max() + 1, each)) for each in (moments.origin.shape[1], 1))
    np.add.at(total, owner, moments.total + moments.count * moments.origin)
    np.add.at(count, owner, moments.count)
    mean = (total / count)[owner]
    found = maximize_mixture(replace(moments, origin=moments.origin - mean), plan)
    return found._replace(means=found.means + mean)


def start_classes(
    network: MixtureNetwork,
    cells: Cells,
    y: Codes,
    *,
    plan: Plan,
    rows_per_component: float,
    seed: int,
) -> Start:
    """Find first components of each class; see `fit_class_mixture`."""
    rng, scores = np.random.default_rng(seed), network.score_cells(cells)
    full = draw_scores(scores, network.fits[:1], 1, rng)[0]
    present = np.unique(y)
    rows = [np.flatnonzero(y == c) for c in present]
    plans = [plan._replace(n_components=wanted(len(at), rows_per_component)) for at in rows]
    moments = [
        first_moments(scores.values[at], full[at], each, rng)
        for at, each in zip(rows, plans, strict=True)
    ]
    few = (~np.isnan(scores.values)).sum(axis=0) < FEW_SEEN
    return Start(present, moments, [split(scores.take(at)) for at in rows], few)


def wanted(n_rows: int, rows_per_component: float) -> int:
    """Return the number of components for a class of so many objects.

    Examples
    --------
    >>> wanted(45, np.inf), wanted(45, 12), wanted(4000, 12)
    (1, 3, 12)
    """
    return int(np.clip(n_rows // rows_per_component, 1, MOST_COMPONENTS))


def expect_classes(
    parts: Sequence[Sequence[Sorted]], owner: NDArray[np.intp], mixture: Mixture
) -> Moments:
    """Expect the moments of all components, each from the rows of its own class: the E-step."""
    mine = [of_class(mixture, owner == c) for c in range(len(parts))]
    pairs = zip(parts, mine, strict=True)
    return side_by_side([expect_parts(part, each, _one_by_one) for part, each in pairs])


def _one_by_one(work: Any, items: list[int]) -> list[Moments]:
    return [work(item) for item in items]


def of_class(mixture: Mixture, mine: NDArray[np.bool_]) -> Mixture:
    """Return the mixture of some of the components."""
    weights = mixture.weights[mine]
    rates = None if mixture.gap_rates is None else mixture.gap_rates[mine]
    return Mixture(weights / weights.sum(), mixture.means[mine], mixture.covs[mine], rates, None)


def side_by_side(parts: Sequence[Moments]) -> Moments:
    """Put the moments of different components, from different rows, together."""
    names = ("origin", "weight", "total", "cross", "gaps")
    joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
    return Moments(
        n=sum(part.n for part in parts), loglik=sum(part.loglik for part in parts), **joined
    )


def with_background(
    network: MixtureNetwork, mixture: Mixture, owner: NDArray[np.intp], shares: Array
) -> ClassMixture:
    """Give the classes their shares, and add a component around each that is of any class."""
    present = np.unique(owner)
    share = shares[present] / shares[present].sum()
    inside = [of_class(mixture, owner == c) for c in present]
    own = [_scaled(each, (1 - BACKGROUND) * s) for each, s in zip(inside, share, strict=True)]
    around = [_scaled(_around(each), BACKGROUND * s) for each, s in zip(inside, share, strict=True)]
    order = np.argsort(owner, kind="stable")
    classes = [np.eye(len(shares))[owner[order]], np.tile(shares, (len(present), 1))]
    return ClassMixture(on_margins(network, _joined(own + around)), np.concatenate(classes))


def _joined(parts: Sequence[Mixture]) -> Mixture:
    """Put components of several mixtures into one; their weights stay."""
    weights, means, covs = (np.concatenate([part[i] for part in parts]) for i in range(3))
    rates = [part.gap_rates for part in parts if part.gap_rates is not None]
    return Mixture(weights, means, covs, np.concatenate(rates) if rates else None, None)


def _scaled(mixture: Mixture, factor: float) -> Mixture:
    """Multiply all weights."""
    return mixture._replace(weights=factor * mixture.weights)


def _around(mixture: Mixture) -> Mixture:
    """One component with the mean of a mixture, but broader."""
    weights, means, covs, rates, _ = mixture
    mean = weights @ means
    cov = np.einsum("k,kij->ij", weights, covs)
    cov += np.einsum("k,ki,kj->ij", weights, means - mean, means - mean)
    rate = None if rates is None else (weights @ rates)[None]
    return Mixture(np.ones(1), mean[None], BROADER * cov[None], rate, None)


def out_of_fold(
    fit: Callable[[Cells, Codes], ClassMixture], cells: Cells, y: Codes, fold: Codes, n: int
) -> Array:
    """Let a mixture fitted to the other rows look at each fold; NaN for rows that are in none.

    It is fitted to the first n rows only.
    """
    held = [np.flatnonzero(fold == k) for k in range(int(fold.max()) + 1)]

    def work(k: int) -> Array:
        mine = np.flatnonzero(fold[:n] != k)
        return fit(cells.take(mine), y[mine]).look(cells.take(held[k]))

    found = map_threads(work, list(range(len(held))))
    out = np.full((len(fold), found[0].shape[1]), np.nan)
    for rows, seen in zip(held, found, strict=True):
        out[rows] = seen
    return out
