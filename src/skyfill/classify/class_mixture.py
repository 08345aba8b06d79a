"""Classes from densities: a mixture whose components each belong to one class.

Trees spend labels on finding where a class lies. A class of a few dozen objects that form compact
groups is known sooner from a few Gaussians, fitted to its objects with their gaps, limits and
errors, with covariances drawn to those of all classes. A broad background that belongs to no class
keeps rows that lie far from all objects from being certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.network import Cells, MixtureNetwork
from skyfill.network.mixture.checks import check_mixture
from skyfill.network.mixture.mixture import Mixture

Array = NDArray[np.float64]
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
