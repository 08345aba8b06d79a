"""Estimate the map of each column to normal scores from the values seen.

Real columns are skewed, clumped and have atoms (many rows with exactly one value). One kind of map
takes ranks to normal quantiles; an atom takes up the interval of its ranks. Another kind is linear
or, for long tails, bent: it keeps relations between columns as straight as they are, as those of
magnitudes, and does not end at the faintest value seen. Of fluxes and other positive quantities it
is the logarithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from skyfill.network._array import Array, BoolArray, IntArray
from skyfill.network.cells import Cells
from skyfill.network.mixture.margin import GRID_REACH, TAIL, Constant, Identity, Logarithm, Margin

MAX_KNOTS = 160
# Values that make up this share of a column, and at least this many rows, are an atom.
ATOM_SHARE, ATOM_ROWS = 0.005, 4
# Steps in which the shares of values between limits settle.
CENSORED_STEPS = 100
# A tail is long if it reaches farther than this, in half-widths of the middle 68 % of the column;
# scores of a bent map, and of one with natural ends, stay within this.
LONG_TAIL, BENT_REACH = 8.0, 4.5
# The smallest value is next to 0, or the largest to 1, if less of the spread lies between.
NEXT_TO = 0.1
# A positive column is mapped by its logarithm if its 95th percentile is so many times its 5th.
DECADE, ENDS = 10.0, (0.05, 0.95)
# Knots of a logarithm stay below this: squares of larger numbers overflow.
LARGEST = 1e150
# A value that makes up this share of a column must come out again: no line does that.
SPIKE = 0.05
# Knots of a tail that falls by equal factors.
TAIL_KNOTS = 20
_NONE = np.empty(0)


def fit_margin(seen: Array) -> Margin:
    """Estimate the map of a column from its seen values."""
    values, counts = np.unique(seen, return_counts=True)
    return _map_ranks(values, counts, counts.astype(np.float64), (0.0, 0.0))


def fit_censored_margin(seen: Array, lower: Array, upper: Array) -> Margin:
    """Estimate the map of a column in the light of its limits.

    Parameters
    ----------
    seen : array of shape (n,)
    lower, upper : arrays of shape (m,)
        Limits of values that were not seen; NaN: none on that side.

    The share of values between those seen is the self-consistent one (Turnbull 1976), of which that
    of Kaplan & Meier is the case of limits on one side. Beyond the outermost value seen there is
    only a share: there the map goes on as it does just before.
    """
    values, counts = np.unique(seen, return_counts=True)
    # Places 0 and last are beyond all values; a limit leaves those above or below it.
    first = np.where(np.isnan(lower), 0, 1 + np.searchsorted(values, lower, side="right"))
    last = np.where(np.isnan(upper), values.size + 2, 1 + np.searchsorted(values, upper))
    last = np.maximum(last, first + 1)
    own = np.concatenate([[0.0], counts, [0.0]])
    mass = np.full(values.size + 2, 1.0)
    for _ in range(CENSORED_STEPS):
        below = np.concatenate([[0.0], np.cumsum(mass)])
        per_mass = 1.0 / np.maximum(below[last] - below[first], 1e-300)
        added = np.zeros(mass.size + 1)
        np.add.at(added, first, per_mass)
        np.add.at(added, last, -per_mass)
        mass = own + mass * np.cumsum(added)[:-1]
    return _map_ranks(values, counts, mass[1:-1], (mass[0], mass[-1]))


def _map_ranks(values: Array, counts: IntArray, mass: Array, beyond: tuple[float, float]) -> Margin:
    """Map values to normal quantiles of their ranks; `mass` counts rows, unseen ones included."""
    if values.size == 1:
        return Constant(values, np.zeros(1))
    n = float(mass.sum()) + sum(beyond)
    edges = np.concatenate([[beyond[0]], beyond[0] + np.cumsum(mass)])
    # An atom, and what is next to it, has two knots, where its ranks begin and end, so that nothing
    # lies between them; any other value has one, in the middle of its ranks.
    whole = _with_neighbors(counts >= max(ATOM_ROWS, ATOM_SHARE * counts.sum()))
    half = 0.5 * mass / counts
    low, high = np.maximum(edges[:-1], half[0]), np.minimum(edges[1:], n - half[-1])
    ranks = np.concatenate([np.where(whole, low, (edges[:-1] + edges[1:]) / 2), high[whole]])
    x = np.concatenate([values, values[whole]])
    order = np.lexsort((ranks, x))
    x, z = x[order], ndtri(ranks[order] / n)
    keep = _thin(z, np.concatenate([whole, np.ones(whole.sum(), bool)])[order])
    return _above_zero(Margin(x[keep], z[keep]))


def _above_zero(margin: Margin) -> Margin:
    """Let the map of a positive column fall by equal factors, if it would fall below zero."""
    x, z = margin.x, margin.z
    if not 0 < x[0] <= (z[0] + GRID_REACH) * margin._rises[0]:
        return margin
    fall = np.log(np.interp(z[0] + TAIL, z, x) / x[0]) / TAIL
    below = np.linspace(-GRID_REACH, z[0], TAIL_KNOTS, endpoint=False)
    tail = x[0] * np.exp(fall * (below - z[0]))
    # A level end, from which it goes on as it is.
    x, z = np.concatenate([tail[:1], tail, x]), np.concatenate([[-GRID_REACH - TAIL], below, z])
    return Margin(x, z)


def _with_neighbors(some: NDArray[np.bool_]) -> NDArray[np.bool_]:
    found = some.copy()
    found[1:] |= some[:-1]
    found[:-1] |= some[1:]
    return found


def _thin(z: Array, needed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Keep the ends, the atoms, what is next to them, and at most MAX_KNOTS even knots."""
    if z.size <= MAX_KNOTS:
        return np.ones(z.size, bool)
    keep = needed.copy()
    keep[[0, -1]] = True
    keep[np.searchsorted(z, np.linspace(z[0], z[-1], MAX_KNOTS))] = True
    return keep


