"""Structural EM (Friedman 1997): a graph from expected moments, expected moments from the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from skyfill.network._array import Array
from skyfill.network.bic import bic_search
from skyfill.network.graph import n_arcs
from skyfill.network.parameters import Fit, em, fit_standard
from skyfill.network.posterior import Joint, Moments, expect, find_gaps
from skyfill.network.rounds import EM_STEPS, EM_TOL, Options

# The covariance of all columns is drawn towards independence as by this many extra rows.
PRIOR_ROWS = 1.0


def structural_em(
    Z: Array, names: tuple[str, ...], options: Options
) -> Iterator[tuple[Fit, float]]:
    """Yield rounds; the score is the observed-data BIC.

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
    cov = saturated_cov(lambda joint: expect(gaps, joint), p)
    graph = None
    while True:
        graph = bic_search((cov, n), penalty, options.max_parents, rng=options.rng, start=graph)
        fit = fit_standard(Z, names, graph, tol=EM_TOL, max_iter=EM_STEPS)
        yield fit, float(fit.trace[-1] - price * n_arcs(graph))
        cov = expect(gaps, fit.network._joint).cov
        penalty = np.full((p, p), price)


def saturated_cov(expect: Callable[[Joint], Moments], p: int) -> Array:
    """Covariance of all columns by EM, in standard units, with `PRIOR_ROWS` of independence."""

    def shrink(moments: Moments) -> Array:
        prior = PRIOR_ROWS * np.eye(p)
        return (moments.n * moments.cov + prior) / (moments.n + PRIOR_ROWS)

    def maximize(moments: Moments) -> Joint:
        return Joint.from_cov(moments.mean, shrink(moments))

    start = Joint.from_cov(np.zeros(p), np.eye(p))
    joint, _, _ = em(expect, maximize, start, tol=EM_TOL, max_iter=EM_STEPS)
    return shrink(expect(joint))
