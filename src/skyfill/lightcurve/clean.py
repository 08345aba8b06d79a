"""Bad epochs dropped and counted: what is left is in order of time, finite, one value per time."""

from typing import NamedTuple

import numpy as np
from numba import njit

from skyfill.lightcurve._array import Array
from skyfill.lightcurve.curve import Curve

# Standard deviations of a normal distribution per median absolute deviation.
MAD_TO_SIGMA = 1.4826


class Counts(NamedTuple):
    """Epochs of a band that are used, and those that were dropped, by reason."""

    used: int
    bad: int
    duplicated: int
    clipped: int


def clean_band(
    time: Array, value: Array, error: Array | None, *, clip: float | None = None
) -> tuple[Curve, Counts]:
    """Drop the epochs of a band that cannot be used, and say how many there were.

    Parameters
    ----------
    time, value : arrays of shape (n,)
        In any order; NaN where a number is missing.
    error : array of shape (n,), optional
        Standard errors.
    clip : float, optional
        Drop values further than this many robust standard deviations from the median.

    Returns
    -------
    curve : Curve
        What is left, in order of time.
    counts : Counts
        ``bad``: a number is not finite or an error not positive; ``duplicated``: another epoch has
        the same time and an error as small; ``clipped``: beyond `clip`.

    Examples
    --------
    >>> time, error = np.array([2.0, 1.0, 1.0, 3.0]), np.array([0.1, 0.2, 0.1, 0.0])
    >>> curve, counts = clean_band(time, np.array([15.0, 16.0, 17.0, 18.0]), error)
    >>> curve.value, counts
    (array([17., 15.]), Counts(used=2, bad=1, duplicated=1, clipped=0))
    """
    has_errors = error is not None
    errors = np.ones(len(time)) if error is None else error
    good = np.isfinite(time) & np.isfinite(value) & np.isfinite(errors) & (errors > 0)
    order = np.flatnonzero(good)
    order = order[np.lexsort((errors[order], time[order]))]
    first = order[first_of_equals(time[order])]
    kept = first if clip is None else first[within(value[first], clip)]
    curve = Curve(time[kept], value[kept], errors[kept], has_errors)
    n_bad, n_same = len(time) - len(order), len(order) - len(first)
    return curve, Counts(len(kept), n_bad, n_same, len(first) - len(kept))


def within(value: Array, clip: float) -> np.ndarray:
    """Tell which values lie within `clip` robust standard deviations of the median."""
    if not len(value):
        return np.zeros(0, bool)
    away = np.abs(value - np.median(value))
    limit = clip * MAD_TO_SIGMA * np.median(away)
    # More than half the values are equal: their spread says nothing about the others.
    return np.ones(len(value), bool) if limit == 0 else away <= limit


@njit(cache=True, nogil=True)
def first_of_equals(ordered):  # type: ignore[no-untyped-def]
    """Tell which of the ordered values differ from the one before."""
    first = np.ones(len(ordered), np.bool_)
    for i in range(1, len(ordered)):
        first[i] = ordered[i] != ordered[i - 1]
    return first
