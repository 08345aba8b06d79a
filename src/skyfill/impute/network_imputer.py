"""The imputer of skyfill: mixtures of Gaussian networks, learned in spite of the gaps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from skyfill.errors import ConvergenceWarning
from skyfill.impute._inputs import Array
from skyfill.impute.base import DistributionImputer, as_generator
from skyfill.network import Posterior, learn_mixture


class NetworkImputer(DistributionImputer):
    """Fill gaps with the posterior of mixtures of Bayesian networks.

    Columns are mapped to normal scores; several mixtures of Gaussian networks are fitted by EM to
    the seen cells and averaged. What is "auto" is chosen by held-out likelihood.
    ``NetworkImputer(n_components=1, margins=False, n_fits=1)`` is one Gaussian, as in the paper.

    Parameters
    ----------
    n_components : int or "auto"
        Components per fit.
    shrinkage : float or "auto"
        Covariances are drawn towards the pooled one as by this many extra rows.
    arcs : {"full", "shared", "own", "auto"}
        Full covariances, one graph for all components, or a graph each.
    gaps : {"ignorable", "informative", "auto"}
        Whether the pattern of gaps is evidence of what a row is: "informative" where
        faint objects lack bands.
    margins : bool
        Map columns to normal scores first.
    n_fits : int
        Fits that are averaged.
    tol, max_iter : float, int
        EM stops when a step gains less than `tol` per row.
    random_state : int, RandomState or None
        The same seed gives the same fill on any number of threads.

    Attributes
    ----------
    network_ : MixtureNetwork
        The fitted model.
    plan_ : Plan
        Components, shrinkage, arcs and kind of gaps that were chosen.
    n_iter_ : int
        Steps of EM of the longest fit.
    converged_ : bool
        Whether EM settled in every fit.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> V = rng.normal(18, 1, 300)
    >>> X = np.column_stack([V, V - 0.8 + rng.normal(0, 0.1, 300)])
    >>> imputer = NetworkImputer(n_components=1, n_fits=1, random_state=0).fit(X)
    >>> imputer.transform([[18.2, np.nan]]).round(1)
    array([[18.2, 17.4]])
    """

    def __init__(  # noqa: PLR0913 - every option of the model
        self,
        n_components: int | str = "auto",
        *,
        shrinkage: float | str = "auto",
        arcs: str = "full",
        gaps: str = "ignorable",
        margins: bool = True,
        n_fits: int = 8,
        tol: float = 5e-4,
        max_iter: int = 300,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.shrinkage = shrinkage
        self.arcs = arcs
        self.gaps = gaps
        self.margins = margins
        self.n_fits = n_fits
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, X: Array) -> None:
        options = self.get_params(deep=False)
        rng = as_generator(options.pop("random_state"))
        names = getattr(self, "feature_names_in_", None)
        learned = learn_mixture(X, names, rng=rng, **options)
        self.network_, self.plan_ = learned.network, learned.plan
        self.n_iter_, self.converged_ = learned.n_iter, learned.converged
        if not learned.converged:
            warnings.warn(
                f"EM did not settle in {self.max_iter} steps; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _fill(self, X: Array) -> Array:
        return self.network_.posterior(X).mean

    def _posterior(self, X: Array) -> Posterior:
        return self.network_.posterior(X)

    def _quantiles(self, X: Array, levels: Sequence[float]) -> Array:
        return self.network_.quantiles(X, levels)

    def _draws(self, X: Array, n_draws: int, rng: np.random.Generator) -> Array:
        return self.network_.draws(X, n_draws, rng)

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row's seen cells, per unit of normal score."""
        return self.network_.loglik(self._new_rows(X))
