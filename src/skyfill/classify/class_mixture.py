"""Classes from densities: a mixture whose components each belong to one class.

Trees spend labels on finding where a class lies. A class of a few dozen objects that form compact
groups is known sooner from a few Gaussians, fitted to its objects with their gaps, limits and
errors, with covariances drawn to those of all classes. A broad background that belongs to no class
keeps rows that lie far from all objects from being certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.training_set import Codes
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.mixture.checks import check_mixture
from skyfill.network.mixture.few_values import FEW_SEEN, isolate
from skyfill.network.mixture.fit import Plan, first_moments, maximize_mixture, strides
from skyfill.network.mixture.mixture import Mixture, Sorted, expect_parts, split
from skyfill.network.mixture.weighing import draw_scores
from skyfill.network.moments import Moments, em
from skyfill.threads import map_threads

Array = NDArray[np.float64]
# Objects of a class for each of its components, tried in this order while held-out classes are
# predicted better; the first is one component for each class.
ROWS_PER_COMPONENT = (math.inf, 50.0, 12.0)
# Largest number of components of a class; extra rows of the common covariance.
MOST_COMPONENTS, SHRINKAGE = 12, 5.0
# Share of the background, and how much broader than the classes it is. Chosen, like the numbers
# above, on simulations (docs/benchmarks.md).
BACKGROUND, BROADER = 0.02, 4.0
TOL, MAX_STEPS = 1e-3, 60
# Weights tried; the mixture is left out where no one predicts held-out classes clearly better.
WEIGHTS = (0.2, 0.35, 0.5)
# Weight of a member, of all rows or of each, and its probabilities.
Part = tuple[float | Array, Array]
# Names of its arrays start with this.
MIXTURE = "mixture."


@dataclass(frozen=True, eq=False)
class ClassMixture:
    """A mixture over the features whose components say which class a row is of.

    Attributes
    ----------
    network : MixtureNetwork
        One mixture, on the margins of the scorer's network.
    classes : array of shape (components, classes)
        Probability of each class for objects of a component; rows sum to 1.
    weight : float
        Weight among the members of a classifier; those of the trees are scaled to leave room.
    """

    network: MixtureNetwork
    classes: Array
    weight: float = 1.0

    def look(self, cells: Cells) -> Array:
        """Return the probability of every class for each row, and that it is no background.

        The shape is (n, classes + 1).
        """
        resp = self.network.responsibilities(cells)
        is_own = (self.classes == 1).any(axis=1)
        table = np.column_stack([self.classes, is_own])
        seen = np.zeros((len(resp), table.shape[1]))
        # Not a product of matrices: its last bits would depend on the number of rows.
        for k, shares in enumerate(table):
            seen += resp[:, k, None] * shares
        seen[:, :-1] /= seen[:, :-1].sum(axis=1, keepdims=True)
        return np.asarray(np.clip(seen, 0.0, 1.0))

    def description(self) -> dict[str, Any]:
        """Say how many components it has, background included, and its weight."""
        return {"components": len(self.classes), "weight": self.weight}


def with_mixture(parts: Sequence[Part], weight: float, seen: Array) -> list[Part]:
    """Put what a mixture says beside weighted probabilities of trees; all weights sum to 1.

    As far as a row is background, of which a mixture knows nothing, the trees decide.

    Examples
    --------
    >>> seen = np.array([[0.9, 0.1, 1.0], [0.5, 0.5, 0.0]])  # like some class, and like none
    >>> trees, mixture = with_mixture([(1.0, np.full((2, 2), 0.5))], 0.2, seen)
    >>> trees[0].tolist(), mixture[0].tolist()
    ([[0.8], [1.0]], [[0.2], [0.0]])
    """
    mine = weight * seen[:, -1:]
    return [*((other * (1 - mine), each) for other, each in parts), (mine, seen[:, :-1])]


def class_mixture_arrays(mixture: ClassMixture | None) -> dict[str, NDArray[Any]]:
    """Return the arrays of a mixture for a model file, except the margins of its network."""
    if mixture is None:
        return {}
    fit = mixture.network.fits[0]
    arrays = {"weights": fit.weights, "means": fit.means, "covs": fit.covs}
    arrays |= {} if fit.gap_rates is None else {"gap_rates": fit.gap_rates}
    arrays |= {"classes": mixture.classes, "weight": np.array([mixture.weight])}
    return {MIXTURE + name: array for name, array in arrays.items()}


def read_class_mixture(
    arrays: Mapping[str, NDArray[Any]], network: MixtureNetwork
) -> ClassMixture | None:
    """Build from `class_mixture_arrays`, on the margins of a network; None for older files."""
    if f"{MIXTURE}weights" not in arrays:
        return None
    names = ("weights", "means", "covs", "classes", "weight")
    weights, means, covs, classes, weight = (arrays[MIXTURE + name] for name in names)
    fit = Mixture(weights, means, covs, arrays.get(f"{MIXTURE}gap_rates"), None)
    if weight.shape != (1,):
        raise ValueError("the mixture of the classes needs one weight")
    return ClassMixture(on_margins(network, fit), classes, float(weight[0]))


def check_class_mixture(mixture: ClassMixture | None, n_classes: int, p: int) -> None:
    """Raise ValueError where a mixture is not one of these classes over p columns."""
    if mixture is None:
        return
    check_mixture(mixture.network.fits[0], p, "the mixture of the classes")
    shares = mixture.classes
    if shares.shape != (len(mixture.network.fits[0].weights), n_classes):
        raise ValueError("the components of the mixture and the classes do not belong together")
    if not (shares >= 0).all() or not (np.abs(shares.sum(axis=1) - 1) <= 1e-6).all():
        raise ValueError("the classes of each component must be shares, with sum 1")
    if not 0 < mixture.weight < 1:
        raise ValueError("the weight of the mixture must lie between 0 and 1")


def on_margins(network: MixtureNetwork, fit: Mixture) -> MixtureNetwork:
    """Return one mixture on the margins of a network; of its quantiles nothing is known."""
    return MixtureNetwork(network.names, network.margins, (fit,))


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
        steps, maximize = strides if plan.pooling else em, partial(maximize_mixture, plan=plan)
        first = maximize(side_by_side(self.moments))
        found = steps(expect, maximize, first, tol=TOL, max_iter=MAX_STEPS)
        return isolate(found.params, self.few)


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
    >>> wanted(45, math.inf), wanted(45, 12), wanted(4000, 12)
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
