"""How good a model is, as training itself shows: plain values that are kept with the model.

``classes`` is what `class_quality` says, ``filling`` what `filling_quality` says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.class_quality import BAGS, FOLDS, class_quality
from skyfill.impute.fill_quality import FillQuality
from skyfill.impute.refining import LEAST_CELLS, LEAST_ROWS, MOST_ROWS
from skyfill.network import Cells


def filling_quality(
    names: Sequence[str], cells: Cells, found: FillQuality | None, *, refine: str | None
) -> dict[str, Any]:
    """Say how well hidden cells of a training table were filled, or why that is not known.

    Parameters
    ----------
    names : sequence of str
        The features.
    cells : Cells
        Of the training table.
    found : FillQuality or None
    refine : str or None
        As in `train`: what hides cells.

    Returns
    -------
    dict
        ``features`` with the number of hidden cells, the root mean square error of what was filled,
        that of the column's mean, and the fraction of the true values in 90 % intervals with its
        standard error; ``unmeasured`` says of other features why not, ``not_measured`` of all.
    """
    if found is None:
        few = f"the table has fewer than {LEAST_ROWS} rows" if refine else ""
        alone = "one feature cannot be filled from others" if len(names) < 2 else ""
        none = "no cells are hidden with --refine off, or for one network"
        return {"not_measured": alone or few or none}
    noisy = np.asarray(cells.is_noisy.any(axis=0))
    features, unmeasured = [], {}
    for j, name in enumerate(names):
        n, inside = int(found.cells[j]), float(found.inside[j])
        if not n:
            few = f"fewer than {LEAST_CELLS} values"
            unmeasured[name] = "values with errors" if noisy[j] else few
            continue
        numbers = {
            "error": float(found.error[j]),
            "mean_error": float(found.mean_error[j]),
            "inside_90": inside,
            "inside_90_error": math.sqrt(inside * (1 - inside) / n),
        }
        rounded = {key: float(f"{value:.6g}") for key, value in numbers.items()}
        features.append({"name": name, "cells": n, **rounded})
    return {"rows": min(len(cells), MOST_ROWS), "features": features, "unmeasured": unmeasured}


def quality_of_classes(fitted: Any, texts: NDArray[Any], label: str | None) -> dict[str, Any]:
    """Say how good the classes of a fitted `CatalogClassifier` are, from its own folds.

    Parameters
    ----------
    fitted : CatalogClassifier
    texts : array of shape (n,)
        Class of each row, None without one.
    label : str or None
        Name of their column.
    """
    known = texts[texts != None]  # noqa: E711 - of each row
    classes = fitted.scorer_.classes
    place = {name: c for c, name in enumerate(classes)}
    truth = np.array([place[text] for text in known], np.intp)
    apart, fractions = BAGS if fitted.method == "paper" else FOLDS, fitted.scorer_.shares
    found = class_quality(fitted.out_of_fold_, truth, classes, apart=apart, fractions=fractions)
    if not found["objects"]:
        found["not_measured"] = "no folds are made with --no-calibration"
    return {"label": label, **found}


def check_quality(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model file says of its quality; ValueError where that is no such thing."""
    if not isinstance(facts, dict) or not all(isinstance(part, dict) for part in facts.values()):
        raise ValueError("the quality of the model must be an object of objects")
    for value in _numbers(facts):
        if not math.isfinite(value):
            raise ValueError("the quality of the model must be finite numbers")
    return facts


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for part in value for number in _numbers(part)]
    return [value] if isinstance(value, float) else []
