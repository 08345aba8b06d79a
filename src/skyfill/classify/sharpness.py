"""How sharp means over draws must be: calibrated by hiding values and revealing them again."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from skyfill.classify.marginal import (
    N_INNER,
    N_POINTS,
    Array,
    Classify,
    gain,
    marginal_probabilities,
    opinions,
    parts,
    possible_rows,
    sharpened,
)
from skyfill.classify.scorer import entropy_bits
from skyfill.network import MixtureNetwork
from skyfill.network._array import as_table

# Values that are hidden and revealed again to calibrate, and how far it may go.
N_TRIALS, MIN_TRIALS = 1000, 100
POWERS = (0.5, 3.0)


def fit_sharpness(
    classify: Classify,
    network: MixtureNetwork,
    X: ArrayLike,
    *,
    n_trials: int = N_TRIALS,
    rng: int = 0,
) -> float:
    """Find the power at which entropies fall as expected when values are revealed.

    Seen values are hidden and revealed again; no labels are needed. Means over draws are too
    cautious where the network blurs the classes: their entropy then falls by more than expected.

    Parameters
    ----------
    X : array of shape (n, p)
        Objects that the classifier has not learned from.
    n_trials : int
        Values to hide, each in a row of its own. With 1000, the power is good to about 0.1.

    Returns
    -------
    float
        Between `POWERS`; 1 where nothing speaks against it, or fewer than 100 values can be hidden.

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

    table = as_table(X, len(network))
    plain = MixtureNetwork(network.names, network.margins, network.fits)
    trials = _trials(classify, plain, table, n_trials, rng)
    if trials is None:
        return 1.0
    said, before, after = trials

    def excess(power: float) -> float:
        P = (sharpened(before, power), sharpened(after, power))
        fall = entropy_bits(P[0]).mean() - entropy_bits(P[1]).mean()
        gains = [gain(part, N_POINTS, power).sum() for part in said]
        return float(fall - sum(gains) / len(before))

    noise = (entropy_bits(before) - entropy_bits(after)).std() / np.sqrt(len(before))
    if abs(excess(1.0)) <= noise:
        return 1.0
    if excess(POWERS[0]) * excess(POWERS[1]) > 0:
        return POWERS[0] if excess(1.0) < 0 else POWERS[1]
    return float(brentq(excess, *POWERS, xtol=0.01))


def _trials(
    classify: Classify, network: MixtureNetwork, X: Array, n_trials: int, rng: int
) -> tuple[list[Array], Array, Array] | None:
    """Hide one seen value of each row: opinions for its possible values, before and after."""
    dice = np.random.default_rng(rng)
    rows, columns = np.nonzero(~np.isnan(X) & (np.isfinite(X).sum(axis=1) > 1)[:, None])
    if min(len(rows), n_trials) < MIN_TRIALS:
        return None
    picked = dice.permutation(len(rows))[:n_trials]
    after, columns = X[rows[picked]], columns[picked]
    before = after.copy()
    before[np.arange(len(before)), columns] = np.nan
    said = []
    for j in np.unique(columns):
        mine = np.flatnonzero(columns == j)
        for part in parts(mine, N_POINTS * N_INNER):
            tried = possible_rows(network, before[part], [int(j)], N_POINTS, rng)
            said.append(opinions(classify, network, tried, rng))
    P = [marginal_probabilities(classify, network, rows, rng=rng) for rows in (before, after)]
    return said, P[0], P[1]