def identity_margin(seen: Array) -> Margin:
    """Plain standardisation: mean 0 and standard deviation 1."""
    if np.ptp(seen) == 0:
        return Constant(seen[:1], np.zeros(1))
    # By the reach of the column: squares of huge values would overflow.
    reach = float(np.abs(seen).max())
    center, spread = reach * (seen / reach).mean(), reach * (seen / reach).std()
    return Identity(np.array([center, center + spread]), np.array([0.0, 1.0]))


def smooth_margin(seen: Array, *, bent: bool = True) -> Margin:
    """Map a column in a linear way; if it is `bent`, long tails by the inverse hyperbolic sine.

    A column that is never negative, and comes close to 0, ends at its smallest value; so does a
    share next to 1. Where many rows share one value, other than such an end, ranks are taken.

    Examples
    --------
    >>> color = np.random.default_rng(0).normal(0.5, 0.2, 500)
    >>> type(smooth_margin(color)).__name__
    'Identity'
    >>> flux = np.abs(color)
    >>> bool(smooth_margin(flux).from_normal(np.array([-4.0]))[0] == flux.min())
    True
    """
    reach = float(np.abs(seen).max()) or 1.0  # squares and differences of huge values overflow
    values = seen / reach
    low, center, high = np.quantile(values, ndtr([-1.0, 0.0, 1.0]))
    half, ends = (high - low) / 2, natural_ends(seen)
    if half == 0 or _most_common(seen, ends) >= SPIKE:
        return fit_margin(seen)
    bends = bent and bool(np.abs(values - center).max() > LONG_TAIL * half)
    if not bends and not np.isfinite(ends).any():
        return identity_margin(seen)
    scores = np.arcsinh((values - center) / half) if bends else values
    middle, spread = scores.mean(), scores.std()
    spread = max(spread, float(np.abs(scores - middle).max()) / BENT_REACH)
    z = np.linspace(scores.min(), scores.max(), MAX_KNOTS if bends else 2)
    x = reach * (center + half * np.sinh(z) if bends else z)
    x[[0, -1]] = seen.min(), seen.max()  # without rounding
    return Margin(*_ending(x, (z - middle) / spread, ends))


def find_positive(cells: Cells, fluxes: Sequence[bool | None] | None = None) -> BoolArray:
    """Find the columns that are mapped by their logarithms unless they are mapped by ranks.

    Their measured values are positive, and they are fluxes, have upper limits, or span more than a
    decade.

    Parameters
    ----------
    cells : Cells
    fluxes : sequence, optional
        True for a flux, False for what is none, as a magnitude. None where nothing is known: of a
        table of values and gaps alone such a column is not taken; hidden cells choose its map.

    Examples
    --------
    >>> V = np.linspace(14.0, 20.0, 300)
    >>> table = np.column_stack([V, 10 ** (-0.4 * V), 10 ** (-0.04 * V), V - 17])
    >>> find_positive(Cells(table, errors=np.ones((300, 4))), [None, None, None, True]).tolist()
    [False, True, False, False]
    """
    found = np.zeros(cells.values.shape[1], bool)
    for j, is_flux in enumerate([None] * len(found) if fluxes is None else fluxes):
        seen, limits = _known(cells, j)
        if is_flux is False or (is_flux is None and cells.is_plain):
            continue
        if seen.size and seen.min() > 0 and seen.min() < seen.max() < LARGEST:
            low, high = np.quantile(np.concatenate([seen, limits[limits > 0]]), ENDS)
            found[j] = is_flux or _has_upper_limits(cells, j) or high > DECADE * low
    return found


def _has_upper_limits(cells: Cells, j: int) -> bool:
    return cells.upper is not None and bool(
        np.isfinite(cells.upper[cells.is_limited[:, j], j]).any()
    )


def _known(cells: Cells, j: int) -> tuple[Array, Array]:
    """Values of a column, and limits of those that were not seen."""
    column, limited = cells.values[:, j], cells.is_limited[:, j]
    sides = [side[limited, j] for side in (cells.lower, cells.upper) if side is not None]
    limits = np.concatenate([_NONE, *sides])
    return column[~np.isnan(column)], limits[~np.isnan(limits)]


