"""The measurements of a star, cleaned: one curve per band, in order of time."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
ComplexArray = NDArray[np.complex64]
T = TypeVar("T")
# Standard deviations of a normal distribution per median absolute deviation.
MAD_TO_SIGMA = 1.4826


class UncomputableError(ArithmeticError):
    """A feature is undefined for a curve; caught where features are computed."""


class Shared:
    """Caches what several features need, computed when the first one asks for it."""

    _memo: dict[Callable[..., Any], Any]

    def once(self, make: "Callable[[Any], T]") -> T:
        """Return ``make(self)``, computed at most once.

        Examples
        --------
        >>> curve = Curve(np.arange(3.0), np.array([1.0, 2.0, 4.0]), np.ones(3))
        >>> curve.once(len) is curve.once(len)
        True
        """
        if make not in self._memo:
            self._memo[make] = make(self)
        result: T = self._memo[make]
        return result


@dataclass(frozen=True)
class Curve(Shared):
    """One band of a star.

    Parameters
    ----------
    time : array of shape (n,)
        Days, strictly ascending.
    value : array of shape (n,)
        Magnitudes or fluxes, finite.
    error : array of shape (n,)
        Standard errors of the values, positive; all ones where none were given.
    has_errors : bool
        Whether errors were given.
    """

    time: Array
    value: Array
    error: Array
    has_errors: bool = True
    _memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True)
class Star(Shared):
    """All bands of a star.

    Parameters
    ----------
    curves : tuple of Curve
        One for each band of the collection, in the order of the bands; some may be empty.
    is_flux : bool
        Whether the values are fluxes, which increase as the star brightens.
    """

    curves: tuple[Curve, ...]
    is_flux: bool = False
    _memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        """Count the points of all bands."""
        return sum(map(len, self.curves))


def sorted_values(curve: Curve) -> Array:
    """Return the values in ascending order."""
    return np.sort(curve.value)


class EpochCounts(NamedTuple):
    """Numbers of epochs of a band that are used, and dropped for each reason."""

    used: int
    bad: int
    duplicated: int
    clipped: int


def clean_band(
    time: Array, value: Array, error: Array | None, *, clip: float | None = None
) -> tuple[Curve, EpochCounts]:
    """Drop the unusable epochs of a band, and count them.

    Parameters
    ----------
    time, value : arrays of shape (n,)
        In any order; NaN where missing.
    error : array of shape (n,), optional
        Standard errors.
    clip : float, optional
        Drop values farther than this many robust standard deviations from the median.

    Returns
    -------
    curve : Curve
        What is left, in order of time.
    counts : EpochCounts
        ``bad``: a number is not finite or an error is not positive; ``duplicated``: another epoch
        has the same time and no larger error; ``clipped``: beyond `clip`.

    Examples
    --------
    >>> time, error = np.array([2.0, 1.0, 1.0, 3.0]), np.array([0.1, 0.2, 0.1, 0.0])
    >>> curve, counts = clean_band(time, np.array([15.0, 16.0, 17.0, 18.0]), error)
    >>> curve.value, counts
    (array([17., 15.]), EpochCounts(used=2, bad=1, duplicated=1, clipped=0))
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
    return curve, EpochCounts(len(kept), n_bad, n_same, len(first) - len(kept))


def within(value: Array, clip: float) -> np.ndarray:
    """Select values within `clip` robust standard deviations of the median."""
    if not len(value):
        return np.zeros(0, bool)
    away = np.abs(value - np.median(value))
    limit = clip * MAD_TO_SIGMA * np.median(away)
    # If more than half the values are equal, their spread says nothing about the others.
    return np.ones(len(value), bool) if limit == 0 else away <= limit


@njit(cache=True, nogil=True)
def first_of_equals(ordered):  # type: ignore[no-untyped-def]
    """Select ordered values that differ from the one before."""
    first = np.ones(len(ordered), np.bool_)
    for i in range(1, len(ordered)):
        first[i] = ordered[i] != ordered[i - 1]
    return first


@njit(cache=True, nogil=True)
def find_clean(start, time, value, error, is_clean):  # type: ignore[no-untyped-def]
    """Mark the bands of which all epochs are usable, and in order of time."""
    for b in range(len(is_clean)):
        last, good = -np.inf, True
        for i in range(start[b], start[b + 1]):
            usable = np.isfinite(time[i]) and np.isfinite(value[i]) and np.isfinite(error[i])
            good = good and usable and error[i] > 0 and time[i] > last
            last = time[i]
        is_clean[b] = good
