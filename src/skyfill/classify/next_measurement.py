"""Which measurement to take next: expected information about the class, in bits.

For a gap B of an object with seen values x_o the gain is the mutual information (Lindley 1956)

    I(C; x_B | x_o) = H(mean of p_t) - mean of H(p_t),   p_t = p(C | x_o, x_B = value t),

over values t that the network considers possible; it is never negative, since entropy is concave.
Each p_t comes from the classifier as it is: the other gaps remain gaps, as they will when B has
been measured. What counts as known before is the mean of the p_t. The probabilities of the object
as it is will not do: that B is missing may itself be evidence of the class, and what is then
missing afterwards is not information from the measurement. For the same reason the possible values
are those of objects in which B is measured, where gaps are informative: each p_t already counts
the measurement as made, and means of the p_t over values of objects that never have it would mix
two conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.classify.gap_draws import entropy_bits
from skyfill.errors import DataError
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.cells import as_cells
from skyfill.network.mixture.mixture import Mixture
from skyfill.network.mixture.random_keys import keyed

Array = NDArray[np.float64]
Classify = Callable[[Any], Array]

N_POINTS = 12
N_DRAWS = 32
# Rows whose possible values are held at once.
ROWS_AT_ONCE = 1 << 16
# An object counts as helped where a measurement is expected to gain this much.
HELPED_BITS = 0.1


class Benefit(NamedTuple):
    """What a measurement would contribute to a whole catalog.

    `missing`: objects that lack it; `total`: sum of their expected gains in bits; `mean`: per
    object that lacks it; `best`: objects for which it is the best of all; `helped`: objects that
    would gain at least `HELPED_BITS`.
    """

    name: str
    missing: int
    total: float
    mean: float
    best: int
    helped: int


@dataclass(frozen=True, eq=False)
class Gains:
    """Expected gains of objects (rows) by measurements (columns).

    Attributes
    ----------
    names : tuple of str
        Features, or surveys.
    bits : array of shape (n, k)
        NaN where the object has the measurement already.
    entropy : array of shape (n,)
        Present entropy of the class, in bits.
    """

    names: tuple[str, ...]
    bits: Array
    entropy: Array

    @property
    def best(self) -> NDArray[np.int64]:
        """Place of the most informative measurement of each object; -1 where nothing is missing."""
        known = np.where(np.isnan(self.bits), -1.0, self.bits)
        place = known.argmax(axis=1) if self.names else np.zeros(len(known), dtype=np.int64)
        return np.where(np.isnan(self.bits).all(axis=1), -1, place)

    def summary(self) -> list[Benefit]:
        """Sum up what each measurement would contribute to all objects, the largest total first.

        Examples
        --------
        >>> gains = Gains(("J", "K"), np.array([[0.5, np.nan], [0.1, 0.2]]), np.ones(2))
        >>> [(b.name, b.missing, round(b.total, 1), b.best) for b in gains.summary()]
        [('J', 2, 0.6, 1), ('K', 1, 0.2, 1)]
        """
        best = self.best
        found = []
        for k, name in enumerate(self.names):
            bits = self.bits[~np.isnan(self.bits[:, k]), k]
            total, n_best = float(bits.sum()), int((best == k).sum())
            helped = int((bits >= HELPED_BITS).sum())
            mean = total / max(len(bits), 1)
            found.append(Benefit(name, len(bits), total, mean, n_best, helped))
        return sorted(found, key=lambda benefit: -benefit.total)


def expected_gains(
    classify: Classify,
    network: MixtureNetwork,
    X: ArrayLike | Cells,
    *,
    blocks: Mapping[str, Sequence[int]] | None = None,
    n_points: int = N_POINTS,
    n_draws: int = N_DRAWS,
    rng: int = 0,
) -> Gains:
    """Return the expected information about the class, in bits, of each missing measurement.

    Parameters
    ----------
    classify : callable
        Probabilities of shape (n, classes) of a table with gaps, or of Cells where X is Cells, such
        as `Scorer.probabilities`. The same rows must always get the same ones. Cells have keys, so
        that a classifier that draws uses the same random numbers for all values of an object.
    network : MixtureNetwork
        Gives the distribution of the gaps.
    X : array of shape (n, p), or Cells
        Objects; NaN is a gap. A gap with a limit is a measurement to take too.
    blocks : mapping of str to columns, optional
        What is measured together, such as the columns of a survey; by default each column.
    n_points : int
        Number of quantiles of the posterior, where one column is missing.
    n_draws : int
        Number of joint draws, where several columns are missing.
    rng : int
        Seed of the draws; those of an object follow from it and from the object's numbers alone.

    Returns
    -------
    Gains

    Examples
    --------
    >>> from skyfill.network import learn_mixture
    >>> V = np.random.default_rng(0).normal(size=(400, 2))
    >>> network = learn_mixture(V, ["a", "b"], n_components=1, n_fits=1, rng=0).network
    >>> def by_sign(X):    # the class is the sign of a: b is irrelevant, a settles it
    ...     p = np.where(np.isnan(X[:, 0]), 0.5, X[:, 0] > 0)
    ...     return np.column_stack([p, 1 - p])
    >>> expected_gains(by_sign, network, [[np.nan, np.nan]]).bits.round(1)
    array([[1., 0.]])
    """
    cells, dice = as_cells(X, len(network)), np.random.default_rng(rng)
    # Random numbers to classify with, and others for the values.
    asked, cells = keyed(cells, dice), keyed(cells, dice)
    # The posterior itself: levels corrected by held-out cells would not agree with the draws.
    network = MixtureNetwork(network.names, network.margins, network.fits)
    groups = blocks or {name: [j] for j, name in enumerate(network.names)}
    _check(groups, len(network), n_points, n_draws)
    bits = np.full((len(cells), len(groups)), np.nan)
    ask = partial(classify_possible, classify, as_arrays=not isinstance(X, Cells))
    for k, columns in enumerate(groups.values()):
        for rows, gone in by_gaps(cells.values, list(columns)):
            points = n_points if len(gone) == 1 else -n_draws
            after = as_measured(network, gone)
            for part in parts(rows, abs(points)):
                tried = possible_rows(after, cells.take(part), gone, points, rng)
                bits[part, k] = gain(ask(asked.take(part), tried), points)
    now = ask(asked, cells.values[None])[0]
    return Gains(tuple(groups), bits, entropy_bits(now))


def _check(groups: Mapping[str, Sequence[int]], p: int, n_points: int, n_draws: int) -> None:
    if n_points < 2 or n_draws < 2:
        raise DataError("n_points and n_draws must be at least 2, to compare possible values")
    for name, columns in groups.items():
        if not columns or not all(0 <= j < p for j in columns):
            raise DataError(f"block {name!r}: the columns must be integers from 0 to {p - 1}")


def by_gaps(values: Array, columns: list[int]) -> list[tuple[NDArray[np.int64], list[int]]]:
    """Group the rows that lack some of the columns by those that they lack.

    Examples
    --------
    >>> by_gaps(np.array([[np.nan, 1.0], [2.0, 3.0], [np.nan, 4.0]]), [0, 1])
    [(array([0, 2]), [0])]
    """
    lost = np.isnan(values[:, columns])
    patterns, which = np.unique(lost, axis=0, return_inverse=True)
    which = which.reshape(-1)
    groups = [(i, np.asarray(columns)[pattern].tolist()) for i, pattern in enumerate(patterns)]
    return [(np.flatnonzero(which == i), gone) for i, gone in groups if gone]


def as_measured(network: MixtureNetwork, columns: list[int]) -> MixtureNetwork:
    """Return the network of rows whose gaps in these columns will have been measured.

    With informative gaps, a component counts by its rate of measured values there, not of gaps.
    """
    return replace(network, fits=tuple(_with_measured(fit, columns) for fit in network.fits))


def _with_measured(fit: Mixture, columns: list[int]) -> Mixture:
    if fit.gap_rates is None:
        return fit
    rates = fit.gap_rates.copy()
    rates[:, columns] = 1.0 - rates[:, columns]
    return fit._replace(gap_rates=rates)


def possible_rows(
    network: MixtureNetwork, cells: Cells, columns: list[int], points: int, rng: int
) -> Array:
    """Return rows with equally likely values in the gap, of shape (t, n, p).

    Quantiles of the posterior or, where `points` is below 0, joint draws.
    """
    if points < 0:
        values = network.draws(cells, -points, rng)
    else:
        values = network.quantiles(cells, ((np.arange(points) + 0.5) / points).tolist())
    tried = np.repeat(cells.values[None], abs(points), axis=0)
    tried[:, :, columns] = values[:, :, columns]
    return tried


def classify_possible(
    classify: Classify, cells: Cells, tried: Array, *, as_arrays: bool = False
) -> Array:
    """Return probabilities for each possible value, of shape (t, n, classes).

    The other gaps of `cells` keep their limits, and rows their keys: a classifier that draws gaps
    uses the same random numbers for all values, and the scatter of few draws is not mistaken for
    information.
    """
    if as_arrays:
        return np.stack([classify(rows) for rows in tried])
    return np.stack([classify(cells.measured(rows)) for rows in tried])


def gain(P: Array, points: int) -> Array:
    """Return the information in each row's value, in bits, from its probabilities."""
    # Sums one by one: along an axis, the last bits would depend on the number of rows.
    bits = entropy_bits(P.mean(axis=0)) - sum(map(entropy_bits, P)) / len(P)
    # The entropy of a mean over few draws is too low, by about this share of the gain.
    few = abs(points) / (abs(points) - 1) if points < 0 else 1.0
    return np.asarray(np.maximum(bits, 0.0) * few)


def parts(rows: NDArray[np.int64], points: int) -> list[NDArray[np.int64]]:
    """Split rows so that all their possible values fit into memory."""
    step = max(ROWS_AT_ONCE // points, 1)
    return [rows[start : start + step] for start in range(0, len(rows), step)]
