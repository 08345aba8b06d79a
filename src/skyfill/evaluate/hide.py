"""Hide seen cells of a table, so that filled values can be compared with the truth.

All functions leave the given table unchanged, draw from `rng` only, and never hide the last seen
value of a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import rankdata

from skyfill.errors import DataError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rng = int | np.random.Generator
# Effect of the driver in `hide_mar`: the odds grow by e**4 from its lowest to its highest value.
MAR_SLOPE = 4.0
# Patterns that are tried for a row before it is left as it is.
MAX_DRAWS = 20


class Hidden(NamedTuple):
    """A table with more gaps, and which of them are cells that were hidden.

    Where values were hidden because they are faint, `lower` holds the limits beyond which they lie
    and `errors` the widths of these limits.
    """

    X: Array
    mask: Mask
    lower: Array | None = None
    errors: Array | None = None

    @property
    def limits(self) -> dict[str, Array]:
        """Limits and their widths as keyword arguments of imputers; empty where there are none."""
        known = {"lower": self.lower, "errors": self.errors}
        return {name: array for name, array in known.items() if array is not None}


def hide_cells(X: ArrayLike, rate: float, rng: Rng) -> Hidden:
    """Hide seen cells completely at random.

    Parameters
    ----------
    X : array of shape (n, p)
        NaN is a gap.
    rate : float
        Share of the seen cells to hide, between 0 and 1.
    rng : int or numpy.random.Generator

    Examples
    --------
    >>> hidden = hide_cells(np.ones((1000, 10)), 0.2, 0)
    >>> round(float(hidden.mask.mean()), 2), bool((np.isnan(hidden.X) == hidden.mask).all())
    (0.2, True)
    """
    table, rng = _opened(X, rate, rng)
    mask = rng.random(table.shape) < rate
    return _hidden(table, _spare_one(table, mask, rng))


def hide_blocks(X: ArrayLike, groups: Sequence[Sequence[int]], rate: float, rng: Rng) -> Hidden:
    """Hide whole groups of columns together, as when a survey has no counterpart.

    Parameters
    ----------
    groups : sequence of sequences of int
        Columns of each survey. A column in no group is never hidden.
    rate : float
        Probability that a group is hidden in a row. A row that would lose all its values keeps
        one group.

    Examples
    --------
    >>> hide_blocks(np.ones((2, 4)), [[0, 1], [2, 3]], 1.0, 0).mask.sum(axis=1)
    array([2, 2])
    """
    table, rng = _opened(X, rate, rng)
    members = _membership(groups, table.shape[1])
    hit = rng.random((len(table), len(members))) < rate
    seen = ~np.isnan(table)
    for i in np.flatnonzero(_nothing_left(table, hit @ members)):
        helpful = np.flatnonzero((members & seen[i]).any(axis=1))
        if helpful.size:
            # Groups may overlap: those that share a column with the kept one stay, too.
            hit[i] &= ~(members & members[rng.choice(helpful)]).any(axis=1)
    return _hidden(table, hit @ members)


def hide_like(X: ArrayLike, template: ArrayLike, rng: Rng) -> Hidden:
    """Hide cells in the patterns of another table's gaps.

    Each row gets the gaps of a random row of the template. A row that would lose all its values
    under every pattern tried stays as it is.

    Parameters
    ----------
    template : boolean array of shape (m, p)
        True where the other table has a gap.

    Examples
    --------
    >>> patterns = [[True, True, False], [False, False, True]]
    >>> sorted(set(hide_like(np.ones((50, 3)), patterns, 0).mask.sum(axis=1).tolist()))
    [1, 2]
    """
    table, rng = _opened(X, 0.0, rng)
    patterns = np.asarray(template, dtype=bool)
    if patterns.ndim != 2 or patterns.shape[1] != table.shape[1] or not len(patterns):
        raise DataError(f"a template of shape {patterns.shape} for a table of {table.shape}")
    mask = np.zeros(table.shape, dtype=bool)
    todo = np.arange(len(table))
    for _ in range(MAX_DRAWS):
        mask[todo] = patterns[rng.integers(len(patterns), size=len(todo))]
        todo = np.flatnonzero(_nothing_left(table, mask))
    mask[todo] = False
    return _hidden(table, mask)


def hide_mar(X: ArrayLike, rate: float, driver: int, rng: Rng) -> Hidden:
    """Hide cells with a probability that increases with a seen column (missing at random).

    Parameters
    ----------
    driver : int
        Column that decides; it is never hidden itself. Rows without it get the mean probability.

    Examples
    --------
    >>> x = np.arange(1000.0)
    >>> mask = hide_mar(np.column_stack([x, x]), 0.3, 0, 0).mask[:, 1]
    >>> mask[:200].mean() < 0.15 < 0.5 < mask[-200:].mean()
    np.True_
    """
    table, rng = _opened(X, rate, rng)
    chance = _chances(table[:, driver], rate)
    mask = rng.random(table.shape) < chance[:, None]
    mask[:, driver] = False
    return _hidden(table, _spare_one(table, mask, rng))


def hide_faint(
    X: ArrayLike, rate: float, columns: Sequence[int], rng: Rng, *, softness: float = 0.1
) -> Hidden:
    """Hide the faintest values of magnitude columns (missing not at random).

    Parameters
    ----------
    rate : float
        Share of each column's seen values that lies beyond its limit.
    columns : sequence of int
        Magnitudes: the larger, the fainter.
    softness : float
        Scatter of the limit from row to row, in standard deviations of the column.

    Returns
    -------
    Hidden
        With the limits, and the scatter as their width.

    Examples
    --------
    >>> hide_faint([[14.0], [21.0], [15.0], [16.0]], 0.25, [0], 0).mask[:, 0].any()
    np.False_
    >>> hide_faint([[14.0, 1], [21.0, 1], [15.0, 1], [16.0, 1]], 0.25, [0], 0).mask[:, 0]
    array([False,  True, False, False])
    """
    table, rng = _opened(X, rate, rng)
    mask = np.zeros(table.shape, dtype=bool)
    limits, widths = np.full(table.shape[1], np.nan), np.full(table.shape[1], np.nan)
    for j in columns:
        seen = np.flatnonzero(~np.isnan(table[:, j]))
        apparent = table[seen, j]
        width = softness * apparent.std() if len(seen) else 0.0
        apparent = apparent + width * rng.standard_normal(len(seen))
        order, n_seen = np.argsort(apparent), len(seen) - round(rate * len(seen))
        mask[seen[order[n_seen:]], j] = True
        if 0 < n_seen < len(seen):
            limits[j], widths[j] = apparent[order[n_seen - 1 : n_seen + 1]].mean(), width
    hidden = _hidden(table, _spare_one(table, mask, rng))
    lower, errors = (np.where(hidden.mask, each, np.nan) for each in (limits, widths))
    return hidden._replace(lower=lower, errors=errors)


def _opened(X: ArrayLike, rate: float, rng: Rng) -> tuple[Array, np.random.Generator]:
    table = np.asarray(X, dtype=np.float64)
    if table.ndim != 2:
        raise DataError(f"expected a table (rows x columns), got an array of shape {table.shape}")
    if not 0 <= rate <= 1:
        raise DataError(f"rate must be between 0 and 1, not {rate}")
    return table, np.random.default_rng(rng)


def _hidden(X: Array, mask: Mask) -> Hidden:
    """Turn the masked cells into gaps; cells that were gaps before do not count as hidden."""
    return Hidden(np.where(mask, np.nan, X), mask & ~np.isnan(X))


def _nothing_left(X: Array, mask: Mask) -> Mask:
    """Find rows with seen cells that are all masked."""
    seen = ~np.isnan(X)
    left = np.asarray((seen & ~mask).any(axis=1))
    return seen.any(axis=1) & ~left


def _spare_one(X: Array, mask: Mask, rng: np.random.Generator) -> Mask:
    """Uncover one random seen cell in each row that would lose all its values."""
    rows = np.flatnonzero(_nothing_left(X, mask))
    lot = np.where(np.isnan(X[rows]), -1.0, rng.random((len(rows), X.shape[1])))
    mask[rows, lot.argmax(axis=1)] = False
    return mask


def _membership(groups: Sequence[Sequence[int]], p: int) -> Mask:
    members = np.zeros((len(groups), p), dtype=bool)
    for k, columns in enumerate(groups):
        members[k, list(columns)] = True
    return members


def _chances(driver: Array, rate: float) -> Array:
    """Probability of each row, logistic in the rank of the driver, `rate` on average."""
    seen = ~np.isnan(driver)
    chance = np.full(len(driver), float(rate))
    if 1e-9 < rate < 1 - 1e-9 and np.unique(driver[seen]).size > 1:
        slope = MAR_SLOPE * (rankdata(driver[seen]) / seen.sum() - 0.5)
        start = brentq(
            lambda a: expit(a + slope).mean() / rate - 1,
            logit(rate) - slope.max() - 1,
            logit(rate) - slope.min() + 1,
        )
        chance[seen] = expit(start + slope)
    return chance
