"""The paper's own imputer: one Gaussian network with arcs, learned despite the gaps."""

from __future__ import annotations

from typing import Any

from skyfill.impute.network_imputer import NetworkImputer
from skyfill.network import Cells, learn_one_network
from skyfill.network.mixture.learn import LearnedMixture


def _learn(
    cells: Cells, names: Any, *, scoring: str, fluxes: Any = None, **options: Any
) -> LearnedMixture:
    # As in the paper, a flux is a column like all others.
    return learn_one_network(cells, names, score=scoring, **options)


class OneNetworkImputer(NetworkImputer):
    """Fill gaps with the posterior of one Gaussian Bayesian network.

    The model of Pichara & Protopapas (2013): every column is a linear function of its parents plus
    normal noise. Arcs are learned by their Algorithm 1 or by structural EM, parameters by EM.
    All methods are those of `NetworkImputer`. Quantiles are those of the Gaussian posterior,
    without a calibration on held-out rows.

    Parameters
    ----------
    scoring : {"k2", "bic"}
        How graphs are compared: Algorithm 1 with the score of Cooper & Herskovits (1992), as in
        the paper; or structural EM with BIC, which finds more of the arcs that exist and fewer
        that do not. (scikit-learn reserves the name `score` for a method.)
    max_parents : int or None
        Most parents of a column; None for no limit (only with "bic").
    n_completions : int
        Completed tables per iteration of Algorithm 1.
    n_orders : int
        Random starts of the search for the order of the columns that K2 follows.
    n_bins : int, optional
        Bins of a column for K2; by default three, or two where these find two fifths more arcs.
    orders : {"shared", "own"}
        One order for all completed tables; or a random one each and arc reversals, as printed.
    margins : bool
        Map columns to normal scores first. The paper takes columns as they are.
    n_bootstraps : int
        Resamples of the rows that show how stable each arc is: ``network_.strength``.
    tol, max_iter : float, int
        Structure learning stops when the score changes by less than the fraction `tol`.
    random_state : int, RandomState or None
        The same seed gives the same network on any number of threads.

    Attributes
    ----------
    network_ : MixtureNetwork
        The fitted network: one fit of one component. ``network_.arcs()`` lists its arcs.
    plan_ : Plan
    n_iter_ : int
        Steps of EM for the parameters.
    converged_ : bool
        Whether structure and parameters converged.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> V = rng.normal(18, 1, 300)
    >>> X = np.column_stack([V, V - 0.8 + rng.normal(0, 0.1, 300)])
    >>> imputer = OneNetworkImputer(random_state=0).fit(X)
    >>> imputer.transform([[18.2, np.nan]]).round(1)
    array([[18.2, 17.4]])
    """

    _learner = staticmethod(_learn)
    _complaint = (
        "the graph still changed in its last round: the best one is kept, and the model can be "
        "used; another seed shows which arcs are certain"
    )

    def __init__(  # noqa: PLR0913 - every option of the model
        self,
        scoring: str = "k2",
        *,
        max_parents: int | None = 3,
        n_completions: int = 5,
        n_orders: int = 12,
        n_bins: int | None = None,
        orders: str = "shared",
        margins: bool = False,
        n_bootstraps: int = 0,
        tol: float = 1e-6,
        max_iter: int = 20,
        random_state: Any = None,
    ) -> None:
        self.scoring = scoring
        self.max_parents = max_parents
        self.n_completions = n_completions
        self.n_orders = n_orders
        self.n_bins = n_bins
        self.orders = orders
        self.margins = margins
        self.n_bootstraps = n_bootstraps
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
