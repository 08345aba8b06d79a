"""Which gaps a classifier knows from its training set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
# Gaps that fewer training objects have are not known: trees hardly learned what they mean.
LEAST_SHARE = 0.01


class KnownGaps(NamedTuple):
    """The gaps of a training set.

    Attributes
    ----------
    columns : array of shape (p,)
        Share of its objects that lack each column.
    counts : array of shape (p + 1,)
        Share of its objects that have at least 0, 1, ... p gaps.
    """

    columns: Array
    counts: Array

    def unlike(self, X: Array) -> NDArray[np.bool_]:
        """Mark rows that lack a column, or as many columns, as hardly any training object does.

        Rows without any value are not marked: of these, only the shares of the classes are known.

        Examples
        --------
        >>> known = learn_gaps(np.array([[1.0, 2.0], [1.0, np.nan]]))
        >>> known.unlike(np.array([[np.nan, 2.0], [1.0, np.nan], [np.nan, np.nan]]))
        array([ True, False, False])
        """
        lost = np.isnan(X)
        new = lost[:, self.columns < LEAST_SHARE].any(axis=1)
        new |= (self.counts < LEAST_SHARE)[lost.sum(axis=1)]
        return np.asarray(new & ~lost.all(axis=1))


def learn_gaps(X: Array) -> KnownGaps:
    """Count the gaps of training objects.

    Examples
    --------
    >>> learn_gaps(np.array([[1.0, 2.0], [1.0, np.nan]]))
    KnownGaps(columns=array([0. , 0.5]), counts=array([1. , 0.5, 0. ]))
    """
    lost = np.isnan(X)
    exactly = np.bincount(lost.sum(axis=1), minlength=X.shape[1] + 1)
    return KnownGaps(lost.mean(axis=0), exactly[::-1].cumsum()[::-1] / len(X))


def gap_arrays(known: KnownGaps | None, prefix: str) -> dict[str, Array]:
    """Return the arrays for a model file, with names that start with a prefix."""
    return {} if known is None else {prefix + k: array for k, array in known._asdict().items()}


def read_gaps(arrays: Mapping[str, NDArray[Any]], prefix: str) -> KnownGaps | None:
    """Build from `gap_arrays`; None where there are none."""
    if f"{prefix}columns" not in arrays:
        return None
    return KnownGaps(*(arrays[prefix + name] for name in KnownGaps._fields))


def check_gaps(known: KnownGaps | None, p: int) -> None:
    """Raise ValueError where the gaps are not those of a training set with p columns."""
    if known is None:
        return
    if known.columns.shape != (p,) or known.counts.shape != (p + 1,):
        raise ValueError("the gaps of the training set have the wrong shape")
    if not all(((part >= 0) & (part <= 1)).all() for part in known):
        raise ValueError("the gaps of the training set must be shares")
    if not (np.diff(known.counts) <= 0).all():
        raise ValueError("the shares of objects with more gaps must not rise")
