"""One mixture of Gaussians in normal scores: its values, its fit by EM to a table with gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from skyfill.network._array import Array, IntArray
from skyfill.network.mixture import kernels
from skyfill.network.mixture.lanes import LANES
from skyfill.network.moments import Climb, Moments, em
from skyfill.network.single.bic import bic_search
from skyfill.network.single.graph import Parents
from skyfill.network.single.parameters import fit_saturated, regress
from skyfill.network.single.posterior import Joint, draws, expect, find_gaps

# Rows worked on at once: enough to share factorisations between rows with the same gaps, few
# enough that all components' means of all gaps stay near.
ROWS_AT_ONCE = 1024
# A component's gap rate is estimated with at least this many extra rows of the overall rate.
GAP_PRIOR = 2.0
# Rates must differ by this many standard errors more than chance makes them differ.
GAP_DOUBT = 2.0
# A component's weight is estimated with this many extra rows.
WEIGHT_PRIOR = 1.0
MIN_VARIANCE = 1e-4
# How far the pooled covariance, to which components shrink, is itself drawn to its diagonal.
TO_DIAGONAL = 0.1
# Rows that the plan is chosen on.
PLAN_ROWS = 6000


class Mixture(NamedTuple):
    """One fitted mixture, in normal scores.

    `parents` holds each component's graph; None where the covariances are full. `gap_rates` is
    None where gaps are ignorable.
    """

    weights: Array  # (k,)
    means: Array  # (k, p)
    covs: Array  # (k, p, p)
    gap_rates: Array | None  # (k, p)
    parents: tuple[Parents, ...] | None


class Sorted(NamedTuple):
    """A part of a table with its rows sorted by pattern of gaps, and its gaps in row order."""

    Z: Array
    order: IntArray
    starts: IntArray
    first_gap: IntArray
    row_of: IntArray
    column_of: IntArray


def sort_rows(Z: Array) -> Sorted:
    """Sort rows by their pattern of gaps."""
    lost = np.isnan(Z)
    words = np.packbits(lost, axis=1)
    order = np.lexsort(words.T[::-1]) if words.size else np.arange(len(Z))
    new = (words[order[1:]] != words[order[:-1]]).any(axis=1)
    ends = [len(Z)] if len(Z) else []  # an empty table has no pattern
    starts = np.concatenate([[0], np.flatnonzero(new) + 1, ends]).astype(np.int64)
    row_of, column_of = np.nonzero(lost)
    first_gap = np.concatenate([[0], np.cumsum(lost.sum(axis=1))[:-1]]).astype(np.int64)
    return Sorted(Z, order.astype(np.int64), starts, first_gap, row_of, column_of)


def split(Z: Array) -> list[Any]:
    """Cut a table into parts with their rows sorted by pattern."""
    return [sort_rows(Z[a : a + ROWS_AT_ONCE]) for a in range(0, len(Z), ROWS_AT_ONCE)]


def in_blocks(fits: Sequence[Mixture]) -> kernels.Components:
    """Lay all components of all fits out as the kernels want them."""
    covs = np.concatenate([fit.covs for fit in fits])
    precisions = np.linalg.inv(covs)
    precisions = (precisions + precisions.transpose(0, 2, 1)) / 2
    weights = np.concatenate([fit.weights for fit in fits])
    log_norms = np.log(weights) - 0.5 * np.linalg.slogdet(covs)[1]
    np.einsum("kjj->kj", precisions)[:] /= 2
    # Ignorable gaps add nothing to the likelihood.
    columns = 0 if fits[0].gap_rates is None else None
    lost, seen = (_side_by_side(logs[:, :columns]) for logs in gap_logs(fits))
    return kernels.Components(
        _side_by_side(np.concatenate([fit.means for fit in fits])),
        # Components of no weight fill the last block up; they can have any precision.
        _side_by_side(precisions, np.eye(covs.shape[1])),
        _side_by_side(log_norms, -np.inf),
        lost,
        seen,
        np.cumsum([0, *(len(fit.weights) for fit in fits)], dtype=np.int64),
    )


def _side_by_side(values: Array, more: Array | float = 0.0) -> Array:
    """Put the first axis in blocks of lanes at the end: (k, ...) to (blocks, ..., lanes)."""
    blocks = -(-len(values) // LANES)
    full = np.empty((blocks * LANES, *values.shape[1:]))
    full[: len(values)], full[len(values) :] = values, more
    return np.ascontiguousarray(np.moveaxis(full.reshape(blocks, LANES, *values.shape[1:]), 1, -1))


def one_by_one(blocks: Array, count: int) -> Array:
    """Undo it: (blocks, ..., lanes) to (k, ...)."""
    back = np.moveaxis(blocks, -1, 1)
    return back.reshape(-1, *back.shape[2:])[:count]


def gap_logs(fits: Sequence[Mixture]) -> tuple[Array, Array]:
    """Log probabilities that a cell is a gap, or is not; 0 where gaps are ignorable."""
    rates = [fit.gap_rates for fit in fits if fit.gap_rates is not None]
    if not rates:
        nothing = np.zeros((sum(len(fit.weights) for fit in fits), fits[0].means.shape[1]))
        return nothing, nothing
    return np.log(np.concatenate(rates)), np.log1p(-np.concatenate(rates))


class Plan(NamedTuple):
    """What a mixture shall look like."""

    n_components: int
    shrinkage: float
    arcs: str = "full"
    informative: bool = False


def expect_parts(
    parts: Sequence[Sorted], mixture: Mixture, each: Callable[..., list[Moments]]
) -> Moments:
    """Sum the expected moments of parts; `each` maps over them, on one core or on many."""
    moments = each(lambda i: expect_mixture(parts[i], mixture), list(range(len(parts))))
    return sum(moments[1:], start=moments[0])


def expect_mixture(part: Sorted, mixture: Mixture) -> Moments:
    """Take the expected moments of a part of a table: the E-step."""
    components = in_blocks([mixture])
    sums = [np.zeros(a.shape) for a in (components.log_norms, components.means)]
    sums += [np.zeros(a.shape) for a in (components.precisions, components.means)]
    loglik = kernels.add_moments(*part[:3], components, *sums)
    weight, total, cross, gaps = (one_by_one(a, len(mixture.weights)) for a in sums)
    lower = np.tril(cross)
    full = lower + np.tril(lower, -1).transpose(0, 2, 1)
    return Moments(len(part.Z), mixture.means, weight, total, full, gaps, loglik)


def maximize_mixture(
    moments: Moments, plan: Plan, graphs: tuple[Parents, ...] | None = None
) -> Mixture:
    """Best mixture for expected moments: the M-step.

    Covariances are drawn towards the pooled one, itself drawn a little to its diagonal, as by
    `shrinkage` extra rows; with graphs, every node is then regressed on its parents.
    """
    count, shift = moments.count, moments.shift
    scatter = moments.cross - count[..., None] * shift[:, :, None] * shift[:, None, :]
    pooled = scatter.sum(axis=0) / moments.n
    diagonal = np.diag(np.maximum(np.diagonal(pooled), MIN_VARIANCE))
    covs = scatter + plan.shrinkage * ((1 - TO_DIAGONAL) * pooled + TO_DIAGONAL * diagonal)
    covs /= count[..., None] + plan.shrinkage
    # A component of fewer rows than columns has no spread in some direction: give it a little.
    lack = np.maximum(MIN_VARIANCE - np.linalg.eigvalsh(covs)[:, 0], 0.0)
    covs += lack[:, None, None] * np.eye(covs.shape[1])
    if graphs is not None:
        covs = np.stack([project(cov, graph) for cov, graph in zip(covs, graphs, strict=True)])
    weights = moments.weight + WEIGHT_PRIOR
    rates = gap_rates(moments) if plan.informative else None
    return Mixture(weights / weights.sum(), moments.origin + shift, covs, rates, graphs)


def gap_rates(moments: Moments) -> Array:
    """Rates of gaps of the components, drawn to the overall ones as far as chance explains.

    With K components of n_k rows and an overall rate q, the sum of n_k (rate_k - q)^2 is about
    (K - 1) q (1 - q) where all have the same rate. What exceeds it gives the variance between
    components, and so the number of extra rows of the overall rate (the moments of a
    beta-binomial). Without that, components would learn chance patterns, and specialise on them.
    """
    count, k = moments.count, len(moments.total)
    n = float(count.sum())
    overall = (moments.gaps.sum(axis=0) + 0.5) / (n + 1.0)
    noise = overall * (1.0 - overall)
    by_chance = (k - 1 + GAP_DOUBT * np.sqrt(2.0 * (k - 1))) * noise
    between = (count * (moments.gaps / count - overall) ** 2).sum(axis=0) - by_chance
    between /= max(n - float((count**2).sum()) / n, 1.0)
    extra = np.maximum(noise / np.maximum(between, 1e-9 * noise) - 1.0, GAP_PRIOR)
    return np.asarray((moments.gaps + extra * overall) / (count + extra))


def project(cov: Array, graph: Parents) -> Array:
    """Covariance of the network with these arcs that fits a covariance best."""
    p = len(cov)
    b, noise = np.zeros((p, p)), np.empty(p)
    for child, family in enumerate(graph):
        weights, noise[child], _ = regress(cov, child, family)
        b[child, list(family)] = weights
    root = np.linalg.solve(np.eye(p) - b, np.diag(np.sqrt(noise)))
    return root @ root.T


def find_graphs(moments: Moments, plan: Plan, rng: Generator) -> tuple[Parents, ...] | None:
    """Arcs of the components: one graph for all (shared), one each (own), or none needed (full)."""
    if plan.arcs == "full":
        return None
    mixture = maximize_mixture(moments, plan)
    k, p = moments.total.shape
    if plan.arcs == "shared":
        within = np.einsum("k,kij->ij", moments.weight, mixture.covs) / moments.n
        penalty = np.full((p, p), 0.5 * np.log(moments.n))
        return (bic_search((within, moments.n), penalty, None, rng=rng),) * k
    return tuple(
        bic_search((cov, n), np.full((p, p), 0.5 * np.log(max(n, 3.0))), None, rng=rng)
        for cov, n in zip(mixture.covs, moments.weight, strict=True)
    )


def climb_mixture(
    expect: Callable[[Mixture], Moments],
    start: Mixture,
    plan: Plan,
    *,
    rng: Generator,
    tol: float,
    max_iter: int,
) -> Climb[Mixture]:
    """EM; `expect` may sum over one array or over many. Arcs are searched once, when it settles."""
    found = em(expect, lambda m: maximize_mixture(m, plan), start, tol=tol, max_iter=max_iter)
    if plan.arcs == "full" or not found.converged:
        return found
    graphs = find_graphs(found.moments, plan, rng)
    start, left = maximize_mixture(found.moments, plan, graphs), max_iter - len(found.trace)
    again = em(expect, lambda m: maximize_mixture(m, plan, graphs), start, tol=tol, max_iter=left)
    return again._replace(trace=[*found.trace, *again.trace])


def fit_mixture(
    Z: Array,
    plan: Plan,
    rng: Generator,
    *,
    tol: float = 1e-3,
    max_iter: int = 200,
    each: Callable[..., list[Any]] = lambda work, items: list(map(work, items)),
) -> Climb[Mixture]:
    """Fit one mixture from one start."""
    parts = split(Z)
    start = maximize_mixture(_first_moments(Z, plan, rng), plan)
    steps = partial(expect_parts, parts, each=each)
    return climb_mixture(steps, start, plan, rng=rng, tol=tol, max_iter=max_iter)


def _first_moments(Z: Array, plan: Plan, rng: Generator) -> Moments:
    """Moments of clusters of the rows, completed by one draw from a single Gaussian."""
    full = _complete(Z, rng)
    k = min(plan.n_components, len(np.unique(full[:PLAN_ROWS], axis=0)))
    labels = _cluster(full, k, rng)
    member = (labels[:, None] == np.arange(k)).astype(np.float64)
    cross = np.einsum("nk,ni,nj->kij", member, full, full, optimize=True)
    sums = (member.sum(axis=0), member.T @ full, cross, member.T @ np.isnan(Z))
    return Moments(len(Z), np.zeros((k, Z.shape[1])), *sums, -np.inf)


def _complete(Z: Array, rng: Generator) -> Array:
    gaps = find_gaps(Z, tuple(str(j) for j in range(Z.shape[1])))
    cov = fit_saturated(lambda joint: expect(gaps, joint), Z.shape[1])
    # A column without a value in these rows has none but the mean of all normal scores.
    empty = np.isnan(Z).all(axis=0)
    joint = Joint.from_cov(np.nanmean(np.where(empty, 0.0, Z), axis=0), cov)
    return draws(gaps, joint, rng.standard_normal((1, int(np.isnan(Z).sum()))))[0]


def _cluster(full: Array, k: int, rng: Generator) -> Array:
    if k == 1:
        return np.zeros(len(full))
    from sklearn.cluster import KMeans

    seed = int(rng.integers(2**31))
    means = KMeans(k, n_init=1, max_iter=20, random_state=seed).fit(full)
    return means.labels_
