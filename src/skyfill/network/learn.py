"""The door to structure learning: arcs and parameters from a table with gaps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from skyfill.errors import ConvergenceWarning, DataError, RegularizationWarning
from skyfill.network._array import Rng, as_table, check_names
from skyfill.network.algorithm1 import algorithm_1
from skyfill.network.gaussian import GaussianNetwork
from skyfill.network.rounds import Options, Step, run
from skyfill.network.standard import standardize
from skyfill.network.structural_em import PRIOR_ROWS, structural_em
from skyfill.threads import one_blas_thread

SCORES = {"k2": algorithm_1, "bic": structural_em}


class Learned(NamedTuple):
    """A learned network, what happened in each round, and whether the rounds settled."""

    network: GaussianNetwork
    trace: tuple[Step, ...]
    converged: bool


def learn_network(  # noqa: PLR0913 - every option of the algorithm
    X: ArrayLike,
    names: Sequence[str] | None = None,
    *,
    score: str = "k2",
    max_parents: int | None = 3,
    n_completions: int = 5,
    n_orders: int = 4,
    n_bins: int = 3,
    tol: float = 1e-6,
    max_iter: int = 20,
    rng: Rng = 0,
) -> Learned:
    """Learn arcs and parameters of a network from a table with gaps.

    ``score="k2"`` is Algorithm 1 of Pichara & Protopapas (2013): independent Gaussian mixtures
    fill several tables; K2 learns a graph from each; their union is fitted by EM to the table with
    gaps; the tables are drawn anew from the posterior of the network; and so on. All graphs of a
    round follow one order of the columns (of several tried, the one with the best total score), so
    that their union has no cycle and no arc needs to be reversed. The random numbers of the draws
    stay the same in all rounds: the rounds settle when the graph does.

    ``score="bic"`` is structural EM: the search sees only the expected covariance matrix. It starts
    from the covariance of all columns by EM, where an arc between columns that were seen together
    in m of n rows costs n / m times as much: their correlation is that much noisier.

    Parameters
    ----------
    X : array of shape (n, p)
        NaN is a gap; gaps are taken to be at random given what is seen.
    names : sequence of str, optional
        Names of the columns.
    score : {"k2", "bic"}
        How graphs are compared.
    max_parents : int or None
        Most parents of a column per graph; None for no limit (only with "bic"). A union of graphs
        may have more.
    n_completions, n_orders : int
        Completed tables per round and orders of the columns tried (only "k2").
    n_bins : int
        Quantile bins per column (only "k2"). On simulated networks of 300 to 50,000 rows two or
        three bins gave the best held-out likelihood: each further bin costs K2 weak arcs.
    tol : float
        The rounds settle when the score changes by less than this, relatively.
    max_iter : int
        Most rounds; reaching it gives a ConvergenceWarning.
    rng : int, numpy.random.Generator or None
        The same seed gives the same network, bit for bit, on any number of threads.

    Returns
    -------
    Learned
        `network`, `trace` (one `Step` per round) and `converged`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> V = rng.normal(18, 1, 500)
    >>> X = np.column_stack([V, V - 1 + rng.normal(0, 0.1, 500), rng.normal(0, 1, 500)])
    >>> X[rng.random(X.shape) < 0.1] = np.nan
    >>> learned = learn_network(X, ["V", "I", "noise"], score="bic")
    >>> [sorted(arc) for arc in learned.network.arcs]  # the direction of a lone arc is open
    [['I', 'V']]
    """
    X = as_table(X)
    names = check_names(names, X.shape[1])
    _check(X.shape, score)
    options = Options(max_parents, n_completions, n_orders, n_bins, np.random.default_rng(rng))
    standard = standardize(X, names)
    with one_blas_thread():
        rounds = SCORES[score](standard.Z, names, options)
        fit, trace, converged = run(rounds, tol, max_iter)
    if not converged:
        warnings.warn(
            f"the graph did not settle in {max_iter} rounds; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=2,
        )
    shift = standard.log_scale
    trace = tuple(step._replace(loglik=step.loglik - shift) for step in trace)
    return Learned(standard.restore(fit.network), trace, converged)


def _check(shape: tuple[int, ...], score: str) -> None:
    n, p = shape
    if score not in SCORES:
        raise ValueError(f"score must be one of {', '.join(SCORES)}, not {score!r}")
    if n < 3:
        raise DataError(f"{n} rows are too few to learn from; give at least three")
    if n <= p:
        warnings.warn(
            f"{n} rows for {p} columns do not determine a covariance matrix; it was drawn towards "
            f"independence as by {PRIOR_ROWS:g} extra row",
            RegularizationWarning,
            stacklevel=3,
        )
