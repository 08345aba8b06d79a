"""The sharpness of means over draws, calibrated by hiding values and revealing them again."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.classify.gap_draws import entropy_bits
from skyfill.classify.next_measurement import (
    N_INNER,
    N_POINTS,
    Array,
    Classify,
    gain,
    marginal_probabilities,
    parts,
    possible_rows,
    sharpened,
    tried_probabilities,
)
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.cells import as_cells

Indices = NDArray[np.intp]
# Values that are hidden and revealed again, by default and at least; range of the power.
N_TRIALS, MIN_TRIALS = 8000, 100
POWERS = (0.5, 3.0)
# Trials of one row at most: where few rows have as many gaps, these would outweigh all others (on
# Chandra one row made 630 of 8000 trials).
MOST_OF_A_ROW = 10
# Entropies must fall by this many standard errors more or less than expected. A right network comes
# as far in less than one sample of a hundred; beyond one standard error it is in every third.
CLEAR = 3.0


def fit_sharpness(
    classify: Classify,
    network: MixtureNetwork,
    X: ArrayLike | Cells,
    *,
    n_trials: int = N_TRIALS,
    rng: int = 0,
) -> float:
    """Find the power for which entropies fall as expected when values are revealed.

    Seen values that resemble the missing ones are hidden and revealed again; no labels are needed.
    Where the network blurs the classes, means over draws are too cautious, and their entropy falls
    by more than expected.

    Parameters
    ----------
    X : array of shape (n, p), or Cells
        Objects that were not used to train the classifier.
    n_trials : int
        Values to hide, one at a time. With 8000, the power is accurate to about 0.04.

    Returns
    -------
    float
        Within `POWERS`; 1 unless the data clearly disagree with it (by `CLEAR` standard errors),
        where fewer than 100 values can be hidden, and where none is missing.

    Examples
    --------
    >>> from skyfill.network import learn_mixture
    >>> V = np.random.default_rng(0).normal(size=(400, 2))
    >>> network = learn_mixture(V, ["a", "b"], n_components=1, n_fits=1, rng=0).network
    >>> def logistic(X):
    ...     p = 1 / (1 + np.exp(-3 * X[:, 0]))
    ...     return np.column_stack([p, 1 - p])
    >>> fit_sharpness(logistic, network, V)    # the network is right: nothing to correct
    1.0
    """
    from scipy.optimize import brentq

    cells = as_cells(X, len(network))
    plain = MixtureNetwork(network.names, network.margins, network.fits)
    trials = _trials(classify, plain, cells, n_trials, rng)
    if trials is None:
        return 1.0
    rows, said, before, after = trials

    def surplus(power: float) -> Array:
        """By how much more than expected each trial's entropy falls."""
        P = (sharpened(before, power), sharpened(after, power))
        fall = entropy_bits(P[0]) - entropy_bits(P[1])
        for part, tried in said:
            fall[part] -= gain(tried, N_POINTS, power)
        return fall

    def excess(power: float) -> float:
        return float(surplus(power).mean())

    if abs(excess(1.0)) <= CLEAR * error_of_mean(surplus(1.0), rows):
        return 1.0
    if excess(POWERS[0]) * excess(POWERS[1]) > 0:
        return POWERS[0] if excess(1.0) < 0 else POWERS[1]
    return float(brentq(excess, *POWERS, xtol=0.01))


def error_of_mean(values: Array, rows: Indices) -> float:
    """Return the standard error of a mean whose values are correlated within rows.

    Examples
    --------
    >>> values = np.array([1.0, 3.0, 1.0, 3.0])
    >>> error_of_mean(values, np.arange(4)), error_of_mean(values, np.array([0, 1, 0, 1]))
    (0.5, 0.7071067811865476)
    """
    sums = np.bincount(rows, values - values.mean())
    return float(np.sqrt((sums**2).sum()) / len(values))


def _trials(
    classify: Classify, network: MixtureNetwork, cells: Cells, n_trials: int, rng: int
) -> tuple[Indices, list[tuple[Indices, Array]], Array, Array] | None:
    """Hide single values: their rows, probabilities for possible values, before and after.

    The probabilities for possible values come in parts, each with its places among the rows.
    """
    rows, columns = _questions(cells.values, n_trials, np.random.default_rng(rng))
    if len(rows) < MIN_TRIALS:
        return None
    after = cells.take(rows)
    before = after.hide(columns[:, None] == np.arange(len(network)))
    said = []
    for j in np.unique(columns):
        mine = np.flatnonzero(columns == j)
        for part in parts(mine, N_POINTS * N_INNER):
            asked = before.take(part)
            tried = possible_rows(network, asked, [int(j)], N_POINTS, rng)
            said.append((part, tried_probabilities(classify, network, asked, tried, rng)))
    P = [marginal_probabilities(classify, network, each, rng=rng) for each in (before, after)]
    return rows, said, P[0], P[1]


def _questions(X: Array, n: int, dice: np.random.Generator) -> tuple[Indices, Indices]:
    """Choose values to hide that resemble the missing ones.

    For a gap chosen at random, take a value of the same column in a row that has, with the value
    hidden, as many gaps as the row of the gap, or about as many: entropies fall by more where more
    is missing, and some columns have more gaps than others.

    Returns
    -------
    rows, columns : arrays of shape (n,), or of fewer if fewer were seen; none without gaps
    """
    gap = np.isnan(X)
    n_gaps = gap.sum(axis=1)
    asked, about = np.nonzero(gap)
    if not len(asked):
        return asked, about
    # Not more trials than there are values.
    picked = dice.integers(len(asked), size=min(n, int((~gap[:, np.unique(about)]).sum())))
    asked, about = asked[picked], about[picked]
    found = np.full(len(asked), -1)
    for j in np.unique(about):
        # A row whose last value is hidden contains no information on it.
        able = np.flatnonzero(~gap[:, j] & (n_gaps < X.shape[1] - 1))
        mine = np.flatnonzero(about == j)
        if len(able):
            # Ties in random order, so that any of them may be found.
            counts = n_gaps[able] + dice.uniform(-0.5, 0.5, len(able))
            order = np.argsort(counts)
            wanted = n_gaps[asked[mine]] - 1 + dice.uniform(-0.5, 0.5, len(mine))
            place = np.searchsorted(counts[order], wanted).clip(max=len(able) - 1)
            found[mine] = able[order[place]]
    found, about = found[found >= 0], about[found >= 0]
    kept = _occurrence(found) < MOST_OF_A_ROW
    return found[kept], about[kept]


def _occurrence(values: Indices) -> Indices:
    """Count, for each value, how often it has occurred before.

    Examples
    --------
    >>> _occurrence(np.array([5, 7, 5, 5])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(values, kind="stable")
    _, first, counts = np.unique(values[order], return_index=True, return_counts=True)
    out = np.empty(len(values), np.intp)
    out[order] = np.arange(len(values)) - np.repeat(first, counts)
    return out
