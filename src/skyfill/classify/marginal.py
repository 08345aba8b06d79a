"""Class probabilities averaged over what the gaps may be, and the information in one of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skyfill.classify.scorer import entropy_bits
from skyfill.network import MixtureNetwork
from skyfill.network._array import as_table

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


def marginal_probabilities(
    classify: Classify,
    network: MixtureNetwork,
    X: ArrayLike,
    *,
    n_draws: int = N_DRAWS,
    rng: int = 0,
) -> Array:
    """Give class probabilities that agree with what measuring the gaps would tell, on average.

    The mean over joint draws of the gaps, each classified as if measured: as a measurement comes
    in, the mean of these probabilities stays and their entropy falls by the gain.

    Examples
    --------
    >>> from skyfill.network import learn_mixture
    >>> V = np.random.default_rng(0).normal(size=(400, 2))
    >>> network = learn_mixture(V, ["a", "b"], n_components=1, n_fits=1, rng=0).network
    >>> def by_sign(X):    # of a filled row it is sure
    ...     p = (X[:, 0] > 0).astype(float)
    ...     return np.column_stack([p, 1 - p])
    >>> marginal_probabilities(by_sign, network, [[np.nan, 0.0]], n_draws=2000).round(1)
    array([[0.5, 0.5]])
    """
    table = as_table(X, len(network))
    lost = np.flatnonzero(np.isnan(table).any(axis=1))
    P = classify(table)
    for part in parts(lost, n_draws):
        draws = network.draws(table[part], n_draws, rng).reshape(-1, table.shape[1])
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
    network: MixtureNetwork, X: Array, columns: list[int], points: int, rng: int
) -> Array:
    """Rows with values that the gap may have, all equally likely, of shape (t, n, p).

    Quantiles of the posterior or, where `points` is below 0, joint draws.
    """
    if points < 0:
        values = network.draws(X, -points, rng)
    else:
        values = network.quantiles(X, ((np.arange(points) + 0.5) / points).tolist())
    tried = np.repeat(X[None], abs(points), axis=0)
    tried[:, :, columns] = values[:, :, columns]
    return tried


def opinions(classify: Classify, network: MixtureNetwork, tried: Array, rng: int) -> Array:
    """Probabilities for each possible value, means over draws of what is left: (t, n, classes).

    All values of a row share their random numbers: what few draws say by chance they say of every
    value, and it is not taken for information.
    """
    n, p = tried.shape[1:]
    if not np.isnan(tried).any():
        return classify(tried.reshape(-1, p)).reshape(len(tried), n, -1)
    # Other random numbers than those of the outer draws.
    inner = np.stack([network.draws(rows, N_INNER, rng + 1) for rows in tried])
    P = classify(inner.reshape(-1, p)).reshape(len(tried), N_INNER, n, -1)
    return np.asarray(P.mean(axis=1))


def gain(P: Array, points: int, sharpness: float) -> Array:
    """Information in which of the possible values is true, for each row; `P` is of `opinions`."""
    given = sharpened(P, sharpness)
    bits = entropy_bits(given.mean(axis=0)) - np.mean([entropy_bits(p) for p in given], axis=0)
    # The entropy of a mean over few draws is too low, by about this share of the gain.
    few = abs(points) / (abs(points) - 1) if points < 0 else 1.0
    return np.asarray(np.maximum(bits, 0.0) * few)


def parts(rows: NDArray[np.int64], points: int) -> list[NDArray[np.int64]]:
    """Cut rows so that all their tried values fit into one call."""
    step = max(ROWS_AT_ONCE // points, 1)
    return [rows[start : start + step] for start in range(0, len(rows), step)]
