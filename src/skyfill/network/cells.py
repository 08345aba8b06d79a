"""What a cell of a table can hold: a value, a value with an error, a limit, or nothing."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.errors import DataError, LimitWarning, shortened
from skyfill.network._array import Array, as_table

_WORDS = ("lower", "upper", "errors")


@dataclass(frozen=True, eq=False)
class Cells:
    """A table of numbers, with what else is known of its cells.

    Parameters
    ----------
    values : array of shape (n, p)
        NaN where nothing was measured.
    lower, upper : arrays of shape (n, p), optional
        Limits of missing values: the value is larger than `lower` (as the magnitude of a source
        fainter than a limit), smaller than `upper` (as its flux), or lies between both. NaN: none.
        They say nothing where a value is seen.
    errors : array of shape (n, p), optional
        Standard deviation of the error of a seen value. For a limit it is the width over which the
        chance of a detection falls. NaN or 0: exact.
    keys : array of shape (n,), optional
        64-bit numbers from which the random numbers of the rows follow (`random_keys.py`).

    Examples
    --------
    Two stars in B and K; the second was not detected in K down to 16.2 mag.

    >>> cells = Cells([[17.1, 15.0], [19.5, np.nan]], lower=[[np.nan] * 2, [np.nan, 16.2]])
    >>> len(cells), cells.is_plain, cells.is_limited.tolist()
    (2, False, [[False, False], [False, True]])
    """

    values: Array
    lower: Array | None = None
    upper: Array | None = None
    errors: Array | None = None
    keys: NDArray[np.uint64] | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        values = as_table(self.values)
        object.__setattr__(self, "values", values)
        for name in _WORDS:
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _beside(name, given, values))
        self._check()

    def _check(self) -> None:
        if self.errors is not None and (self.errors < 0).any():
            row, column = np.argwhere(self.errors < 0)[0]
            raise DataError(f"errors must not be negative, as in row {row}, column {column}")
        if self.lower is not None and self.upper is not None:
            wrong = np.argwhere((self.lower >= self.upper) & np.isnan(self.values))
            if len(wrong):
                row, column = wrong[0]
                raise DataError(
                    f"row {row}, column {column}: the lower limit {self.lower[row, column]:g} is "
                    f"not below the upper limit {self.upper[row, column]:g}"
                )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def is_plain(self) -> bool:
        """Whether there are values and gaps alone."""
        return self.lower is None and self.upper is None and self.errors is None

    @property
    def is_limited(self) -> NDArray[np.bool_]:
        """Cells without a value but with a limit."""
        found = np.zeros(self.values.shape, bool)
        for side in (self.lower, self.upper):
            if side is not None:
                found |= ~np.isnan(side)
        return found & np.isnan(self.values)

    @property
    def is_noisy(self) -> NDArray[np.bool_]:
        """Cells with a value and an error."""
        if self.errors is None:
            return np.zeros(self.values.shape, bool)
        return (self.errors > 0) & ~np.isnan(self.values)

    def within(self, filled: Array) -> Array:
        """Keep filled values, of shape (..., n, p), from contradicting hard limits.

        Scores end where a map ends, limits may lie beyond.
        """
        given = (self.values, self.lower, self.upper, self.errors)
        return cast(Array, keep_within(np, given, filled))

    @property
    def centers(self) -> Array:
        """Values, or limits where there is no value: what errors are about."""
        found = self.values
        for side in (self.lower, self.upper):
            found = found if side is None else np.where(np.isnan(found), side, found)
        return found

    def above_zero(self, columns: NDArray[np.bool_], names: Sequence[str]) -> Cells:
        """Drop limits at or below zero of positive quantities, of which they say nothing.

        Such an upper limit cannot hold: there is a `LimitWarning`, and the cell is a gap.

        Examples
        --------
        >>> cells = Cells([[np.nan, 3.0]], lower=[[-1.0, np.nan]])
        >>> cells.above_zero(np.array([True, True]), ["S_3.6", "S_4.5"]).is_plain
        True
        """
        kept = self
        for name in ("lower", "upper") if columns.any() else ():
            side = getattr(self, name)
            wrong = None if side is None else columns & np.isnan(self.values) & (side <= 0)
            if wrong is None or not wrong.any():
                continue
            kept = replace(kept, **{name: np.where(wrong, np.nan, side)})
            if name == "upper":
                columns_wrong = np.flatnonzero(wrong.any(axis=0)).tolist()
                listed = shortened((names[j] for j in columns_wrong), 120)
                warnings.warn(
                    f"upper limits at or below zero cannot hold of what is always positive "
                    f"({listed}); these cells are taken as gaps without a limit",
                    LimitWarning,
                    stacklevel=3,
                )
        return kept

    def logarithms(self, columns: NDArray[np.bool_]) -> Cells:
        """Take the natural logarithms of positive columns; errors become relative ones.

        Examples
        --------
        >>> flux = Cells([[1.0], [np.nan]], upper=[[np.nan], [1.0]], errors=[[0.2], [np.nan]])
        >>> logs = flux.logarithms(np.array([True]))
        >>> logs.values.tolist(), logs.upper.tolist(), logs.errors.tolist()
        ([[0.0], [nan]], [[nan], [0.0]], [[0.2], [nan]])
        """
        if not columns.any():
            return self
        made = {name: getattr(self, name) for name in ("values", *_WORDS)}
        for name in ("values", "lower", "upper"):
            if (given := made[name]) is not None:
                # A limit beside a value may be anything.
                logs = np.log(np.where(columns & ~(given <= 0), given, 1.0))
                made[name] = np.where(columns, logs, given)
        if self.errors is not None:
            center = np.where(columns & (self.centers > 0), self.centers, 1.0)
            made["errors"] = self.errors / center
        return Cells(**made)

    def take(self, rows: Any) -> Cells:
        """Keep some rows: a slice, or an array of places or truth values."""
        # Not by calling the class: all that it checks has been checked.
        kept = object.__new__(Cells)
        for name in ("values", *_WORDS, "keys"):
            given = getattr(self, name)
            part = None if given is None else given[rows]
            if part is not None and name != "keys":
                part.flags.writeable = False  # as `as_table` does: kernels are compiled once
            object.__setattr__(kept, name, part)
        return kept

    def with_keys(self, keys: NDArray[np.uint64]) -> Cells:
        """Set what the random numbers of the rows follow from."""
        found = self.take(slice(None))
        object.__setattr__(found, "keys", keys)
        return found

    def joined(self, other: Cells) -> Cells:
        """Put the rows of another table with the same columns below.

        Examples
        --------
        >>> Cells([[17.1]]).joined(Cells([[np.nan]], lower=[[16.2]])).lower.tolist()
        [[nan], [16.2]]
        """
        beside: dict[str, Array] = {}
        for name in _WORDS:
            parts = [getattr(cells, name) for cells in (self, other)]
            if any(part is not None for part in parts):
                beside[name] = np.concatenate(
                    [
                        np.full(cells.values.shape, np.nan) if part is None else part
                        for cells, part in zip((self, other), parts, strict=True)
                    ]
                )
        return Cells(np.concatenate([self.values, other.values]), *map(beside.get, _WORDS))

    def hide(self, hidden: NDArray[np.bool_]) -> Cells:
        """Make gaps of some cells; their limits, which no longer hold, go as well."""
        beside = {name: getattr(self, name) for name in _WORDS}
        kept = {k: np.where(hidden, np.nan, v) for k, v in beside.items() if v is not None}
        return Cells(np.where(hidden, np.nan, self.values), **kept)

    def measured(self, values: Array) -> Cells:
        """Put values into gaps, as if they had been measured without an error.

        Examples
        --------
        >>> cells = Cells([[17.1, np.nan]], lower=[[np.nan, 16.2]], errors=[[0.1, 0.2]])
        >>> cells.measured(np.array([[17.1, 16.9]])).errors.tolist()
        [[0.1, nan]]
        """
        if self.errors is None:
            return Cells(values, self.lower, self.upper, keys=self.keys)
        is_new = np.isnan(self.values) & ~np.isnan(values)
        errors = np.where(is_new, np.nan, self.errors)
        return Cells(values, self.lower, self.upper, errors, keys=self.keys)


def keep_within(xp: Any, given: tuple[Any, ...], filled: Any) -> Any:
    """Keep filled values from contradicting hard limits.

    `given` are values, lower and upper limits and errors, None for what there is not, as arrays of
    the module `xp`, which is NumPy or has its functions.
    """
    values, lower, upper, errors = given
    if lower is None and upper is None:
        return filled
    hard = xp.isnan(values) if errors is None else xp.isnan(values) & ~(errors > 0)
    # The larger or smaller of two values is the other one where one is NaN.
    for side, keep in ((lower, xp.fmax), (upper, xp.fmin)):
        if side is not None:
            filled = xp.where(hard, keep(filled, side), filled)
    return filled


def _beside(name: str, given: ArrayLike, values: Array) -> Array | None:
    """Check an array that goes with the values; None if it contains nothing."""
    array = as_table(given)
    if array.shape != values.shape:
        raise DataError(f"{name} has the shape {array.shape}, the table {values.shape}")
    if np.isinf(array).any():
        raise DataError(f"{name} must be finite, or NaN where there is none")
    return None if np.isnan(array).all() else array


def as_cells(X: ArrayLike | Cells, n_columns: int | None = None) -> Cells:
    """Take a table of numbers, or cells; check the number of columns."""
    cells = X if isinstance(X, Cells) else Cells(as_table(X))
    as_table(cells.values, n_columns)
    return cells
