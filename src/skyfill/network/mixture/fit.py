"""Fit one mixture to normal scores with gaps, limits and errors: starts, M-steps, EM."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from contextlib import nullcontext
from functools import partial
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.random import Generator

from skyfill.device import gpu_for
from skyfill.network._array import Array
from skyfill.network.cells import Cells, as_cells
from skyfill.network.mixture.factors import fit_factors
from skyfill.network.mixture.maps import Maps
from skyfill.network.mixture.mixture import Mixture, expect_parts, split
from skyfill.network.mixture.on_device import EM_WORTH_A_GPU, expect_on_device, load_scores
from skyfill.network.mixture.pooling import maximize_pooled
from skyfill.network.mixture.weighing import draw_scores
from skyfill.network.moments import Climb, Moments, accelerated_em, em
from skyfill.network.single.bic import bic_search
from skyfill.network.single.graph import Parents
from skyfill.network.single.parameters import fit_saturated, regress
from skyfill.network.single.posterior import Joint, draws, expect, find_gaps
from skyfill.progress import fit_cost, spent

# A component's gap rate is estimated with at least this many extra rows of the overall rate.
GAP_PRIOR = 2.0
# Rates must differ by this many standard errors more than chance makes them differ.
GAP_DOUBT = 2.0
# A component's weight is estimated with this many extra rows.
WEIGHT_PRIOR = 1.0
MIN_VARIANCE = 1e-4
# Arcs that were learned before; each node then keeps this share of its variance as noise.
GIVEN, LEAST_NOISE = "given", 1e-6
# How far the pooled covariance, to which components shrink, is itself drawn to its diagonal.
TO_DIAGONAL = 0.1
# Longest stride of accelerated EM, in steps; how far the first Gaussian is followed.
MAX_STRIDE, START_TOL, START_STEPS = 32.0, 1e-3, 60
# Rows that the plan is chosen on.
PLAN_ROWS = 6000
# The Gaussian of the rows of a table, from which all fits to them start; kept as long as the table.
_GAUSSIANS: WeakKeyDictionary[Cells, Joint] = WeakKeyDictionary()
_GAUSSIANS_WITHIN: WeakKeyDictionary[Cells, Mixture] = WeakKeyDictionary()
_ONE_AT_A_TIME = Lock()
# Tolerances where only choices and levels depend on a fit: with limits each step is dear.
TRIAL_TOL, TRIAL_TOL_LIMITS = 1e-3, 5e-3


class Plan(NamedTuple):
    """What a mixture shall look like."""

    n_components: int
    shrinkage: float
    arcs: str = "full"
    informative: bool = False
    pooling: tuple[float, ...] = ()  # of each column (pooling.py); empty without limits
    n_factors: int = 0  # of each component (factors.py); 0 where covariances have none
    maps: Maps = "ranks"  # of the columns (margin.py)


def trial_tol(plan: Plan) -> float:
    """How far EM is followed where only choices and levels depend on it."""
    return TRIAL_TOL_LIMITS if plan.pooling else TRIAL_TOL


def maximize_mixture(
    moments: Moments, plan: Plan, graphs: tuple[Parents, ...] | None = None
) -> Mixture:
    """Best mixture for expected moments: the M-step.

    Covariances are drawn towards the pooled one, itself drawn a little to its diagonal, as by
    `shrinkage` extra rows; with graphs, every node is then regressed on its parents. With
    `pooling` the regressions of columns on one another are drawn to common ones instead.
    """
    least = 0.0
    if plan.arcs == GIVEN:
        means, covs, least = moments.mean, moments.cov, LEAST_NOISE
    elif plan.pooling:
        means, covs = maximize_pooled(moments, plan.shrinkage, np.array(plan.pooling))
    else:
        means, covs = _maximize_shrunk(moments, plan.shrinkage)
    if graphs is not None:
        pairs = zip(covs, graphs, strict=True)
        covs = np.stack([project(cov, graph, least) for cov, graph in pairs])
    if plan.n_factors:
        covs = fit_factors(covs, plan.n_factors).covs
    weights = moments.weight + WEIGHT_PRIOR
    rates = gap_rates(moments) if plan.informative else None
    return Mixture(weights / weights.sum(), means, covs, rates, graphs)


def _maximize_shrunk(moments: Moments, shrinkage: float) -> tuple[Array, Array]:
    """Means, and covariances drawn to the pooled one."""
    count, shift = moments.count, moments.shift
    scatter = moments.cross - count[..., None] * shift[:, :, None] * shift[:, None, :]
    pooled = scatter.sum(axis=0) / moments.n
    diagonal = np.diag(np.maximum(np.diagonal(pooled), MIN_VARIANCE))
    covs = scatter + shrinkage * ((1 - TO_DIAGONAL) * pooled + TO_DIAGONAL * diagonal)
    covs /= count[..., None] + shrinkage
    # A component of fewer rows than columns has no spread in some direction: give it a little.
    lack = np.maximum(MIN_VARIANCE - np.linalg.eigvalsh(covs)[:, 0], 0.0)
    covs += lack[:, None, None] * np.eye(covs.shape[1])
    return moments.origin + shift, covs


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


def project(cov: Array, graph: Parents, least: float = 0.0) -> Array:
    """Covariance of the network with these arcs that fits a covariance best.

    Every node keeps at least the variance `least` as noise.
    """
    p = len(cov)
    b, noise = np.zeros((p, p)), np.empty(p)
    for child, family in enumerate(graph):
        weights, noise[child], _ = regress(cov, child, family)
        b[child, list(family)] = weights
    noise = np.maximum(noise, least)
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
    """EM; `expect` may sum over one array or over many.

    Arcs are searched once, when it settles; or they are those of the start, if they are given.
    """
    if plan.n_factors:
        return _climb_factors(expect, start, plan, tol=tol, max_iter=max_iter)
    climb = strides if plan.pooling else em
    if plan.arcs == GIVEN:
        maximize = partial(maximize_mixture, plan=plan, graphs=start.parents)
        return em(expect, maximize, start, tol=tol, max_iter=max_iter)
    found = climb(expect, partial(maximize_mixture, plan=plan), start, tol=tol, max_iter=max_iter)
    if plan.arcs == "full" or not found.converged:
        return found
    graphs = find_graphs(found.moments, plan, rng)
    maximize = partial(maximize_mixture, plan=plan, graphs=graphs)
    left = max_iter - len(found.trace)
    again = em(expect, maximize, maximize(found.moments), tol=tol, max_iter=left)
    return again._replace(trace=[*found.trace, *again.trace])


def _climb_factors(
    expect: Callable[[Mixture], Moments], start: Mixture, plan: Plan, *, tol: float, max_iter: int
) -> Climb[Mixture]:
    """EM with factors, each M-step from the noise of the one before: so the likelihood rises."""
    covs, noise = fit_factors(start.covs, plan.n_factors)
    start = start._replace(covs=covs)

    def maximize(moments: Moments) -> Mixture:
        nonlocal noise
        found = maximize_mixture(moments, plan._replace(n_factors=0))
        covs, noise = fit_factors(found.covs, plan.n_factors, noise)
        return found._replace(covs=covs)

    return em(expect, maximize, start, tol=tol, max_iter=max_iter)


def _change(a: Mixture, b: Mixture) -> float:
    """Largest move of a mean, by the root of its weight."""
    return float((np.abs(a.means - b.means) * np.sqrt(a.weights)[:, None]).max())


def _extrapolate(a: Mixture, b: Mixture, c: Mixture) -> Mixture:
    """Step of Varadhan & Roland (2008), in coordinates in which any step is allowed."""
    x, y, z = _coordinates(a), _coordinates(b), _coordinates(c)
    first, turn = y - x, z - 2 * y + x
    ratio = float(first @ first) / max(float(turn @ turn), 1e-300)
    size = min(max(ratio**0.5, 1.0), MAX_STRIDE)
    k, p = c.means.shape
    logs, means, lower = np.split(x + 2 * size * first + size**2 * turn, [k, k + k * p])
    root = np.zeros((k, p, p))
    at = np.tril_indices(p)
    root[:, at[0], at[1]] = lower.reshape(k, -1)
    diagonal = np.einsum("kjj->kj", root)
    diagonal[:] = np.exp(np.clip(diagonal, -12.0, 12.0))
    weights = np.exp(logs - logs.max())
    covs = root @ root.transpose(0, 2, 1)
    return c._replace(weights=weights / weights.sum(), means=means.reshape(k, p), covs=covs)


def _coordinates(mixture: Mixture) -> Array:
    """Give logs of weights, means, and Cholesky factors with logs of their diagonals."""
    root = np.linalg.cholesky(mixture.covs)
    diagonal = np.einsum("kjj->kj", root)
    diagonal[:] = np.log(diagonal)
    at = np.tril_indices(root.shape[1])
    lower = root[:, at[0], at[1]]
    return np.concatenate([np.log(mixture.weights), mixture.means.ravel(), lower.ravel()])


# EM with limits, which is slow by itself.
strides = partial(accelerated_em, extrapolate=_extrapolate, change=_change)


def fit_mixture(
    scores: Cells | Array,
    plan: Plan,
    rng: Generator,
    *,
    tol: float = 1e-3,
    max_iter: int = 200,
    resample: bool = False,
    each: Callable[..., list[Any]] = lambda work, items: list(map(work, items)),
) -> Climb[Mixture]:
    """Fit one mixture from one start; with `resample`, to as many rows drawn with replacement."""
    scores = as_cells(scores)
    if resample:
        scores = scores.take(rng.integers(len(scores), size=len(scores)))
    device = gpu_for(len(scores), EM_WORTH_A_GPU)
    parts = split(scores) if device is None else []
    there = () if device is None else load_scores(device, scores)

    def expect(mixture: Mixture) -> Moments:
        if device is not None:
            return expect_on_device(device, there, mixture)
        return expect_parts(parts, mixture, each)

    if scores.is_plain:
        full = _complete(scores, rng)
    else:
        # One draw completes the rows and undoes errors.
        one = _gaussian_within(scores, expect, is_shared=not resample)
        full = draw_scores(scores, (one,), 1, rng)[0]
    start = maximize_mixture(first_moments(scores.values, full, plan, rng), plan)
    found = climb_mixture(expect, start, plan, rng=rng, tol=tol, max_iter=max_iter)
    spent(fit_cost(len(scores), scores.values.shape[1], plan.n_components))
    return found


def first_moments(Z: Array, full: Array, plan: Plan, rng: Generator) -> Moments:
    """Moments of clusters of completed rows."""
    k = _count_distinct(full[:PLAN_ROWS], plan.n_components)
    labels = _cluster(full, k, rng, whiten=bool(plan.pooling))
    member = (labels[:, None] == np.arange(k)).astype(np.float64)
    return Moments(
        len(Z),
        np.zeros((k, Z.shape[1])),
        member.sum(axis=0),
        member.T @ full,
        np.einsum("nk,ni,nj->kij", member, full, full, optimize=True),
        member.T @ np.isnan(Z),
        -np.inf,
    )


def _count_distinct(rows: Array, most: int) -> int:
    """Count distinct rows, up to `most`; nearly always a few rows are enough to see."""
    for some in (rows[: 2 * most], rows):
        count = len(np.unique(some, axis=0))
        if count >= most:
            return most
    return count


def _complete(scores: Cells, rng: Generator) -> Array:
    """Complete rows by one draw from a single Gaussian."""
    Z = scores.values
    gaps = find_gaps(Z, tuple(str(j) for j in range(Z.shape[1])))
    with _ONE_AT_A_TIME:
        if scores not in _GAUSSIANS:
            cov = fit_saturated(lambda joint: expect(gaps, joint), Z.shape[1])
            # A column without a value in these rows has the mean of all normal scores.
            empty = np.isnan(Z).all(axis=0)
            mean = np.nanmean(np.where(empty, 0.0, Z), axis=0)
            _GAUSSIANS[scores] = Joint.from_cov(mean, cov)
    normal = rng.standard_normal((1, int(np.isnan(Z).sum())))
    return draws(gaps, _GAUSSIANS[scores], normal)[0]


def _gaussian_within(
    scores: Cells, expect: Callable[[Mixture], Moments], *, is_shared: bool
) -> Mixture:
    """Fit a single Gaussian within limits and errors; once if other fits share these rows."""
    p = scores.values.shape[1]
    known: MutableMapping[Cells, Mixture] = _GAUSSIANS_WITHIN if is_shared else {}
    with _ONE_AT_A_TIME if is_shared else nullcontext():
        if scores not in known:
            maximize = partial(maximize_mixture, plan=Plan(1, 1.0, pooling=(1.0,) * p))
            start = Mixture(np.ones(1), np.zeros((1, p)), np.eye(p)[None], None, None)
            found = strides(expect, maximize, start, tol=START_TOL, max_iter=START_STEPS)
            known[scores] = found.params
    return known[scores]


def _cluster(full: Array, k: int, rng: Generator, *, whiten: bool) -> Array:
    """Cluster completed rows; whitened, so that brightness does not outweigh the colours.

    Clusters of one brightness would have seen a band in all of their rows or in none.
    """
    if k == 1:
        return np.zeros(len(full))
    from sklearn.cluster import KMeans

    if whiten:
        values, axes = np.linalg.eigh(np.cov(full, rowvar=False))
        full = full @ (axes / np.sqrt(np.maximum(values, MIN_VARIANCE)))
    seed = int(rng.integers(2**31))
    means = KMeans(k, n_init=1, max_iter=20, random_state=seed).fit(full)
    return means.labels_
