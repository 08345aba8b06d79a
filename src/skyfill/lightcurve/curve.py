"""A star's measurements as the features see them: clean, in order of time, one curve per band."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from skyfill.lightcurve._array import Array

T = TypeVar("T")


class UncomputableError(ArithmeticError):
    """A feature does not exist for a curve; caught where features are computed."""


class Shared:
    """Remembers what several features need, so that it is computed when the first asks for it."""

    _memo: dict[Callable[..., Any], Any]

    def once(self, make: "Callable[[Any], T]") -> T:
        """Give ``make(self)``, computed at most once.

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
        Whether the values are fluxes, which grow as the star brightens.
    """

    curves: tuple[Curve, ...]
    is_flux: bool = False
    _memo: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        """Count the points of all bands."""
        return sum(map(len, self.curves))


def sorted_values(curve: Curve) -> Array:
    """Give the values in ascending order."""
    return np.sort(curve.value)
