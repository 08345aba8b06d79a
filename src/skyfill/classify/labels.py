"""Class labels at the door: which rows have one, and which classes there are."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skyfill.errors import DataError


class Labels(NamedTuple):
    """Labels of the rows that have one.

    `known` says which rows of the table those are; `codes` are places in `classes`.
    """

    known: NDArray[np.bool_]
    codes: NDArray[np.intp]
    classes: NDArray[Any]


def read_labels(y: Any) -> Labels:
    """Tell known labels from missing ones (None, NaN, empty text).

    Examples
    --------
    >>> labels = read_labels(["RRL", None, "QSO", ""])
    >>> labels.known.tolist(), labels.codes.tolist(), labels.classes.tolist()
    ([True, False, True, False], [1, 0], ['QSO', 'RRL'])
    """
    from sklearn.utils.multiclass import check_classification_targets

    given = np.asarray(_plain(y))
    known = ~_missing(given)
    values = given[known]
    if not len(values):
        raise DataError("no row has a class label; give labels for two classes at least")
    if values.dtype == object:
        values = _of_one_type(values)
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise DataError("Input y contains infinity, which is no class")
    check_classification_targets(values)
    classes, codes = np.unique(values, return_inverse=True)
    if len(classes) < 2:
        raise DataError(
            f"all labels are of one class, {classes[0]!s}: a classifier needs two classes or more"
        )
    return Labels(known, codes.ravel(), classes)


def label_texts(values: Iterable[Any]) -> NDArray[Any]:
    """Give labels as texts without the blanks around them; None where there is none.

    Examples
    --------
    >>> label_texts(["RRL ", None, 3]).tolist()
    ['RRL', None, '3']
    """
    texts = [None if _is_gap(value) else str(value).strip() for value in values]
    return np.array(texts, dtype=object)


def _plain(y: Any) -> Any:
    """Give Arrow arrays as NumPy, nulls as None."""
    return np.asarray(y.to_pylist(), dtype=object) if hasattr(y, "to_pylist") else y


def _missing(y: NDArray[Any]) -> NDArray[np.bool_]:
    if y.dtype == object:
        return np.array([_is_gap(value) for value in y], bool)
    if y.dtype.kind in "US":
        return np.asarray(y == np.zeros(1, y.dtype)[0])
    return np.isnan(y) if y.dtype.kind == "f" else np.zeros(len(y), bool)


def _is_gap(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _of_one_type(values: NDArray[Any]) -> NDArray[Any]:
    """Keep objects of one type as they are; texts and numbers mixed become texts."""
    kinds = {type(value) for value in values}
    if kinds <= {str} or len(kinds) == 1:
        return np.array(values.tolist()) if kinds <= {str} else values
    return np.array([str(value) for value in values])
