"""What long work costs, in seconds of one core, and how much of it is done.

Costs are rough: constants measured on one machine, to within a factor of two or three. They weigh
the parts of some work against one another, so that the time left can be estimated while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Watcher = Callable[[float], None]
# Who wants to know; threads that work have no other way to reach the screen.
_WATCHERS: list[Watcher] = []
# Seconds for a row and a fit, and for each component and pair of features besides.
FIT, FIT_COMPONENT = 6e-5, 2.3e-8
# For a row, a class and a round of boosting, and for each column besides; for a row and a tree.
BOOSTING, BOOSTING_COLUMN, TREE = 3.6e-8, 1.5e-9, 2.5e-6


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tell `watcher` what work is done within this block, in expected seconds, from any thread."""
    _WATCHERS.append(watcher)
    try:
        yield
    finally:
        _WATCHERS.remove(watcher)


def spent(seconds: float) -> None:
    """Say that work is done that was expected to take so long."""
    for watcher in tuple(_WATCHERS):
        watcher(seconds)


def fit_cost(n_rows: int, n_features: int, n_components: int) -> float:
    """Expect the cost of one fit of a mixture.

    Examples
    --------
    >>> round(fit_cost(2175, 14, 32), 1)
    0.4
    """
    return n_rows * (FIT + FIT_COMPONENT * n_components * n_features**2)


def boosting_cost(n_rows: int, n_columns: int, n_classes: int, n_rounds: int) -> float:
    """Expect the cost of one boosting.

    Examples
    --------
    >>> round(boosting_cost(2900, 119, 8, 200), 1)
    1.0
    """
    return n_rows * n_classes * n_rounds * (BOOSTING + BOOSTING_COLUMN * n_columns)


def forest_cost(n_rows: int, n_trees: int) -> float:
    """Expect the cost of one forest.

    Examples
    --------
    >>> round(forest_cost(3000, 200), 1)
    1.5
    """
    return TREE * n_rows * n_trees
