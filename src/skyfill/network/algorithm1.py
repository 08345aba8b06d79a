"""Algorithm 1 of Pichara & Protopapas (2013): K2 on completed tables, EM on the table with gaps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from skyfill.network import k2
from skyfill.network._array import Array
from skyfill.network.discretize import cut, quantile_edges
from skyfill.network.graph import Parents, union
from skyfill.network.margins import draw_margins
from skyfill.network.parameters import Fit, fit_standard
from skyfill.network.posterior import draws, find_gaps
from skyfill.network.rounds import EM_STEPS, EM_TOL, Options


def algorithm_1(Z: Array, names: tuple[str, ...], options: Options) -> Iterator[tuple[Fit, float]]:
    """Yield rounds; the score is the mean K2 score of the completed tables' graphs."""
    rng = options.rng
    gaps = find_gaps(Z, names)
    edges = quantile_edges(Z, options.n_bins)
    orders = [rng.permutation(len(names)).tolist() for _ in range(options.n_orders)]
    normal = rng.standard_normal((options.n_completions, int(np.isnan(Z).sum())))
    tables = draw_margins(Z, options.n_completions, rng)
    while True:
        graph, score = _united_graph([cut(table, edges) for table in tables], orders, options)
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
