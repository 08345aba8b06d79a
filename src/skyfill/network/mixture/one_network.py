"""One Gaussian network with arcs, held as a mixture of one component: it does what mixtures do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skyfill.network._array import Array, IntArray, Rng, check_names, check_seen
from skyfill.network.cells import Cells, as_cells
from skyfill.network.mixture.fit import GIVEN, Plan, climb_mixture, project
from skyfill.network.mixture.learn import LearnedMixture
from skyfill.network.mixture.maps import map_columns
from skyfill.network.mixture.mixture import Mixture, expect_parts, split
from skyfill.network.mixture.network import MixtureNetwork
from skyfill.network.moments import Climb, Moments
from skyfill.network.single.graph import Parents
from skyfill.network.single.learn import Options, learn_standard
from skyfill.network.single.parameters import Fit, standardize
from skyfill.threads import map_threads, one_blas_thread

# With fewer rows no arc can be learned.
LEAST_ROWS = 3
# EM of the parameters, once the arcs are known.
EM_TOL, EM_STEPS = 1e-6, 500


def learn_one_network(
    X: ArrayLike | Cells,
    names: Sequence[str] | None = None,
    *,
    margins: bool = False,
    n_bootstraps: int = 0,
    rng: Rng = 0,
    **options: Any,
) -> LearnedMixture:
    """Learn one Gaussian network with arcs, and hold it as a mixture of one component.

    The arcs are those of `learn_network`: by Algorithm 1 of Pichara & Protopapas (2013), or by
    structural EM. The parameters then come from all cells, limits and errors included. A column
    with one value has no arcs.

    Parameters
    ----------
    X : array of shape (n, p), or Cells
        NaN is a gap. Arcs are learned from values alone: there, a limit is a gap.
    names : sequence of str, optional
        Names of the columns.
    margins : bool
        Map columns to normal scores first; otherwise they are only standardised, as in the paper.
    n_bootstraps : int
        Resamples of the rows; the share of them that link two columns is the strength of an arc.
    rng : int, numpy.random.Generator or None
        The same seed gives the same network on any number of threads.
    **options
        `score`, `max_parents`, `n_completions`, `n_orders`, `n_bins`, `orders`, `tol` and
        `max_iter`, as in `learn_network`.

    Returns
    -------
    LearnedMixture
        Its `network` has one fit of one component, with its graph.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> V = rng.normal(18, 1, 500)
    >>> X = np.column_stack([V, V - 1 + rng.normal(0, 0.1, 500), rng.normal(0, 1, 500)])
    >>> network = learn_one_network(X, ["V", "I", "noise"]).network
    >>> [sorted(arc) for arc in network.arcs()]
    [['I', 'V']]
    """
    cells = as_cells(X)
    names = check_names(names, cells.values.shape[1])
    check_seen(cells.values, names)
    how = Options(np.random.default_rng(rng), **options)
    with one_blas_thread():
        bare = MixtureNetwork(names, map_columns(cells, "ranks" if margins else "linear"), ())
        scores = bare.score_cells(cells)
        start, converged = _start(scores.values, names, how)
        found = _climb(scores, start)
        strength = _link_shares(scores.values, names, how, n_bootstraps)
    network = replace(bare, fits=(found.params,), strength=strength)
    plan = Plan(1, 0.0, GIVEN)
    return LearnedMixture(network, plan, (), found.n_iter, converged and found.converged)


def refit(network: MixtureNetwork, cells: Cells) -> MixtureNetwork:
    """Fit the parameters of a network to other rows; its arcs and margins stay."""
    found = _climb(network.score_cells(cells), network.fits[0])
    return replace(network, fits=(found.params,))


def _link_shares(
    Z: Array, names: tuple[str, ...], options: Options, n_samples: int
) -> Array | None:
    """Share of bootstrap samples of the rows whose graphs link two columns, shape (p, p)."""
    links, drawn = np.zeros((Z.shape[1],) * 2), 0
    for rng in np.random.default_rng(0).spawn(n_samples):
        sample = Z[rng.integers(len(Z), size=len(Z))]
        if np.isnan(sample).all(axis=0).any():  # a column that few rows have
            continue
        drawn += 1
        learned, _ = _start(sample, names, replace(options, rng=rng))
        for child, family in enumerate((learned.parents or ())[0]):
            links[child, list(family)] += 1
            links[list(family), child] += 1
    return links / drawn if drawn else None


def _start(Z: Array, names: tuple[str, ...], options: Options) -> tuple[Mixture, bool]:
    """Learn arcs and parameters from values; columns with one value stay alone."""
    p = len(names)
    varied = np.flatnonzero(np.nanmin(Z, axis=0) < np.nanmax(Z, axis=0)).astype(np.int64)
    alone: Parents = ((),) * p
    if len(Z) < LEAST_ROWS or varied.size < 2:
        return _as_mixture(np.zeros(p), np.eye(p), alone), True
    mine = tuple(names[j] for j in varied)
    standard = standardize(Z[:, varied], mine)
    fit, _, converged = learn_standard(standard.Z, mine, options)
    return _widen(fit._replace(network=standard.restore(fit.network)), varied, p), converged


def _widen(fit: Fit, varied: IntArray, p: int) -> Mixture:
    """Put the columns that were left out beside the others, without arcs."""
    mean, cov = np.zeros(p), np.eye(p)
    graph: list[tuple[int, ...]] = [()] * p
    joint = fit.network.joint()
    mean[varied], cov[np.ix_(varied, varied)] = joint
    for child, family in enumerate(fit.network.parents):
        graph[varied[child]] = tuple(int(varied[k]) for k in family)
    return _as_mixture(mean, cov, tuple(graph))


def _as_mixture(mean: Array, cov: Array, graph: Parents) -> Mixture:
    covs = project(cov, graph)[None]
    return Mixture(np.ones(1), mean[None], covs, None, (graph,))


def _climb(scores: Cells, start: Mixture) -> Climb[Mixture]:
    parts = split(scores)

    def expect(mixture: Mixture) -> Moments:
        return expect_parts(parts, mixture, map_threads)

    return climb_mixture(
        expect,
        start,
        Plan(1, 0.0, GIVEN),
        rng=np.random.default_rng(0),
        tol=EM_TOL,
        max_iter=EM_STEPS,
    )
