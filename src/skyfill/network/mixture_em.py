"""EM for a mixture of Gaussians in normal scores, with gaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from skyfill.network._array import Array
from skyfill.network.bic import bic_search
from skyfill.network.blocks import in_blocks, one_by_one
from skyfill.network.graph import Parents
from skyfill.network.mixture import Mixture, Sorted
from skyfill.network.mixture_em_kernels import expect_mixture as _expect
from skyfill.network.parameters import regress

# A component's gap rate is estimated with at least this many extra rows of the overall rate.
GAP_PRIOR = 2.0
# Rates must differ by this many standard errors more than chance makes them differ.
GAP_DOUBT = 2.0
# A component's weight is estimated with this many extra rows.
WEIGHT_PRIOR = 1.0
MIN_VARIANCE = 1e-4
# How far the pooled covariance, to which components shrink, is itself drawn to its diagonal.
TO_DIAGONAL = 0.1


@dataclass(frozen=True)
class MixtureMoments:
    """Expected sums over rows of every component; parts of a table add up to the whole."""

    n: int
    origin: Array  # (k, p): the means that the sums are taken about
    weight: Array  # (k,): expected number of rows
    total: Array  # (k, p)
    cross: Array  # (k, p, p)
    gaps: Array  # (k, p): expected number of gaps
    loglik: float

    def __add__(self, other: MixtureMoments) -> MixtureMoments:
        if not np.array_equal(self.origin, other.origin):
            raise ValueError("moments about different origins do not add")
        return MixtureMoments(
            self.n + other.n,
            self.origin,
            self.weight + other.weight,
            self.total + other.total,
            self.cross + other.cross,
            self.gaps + other.gaps,
            self.loglik + other.loglik,
        )


class Plan(NamedTuple):
    """What a mixture shall look like."""

    n_components: int
    shrinkage: float
    arcs: str = "full"
    informative: bool = False


class Climb(NamedTuple):
    """A fitted mixture, the steps of EM that it took, and whether it settled."""

    mixture: Mixture
    n_iter: int
    converged: bool


def expect_parts(
    parts: Sequence[Sorted], mixture: Mixture, each: Callable[..., list[MixtureMoments]]
) -> MixtureMoments:
    """Sum the expected moments of parts; `each` maps over them, on one core or on many."""
    moments = each(lambda i: expect_mixture(parts[i], mixture), list(range(len(parts))))
    return sum(moments[1:], start=moments[0])


def expect_mixture(part: Sorted, mixture: Mixture) -> MixtureMoments:
    """Take the expected moments of a part of a table: the E-step."""
    components = in_blocks([mixture])
    sums = [np.zeros(a.shape) for a in (components.log_norms, components.means)]
    sums += [np.zeros(a.shape) for a in (components.precisions, components.means)]
    loglik = _expect(*part[:3], components, *sums)
    weight, total, cross, gaps = (one_by_one(a, len(mixture.weights)) for a in sums)
    lower = np.tril(cross)
    full = lower + np.tril(lower, -1).transpose(0, 2, 1)
    return MixtureMoments(len(part.Z), mixture.means, weight, total, full, gaps, loglik)


def maximize_mixture(
    moments: MixtureMoments, plan: Plan, graphs: tuple[Parents, ...] | None = None
) -> Mixture:
    """Best mixture for expected moments: the M-step.

    Covariances are drawn towards the pooled one, itself drawn a little to its diagonal, as by
    `shrinkage` extra rows; with graphs, every node is then regressed on its parents.
    """
    count = np.maximum(moments.weight, 1e-9)[:, None]
    shift = moments.total / count
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


def gap_rates(moments: MixtureMoments) -> Array:
    """Rates of gaps of the components, drawn to the overall ones as far as chance explains.

    With K components of n_k rows and an overall rate q, the sum of n_k (rate_k - q)^2 is about
    (K - 1) q (1 - q) where all have the same rate. What exceeds it gives the variance between
    components, and so the number of extra rows of the overall rate (the moments of a
    beta-binomial). Without that, components would learn chance patterns, and specialise on them.
    """
    count, k = np.maximum(moments.weight, 1e-9)[:, None], len(moments.weight)
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


def find_graphs(moments: MixtureMoments, plan: Plan, rng: Generator) -> tuple[Parents, ...] | None:
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


def climb(
    expect: Callable[[Mixture], MixtureMoments],
    start: Mixture,
    plan: Plan,
    *,
    rng: Generator,
    tol: float,
    max_iter: int,
) -> Climb:
    """EM; `expect` may sum over one array or over many. Arcs are searched once, when it settles."""
    mixture, last = start, -np.inf
    graphs: tuple[Parents, ...] | None = None
    for n_iter in range(1, max_iter + 1):
        moments = expect(mixture)
        settled = moments.loglik - last <= tol * moments.n
        last = moments.loglik
        if settled and (plan.arcs == "full" or graphs is not None):
            return Climb(mixture, n_iter, converged=True)
        if settled:
            graphs, last = find_graphs(moments, plan, rng), -np.inf
        mixture = maximize_mixture(moments, plan, graphs)
    return Climb(mixture, max_iter, converged=False)
