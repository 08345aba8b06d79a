"""Rounds of structure learning: what is asked for, what one round gives, when to stop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from numpy.random import Generator

from skyfill.network.graph import n_arcs
from skyfill.network.parameters import Fit

EM_TOL, EM_STEPS = 1e-6, 500


@dataclass(frozen=True)
class Options:
    """What `learn_network` was asked for."""

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
    """One round of learning: score of the graph, observed-data log-likelihood, number of arcs."""

    score: float
    loglik: float
    n_arcs: int


def run(
    rounds: Iterator[tuple[Fit, float]], tol: float, max_iter: int
) -> tuple[Fit, tuple[Step, ...], bool]:
    """Take rounds until graph or score settles; the best-scoring round since then is the result."""
    trace: list[Step] = []
    fits: list[Fit] = []
    since: int | None = None
    for fit, score in islice(rounds, max_iter):
        trace.append(Step(score, float(fit.trace[-1]), n_arcs(fit.network.parents)))
        fits.append(fit)
        since = _settled(trace, fits, tol)
        if since is not None:
            break
    best = max(range(since or 0, len(trace)), key=lambda t: trace[t].score)
    return fits[best], tuple(trace), since is not None


def _settled(trace: list[Step], fits: list[Fit], tol: float) -> int | None:
    """Round since which nothing new happens: a graph came back, or the score stands still."""
    met = [fit.network.parents for fit in fits]
    if met[-1] in met[:-1]:
        return met.index(met[-1])
    if len(trace) > 1 and abs(trace[-1].score - trace[-2].score) <= tol * abs(trace[-1].score):
        return len(trace) - 1
    return None
