"""Choose what mixtures look like by the likelihood of held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from skyfill.network.cells import Cells
from skyfill.network.mixture.fit import PLAN_ROWS, Plan, fit_mixture, trial_tol
from skyfill.network.mixture.maps import Maps
from skyfill.network.mixture.mixture import Mixture, expect_parts, split
from skyfill.threads import map_threads

Score = Callable[[Plan], float]
# Components tried, in this order, while held-out likelihood rises; and shrinkages at the best.
COMPONENTS = (1, 2, 4, 8, 12, 16, 24, 32, 48)
SHRINKAGES = (2.0, 5.0, 15.0)
FIRST_SHRINKAGE = 5.0
# Factors tried, of less than half of the columns, and the first number of them; columns from which
# on they are tried by default.
FACTORS, FIRST_FACTORS, WIDE = (1, 2, 4, 8, 12, 16, 24, 32), 8, 20
# Share of the rows held out while the plan is chosen.
HELD_OUT = 0.25
# A table of fewer rows is held out in turn, quarter by quarter: one quarter is too few rows.
ONE_FOLD_ROWS = 1000
# With fewer rows than this nothing can be held out: the first of all choices is taken.
LEAST_ROWS = 12
# Rows that each component must have for each number per column that it has.
ROWS_PER_NUMBER = 4
ARCS, GAPS = ("full", "factors", "shared", "own"), ("ignorable", "informative")


@dataclass(frozen=True)
class Asked:
    """Choices that are open: the values that each part of a plan may take."""

    components: tuple[int, ...]
    shrinkages: tuple[float, ...]
    arcs: tuple[str, ...]
    factors: tuple[int, ...]
    gaps: tuple[str, ...]


def ask(
    n_components: int | str, shrinkage: float | str, arcs: str, n_factors: int | str, gaps: str
) -> Asked:
    """Turn the options of `learn_mixture` into the choices that they leave open.

    Examples
    --------
    >>> ask(8, 5.0, "none", "auto", "auto").gaps
    ('ignorable', 'informative')
    """
    if arcs not in (*ARCS, "none", "auto"):
        raise ValueError(f"arcs must be one of none, {', '.join(ARCS)} or auto, not {arcs!r}")
    if gaps not in (*GAPS, "auto"):
        raise ValueError(f"gaps must be one of {', '.join(GAPS)} or auto, not {gaps!r}")
    kinds = {"auto": ARCS, "none": ARCS[:2]}
    return Asked(
        COMPONENTS if isinstance(n_components, str) else (n_components,),
        SHRINKAGES if isinstance(shrinkage, str) else (float(shrinkage),),
        kinds.get(arcs, (arcs,)),
        FACTORS if isinstance(n_factors, str) else (n_factors,),
        GAPS if gaps == "auto" else (gaps,),
    )


def choose_plan(
    scores: Cells,
    asked: Asked,
    rng: Generator,
    *,
    pooling: tuple[float, ...] = (),
    maps: Maps = "ranks",
) -> tuple[Plan, tuple[tuple[Plan, float], ...]]:
    """Settle one part of the plan after the other by held-out observed-data likelihood per row."""
    first = FIRST_SHRINKAGE if FIRST_SHRINKAGE in asked.shrinkages else asked.shrinkages[0]
    informative = asked.gaps[0] == "informative"
    # Components are first counted, and shrinkage is chosen, for full covariances.
    arcs = "full" if asked.arcs[0] == "factors" else asked.arcs[0]
    plan = Plan(asked.components[0], first, arcs, informative, pooling, maps=maps)
    n, p = scores.values.shape
    if n < LEAST_ROWS:
        return plan._replace(n_components=min(plan.n_components, n)), ()
    folds = _folds(scores.take(rng.permutation(n)[:PLAN_ROWS]))
    seed = int(rng.integers(2**31))
    tries: dict[Plan, float] = {}

    def score(trial: Plan) -> float:
        if trial not in tries:
            found = []
            for held, train in folds:
                seeded = np.random.default_rng(seed)
                fit = fit_mixture(train, trial, seeded, tol=trial_tol(trial), each=map_threads)
                found.append(held_out(fit.params, held, train))
            tries[trial] = float(np.mean(found))
        return tries[trial]

    size = min(len(train) for _, train in folds), p
    plan = _rise([plan._replace(n_components=k) for k in _usable(asked, size)], score)
    plan = _best([plan._replace(shrinkage=a) for a in asked.shrinkages], score)
    plan = _best([_with_arcs(plan, arcs, asked, size, score) for arcs in asked.arcs], score)
    plan = _best([plan._replace(informative=g == "informative") for g in asked.gaps], score)
    return plan, tuple(tries.items())


def _usable(asked: Asked, size: tuple[int, int], n_factors: int = 0) -> list[int]:
    """Numbers of components that rows suffice for: each has some numbers per column."""
    n, p = size
    numbers = min(n_factors + 1.0, p / 2) if n_factors else p / 2
    few = [k for k in asked.components if k == 1 or ROWS_PER_NUMBER * k * numbers <= n]
    return few if len(asked.components) > 1 else list(asked.components)


def _with_arcs(plan: Plan, arcs: str, asked: Asked, size: tuple[int, int], score: Score) -> Plan:
    """Give a plan with these arcs; with factors, also their number, and more components."""
    if arcs != "factors":
        return plan._replace(arcs=arcs)
    factors = [q for q in asked.factors if 2 * q < size[1]] or [1]
    start = FIRST_FACTORS if FIRST_FACTORS in factors else factors[-1]

    def near(plan: Plan) -> list[Plan]:
        counts = _usable(asked, size, plan.n_factors)
        more = [k for k in counts if k > plan.n_components][:1]
        at = factors.index(plan.n_factors)
        beside = factors[max(at - 1, 0) : at] + factors[at + 1 : at + 2]
        found = [plan._replace(n_factors=q) for q in beside]
        return [plan._replace(n_components=k) for k in more] + found

    return _walk(plan._replace(arcs=arcs, n_factors=start), near, score)


def _walk(best: Plan, near: Callable[[Plan], list[Plan]], score: Score) -> Plan:
    """Go to the best neighbour as long as there is a better one."""
    while True:
        step = _best([best, *near(best)], score)
        if step == best:
            return best
        best = step


def _folds(scores: Cells) -> list[tuple[Cells, Cells]]:
    """Held-out and training rows: a quarter of a large table, each quarter in turn of a small."""
    n = len(scores)
    n_held = max(int(HELD_OUT * n), 1)
    n_folds = 1 if n >= ONE_FOLD_ROWS else round(1 / HELD_OUT)
    held = [(np.arange(n) // n_held) == fold for fold in range(n_folds)]
    return [(scores.take(rows), scores.take(~rows)) for rows in held]


def _best(plans: list[Plan], score: Score) -> Plan:
    return plans[0] if len(plans) == 1 else max(plans, key=score)


def _rise(plans: list[Plan], score: Score) -> Plan:
    """Try plans in order; stop when two in a row are worse than the best."""
    if len(plans) == 1:
        return plans[0]
    best, idle = plans[0], 0
    for plan in plans:
        better = score(plan) > score(best)
        best, idle = (plan, 0) if better else (best, idle + (plan != best))
        if idle == 2:
            break
    return best


def held_out(mixture: Mixture, held: Cells, train: Cells) -> float:
    """Mean log-likelihood of held-out rows and their patterns of gaps.

    Where gaps are ignorable, each column has one probability of a gap for all rows: so the two
    kinds of mixture are compared on the same data.
    """
    value = expect_parts(split(held), mixture, map_threads).loglik / len(held)
    if mixture.gap_rates is None:
        rate = (np.isnan(train.values).sum(axis=0) + 0.5) / (len(train) + 1.0)
        lost = np.isnan(held.values).mean(axis=0)
        value += float((lost * np.log(rate) + (1 - lost) * np.log1p(-rate)).sum())
    return value
