"""The classifier of skyfill: gaps filled by a network, trees on several views of each object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from skyfill.classify.ensemble import METHODS, Training, fit_scorer, recipes_for
from skyfill.classify.field import shares_among
from skyfill.classify.gap_draws import AUTO, N_DRAWS, Draws
from skyfill.classify.prior import as_prior, shift_prior
from skyfill.classify.scorer import Scores
from skyfill.classify.sklearn_trees import Growth
from skyfill.classify.training_set import (
    Labels,
    class_weights,
    read_labels,
    unmasked_labels,
    weighed,
)
from skyfill.classify.views import VIEWS, Array
from skyfill.errors import DataError
from skyfill.impute import NetworkImputer, OneNetworkImputer
from skyfill.impute._inputs import (
    given_columns,
    learnable_columns,
    part_of,
    validated,
    warn_of_missing,
    warn_of_sentinels,
    with_known,
)
from skyfill.impute.base import as_generator
from skyfill.network import Cells


class CatalogClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classify objects with gaps.

    A `NetworkImputer` learns the features of all rows, labelled or not, despite their gaps.
    A forest and boostings then learn the classes from several views of each object: its values
    with their gaps, the filled ones, and contrasts of these, such as colors; with "both", densities
    of the classes have a vote where held-out objects say so. The same trees, grown
    once more without each fold of the rows, give every training row a probability that does not
    depend on its label; the classifier is calibrated on these.

    Parameters
    ----------
    method : {"both", "forest", "boosting", "paper"}
        Trees to grow. "paper" is the plain pipeline of Pichara & Protopapas (2013): bagged
        unpruned trees on values filled by the posterior means of one network, the share of votes
        as probability, never calibrated.
    views : sequence of str, optional
        Views from which all trees of the method learn: "raw" (values with gaps), "differences"
        (these, and those of columns with a scale in common, as colors), "filled", "indicators"
        (filled, and where the gaps are), "gaps" (raw and filled), "contrasts" (these and pairs of
        columns), "components" (these and the responsibilities). By default those that performed
        best.
    n_trees : int
        Trees of each forest.
    n_rounds : int
        Rounds of each boosting.
    max_features : int, float or "sqrt"
        Columns tried at each split of a forest.
    class_weight : dict, "balanced" or None
        Weight of each class; the probabilities then refer to the weighted shares.
    prior : dict or array of shape (classes,), "estimate", "field", or None
        Shares of the classes in the field, where they are not those of the training set;
        "estimate" finds them from the rows to classify (`estimate_shares`), "field" from those
        without a label in `fit`, which are then taken for a sample of the field.
    calibrate : bool
        Calibrate on out-of-fold probabilities.
    n_draws : int or "auto"
        Joint draws of the gaps that `predict_proba` averages over. 0 is fast, and as good where
        gaps are like those of the training set; "auto" takes 8 or 32 for rows with other gaps.
    n_folds : int
        Folds of the calibration.
    imputer : NetworkImputer, optional
        How to learn the features; by default ``NetworkImputer(n_fits=3, gaps="auto",
        refine=None)``: more fits take longer for every row and hardly improve the classes, which
        do not use its forests. For "paper", ``OneNetworkImputer()``.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : array of shape (classes,)
    imputer_ : NetworkImputer
        The fitted imputer.
    scorer_ : Scorer
        The part that classifies; it is saved in a model file.
    out_of_fold_ : array of shape (labelled rows, classes)
        Probabilities of the training rows from trees grown, and calibrated, without their labels;
        NaN for the only row of a class, and for all rows without calibration. For "paper", votes of
        the trees that did not learn from the row (out of bag).
    field_shares_ : FieldShares
        With ``prior="field"``: the estimated shares, with limits.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = np.repeat(["QSO", "RRL"], 60)
    >>> X = rng.normal(size=(120, 3)) + 3 * (y == "RRL")[:, None]
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> imputer = NetworkImputer(2, n_fits=1)
    >>> classifier = CatalogClassifier("forest", n_trees=20, imputer=imputer, random_state=0)
    >>> classifier.fit(X, y).predict([[3.1, np.nan, 2.9], [np.nan, 0.1, 0.2]])
    array(['RRL', 'QSO'], dtype='<U3')
    """

    # Rows without a label help to learn the features.
    learns_unlabeled = True

    def __init__(  # noqa: PLR0913 - every option of the model
        self,
        method: str = "both",
        *,
        views: Sequence[str] | None = None,
        n_trees: int = 200,
        n_rounds: int = 200,
        max_features: Any = "sqrt",
        class_weight: Any = None,
        prior: Any = None,
        calibrate: bool = True,
        n_draws: Draws = AUTO,
        n_folds: int = 5,
        imputer: NetworkImputer | None = None,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.views = views
        self.n_trees = n_trees
        self.n_rounds = n_rounds
        self.max_features = max_features
        self.class_weight = class_weight
        self.prior = prior
        self.calibrate = calibrate
        self.n_draws = n_draws
        self.n_folds = n_folds
        self.imputer = imputer
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        lower: Any = None,
        upper: Any = None,
        errors: Any = None,
        fluxes: Any = None,
        groups: Any = None,
    ) -> Self:
        """Learn features and classes.

        Parameters
        ----------
        X : array of shape (n, p), or a table
            NaN, null and masked cells are gaps. Columns without any value are left out, with a
            warning.
        y : array of shape (n,)
            Class labels; rows whose label is None, NaN, masked or blank are used by the imputer
            only.
        sample_weight : array of shape (n,), optional
            Weights of the rows for trees and calibration; a row that weighs 0 is used by the
            imputer only, to which all rows are equal.
        groups : array of shape (n,), optional
            Rows of one object have the same value. They are never on both sides of a fold.
        lower, upper, errors : arrays of shape (n, p), optional
            Limits of missing values and errors of seen ones, as in `NetworkImputer.fit`: arrays,
            or the columns of `X` that hold them, as ``errors={"V": "V_err"}``. Trees see a limit
            as a gap; what is filled there respects it.
        fluxes : sequence of bool or None, optional
            Whether each column is a flux, as in `NetworkImputer.fit`.
        """
        self._check_options()
        known: dict[str, Any] = {"lower": lower, "upper": upper, "errors": errors}
        X, known = with_known(self, X, known, reset=True)
        numbers = validated(self, X, reset=True)
        self.kept_ = learnable_columns(numbers, getattr(self, "feature_names_in_", None))
        known = {kind: part_of(array, self.kept_) for kind, array in known.items()}
        X, numbers = (X, numbers) if self.kept_.all() else (numbers[:, self.kept_],) * 2
        labels = self._labels(y, numbers)
        unlabeled, weights = ~labels.known, None
        if self._wants("field") and not unlabeled.any():
            raise DataError('prior="field" needs rows without a label: a sample of the field')
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, numbers, ensure_non_negative=True)
            labels, weights = weighed(labels, weights)
        rng = as_generator(self.random_state)
        training = replace(
            self._training(labels, rng),
            groups=None if groups is None else _codes(groups, numbers)[labels.known],
            weights=weights,
            field=unlabeled if self._wants("field") else None,
        )
        self.classes_ = labels.classes
        cells = Cells(numbers, **known)
        self.given_ = given_columns(cells)
        if fluxes is not None:
            fluxes = np.asarray(fluxes, object)[self.kept_].tolist()
        self.imputer_ = self._fit_imputer(X, rng, **known, fluxes=fluxes)
        fitted = fit_scorer(
            self.imputer_.network_,
            cells,
            labels,
            training=training,
            plan=self.imputer_.plan_,
            rng=rng,
        )
        self.scorer_, self.out_of_fold_ = fitted.scorer, fitted.out_of_fold
        if fitted.field is not None:
            self.field_shares_ = fitted.field
        return self

    def _wants(self, prior: str) -> bool:
        return isinstance(self.prior, str) and self.prior == prior

    def predict_proba(
        self, X: Any, *, lower: Any = None, upper: Any = None, errors: Any = None
    ) -> Array:
        """Return the probability of each of `classes_` for each row.

        Limits and errors of the rows are as in `fit`; likewise in the methods below, and
        `MissingLimitsWarning` where `fit` was given some and a call is not.
        """
        cells = self._new_cells(X, lower=lower, upper=upper, errors=errors)
        P = self.scorer_.probabilities(cells, n_draws=self.n_draws)
        if not self._wants("estimate"):
            return P
        return shift_prior(P, self.scorer_.shares, shares_among(self.scorer_, cells).shares)

    def predict(self, X: Any, **known: Any) -> NDArray[Any]:
        """Return the most probable class of each row; takes `lower`, `upper` and `errors`."""
        check_is_fitted(self)
        return np.asarray(self.classes_[self.predict_proba(X, **known).argmax(axis=1)])

    def score_rows(
        self, X: Any, *, n_draws: int = N_DRAWS, random_state: Any = 0, **known: Any
    ) -> Scores:
        """Return probabilities, entropy, the share of it due to gaps, and outliers.

        Takes `lower`, `upper` and `errors`.
        """
        cells = self._new_cells(X, **known)
        return self.scorer_.score(cells, n_draws=n_draws, rng=as_generator(random_state))

    def _new_cells(self, X: Any, **known: Any) -> Cells:
        check_is_fitted(self)
        X, known = with_known(self, X, known, reset=False)
        numbers = np.asarray(part_of(validated(self, X, reset=False), self.kept_))
        parts = {name: part_of(each, self.kept_) for name, each in known.items()}
        cells = Cells(numbers, **parts)
        warn_of_missing(self.given_, cells, known)
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else names[self.kept_]
        warn_of_sentinels(numbers, names, self.imputer_.network_, stacklevel=3)
        return cells

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_options(self) -> None:
        if self.method not in METHODS:
            raise DataError(f"method must be one of {', '.join(METHODS)}, not {self.method!r}")
        for view in self.views or ():
            if view not in VIEWS:
                raise DataError(f"no view {view!r}; they are {', '.join(VIEWS)}")
        for name, least in (("n_trees", 1), ("n_rounds", 1), ("n_folds", 2)):
            if getattr(self, name) < least:
                raise DataError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if self.n_draws != AUTO and (isinstance(self.n_draws, str) or self.n_draws < 0):
            raise DataError(f'n_draws must be a number from 0 or "auto", not {self.n_draws!r}')
        if isinstance(self.prior, str) and self.prior not in ("estimate", "field"):
            raise DataError(
                f'prior must be shares, "estimate", "field" or None, not {self.prior!r}'
            )

    def _labels(self, y: Any, numbers: Array) -> Labels:
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        flat = y if hasattr(y, "to_pylist") else column_or_1d(unmasked_labels(y), warn=True)
        check_consistent_length(numbers, flat)
        return read_labels(flat)

    def _fit_imputer(self, X: Any, rng: np.random.Generator, **known: Any) -> NetworkImputer:
        paper = self.method == "paper"
        mixtures = NetworkImputer(n_fits=3, gaps="auto", refine=None)
        usual = OneNetworkImputer() if paper else mixtures
        imputer = usual if self.imputer is None else clone(self.imputer)
        if imputer.random_state is None:
            imputer.set_params(random_state=int(rng.integers(2**31)))
        imputer.fit(X, **known)
        return imputer

    def _training(self, labels: Labels, rng: np.random.Generator) -> Training:
        plain = self.method == "paper" or not self.calibrate
        growth = Growth(
            self.n_trees,
            self.n_rounds,
            self.max_features,
            class_weights(self.class_weight, labels),
            int(rng.integers(2**31)),
        )
        shifted = self.prior is not None and not isinstance(self.prior, str)
        prior = as_prior(self.prior, labels.classes) if shifted else None
        recipes = recipes_for(self.method, self.views)
        densities = self.method == "both" and self.views is None
        folds, bagged = 0 if plain else self.n_folds, self.method == "paper"
        return Training(recipes, growth, folds, prior, densities=densities, bagged=bagged)


def _codes(groups: Any, numbers: Array) -> NDArray[np.intp]:
    check_consistent_length(numbers, groups)
    return np.asarray(np.unique(np.asarray(groups), return_inverse=True)[1].ravel())
