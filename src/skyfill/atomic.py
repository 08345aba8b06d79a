"""Sums to which all items of a loop add, on a GPU at the same time."""

from typing import Any


def add_at(array: Any, index: Any, value: float) -> None:
    """Add to an entry of an array; `skyfill.cuda` knows how threads of a GPU do so.

    Examples
    --------
    >>> sums = [1.0, 2.0]
    >>> add_at(sums, 1, 0.5)
    >>> sums
    [1.0, 2.5]
    """
    array[index] += value
