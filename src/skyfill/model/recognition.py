"""Rows of the training set, recognized when a model is used: their class is no news to it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Hashes = NDArray[np.uint64]
# Rows with fewer values may be equal by chance.
LEAST_VALUES = 2
# Constants of splitmix64 (Steele et al. 2014).
_STEP, _MIX, _MIX_AGAIN = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def hash_rows(X: Array) -> Hashes:
    """Hash rows of numbers in single precision, as tables may store them; gaps are equal.

    Examples
    --------
    >>> one, same, other = hash_rows(np.array([[14.2, np.nan], [14.2, np.nan], [14.3, np.nan]]))
    >>> one == same, one == other
    (np.True_, np.False_)
    """
    with np.errstate(over="ignore"):
        single = X.astype(np.float32) + np.float32(0)  # 0 and -0 are one number
    single[np.isnan(single)] = np.nan
    bits = single.view(np.uint32).astype(np.uint64)
    found = np.zeros(len(X), np.uint64)
    for column in bits.T:
        found = _mixed(found + column + np.uint64(_STEP))
    return found


def _mixed(words: Hashes) -> Hashes:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(_MIX)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(_MIX_AGAIN)
    return words ^ (words >> np.uint64(31))


def known_rows(X: Array) -> Hashes:
    """Return the hashes of rows to recognize, in increasing order."""
    return np.unique(hash_rows(X[_is_telling(X)]))


def are_known(X: Array, hashes: Hashes) -> NDArray[np.bool_]:
    """Mark rows that `known_rows` was given."""
    if not len(hashes):
        return np.zeros(len(X), bool)
    mine = hash_rows(X)
    at = np.minimum(np.searchsorted(hashes, mine), len(hashes) - 1)
    return np.asarray((hashes[at] == mine) & _is_telling(X))


def _is_telling(X: Array) -> NDArray[np.bool_]:
    return np.asarray((~np.isnan(X)).sum(axis=1) >= LEAST_VALUES)
