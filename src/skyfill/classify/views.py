"""Views of an object from which trees learn: filled values, gaps, contrasts, components."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skyfill.network import Cells, MixtureNetwork
from skyfill.network.cells import as_cells

Array = NDArray[np.float64]
# Largest number of pairs of columns.
MOST_PAIRS = 200


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known about each row; views are made from it.

    Attributes
    ----------
    X : array of shape (n, p)
        Values with NaN for gaps.
    filled : array of shape (n, p)
        The same with posterior means in the gaps.
    responsibilities : array of shape (n, components), optional
        Probability of each component of each fit; None where no view uses it.
    seen : array of shape (n,), optional
        Log-likelihood of the seen cells of each row; None where it was not requested.
    """

    X: Array
    filled: Array
    responsibilities: Array | None = None
    seen: Array | None = None


def _contrasts(facts: Facts, contrasts: Array) -> Array:
    first, second = contrasts[:, 0].astype(np.intp), contrasts[:, 2].astype(np.intp)
    n, p = facts.X.shape
    view = np.empty((n, 2 * p + len(contrasts)))
    view[:, :p], view[:, p : 2 * p] = facts.X, facts.filled
    # Not a product of matrices: its last bits would depend on the number of rows. Values of 1e300
    # may overflow in units of a tiny spread; trees can handle that.
    with np.errstate(over="ignore", invalid="ignore"):
        np.multiply(facts.filled[:, first], contrasts[:, 1], out=view[:, 2 * p :])
        view[:, 2 * p :] += facts.filled[:, second] * contrasts[:, 3]
    return view


def _plain(contrasts: Array) -> Array:
    """Return the plain differences among contrasts."""
    return np.asarray(contrasts[(contrasts[:, 1] == 1.0) & (contrasts[:, 3] == -1.0)])


def _differences(facts: Facts, contrasts: Array) -> Array:
    first, second = _plain(contrasts)[:, [0, 2]].T.astype(np.intp)
    with np.errstate(over="ignore"):
        return np.hstack([facts.X, facts.X[:, first] - facts.X[:, second]])


def _components(facts: Facts, contrasts: Array) -> Array:
    if facts.responsibilities is None:
        raise ValueError("the view 'components' needs responsibilities")
    return np.hstack([facts.X, facts.filled, facts.responsibilities])


VIEWS: dict[str, Callable[[Facts, Array], Array]] = {
    "raw": lambda facts, _: facts.X,
    "differences": _differences,
    "filled": lambda facts, _: facts.filled,
    "indicators": lambda facts, _: np.hstack([facts.filled, np.isnan(facts.X)]),
    "gaps": lambda facts, _: np.hstack([facts.X, facts.filled]),
    "contrasts": _contrasts,
    "components": _components,
}

# Views that need the pairs of `choose_contrasts`.
WITH_CONTRASTS = {"contrasts", "differences"}


def width(view: str, network: MixtureNetwork, contrasts: Array) -> int:
    """Count the columns of a view."""
    p = len(network)
    more = {"raw": 0, "filled": 0, "contrasts": p + len(contrasts), "components": p}
    more["differences"] = len(_plain(contrasts))
    more["components"] += sum(network.n_components)
    return p + more.get(view, p)


def gather_facts(
    network: MixtureNetwork, X: Array | Cells, views: Iterable[str], *, likelihood: bool = False
) -> Facts:
    """Collect what the views need about each row, and its log-likelihood if requested.

    Trees see a limit as a gap; filled values and responsibilities respect it.

    Examples
    --------
    >>> from skyfill.network import learn_mixture
    >>> X = np.column_stack([np.arange(20.0), np.arange(20.0) / 2])
    >>> network = learn_mixture(X, n_components=1, n_fits=1).network
    >>> gather_facts(network, np.array([[10.0, np.nan]]), ["gaps"]).filled.round()
    array([[10.,  5.]])
    """
    cells, components = as_cells(X), "components" in views
    if not (components or likelihood or np.isnan(cells.values).any()):
        return Facts(cells.values, cells.values)
    found = network.look(cells, responsibilities=components)
    return Facts(cells.values, found.posterior.mean, found.responsibilities, found.seen)


def choose_contrasts(filled: Array) -> Array:
    """Choose pairs of columns whose difference shows where the two deviate from each other.

    The difference of two magnitudes is a color. Trees, which split on one column at a time, find it
    with difficulty. Columns are in units of their standard deviation; for anticorrelated columns
    the sum is taken. The most correlated pairs come first. Columns that vary less from each other
    than each by itself have a scale in common: their plain differences follow.

    Returns
    -------
    array of shape (pairs, 4)
        First column, its factor, second column, its factor.

    Examples
    --------
    >>> V = np.array([0.0, 1.0, 2.0])
    >>> choose_contrasts(np.column_stack([V, -V])).round(2).tolist()
    [[0.0, 1.22, 1.0, 1.22]]
    >>> choose_contrasts(np.column_stack([V, V + [0.0, 0.1, 0.3]])).round(2).tolist()
    [[0.0, 1.22, 1.0, -1.06], [0.0, 1.0, 1.0, -1.0]]
    """
    spread = filled.std(axis=0)
    usable = np.flatnonzero(np.isfinite(spread) & (spread > 0))
    Z = (filled[:, usable] - filled[:, usable].mean(axis=0)) / spread[usable]
    alike = np.atleast_2d(Z.T @ Z / max(len(Z), 1))
    i, j = np.triu_indices(len(usable), 1)
    order = np.argsort(-np.abs(alike[i, j]), kind="stable")[:MOST_PAIRS]
    i, j = i[order], j[order]
    sign = np.where(alike[i, j] < 0, 1.0, -1.0)
    first, second = usable[i], usable[j]
    pairs = np.column_stack([first, 1 / spread[first], second, sign / spread[second]])
    apart = (filled[:, first] - filled[:, second]).std(axis=0)
    common = apart < np.minimum(spread[first], spread[second])
    plain = np.column_stack([first, np.ones(len(first)), second, -np.ones(len(first))])
    return np.concatenate([pairs, plain[common]])
