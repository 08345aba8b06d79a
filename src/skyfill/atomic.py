"""What devices give to the bodies of loops: sums that all items add to, and room to work in."""

from typing import Any, TypeAlias

# As many numbers; or so many numbers, and three squares of so many columns.
Room: TypeAlias = int | tuple[int, int]


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