def log_margin(seen: Array, limits: Array = _NONE) -> Margin:
    """Map positive values by their logarithm, scaled by all values and positive limits.

    Examples
    --------
    >>> flux = np.array([0.5, 1.0, 2.0, 40.0])
    >>> bool((log_margin(flux).from_normal(np.array([-30.0, -3.0])) > 0).all())
    True
    """
    if seen.min() <= 0 or np.ptp(seen) == 0:
        return identity_margin(seen)
    logs = np.log(np.concatenate([seen, limits[limits > 0]]))
    middle, spread = logs.mean(), logs.std()
    spread = max(spread, float(np.abs(np.log(seen) - middle).max()) / BENT_REACH)
    z = np.linspace(-GRID_REACH, GRID_REACH, MAX_KNOTS)
    # A share does not go on beyond 1.
    x = np.minimum(np.exp(np.minimum(middle + spread * z, np.log(LARGEST))), natural_ends(seen)[1])
    return Logarithm(x, z)


def _most_common(seen: Array, but: tuple[float, float]) -> float:
    """Give the share of the most common value of a column, its ends aside."""
    inner = seen[~np.isin(seen, but)]
    return float(np.unique(inner, return_counts=True)[1].max() / seen.size) if inner.size else 0.0


def natural_ends(seen: Array) -> tuple[float, float]:
    """Find where a column ends by nature, next to 0, or next to 1 if it is a share; else infinity.

    The end is the outermost value seen: a filled period of exactly 0 would be no period.

    Examples
    --------
    >>> natural_ends(np.array([0.01, 0.2, 0.97])), natural_ends(np.array([14.0, 18.0]))
    ((0.01, 0.97), (-inf, inf))
    """
    least, most = float(seen.min()), float(seen.max())
    close = NEXT_TO * float(np.std(seen / (most or 1.0))) * most
    if not 0 <= least <= close:
        return -np.inf, np.inf
    return least, most if 1 - close <= most <= 1 else np.inf


def _ending(x: Array, z: Array, ends: tuple[float, float]) -> tuple[Array, Array]:
    """Knots of a map whose scores beyond natural ends all lead there."""
    if np.isfinite(ends[0]):
        x, z = np.append(ends[0], x), np.append(-GRID_REACH, z)
    if np.isfinite(ends[1]):
        x, z = np.append(x, ends[1]), np.append(z, GRID_REACH)
    return x, z


# The kind of map of all columns, or that of each.
Maps = str | tuple[str, ...]
# Maps of columns without limits, by the name of their kind.
MAPS: dict[str, Callable[[Array], Margin]] = {
    "ranks": fit_margin,
    "smooth": smooth_margin,
    "straight": partial(smooth_margin, bent=False),
    "linear": identity_margin,
    "logarithmic": log_margin,
}


def kinds_of(kind: Maps, n_columns: int) -> tuple[str, ...]:
    """Name the kind of map of each column.

    Examples
    --------
    >>> kinds_of("ranks", 2), kinds_of(("smooth", "ranks"), 2)
    (('ranks', 'ranks'), ('smooth', 'ranks'))
    """
    return (kind,) * n_columns if isinstance(kind, str) else kind


def unless_ranks(kind: Maps, cells: Cells, columns: BoolArray, other: str) -> Maps:
    """Take another kind of map of some columns wherever they would not be mapped by ranks.

    Examples
    --------
    >>> unless_ranks("smooth", Cells([[17.0, 3.0]]), np.array([False, True]), "logarithmic")
    ('smooth', 'logarithmic')
    """
    if not columns.any():
        return kind
    kinds = zip(resolve(kind, cells), columns, strict=True)
    return tuple(other if is_one and each != "ranks" else each for each, is_one in kinds)


def resolve(kind: Maps, cells: Cells) -> tuple[str, ...]:
    """Name the kind of map of each column; "mixed" is linear for columns that have limits."""
    if kind == "mixed":
        limited = cells.is_limited
        return tuple("linear" if column.any() else "ranks" for column in limited.T)
    return kinds_of(kind, cells.values.shape[1])


def map_columns(cells: Cells, kind: Maps) -> tuple[Margin, ...]:
    """Map every column by one kind of map, or each by its own."""
    return tuple(_map_column(cells, j, one) for j, one in enumerate(resolve(kind, cells)))


def _map_column(cells: Cells, j: int, kind: str) -> Margin:
    seen, limits = _known(cells, j)
    if not seen.size:  # as in a sample of a table
        return Constant(np.zeros(1), np.zeros(1))
    if kind == "logarithmic":
        return log_margin(seen, limits)
    if kind != "ranks" or not limits.size:
        return MAPS[kind](seen)
    nothing, limited = np.full(len(cells), np.nan), cells.is_limited[:, j]
    sides = (nothing if side is None else side[:, j] for side in (cells.lower, cells.upper))
    return fit_censored_margin(seen, *(side[limited] for side in sides))
