"""Folds in which every class has its share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.errors import DataError

Codes = NDArray[np.int64]
# The code of an object without a label.
UNKNOWN = -1


def as_codes(labels: Iterable[Any]) -> tuple[Codes, tuple[str, ...]]:
    """Give the classes numbers by name; an object without a label (None, NaN, blank) gets -1.

    Examples
    --------
    >>> as_codes(["RRL", None, "QSO", "RRL"])
    (array([ 1, -1,  0,  1]), ('QSO', 'RRL'))
    """
    words = ["" if _is_missing(label) else str(label) for label in labels]
    classes = tuple(sorted({word for word in words if word}))
    place = {word: code for code, word in enumerate(classes)}
    return np.array([place.get(word, UNKNOWN) for word in words], dtype=np.int64), classes


def _is_missing(label: Any) -> bool:
    nothing = label is None or (isinstance(label, float | np.floating) and np.isnan(label))
    return nothing or not str(label).strip()


def deal_folds(codes: Codes, folds: int, rng: np.random.Generator) -> Codes:
    """Deal the objects of each class to folds in turn, in random order; -1 without a label.

    Folds differ by at most one object, also within each class.

    Examples
    --------
    >>> dealt = deal_folds(np.array([0] * 6 + [1] * 4), 2, np.random.default_rng(0))
    >>> np.bincount(dealt).tolist(), np.bincount(dealt[6:]).tolist()
    ([5, 5], [2, 2])
    """
    known = np.flatnonzero(codes != UNKNOWN)
    order = known[np.lexsort((rng.random(len(known)), codes[known]))]
    dealt = np.full(len(codes), UNKNOWN, dtype=np.int64)
    dealt[order] = np.arange(len(order)) % folds
    return dealt


def check_foldable(codes: Codes, classes: tuple[str, ...], folds: int) -> None:
    """Refuse labels from which a fold would have nothing to learn."""
    if len(classes) < 2:
        found = f"only {classes[0]!r}" if classes else "none"
        raise DataError(f"two classes or more are needed, the labels name {found}")
    counts = np.bincount(codes[codes != UNKNOWN])
    for name, count in zip(classes, counts, strict=True):
        if count < 2:
            raise DataError(
                f"class {name!r} has 1 object: without it nothing is left to learn the class "
                "from; merge the class with another or drop it"
            )
    if not 2 <= folds <= counts.sum():
        raise DataError(
            f"{folds} folds for {counts.sum()} labelled objects; ask for 2 to {counts.sum()}"
        )
