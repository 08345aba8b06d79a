"""Which measurement to take next: expected information about the class, in bits.

For a gap B of an object with seen values x_o the gain is the mutual information

    I(C; x_B | x_o) = H(mean of p_t) - mean of H(p_t),   p_t = p(C | x_o, x_B = value t),

over values t that the network considers possible; it is never negative, since entropy is concave.
Each p_t is itself the mean over draws of the remaining gaps, classified as if measured: only then
do the p_t have the mean p(C | x_o), as probabilities must. Classifying a row with filled gaps will
not do: the result is too sure, by about as much as measuring the gaps would contribute. A mean over
draws is in turn too cautious, since a network that knows no classes blurs them: `fit_sharpness`
corrects it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.classify.gap_draws import entropy_bits
from skyfill.errors import DataError
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.cells import as_cells

Array = NDArray[np.float64]
Classify = Callable[[Array], Array]

N_POINTS = 12
N_DRAWS = 32
# Draws of the gaps that are left, for each value of the gap in question.
N_INNER = 8
# Probabilities below this count as this.
FLOOR = 1e-6
# Rows given to the classifier at once.
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
        Present entropy of the class, in bits; that of `marginal_probabilities`.
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
    sharpness: float = 1.0,
    rng: int = 0,
) -> Gains:
    """Return the expected information about the class, in bits, of each missing measurement.

    Parameters
    ----------
    classify : callable
        Probabilities of shape (n, classes) of a table with gaps, such as `Scorer.probabilities`.
    network : MixtureNetwork
        Gives the distribution of the gaps.
    X : array of shape (n, p), or Cells
        Objects; NaN is a gap. A gap with a limit is a measurement to take too.
    blocks : mapping of str to columns, optional
        What is measured together, such as the columns of a survey; by default each column.
    n_points : int
        Number of quantiles of the posterior, where one column is missing.
    n_draws : int
        Number of joint draws, where several columns are missing, and for the present entropy.
    sharpness : float
        Power of the means over draws; see `fit_sharpness`.
    rng : int
        Seed of the draws.

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
    cells = as_cells(X, len(network))
    # The posterior itself: levels corrected by held-out cells would not agree with the draws.
    network = MixtureNetwork(network.names, network.margins, network.fits)
    groups = blocks or {name: [j] for j, name in enumerate(network.names)}
    _check(groups, len(network), n_points, n_draws)
    bits = np.full((len(cells), len(groups)), np.nan)
    for k, columns in enumerate(groups.values()):
        n_lost = np.isnan(cells.values[:, list(columns)]).sum(axis=1)
        for rows, points in ((n_lost == 1, n_points), (n_lost > 1, -n_draws)):
            for part in parts(np.flatnonzero(rows), abs(points) * N_INNER):
                rows_of = cells.take(part)
                tried = possible_rows(network, rows_of, list(columns), points, rng)
                P = tried_probabilities(classify, network, rows_of, tried, rng)
                bits[part, k] = gain(P, points, sharpness)
    now = marginal_probabilities(classify, network, cells, n_draws=n_draws, rng=rng)
    return Gains(tuple(groups), bits, entropy_bits(sharpened(now, sharpness)))


def _check(groups: Mapping[str, Sequence[int]], p: int, n_points: int, n_draws: int) -> None:
    if n_points < 2 or n_draws < 2:
        raise DataError("n_points and n_draws must be at least 2, to compare possible values")
    for name, columns in groups.items():
        if not columns or not all(0 <= j < p for j in columns):
            raise DataError(f"block {name!r}: the columns must be integers from 0 to {p - 1}")


def marginal_probabilities(
    classify: Classify,
    network: MixtureNetwork,
    X: ArrayLike | Cells,
    *,
    n_draws: int = N_DRAWS,
    rng: int = 0,
) -> Array:
    """Return class probabilities that equal, on average, those after measuring the gaps.

    They are the mean over joint draws of the gaps, each classified as if measured. When a value is
    measured, their mean stays the same and their entropy falls by the expected gain, on average.

    Examples
    --------
    >>> from skyfill.network import learn_mixture
    >>> V = np.random.default_rng(0).normal(size=(400, 2))
    >>> network = learn_mixture(V, ["a", "b"], n_components=1, n_fits=1, rng=0).network
    >>> def by_sign(X):    # certain about every filled row
    ...     p = (X[:, 0] > 0).astype(float)
    ...     return np.column_stack([p, 1 - p])
    >>> marginal_probabilities(by_sign, network, [[np.nan, 0.0]], n_draws=2000).round(1)
    array([[0.5, 0.5]])
    """
    cells = as_cells(X, len(network))
    lost = np.flatnonzero(np.isnan(cells.values).any(axis=1))
    P = classify(cells.values)
    for part in parts(lost, n_draws):
        draws = network.draws(cells.take(part), n_draws, rng).reshape(-1, len(network))
        P[part] = classify(draws).reshape(n_draws, len(part), -1).mean(axis=0)
    return P


def sharpened(P: Array, power: float) -> Array:
    """Raise probabilities to a power, each row with sum 1.

    Examples
    --------
    >>> sharpened(np.array([[0.75, 0.25]]), 2.0)
    array([[0.9, 0.1]])
    """
    if power == 1.0:
        return P
    raised = np.maximum(P, FLOOR) ** power
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


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


def tried_probabilities(
    classify: Classify, network: MixtureNetwork, cells: Cells, tried: Array, rng: int
) -> Array:
    """Return probabilities for each possible value, averaged over the other gaps: (t, n, classes).

    The other gaps of `cells` keep their limits. All values of a row share their random numbers:
    the scatter of few draws is then the same for every value and is not mistaken for information.
    """
    n, p = tried.shape[1:]
    if not np.isnan(tried).any():
        return classify(tried.reshape(-1, p)).reshape(len(tried), n, -1)
    # Not the random numbers of the outer draws.
    inner = np.stack([network.draws(cells.measured(rows), N_INNER, rng + 1) for rows in tried])
    P = classify(inner.reshape(-1, p)).reshape(len(tried), N_INNER, n, -1)
    return np.asarray(P.mean(axis=1))


def gain(P: Array, points: int, sharpness: float) -> Array:
    """Return the information in each row's value, in bits, from `tried_probabilities`."""
    given = sharpened(P, sharpness)
    bits = entropy_bits(given.mean(axis=0)) - np.mean([entropy_bits(p) for p in given], axis=0)
    # The entropy of a mean over few draws is too low, by about this share of the gain.
    few = abs(points) / (abs(points) - 1) if points < 0 else 1.0
    return np.asarray(np.maximum(bits, 0.0) * few)


def parts(rows: NDArray[np.int64], points: int) -> list[NDArray[np.int64]]:
    """Split rows so that all their tried values fit into one call."""
    step = max(ROWS_AT_ONCE // points, 1)
    return [rows[start : start + step] for start in range(0, len(rows), step)]
