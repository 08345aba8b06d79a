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
from skyfill.network.single.bic import bic_search, prune
from skyfill.network.single.gaussian import GaussianNetwork
from skyfill.network.single.graph import Parents, bounded_union, follow_order, n_arcs, union
from skyfill.network.single.order_search import search_order
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

    rng: Generator
    score: str = "k2"
    max_parents: int | None = 3
    n_completions: int = 5
    n_orders: int = 12
    n_bins: int | None = None
    orders: str = "shared"
    tol: float = 1e-6
    max_iter: int = 20

    def __post_init__(self) -> None:
        if self.score not in SCORES:
            raise ValueError(f"score must be one of {', '.join(SCORES)}, not {self.score!r}")
        if self.orders not in GRAPHS:
            raise ValueError(f"orders must be one of {', '.join(GRAPHS)}, not {self.orders!r}")
        least = {"max_parents": 0, "n_completions": 1, "n_orders": 1, "n_bins": 2}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise ValueError(f"{name} must be at least {bound}, not {value}")

    @property
    def n_starts(self) -> int:
        """Random orders: starts of the search for one, or one for each completed table."""
        return self.n_orders if self.orders == "shared" else self.n_completions


# Numbers of bins tried where none is given. More bins separate a column better from what its
# parents depend on; the fewer are taken where they find this many times as many arcs.
BINS, CLEARLY = (2, 3), 1.4


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


class Found(NamedTuple):
    """The graph of completed tables, their mean score, and orders to start the next search from."""

    graph: Parents
    score: float
    orders: list[list[int]]


def algorithm_1(Z: Array, names: tuple[str, ...], options: Options) -> Iterator[tuple[Fit, float]]:
    """Yield iterations; the score is the mean K2 score of the completed tables' graphs."""
    rng = options.rng
    gaps, price = find_gaps(Z, names), arc_price(Z)
    orders = [rng.permutation(len(names)).tolist() for _ in range(options.n_starts)]
    normal = rng.standard_normal((options.n_completions, int(np.isnan(Z).sum())))
    tables = draw_univariate(Z, options.n_completions, rng)

    def learn(n_bins: int) -> tuple[Fit, Found]:
        edges = k2.quantile_edges(Z, n_bins)
        completed = [k2.cut(table, edges) for table in tables]
        found = GRAPHS[options.orders](completed, orders, options.max_parents)
        fit = fit_standard(Z, names, found.graph, tol=EM_TOL, max_iter=EM_STEPS)
        if options.orders == "shared":
            cov = expect(gaps, fit.network._joint).cov
            kept = prune(cov, len(Z), found.graph, price)
            if kept != found.graph:
                fit = fit_standard(Z, names, kept, tol=EM_TOL, max_iter=EM_STEPS)
        return fit, found

    n_bins = options.n_bins
    if n_bins is None:
        few, many = (n_arcs(learn(n)[0].network.parents) for n in BINS)
        n_bins = BINS[0] if few > CLEARLY * many else BINS[1]
    while True:
        fit, found = learn(n_bins)
        yield fit, found.score
        # From the same orders and with the same random numbers: the graph can settle.
        tables = draws(gaps, fit.network._joint, normal)
        orders = [*found.orders, *orders[-options.n_starts :]]


def _along_one_order(
    completed: list[k2.Codes], starts: list[list[int]], max_parents: int | None
) -> Found:
    """Unite the graphs of the completed tables along the order that suits them all best."""
    order = search_order(completed, max_parents, starts)
    graphs = [k2.search(codes, order, max_parents) for codes in completed]
    score = sum(graph.score for graph in graphs) / len(graphs)
    return Found(bounded_union([graph.parents for graph in graphs], max_parents), score, [order])


def _along_own_orders(
    completed: list[k2.Codes], orders: list[list[int]], max_parents: int | None
) -> Found:
    """Unite graphs along orders of their own, once their arcs follow that of the best."""
    pairs = list(zip(completed, orders, strict=True))
    graphs = [k2.search(codes, order, max_parents) for codes, order in pairs]
    scores = [graph.score for graph in graphs]
    common = orders[int(np.argmax(scores))]
    together = union([follow_order(graph.parents, common) for graph in graphs])
    return Found(together, float(np.mean(scores)), [])


GRAPHS = {"shared": _along_one_order, "own": _along_own_orders}


def arc_price(Z: Array) -> Array:
    """Price of each arc: log(n) / 2, times n / m if two columns were seen together in m rows."""
    n = len(Z)
    seen = (~np.isnan(Z)).astype(np.float64)
    with np.errstate(divide="ignore"):
        # Infinite where two columns are never seen together.
        return np.asarray(0.5 * np.log(n) * n / (seen.T @ seen))


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
    price = 0.5 * np.log(n)
    penalty = arc_price(Z)
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
    n_orders: int = 12,
    n_bins: int | None = None,
    orders: str = "shared",
    tol: float = 1e-6,
    max_iter: int = 20,
    rng: Rng = 0,
) -> Learned:
    """Learn arcs and parameters of a network from a table with gaps.

    ``score="k2"`` is Algorithm 1 of Pichara & Protopapas (2013): independent Gaussian mixtures
    fill several tables; K2 learns a graph from each; their union is fitted by EM to the table with
    gaps; the tables are redrawn from the posterior of the network; and so on. All graphs of a
    round follow one order of the columns, the best that a search over orders finds, so that their
    union has no cycle and no arc needs to be reversed. Bins of a parent do not hide its own parents
    completely, so that K2 takes some of those too: arcs whose coefficients EM finds to be worth
    less than their price in BIC are dropped. The random numbers stay the same in all iterations,
    which converge when the graph does. ``orders="own"`` is the algorithm as it was printed: every
    completed table has a random order of its own, arcs are reversed until all graphs follow the
    order of the best one, and the union is taken as it is.

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
        Most parents of a column; None for no limit. With ``orders="own"`` it limits each graph:
        arc reversals and the union add parents.
    n_completions, n_orders : int
        Completed tables per iteration and random starts of the search over orders (only "k2").
    n_bins : int, optional
        Quantile bins per column (only "k2"). On simulated networks of 300 to 50,000 rows two or
        three bins gave the best held-out likelihood: each further bin costs K2 weak arcs. By
        default three, or two where these find two fifths more arcs that EM confirms.
    orders : {"shared", "own"}
        One order for all completed tables, or one each (only "k2").
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
    how = (score, max_parents, n_completions, n_orders, n_bins, orders, tol, max_iter)
    options = Options(np.random.default_rng(rng), *how)
    _check(*X.shape)
    standard = standardize(X, names)
    with one_blas_thread():
        fit, trace, converged = learn_standard(standard.Z, names, options)
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
    Z: Array, names: tuple[str, ...], options: Options
) -> tuple[Fit, tuple[Step, ...], bool]:
    """Learn from a standardized table; says nothing of what it had to regularize."""
    return run(SCORES[options.score](Z, names, options), options.tol, options.max_iter)


def _check(n: int, p: int) -> None:
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
