"""One network to look at: arcs with their strength, and each feature's regression on its parents.

A mixture has many components, with full covariances by default. To show how features depend on one
another, the moments of the whole mixture (in normal scores) are described by one network.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skyfill.network._array import Array
from skyfill.network.mixture.network import MixtureNetwork
from skyfill.network.single.bic import bic_search
from skyfill.network.single.gaussian import GaussianNetwork
from skyfill.network.single.graph import Parents
from skyfill.network.single.parameters import regress

# An arc is drawn if it would be worth its price in a table of this many rows.
ROWS_WORTH, MAX_PARENTS = 1000, 3
# Arcs that fewer components than this share have are not drawn.
LEAST_SHARE = 0.05


@dataclass(frozen=True)
class FeatureRegression:
    """A feature as a sum over its parents, all in normal scores.

    Attributes
    ----------
    child : str
    parents : tuple of str
    weights : tuple of float
        Change of the child per unit of each parent, the others held still.
    noise : float
        Standard deviation of what the parents leave open.
    explained : float
        Share of the child's variance that the parents account for.
    """

    child: str
    parents: tuple[str, ...]
    weights: tuple[float, ...]
    noise: float
    explained: float


@dataclass(frozen=True)
class Summary:
    """A single network that describes a mixture.

    Attributes
    ----------
    names : tuple of str
    arcs : dict of (parent, child) to strength between 0 and 1
    regressions : tuple of FeatureRegression
        One per feature.
    is_learned : bool
        Whether the model has graphs of its own: the strength is then the share of the mixture
        that has the arc. Otherwise it is the size of the regression's coefficient.
    is_one : bool
        Whether the model is one network, not a mixture: the arcs are all its own, and their
        strength is again the size of the coefficient.
    is_stability : bool
        Whether the strength is the share of bootstrap samples that link the two features.
    """

    names: tuple[str, ...]
    arcs: dict[tuple[str, str], float]
    regressions: tuple[FeatureRegression, ...]
    is_learned: bool
    is_one: bool = False
    is_stability: bool = False


def summarize_network(network: MixtureNetwork | GaussianNetwork) -> Summary:
    """Describe a mixture by one network; one network by itself.

    Examples
    --------
    >>> from skyfill.network import learn_mixture
    >>> rng = np.random.default_rng(0)
    >>> V = rng.normal(18, 1, 300)
    >>> X = np.column_stack([V, V - 1 + rng.normal(0, 0.1, 300)])
    >>> network = learn_mixture(X, ["V", "I"], n_components=1, n_fits=1).network
    >>> len(summarize_network(network).arcs)
    1
    """
    if isinstance(network, GaussianNetwork):
        return _summarize_one(network)
    cov = pooled_cov(network)
    learned = {arc: share for arc, share in network.arcs().items() if share >= LEAST_SHARE}
    graph = network.graph
    if graph is None:
        graph = _as_parents(network.names, learned) if learned else _search(cov)
    regressions = tuple(
        _regression(network.names, cov, child, family) for child, family in enumerate(graph)
    )
    strength = _sizes(regressions)
    if network.graph is not None:
        shares = network.strength
        if shares is not None:
            place = {name: j for j, name in enumerate(network.names)}
            strength = {arc: float(shares[place[arc[1]], place[arc[0]]]) for arc in strength}
        kind = {"is_learned": True, "is_one": True, "is_stability": shares is not None}
        return Summary(network.names, strength, regressions, **kind)
    return Summary(network.names, learned or strength, regressions, bool(learned))


def _summarize_one(network: GaussianNetwork) -> Summary:
    """Describe a network by its regressions, all columns in their standard deviations."""
    cov = network.joint().cov
    sd = np.sqrt(np.diag(cov))
    cov = cov / np.outer(sd, sd)
    regressions = tuple(
        _regression(network.names, cov, child, family)
        for child, family in enumerate(network.parents)
    )
    return Summary(network.names, _sizes(regressions), regressions, is_learned=True, is_one=True)


def _sizes(regressions: tuple[FeatureRegression, ...]) -> dict[tuple[str, str], float]:
    """Sizes of coefficients, at most 1."""
    return {
        (parent, each.child): min(abs(weight), 1.0)
        for each in regressions
        for parent, weight in zip(each.parents, each.weights, strict=True)
    }


def pooled_cov(network: MixtureNetwork) -> Array:
    """Covariance of normal scores over all components and fits."""
    weights = np.concatenate([fit.weights for fit in network.fits]) / len(network.fits)
    means = np.concatenate([fit.means for fit in network.fits])
    covs = np.concatenate([fit.covs for fit in network.fits])
    apart = means - weights @ means
    spread = np.einsum("k,ki,kj->ij", weights, apart, apart)
    return np.asarray(np.einsum("k,kij->ij", weights, covs) + spread)


def _search(cov: Array) -> Parents:
    penalty = np.full(cov.shape, np.log(ROWS_WORTH) / 2)
    return bic_search((cov, ROWS_WORTH), penalty, MAX_PARENTS, rng=np.random.default_rng(0))


def _as_parents(names: tuple[str, ...], arcs: dict[tuple[str, str], float]) -> Parents:
    """Parents of each node; components may differ in directions, so this need not be acyclic."""
    place = {name: j for j, name in enumerate(names)}
    return tuple(tuple(place[p] for p, c in arcs if c == child) for child in names)


def _regression(
    names: tuple[str, ...], cov: Array, child: int, family: tuple[int, ...]
) -> FeatureRegression:
    weights, noise, _ = regress(cov, child, family)
    return FeatureRegression(
        names[child],
        tuple(names[k] for k in family),
        tuple(float(weight) for weight in weights),
        float(np.sqrt(noise)),
        float(1 - noise / cov[child, child]),
    )
