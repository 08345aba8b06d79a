"""The estimators with files of their own: what they have learned is what a model holds."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skyfill.catalog import Role, Schema
from skyfill.classify import classifier
from skyfill.errors import ModelError
from skyfill.impute import network_imputer, one_network_imputer
from skyfill.model import load_model, save_model
from skyfill.model.applying import scorer_of
from skyfill.model.pipeline import SIDES, CellCounts, Detection, Feature, Model

Fitted = TypeVar("Fitted")


class _Kept:
    """What lets a fitted estimator be written, and read again."""

    def save(self, path: str | PathLike[str]) -> None:
        """Write what was learned, for `load`, `load_model` and all commands.

        Features have no units there; columns that were named as limits or errors are found again.
        """
        save_model(model_of(self), Path(path))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read what was learned, by an estimator or by ``skyfill train``; classes are text.

        Options of the fit, such as `n_fits`, are not in the file, and have their defaults.
        """
        return with_fit(cls(), load_model(Path(path)))


class NetworkImputer(_Kept, network_imputer.NetworkImputer):  # noqa: D101 - below
    __doc__ = network_imputer.NetworkImputer.__doc__


class OneNetworkImputer(_Kept, one_network_imputer.OneNetworkImputer):  # noqa: D101 - below
    __doc__ = one_network_imputer.OneNetworkImputer.__doc__


class CatalogClassifier(_Kept, classifier.CatalogClassifier):  # noqa: D101 - below
    __doc__ = classifier.CatalogClassifier.__doc__


def model_of(estimator: Any) -> Model:
    """Return what a fitted imputer or classifier has learned.

    Limits and errors are those that tables state in columns of these roles; columns that the
    estimator was told by name have them.
    """
    check_is_fitted(estimator)
    scorer, imputer = getattr(estimator, "scorer_", None), getattr(estimator, "imputer_", estimator)
    network, given = imputer.network_, estimator.given_
    detections = []
    for j, counts in enumerate(imputer.counts_.T.tolist()):
        sides = [side for side in SIDES if side in given and given[side][j]]
        if len(sides) > 1:
            raise ModelError(
                f"{network.names[j]}: has lower and upper limits, and a model file holds one side; "
                "fit without one of them"
            )
        has_errors = "errors" in given and bool(given["errors"][j])
        side = sides[0] if sides else None
        width = float(imputer.widths_[j])
        detections.append(Detection(side, None, width, has_errors, CellCounts(*counts)))
    is_plain = not any(each.side or each.errors for each in detections)
    roles = {"errors": Role.ERROR, "lower": Role.LIMIT, "upper": Role.LIMIT}
    declared = {
        str(column): {"role": str(roles[kind]), "of": str(feature)}
        for kind, columns in estimator.columns_.items()
        for feature, column in columns.items()
    }
    return Model(
        tuple(map(Feature, network.names)),
        network,
        {"command": f"{type(estimator).__name__}.save"},
        scorer=scorer,
        detections=() if is_plain else tuple(detections),
        declared=Schema.from_dict(declared),
        refinement=getattr(imputer, "refinement_", None),
    )


def with_fit(estimator: Fitted, model: Model) -> Fitted:
    """Give a new imputer or classifier what a model has learned."""
    imputer: Any = NetworkImputer() if is_classifier(estimator) else estimator
    detections = model.detections or (Detection(),) * len(model.names)
    given = {kind: np.array([each.side == kind for each in detections]) for kind in SIDES}
    given["errors"] = np.array([each.errors for each in detections])
    columns: dict[str, dict[str, str]] = {}
    for column, facts in model.declared.to_dict().items():
        if facts.get("of") in model.names:
            which = model.names.index(facts["of"])
            kinds = ["errors"] if facts["role"] == Role.ERROR else [*SIDES]
            for kind in kinds:
                if given[kind][which]:
                    columns.setdefault(kind, {})[facts["of"]] = column
    learned: dict[str, Any] = {
        "given_": {kind: marks for kind, marks in given.items() if marks.any()},
        "counts_": np.array([each.counts for each in detections]).T,
        "widths_": np.array([each.width for each in detections]),
        "columns_": columns,
        "kept_": np.ones(len(model.names), bool),
        "n_features_in_": len(model.names),
    }
    if model.names != tuple(f"x{j}" for j in range(len(model.names))):
        learned["feature_names_in_"] = np.array(model.names, dtype=object)
    fitted = {"network_": model.network, "refinement_": model.refinement}
    vars(imputer).update(learned | fitted)
    if imputer is not estimator:
        scorer = scorer_of(model)
        learned |= {"imputer_": imputer, "scorer_": scorer, "classes_": np.array(scorer.classes)}
        vars(estimator).update(learned)
    return estimator
