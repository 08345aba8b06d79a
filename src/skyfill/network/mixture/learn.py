"""Learn mixtures of networks from a table with gaps: margins, plan by held-out likelihood, fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from skyfill.network._array import Array, BoolArray, Rng, check_names, check_seen
from skyfill.network.cells import Cells, as_cells
from skyfill.network.mixture.beyond import choose_pooling, learn_doubt, with_support
from skyfill.network.mixture.calibration import fit_levels, uncertain_levels
from skyfill.network.mixture.few_values import FEW_SEEN, SOME_SEEN, isolate, with_single_values
from skyfill.network.mixture.fit import PLAN_ROWS, Plan, fit_mixture, trial_tol
from skyfill.network.mixture.map_choice import (
    MAP_COMPONENTS,
    choose_limited_maps,
    choose_noisy_maps,
    choose_plain_maps,
)
from skyfill.network.mixture.maps import Maps, find_positive, map_columns, unless_ranks
from skyfill.network.mixture.mixture import Mixture
from skyfill.network.mixture.network import BySpread, MixtureNetwork
from skyfill.network.mixture.plan_choice import FIRST_SHRINKAGE, WIDE, ask, choose_plan
from skyfill.network.mixture.rehearsal import (
    Rehearsal,
    calibrate_limits,
    choose_fewer,
    rehearse,
)
from skyfill.network.mixture.support import USUAL_DOUBT
from skyfill.network.moments import Climb
from skyfill.threads import map_threads, one_blas_thread

# How strongly regressions of columns with limits are shared (pooling.py).
POOLING = 3.0
# Tables with fewer rows than this give too few held-out cells to calibrate with: their intervals
# are widened by theory, which counts a column's map as so many parameters.
CALIBRATION_ROWS = 200
MAP_PARAMETERS = 2
# The averaged fits have between these shares of the chosen number of components.
SPREAD = (0.6, 1.2)


Levels = tuple[Array | None, BySpread | None]


@dataclass(frozen=True)
class LearnedMixture:
    """A learned mixture, the plan that held-out rows chose, and what each trial scored."""

    network: MixtureNetwork
    plan: Plan
    trials: tuple[tuple[Plan, float], ...]
    n_iter: int
    converged: bool


def learn_mixture(  # noqa: PLR0913 - every option of the model
    X: ArrayLike | Cells,
    names: Sequence[str] | None = None,
    *,
    n_components: int | str = "auto",
    shrinkage: float | str = "auto",
    arcs: str = "none",
    n_factors: int | str = "auto",
    gaps: str = "ignorable",
    margins: bool = True,
    calibrate: bool = True,
    n_fits: int = 8,
    tol: float = 5e-4,
    max_iter: int = 300,
    fluxes: Sequence[bool | None] | None = None,
    rng: Rng = 0,
) -> LearnedMixture:
    """Learn a mixture of networks; what is "auto" is chosen by held-out likelihood.

    Parameters
    ----------
    X : array of shape (n, p), or Cells
        NaN is a gap. `Cells` hold limits and errors as well: then the distribution learned is that
        of the values without their errors, beyond what was detected.
    names : sequence of str, optional
        Names of the columns.
    n_components : int or "auto"
        Components of a fit.
    shrinkage : float or "auto"
        Covariances are drawn towards the pooled one as by this many extra rows.
    arcs : {"none", "full", "factors", "shared", "own", "auto"}
        Components with full covariances, with covariances of a few factors, with one graph for all,
        or with a graph each. "none" is full, or factors if a table of 20 columns or more without
        limits gains from them; "auto" is the best of all.
    n_factors : int or "auto"
        Factors of a component, where it has factors.
    gaps : {"ignorable", "informative", "auto"}
        Whether every component has its own probability that a cell is a gap, so that the pattern
        of gaps is evidence of which components a row comes from.
    margins : bool
        Map columns to normal scores first; otherwise they are only standardised.
    calibrate : bool
        Fit the calibration of quantiles and intervals as well, on held-out rows of a table of at
        least 200 rows; it needs one to four times as many fits more as are averaged. Intervals of
        smaller tables are widened as the uncertainty of the parameters demands.
    n_fits : int
        Fits from different starts that are averaged.
    tol, max_iter : float, int
        EM stops when a step gains less than `tol` per row, or after `max_iter` steps.
    fluxes : sequence of bool or None, optional
        Whether each column is a flux; None if that is not known. Unless ranks are taken, fluxes
        whose measured values are all positive are mapped by their logarithms; with limits or
        errors, so are positive columns of unknown kind that have upper limits or span more than a
        decade. Magnitudes are no fluxes.
    rng : int, numpy.random.Generator or None
        The same seed gives the same model on any number of threads.

    Returns
    -------
    LearnedMixture
        `network` (a MixtureNetwork), `plan`, `trials` and `converged`.
    """
    cells = as_cells(X)
    names = check_names(names, cells.values.shape[1])
    n_seen = check_seen(cells.values, names)
    counts = {"n_components": n_components, "n_factors": n_factors, "n_fits": n_fits}
    for what, value in counts.items():
        if not isinstance(value, str) and (value < 1 or value != int(value)):
            raise ValueError(f"{what} must be a whole number of at least 1, not {value}")
    if not isinstance(shrinkage, str) and not shrinkage >= 0:
        raise ValueError(f"shrinkage must not be negative, not {shrinkage}")
    rng = np.random.default_rng(rng)
    asked = ask(n_components, shrinkage, arcs, n_factors, gaps)
    with one_blas_thread():
        positive = find_positive(cells, fluxes) & margins
        cells = cells.above_zero(positive, names)
        kind, pooling, rehearsal = _choose_way(cells, margins, positive, rng)
        if arcs == "none" and (len(names) < WIDE or pooling):
            asked = ask(n_components, shrinkage, "full", n_factors, gaps)
        bare = MixtureNetwork(names, with_single_values(map_columns(cells, kind), cells.values), ())
        scores = bare.score_cells(cells)
        plan, trials = choose_plan(scores, asked, rng, pooling=pooling, maps=kind)
        if rehearsal is not None and len(asked.components) > 1:
            lines = unless_ranks(kind, cells, positive, "linear")
            plan = choose_fewer(lines, plan, rehearsal.easier.logarithms(positive))
        plans = _spread(plan, n_fits, n_components == "auto")
        seeds = rng.spawn(n_fits)
        # Beyond limits the fits must differ as much as their parameters are uncertain.
        start = partial(fit_mixture, scores, resample=bool(pooling) and n_fits > 1)

        def fit(i: int) -> Climb[Mixture]:
            return start(plans[i], seeds[i], tol=tol, max_iter=max_iter)

        fits = map_threads(fit, list(range(n_fits)))
        mixtures = tuple(isolate(fit.params, n_seen < FEW_SEEN) for fit in fits)
        known = replace(bare, fits=mixtures)
        levels: Levels = _find_levels(known, cells, plan, rng) if calibrate else (None, None)
        within = None
        if calibrate and rehearsal is not None:
            within = calibrate_limits(known, kind, plan, rehearsal, rng)
        network = MixtureNetwork(names, bare.margins, mixtures, *levels, within)
        if calibrate and len(cells) >= CALIBRATION_ROWS:
            sample = _sample(cells, PLAN_ROWS, rng)
            doubt = learn_doubt(sample, kind, plan, rng) if cells.is_plain else USUAL_DOUBT
            network = with_support(network, cells, doubt, is_shared=bool(plan.pooling))
    n_iter = max(fit.n_iter for fit in fits)
    converged = all(fit.converged for fit in fits)
    return LearnedMixture(network, plan, trials, n_iter, converged)


class Way(NamedTuple):
    """How a table is looked at: maps of its columns, strengths of common regressions, rehearsal."""

    kind: Maps
    pooling: tuple[float, ...]
    rehearsal: Rehearsal | None


def _choose_way(cells: Cells, margins: bool, positive: BoolArray, rng: Generator) -> Way:
    """Choose maps and common regressions; with limits what stricter limits hide decides, too."""
    pooling = _pooling(cells)
    kind: Maps = "ranks" if margins else "linear"
    rehearsal = rehearse(_sample(cells, PLAN_ROWS, rng)) if pooling else None
    if margins and rehearsal is not None:
        plan = Plan(1, FIRST_SHRINKAGE, pooling=pooling)
        kind = choose_limited_maps(rehearsal.easier, plan, positive)
    elif margins and len(cells) >= CALIBRATION_ROWS:
        choose = choose_noisy_maps if cells.is_noisy.any() else choose_plain_maps
        kind = choose(cells, Plan(MAP_COMPONENTS, FIRST_SHRINKAGE), rng, positive)
    if margins and cells.is_plain and len(cells) >= CALIBRATION_ROWS:
        pooling = choose_pooling(cells, kind, Plan(1, FIRST_SHRINKAGE), POOLING, rng)
    kind = unless_ranks(kind, cells, positive, "logarithmic")
    return Way(kind, pooling, rehearsal)


def _sample(cells: Cells, rows: int, rng: Generator) -> Cells:
    return cells if len(cells) <= rows else cells.take(rng.permutation(len(cells))[:rows])


def _pooling(cells: Cells) -> tuple[float, ...]:
    """Strengths of the common regressions: more for columns that have limits; none without."""
    limited = cells.is_limited.any(axis=0)
    return tuple(np.where(limited, POOLING, 1.0).tolist()) if limited.any() else ()


def _find_levels(known: MixtureNetwork, cells: Cells, plan: Plan, rng: Generator) -> Levels:
    """Levels of the posteriors, from held-out rows or, of small tables and columns, by theory."""
    n_seen, p = (~np.isnan(cells.values)).sum(axis=0), len(known)
    if len(cells) < CALIBRATION_ROWS:
        return uncertain_levels(n_seen, p * plan.n_components + MAP_PARAMETERS), None
    levels, by_spread = _calibrate(known, cells, plan, rng)
    few = uncertain_levels(n_seen, p + MAP_PARAMETERS)
    return np.where((n_seen < SOME_SEEN)[:, None], few, levels), by_spread


def _calibrate(
    known: MixtureNetwork, cells: Cells, plan: Plan, rng: Generator
) -> tuple[Array, BySpread]:
    """Calibrate on held-out rows with fits like those of the model."""

    def learn(rows: Cells, seeds: Generator) -> MixtureNetwork:
        return fit_alike(known, rows, plan, seeds, len(known.fits))

    return fit_levels(learn, cells.take(rng.permutation(len(cells))[: 2 * PLAN_ROWS]), rng)


def fit_plan(cells: Cells, plan: Plan, rng: Generator, n_fits: int) -> MixtureNetwork:
    """Fit maps and mixtures of a plan to some rows, as well as choices and levels need it."""
    names = tuple(map(str, range(cells.values.shape[1])))
    maps = with_single_values(map_columns(cells, plan.maps), cells.values)
    network = fit_again(MixtureNetwork(names, maps, ()), cells, plan, rng, n_fits)
    few = (~np.isnan(cells.values)).sum(axis=0) < FEW_SEEN
    return replace(network, fits=tuple(isolate(fit, few) for fit in network.fits))


def fit_again(
    network: MixtureNetwork, cells: Cells, plan: Plan, rng: Generator, n_fits: int
) -> MixtureNetwork:
    """Fit mixtures of the same plan to some rows, as well as choices and levels need it."""
    return _fit_each(network, cells, [plan] * n_fits, rng)


def fit_alike(
    network: MixtureNetwork, cells: Cells, plan: Plan, rng: Generator, n_fits: int
) -> MixtureNetwork:
    """Fit mixtures to some rows, of the sizes of some fits of the network, evenly chosen.

    An average over many fits that differ is wider than one over few that are alike, and closer to
    the truth. What is learned from held-out rows about widths must come from the same kind of
    average, or intervals hold too much.
    """
    sizes = [len(fit.weights) for fit in network.fits]
    places = np.linspace(0, len(sizes) - 1, min(n_fits, len(sizes))).round().astype(int)
    plans = [plan._replace(n_components=sizes[i]) for i in places]
    return _fit_each(network, cells, plans, rng)


def _fit_each(
    network: MixtureNetwork, cells: Cells, plans: list[Plan], rng: Generator
) -> MixtureNetwork:
    scores, starts = network.score_cells(cells), rng.spawn(len(plans))

    def fit(i: int) -> Mixture:
        resample, tol = bool(plans[i].pooling), trial_tol(plans[i])
        return fit_mixture(scores, plans[i], starts[i], tol=tol, resample=resample).params

    return replace(network, fits=tuple(map_threads(fit, list(range(len(plans))))))


def _spread(plan: Plan, n_fits: int, vary: bool) -> list[Plan]:
    """Plans of the averaged fits: different numbers of components make them differ more."""
    if not vary or n_fits == 1 or plan.n_components < 4:
        return [plan] * n_fits
    shares = np.linspace(*SPREAD, n_fits)
    return [plan._replace(n_components=round(share * plan.n_components)) for share in shares]
