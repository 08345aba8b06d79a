"""Features that alone give the class away: copies of the label, or set by who set it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog import Table
from skyfill.classify.training_set import label_texts

# Classes of fewer objects are left out; fewest objects of other classes than the most common one.
LEAST_OBJECTS, LEAST_OTHERS = 10, 20
# Objects on the wrong side that a leak may have, as a share of those that chance would give.
WRONG = 0.02


def find_leaks(table: Table, names: Sequence[str], label: str) -> list[str]:
    """Name features whose values follow one another class by class, with hardly an exception.

    Examples
    --------
    >>> V, kinds = np.arange(100.0), ["a", "b"] * 50
    >>> code = np.where(np.arange(100) % 2, 2.001, 1.002)
    >>> table = Table.from_columns({"V": V, "code": code, "kind": kinds})
    >>> find_leaks(table, ["V", "code"], "kind")
    ['code']
    """
    texts = np.array([text or "" for text in label_texts(table.column(label).to_pylist())])
    kinds, codes, counts = np.unique(texts, return_inverse=True, return_counts=True)
    common = (counts[codes] >= LEAST_OBJECTS) & (texts != "")
    X = table.numbers(*names)
    return [n for n, x in zip(names, X.T, strict=True) if _tells(x[common], codes[common])]


def _tells(values: NDArray[np.float64], codes: NDArray[np.intp]) -> bool:
    seen = ~np.isnan(values)
    _, kinds = np.unique(codes[seen], return_inverse=True)
    counts = np.bincount(kinds)
    if counts.size < 2 or counts.sum() - counts.max() < LEAST_OTHERS:
        return False
    shares = counts / counts.sum()
    by_chance = counts.sum() * (1 - (shares**2).sum())
    _, place = np.unique(values[seen], return_inverse=True)
    table = np.zeros((place.max() + 1, counts.size))
    np.add.at(table, (place, kinds), 1)
    best = table.argmax(axis=1)
    wrong = table.sum() - table.max(axis=1).sum()
    changes = int((np.diff(best) != 0).sum()) - (counts.size - 1)
    return bool(wrong + max(changes, 0) <= WRONG * by_chance)
