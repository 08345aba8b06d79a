"""An imputer whose network was learned elsewhere."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator

from skyfill.network import MixtureNetwork
from skyfill.network.mixture.fit import Plan


class KnownNetwork(BaseEstimator):  # type: ignore[misc]
    """Stand for `NetworkImputer` where the network is known: `fit` learns nothing.

    Parameters
    ----------
    network : MixtureNetwork
    plan : Plan
        What it was fitted with.
    random_state : int

    Attributes
    ----------
    network_, plan_
        The same.
    """

    def __init__(self, network: MixtureNetwork, plan: Plan, random_state: int = 0) -> None:
        self.network, self.plan, self.random_state = network, plan, random_state

    def fit(self, X: Any, y: Any = None, **known: Any) -> Self:
        """Take the network as it is."""
        self.network_, self.plan_ = self.network, self.plan
        return self
