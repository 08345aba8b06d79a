"""Structure learning: arcs and parameters of a network from a table with gaps."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from skyfill.errors import ConvergenceWarning, DataError, RegularizationWarning
from skyfill.network._array import Array, Rng, as_table, check_names
from skyfill.network.single import k2
from skyfill.network.single.bic import bic_search
from skyfill.network.single.gaussian import GaussianNetwork
from skyfill.network.single.graph import Parents, n_arcs, union
from skyfill.network.single.parameters import (
    EM_STEPS,
    EM_TOL,
    PRIOR_ROWS,
    Fit,
    fit_saturated,
    fit_standard,
    standardize,
    warn_singular,
)
from skyfill.network.single.posterior import draws, expect, find_gaps
from skyfill.network.single.univariate import draw_univariate
from skyfill.threads import one_blas_thread


@dataclass(frozen=True)
class Options:
    """The options of `learn_network`."""

    max_parents: int | None
    n_completions: int
    n_orders: int
    n_bins: int
    rng: Generator

    def __post_init__(self) -> None:
        least = {"max_parents": 0, "n_completions": 1, "n_orders": 1, "n_bins": 2}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise ValueError(f"{name} must be at least {bound}, not {value}")


class Step(NamedTuple):
    """One iteration: score of the graph, observed-data log-likelihood, number of arcs."""

    score: float
    loglik: float
    n_arcs: int


class Learned(NamedTuple):
    """A learned network, the record of each iteration, and whether they converged."""

    network: GaussianNetwork
    trace: tuple[Step, ...]
    converged: bool


def algorithm_1(Z: Array, names: tuple[str, ...], options: Options) -> Iterator[tuple[Fit, float]]:
    """Yield iterations; the score is the mean K2 score of the completed tables' graphs."""
    rng = options.rng
    gaps = find_gaps(Z, names)
    edges = k2.quantile_edges(Z, options.n_bins)
    orders = [rng.permutation(len(names)).tolist() for _ in range(options.n_orders)]
    normal = rng.standard_normal((options.n_completions, int(np.isnan(Z).sum())))
    tables = draw_univariate(Z, options.n_completions, rng)
    while True:
        graph, score = _united_graph([k2.cut(table, edges) for table in tables], orders, options)
        fit = fit_standard(Z, names, graph, tol=EM_TOL, max_iter=EM_STEPS)
        yield fit, score
        tables = draws(gaps, fit.network._joint, normal)


def _united_graph(
    completed: list[k2.Codes], orders: list[list[int]], options: Options
) -> tuple[Parents, float]:
    """Union of the completed tables' graphs along the order that suits them all best."""
    found = [
        [k2.search(codes, order, options.max_parents) for codes in completed] for order in orders
    ]
    best = max(found, key=lambda graphs: sum(graph.score for graph in graphs))
    score = sum(graph.score for graph in best) / len(completed)
    return union([graph.parents for graph in best]), score


def structural_em(
    Z: Array, names: tuple[str, ...], options: Options
) -> Iterator[tuple[Fit, float]]:
    """Yield iterations; the score is the observed-data BIC.

    The first search sees the covariance of all columns by EM. If two columns were seen together in
    m of n rows, their partial correlation has about n / m times the variance that it would have
    without gaps, and so has the gain that chance gives to a false arc: an arc costs n / m times
    log(n) / 2. Later searches see moments expected under the network itself, in which an absent
    arc has been left out of the filled cells: the plain penalty is right there.
    """
    n, p = Z.shape
    gaps = find_gaps(Z, names)
    seen = (~np.isnan(Z)).astype(np.float64)
    together = seen.T @ seen
    price = 0.5 * np.log(n)
    with np.errstate(divide="ignore"):
        penalty = price * n / together  # infinite where two columns are never seen together
    cov = fit_saturated(lambda joint: expect(gaps, joint), p)
    graph = None
    while True:
        graph = bic_search((cov, n), penalty, options.max_parents, rng=options.rng, start=graph)
        fit = fit_standard(Z, names, graph, tol=EM_TOL, max_iter=EM_STEPS)
        yield fit, float(fit.trace[-1] - price * n_arcs(graph))
        cov = expect(gaps, fit.network._joint).cov
        penalty = np.full((p, p), price)


