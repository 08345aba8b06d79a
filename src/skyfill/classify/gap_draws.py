"""Class probabilities averaged over draws of the gaps, and the uncertainty that gaps cause."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skyfill.classify.views import Array
from skyfill.network import Cells

# Draws of the gaps from which their share of the uncertainty is estimated.
N_DRAWS = 8
# Draws by default: none where gaps are like those of training; elsewhere N_DRAWS, or MOST_DRAWS if
# the standard error of a probability would exceed CLOSE.
AUTO, MOST_DRAWS, CLOSE = "auto", 32, 0.05
# Rounding errors of a sum of probabilities.
SUM_ERROR = 1e-9
# How many: a number, or "auto".
Draws = int | str
# Odds of shape (draws, n, classes) of rows for a number of draws and the number of the first one:
# probabilities times a weight, by which a draw counts.
Draw = Callable[[Cells, int, int], Array]


def average_over_draws(
    draw: Draw, cells: Cells, plain: Array, drawn: Array | None, new: NDArray[np.bool_]
) -> Array:
    """Average over draws for rows with gaps that the trees have not learned from.

    Parameters
    ----------
    draw : callable
    cells : Cells
        Rows with gaps.
    plain : array of shape (n, classes)
        Their odds without draws, which the other rows keep.
    drawn : array of shape (draws, n, classes), optional
        Draws that were made already.
    new : bool array of shape (n,)
        These rows.
    """
    if not new.any():
        return plain
    strange, mean = cells.take(new), plain.copy()
    few = draw(strange, N_DRAWS, 0) if drawn is None else drawn[:, new]
    mean[new] = _refined(draw, strange, few)
    return mean


def _refined(draw: Draw, cells: Cells, few: Array) -> Array:
    """Average over a few draws, and over more where these are too few."""
    mean, more = few.mean(axis=0), MOST_DRAWS - len(few)
    unsure = error_of_means(few) > CLOSE
    if unsure.any() and more > 0:
        drawn = draw(cells.take(unsure), more, len(few))
        mean[unsure] += (drawn.mean(axis=0) - mean[unsure]) * more / MOST_DRAWS
    return np.asarray(mean)


def error_of_means(drawn: Array) -> Array:
    """Largest standard error, over the classes, of each row's mean probability over draws.

    Parameters
    ----------
    drawn : array of shape (draws, n, classes)
        Odds.

    Examples
    --------
    >>> error_of_means(np.array([[[0.5, 0.5]], [[0.9, 0.1]]])).round(2)
    array([0.2])
    """
    return np.asarray(normalize(drawn).std(axis=0, ddof=1).max(axis=-1) / np.sqrt(len(drawn)))


def normalize(odds: Array) -> Array:
    """Turn odds into probabilities; what sums to 1 already stays as it is.

    Examples
    --------
    >>> normalize(np.array([[3.0, 1.0]]))
    array([[0.75, 0.25]])
    """
    return np.asarray(odds / _weights(odds)[..., None])


def _weights(odds: Array) -> Array:
    """Sum odds; probabilities sum to exactly 1, or their rounding errors would change results."""
    total = odds.sum(axis=-1)
    return np.where(np.abs(total - 1) < SUM_ERROR, 1.0, total)


def entropy_bits(P: Array) -> Array:
    """Entropy of each row of probabilities, in bits.

    Examples
    --------
    >>> entropy_bits(np.array([[0.5, 0.5], [1.0, 0.0]]))
    array([1., 0.])
    """
    logs = np.log2(P, out=np.zeros_like(P), where=P > 0)
    return np.asarray(np.maximum(-(P * logs).sum(axis=1), 0.0))


def gap_share(drawn: Array) -> Array:
    """Mutual information of class and gaps, over the entropy of the class.

    Examples
    --------
    Gaps that decide between two classes; a draw that is improbable in the field hardly counts.

    >>> sure = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> gap_share(sure), entropy_bits(normalize((sure * [1.0, 0.001]).mean(axis=0))).round(3)
    (array([1.]), array([0.011]))
    """
    weights = _weights(drawn)
    total = entropy_bits(normalize(drawn.mean(axis=0)))
    each = (entropy_bits(normalize(odds)) for odds in drawn)
    # Sums one by one: along an axis, the last bits would depend on the number of rows.
    left = sum(w * bits for w, bits in zip(weights, each, strict=True)) / sum(weights)
    return np.asarray(np.clip(1.0 - left / np.maximum(total, 1e-12), 0.0, 1.0))
