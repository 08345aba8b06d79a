"""The imputer of skyfill: mixtures of Gaussian networks, learned despite the gaps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skyfill.errors import ConvergenceWarning
from skyfill.impute._inputs import (
    Array,
    count_known,
    given_columns,
    part_of,
    warn_of_missing,
    warn_of_sentinels,
    widths_of_limits,
    with_known,
)
from skyfill.impute.base import DistributionImputer, as_generator
from skyfill.impute.fill_quality import FillQuality
from skyfill.impute.refined_network import RefinedNetwork, refined
from skyfill.impute.refinement import Refinement
from skyfill.impute.refining import check_refine, learn_refinement
from skyfill.network import Cells, MixtureNetwork, Posterior, learn_mixture
from skyfill.network.mixture.few_values import warn_if_small
from skyfill.network.mixture.learn import LearnedMixture


class NetworkImputer(DistributionImputer):
    """Fill gaps with the posterior of mixtures of Bayesian networks.

    Columns are mapped to normal scores; several mixtures of Gaussian networks are fitted by EM to
    the seen cells and averaged. What is "auto" is chosen by held-out likelihood.
    `OneNetworkImputer` is the paper's single network.

    Parameters
    ----------
    n_components : int or "auto"
        Components per fit.
    shrinkage : float or "auto"
        Covariances are drawn towards the pooled one as by this many extra rows.
    arcs : {"none", "full", "factors", "shared", "own", "auto"}
        Full covariances, covariances of a few factors, one graph for all components, or a graph
        each. "none" is full, or factors if a table of 20 columns or more without limits gains from
        them; "auto" is the best of all.
    gaps : {"ignorable", "informative", "auto"}
        Whether the pattern of gaps is evidence of what a row is: "informative" where
        faint objects lack bands.
    margins : bool
        Map columns to normal scores first.
    n_fits : int
        Number of fits to average.
    refine : {"auto", "trees", None}
        Let forests correct the mixtures: each column is predicted from the others, as the mixtures
        fill them, on cells that are hidden for this. "auto" follows a forest that surely knows
        something where the error of cells that it did not see falls by one percent at least,
        "trees" wherever it falls; with None there are only mixtures. Gaps with limits, columns
        with errors and tables of fewer than 200 rows are left to the mixtures.
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
    refinement_ : Refinement or None
        The forests; None where there are none.
    fill_quality_ : FillQuality or None
        Errors of the cells that were hidden for the forests; None where there were none.
    n_iter_ : int
        Steps of EM of the longest fit.
    converged_ : bool
        Whether EM converged in every fit.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> V = rng.normal(18, 1, 300)
    >>> X = np.column_stack([V, V - 0.8 + rng.normal(0, 0.1, 300)])
    >>> imputer = NetworkImputer(n_components=1, n_fits=1, random_state=0).fit(X)
    >>> imputer.transform([[18.2, np.nan]]).round(1)
    array([[18.2, 17.4]])
    """

    # What learns, given cells and all options; a subclass may learn another kind of network.
    _learner: Callable[..., LearnedMixture] = staticmethod(learn_mixture)
    _complaint = (
        "the fit still moved in its last step: the model can be used, but what it fills where "
        "little was measured depends on where it stopped; another seed shows how much"
    )

    def __init__(  # noqa: PLR0913 - every option of the model
        self,
        n_components: int | str = "auto",
        *,
        shrinkage: float | str = "auto",
        arcs: str = "none",
        gaps: str = "ignorable",
        margins: bool = True,
        n_fits: int = 8,
        refine: str | None = "auto",
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
        self.refine = refine
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(  # noqa: PLR0913 - all that is known of the cells and columns
        self,
        X: Any,
        y: Any = None,
        *,
        lower: Any = None,
        upper: Any = None,
        errors: Any = None,
        fluxes: Any = None,
    ) -> Self:
        """Learn from a table with gaps, limits and errors.

        Parameters
        ----------
        X : array of shape (n, p), or a table
            NaN, null and masked cells are gaps. Columns without any value are left out, with a
            warning, here and in all results.
        y : ignored
        lower, upper : arrays of shape (n, p), optional
            Limits of missing values: the value is larger than `lower`, as the magnitude of a
            source that was not detected, or smaller than `upper`, as its flux. NaN: none.
        errors : array of shape (n, p), optional
            Standard deviations of the errors of seen values, and the widths of limits. The
            distribution learned is that of the values without errors. NaN or 0: exact.

            Limits and errors may also be columns of `X`, as ``errors={"V": "V_err"}`` says; these
            are no features, and are found again in the tables to fill.
        fluxes : sequence of bool or None, optional
            Whether each column is a flux; None if that is not known. The map of positive fluxes is
            a logarithm where it is not one of ranks; with limits or errors, so is that of positive
            columns of unknown kind that have upper limits or span more than a decade.
        """
        given = {"lower": lower, "upper": upper, "errors": errors}
        X, given = with_known(self, X, given, reset=True)
        numbers = self._first_rows(X)
        known = {kind: part_of(array, self.kept_) for kind, array in given.items()}
        cells = Cells(numbers, **known)
        self.given_ = given_columns(cells)
        self.counts_, self.widths_ = count_known(cells), widths_of_limits(cells)
        if fluxes is not None:
            fluxes = np.asarray(fluxes, object)[self.kept_].tolist()
        self._learn(cells, fluxes)
        return self

    def _learn(self, cells: Cells, fluxes: Any) -> None:
        options = self.get_params(deep=False)
        refine = check_refine(options.pop("refine", None))
        rng = as_generator(options.pop("random_state"))
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else names[self.kept_]
        warn_if_small(cells.values, names, stacklevel=3)
        warn_of_sentinels(cells.values, names, stacklevel=3)
        learned = self._learner(cells, names, fluxes=fluxes, rng=rng, **options)
        self.network_, self.plan_ = learned.network, learned.plan
        self.n_iter_, self.converged_ = learned.n_iter, learned.converged
        if not learned.converged:
            warnings.warn(self._complaint, ConvergenceWarning, stacklevel=3)
        found = learn_refinement(learned.network, learned.plan, cells, rng, refine=refine)
        self.refinement_: Refinement | None = found.refinement
        self.fill_quality_: FillQuality | None = found.quality

    @property
    def _filler(self) -> MixtureNetwork | RefinedNetwork:
        return refined(self.network_, self.refinement_)

    def transform(
        self, X: Any, *, lower: Any = None, upper: Any = None, errors: Any = None
    ) -> Array:
        """Fill the gaps of new rows with their posterior means; seen cells stay bit for bit.

        Limits and errors of the new rows are as in `fit`; `MissingLimitsWarning` where `fit` was
        given some and this call is not.
        """
        cells = self._cells(X, lower=lower, upper=upper, errors=errors)
        lost = np.isnan(cells.values)
        return self._filler.posterior(cells).mean if lost.any() else cells.values.copy()

    def fit_transform(self, X: Any, y: Any = None, **known: Any) -> Array:
        """Learn from a table and fill its gaps; takes `lower`, `upper`, `errors` and `fluxes`."""
        self.fit(X, y, **known)
        known.pop("fluxes", None)
        return self.transform(X, **known)

    def _cells(self, X: Any, **known: Any) -> Cells:
        """Check new rows and what is known of them; TypeError for what is not of `Cells`."""
        check_is_fitted(self)
        X, known = with_known(self, X, known, reset=False)
        numbers = self._new_rows(X)
        cells = Cells(numbers, **{name: part_of(a, self.kept_) for name, a in known.items()})
        warn_of_missing(self.given_, cells, known)
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else names[self.kept_]
        warn_of_sentinels(numbers, names, self.network_, stacklevel=3)
        return cells

    def posterior(self, X: Any, *, denoise: bool = False, **known: Any) -> Posterior:
        """Mean and standard deviation of each cell; a seen cell is itself, with 0.

        With `denoise`, a cell seen with an error gives what it would be without it. Takes `lower`,
        `upper` and `errors`, as do all methods below.
        """
        return self._filler.posterior(self._cells(X, **known), denoise=denoise)

    def quantiles(self, X: Any, levels: Sequence[float], **known: Any) -> Array:
        """Quantiles of each cell, of shape (len(levels), n, p); a seen cell is itself."""
        return self._filler.quantiles(self._cells(X, **known), levels)

    def interval(self, X: Any, level: float = 0.9, **known: Any) -> tuple[Array, Array]:
        """Central interval of each cell that holds the share `level` of its distribution."""
        low, high = self.quantiles(X, [0.5 - level / 2, 0.5 + level / 2], **known)
        return low, high

    def sample(self, X: Any, n_draws: int = 1, *, random_state: Any = None, **known: Any) -> Array:
        """Draw completed tables, of shape (n_draws, n, p); the gaps of a row are drawn jointly."""
        return self._filler.draws(self._cells(X, **known), n_draws, as_generator(random_state))

    def score_samples(self, X: Any, **known: Any) -> Array:
        """Log-likelihood of each row's seen cells and limits, per unit of normal score."""
        return self.network_.loglik(self._cells(X, **known))