SCORES = {"k2": algorithm_1, "bic": structural_em}


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
    gaps; the tables are redrawn from the posterior of the network; and so on. All graphs of a
    round follow one order of the columns (of several tried, the one with the best total score), so
    that their union has no cycle and no arc needs to be reversed. The random numbers of the draws
    stay the same in all iterations, which converge when the graph does.

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
        Completed tables per iteration and orders of the columns tried (only "k2").
    n_bins : int
        Quantile bins per column (only "k2"). On simulated networks of 300 to 50,000 rows two or
        three bins gave the best held-out likelihood: each further bin costs K2 weak arcs.
    tol : float
        The iterations stop when the score changes by less than this fraction.
    max_iter : int
        Maximum number of iterations; reaching it gives a ConvergenceWarning.
    rng : int, numpy.random.Generator or None
        The same seed gives the same network, bit for bit, on any number of threads.

    Returns
    -------
    Learned
        `network`, `trace` (one `Step` per iteration) and `converged`.

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
        fit, trace, converged = learn_standard(
            standard.Z, names, options, score=score, tol=tol, max_iter=max_iter
        )
        warn_singular(standard.Z, fit.network)
    if not converged:
        warnings.warn(
            f"the graph did not converge in {max_iter} iterations; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=2,
        )
    shift = standard.log_scale
    trace = tuple(step._replace(loglik=step.loglik - shift) for step in trace)
    return Learned(standard.restore(fit.network), trace, converged)


def learn_standard(
    Z: Array,
    names: tuple[str, ...],
    options: Options,
    *,
    score: str,
    tol: float,
    max_iter: int,
) -> tuple[Fit, tuple[Step, ...], bool]:
    """Learn from a standardized table; says nothing of what it had to regularize."""
    check_score(score)
    return run(SCORES[score](Z, names, options), tol, max_iter)


def check_score(score: str) -> None:
    """Refuse a score that does not exist."""
    if score not in SCORES:
        raise ValueError(f"score must be one of {', '.join(SCORES)}, not {score!r}")


def _check(shape: tuple[int, ...], score: str) -> None:
    n, p = shape
    check_score(score)
    if n < 3:
        raise DataError(f"{n} rows are too few to learn from; give at least three")
    if n <= p:
        warnings.warn(
            f"{n} rows for {p} columns do not determine a covariance matrix; it was drawn towards "
            f"independence as by {PRIOR_ROWS:g} extra row",
            RegularizationWarning,
            stacklevel=3,
        )


def run(
    rounds: Iterator[tuple[Fit, float]], tol: float, max_iter: int
) -> tuple[Fit, tuple[Step, ...], bool]:
    """Iterate until the graph or the score converges; return the best iteration since then."""
    trace: list[Step] = []
    fits: list[Fit] = []
    since: int | None = None
    for fit, score in islice(rounds, max_iter):
        trace.append(Step(score, float(fit.trace[-1]), n_arcs(fit.network.parents)))
        fits.append(fit)
        since = _converged(trace, fits, tol)
        if since is not None:
            break
    best = max(range(since or 0, len(trace)), key=lambda t: trace[t].score)
    return fits[best], tuple(trace), since is not None


def _converged(trace: list[Step], fits: list[Fit], tol: float) -> int | None:
    """Find the iteration since which a graph recurs or the score stays the same."""
    met = [fit.network.parents for fit in fits]
    if met[-1] in met[:-1]:
        return met.index(met[-1])
    if len(trace) > 1 and abs(trace[-1].score - trace[-2].score) <= tol * abs(trace[-1].score):
        return len(trace) - 1
    return None
