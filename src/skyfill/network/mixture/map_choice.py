"""Choose the maps of columns, by what they say of held-out rows.

Without limits and errors hidden cells of held-out rows decide, for each column. With them it is
likelihood: ranks of noisy values are those of values and errors together, and ranks end at the
faintest value seen. Where this costs more than the shape of the columns gains, held-out rows, their
values and their non-detections, are likelier under linear maps.

Columns that are `positive` are looked at as logarithms: a linear map is then one of the logarithm.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from skyfill.network._array import Array, BoolArray
from skyfill.network.cells import Cells
from skyfill.network.mixture.calibration import hide_like_gaps
from skyfill.network.mixture.fit import PLAN_ROWS, Plan, fit_mixture, trial_tol
from skyfill.network.mixture.maps import Maps, map_columns, resolve, unless_ranks
from skyfill.network.mixture.network import MixtureNetwork
from skyfill.network.mixture.rehearsal import CLEARLY, LEVELS, crps, missed
from skyfill.threads import map_threads

KINDS = ("ranks", "linear")
# Components that maps are compared with.
MAP_COMPONENTS = 4
# Share of the rows that are held out; steps of exact values, in standard deviations of a column.
HELD_OUT, STEP = 0.25, 0.05
# With limits: rows that are compared, and in how many turns they are held out; what a row counts at
# most, in logs, and how many standard errors are no chance.
LIMITED_ROWS, FOLDS = 3000, 4
MOST, SURE = 5.0, 2.0
# Without limits and errors: what is tried, the first where all are alike; most components, and rows
# per column of each.
PLAIN_KINDS = ("smooth", "straight", "ranks")
PLAIN_ROWS, PLAIN_COMPONENTS, ROWS_EACH = 2000, 8, 8


def choose_plain_maps(cells: Cells, plan: Plan, rng: Generator, positive: BoolArray) -> Maps:
    """Choose the kind of map of each column, or one for all if this fills hidden cells no worse.

    Quarters of the rows are held out in turn; the logarithm of the CRPS of their hidden cells, mean
    over the quarters, decides. Ranks end at the outermost value seen, so they are taken where they
    are clearly better only.
    """
    rows = cells.logarithms(positive).take(rng.permutation(len(cells))[:PLAIN_ROWS])
    trial, n = plan_trial(plan, rows), len(rows)
    shifts = (round(turn * HELD_OUT * n) for turn in range(round(1 / HELD_OUT)))
    tries = [hold_out(rows.take(np.roll(np.arange(n), -shift)), rng) for shift in shifts]

    def score(kind: Maps) -> Array:
        return np.mean([held_out_logs(kind, trial, each) for each in tries], axis=0)

    kinds = [unless_ranks(kind, cells, positive, "linear") for kind in PLAIN_KINDS]
    found = np.stack([score(kind) for kind in kinds])
    found[PLAIN_KINDS.index("ranks")] -= np.log(CLEARLY)
    means = found.mean(axis=1)
    own = tuple(resolve(kinds[i], cells)[j] for j, i in enumerate(found.argmin(axis=0)))
    return own if score(own).mean() < means.min() else kinds[means.argmin()]


class HeldOut(NamedTuple):
    """Rows to learn from, others to judge by, the cells of these to hide, and a seed of fits."""

    train: Cells
    held: Cells
    hidden: BoolArray
    seed: int


def hold_out(cells: Cells, rng: Generator) -> HeldOut:
    """Hold rows out and choose cells of them to hide; rows must be in random order."""
    n_held = int(HELD_OUT * len(cells))
    held = cells.take(slice(n_held))
    return HeldOut(
        cells.take(slice(n_held, None)), held, hide_like_gaps(held, rng), int(rng.integers(2**31))
    )


def plan_trial(plan: Plan, cells: Cells) -> Plan:
    """Take as many components as a quick trial can afford."""
    n, p = cells.values.shape
    return plan._replace(n_components=min(PLAIN_COMPONENTS, max(n // (ROWS_EACH * p), 1)))


def held_out_log(kind: Maps, plan: Plan, given: HeldOut) -> float:
    """Logarithm of the CRPS of hidden cells, mean over the columns."""
    return float(held_out_logs(kind, plan, given).mean())


def held_out_logs(kind: Maps, plan: Plan, given: HeldOut) -> Array:
    """Logarithm of the CRPS of the hidden cells of each column."""
    network = _fit_maps(kind, given.train, plan, given.seed)
    return np.asarray(np.log(_missed(network, given.held, given.hidden)))


def _missed(network: MixtureNetwork, held: Cells, hidden: BoolArray) -> Array:
    """CRPS of the hidden cells of each column; 1 where there are none."""
    score = crps(network.quantiles(held.hide(hidden), LEVELS), held.values)
    total, count = np.where(hidden, score, 0.0).sum(axis=0), hidden.sum(axis=0)
    return np.maximum(np.divide(total, count, out=np.ones(len(count)), where=count > 0), 1e-300)


def choose_noisy_maps(cells: Cells, plan: Plan, rng: Generator, positive: BoolArray) -> str:
    """Choose maps by ranks or linear ones, by the likelihood of held-out values in their units."""
    rows, cells = rng.permutation(len(cells))[:PLAN_ROWS], cells.logarithms(positive)
    n_held = int(HELD_OUT * len(rows))
    held, train = cells.take(rows[:n_held]), cells.take(rows[n_held:])
    seed = int(rng.integers(2**31))
    return max(KINDS, key=lambda kind: likelihoods(kind, held, train, plan, seed).sum())


def choose_limited_maps(cells: Cells, plan: Plan, positive: BoolArray) -> str:
    """Choose linear maps, unless rows are clearly likelier under others.

    Likelihood cannot judge what lies beyond the limits: other maps are not taken where linear ones
    come clearly nearer to what stricter limits hide.
    """
    n, p = cells.values.shape
    plan = plan._replace(n_components=min(MAP_COMPONENTS, max(n // (4 * p), 1)))
    cells = cells.logarithms(positive)
    linear, best, most = _each_held_out("linear", cells, plan), "linear", 0.0
    missed_by = cache(partial(missed, plan=plan, cells=cells))
    for kind in ("mixed", "ranks"):
        gain = np.clip(_each_held_out(kind, cells, plan) - linear, -MOST, MOST)
        error = float(gain.std()) / np.sqrt(len(gain))
        if gain.mean() <= max(most, SURE * error):
            continue
        if missed_by("linear") >= CLEARLY * missed_by(kind):
            best, most = kind, float(gain.mean())
    return best


def _each_held_out(kind: Maps, cells: Cells, plan: Plan) -> Array:
    """Log-likelihood of each of some rows, learned from others."""
    rows = np.random.default_rng(0).permutation(len(cells))[:LIMITED_ROWS]
    fold, found = np.arange(len(rows)) % FOLDS, []
    for i in range(FOLDS):
        held, train = cells.take(rows[fold == i]), cells.take(rows[fold != i])
        found.append(likelihoods(kind, held, train, plan, 0))
    return np.concatenate(found)


def likelihoods(kind: Maps, held: Cells, train: Cells, plan: Plan, seed: int) -> Array:
    """Log-likelihood of each held-out row, per unit of its columns."""
    network = _fit_maps(kind, train, plan, seed)
    return network.loglik(held) + log_slopes(network, held)


def _fit_maps(kind: Maps, train: Cells, plan: Plan, seed: int) -> MixtureNetwork:
    """Fit maps of a kind and one mixture."""
    names = tuple(map(str, range(train.values.shape[1])))
    bare = MixtureNetwork(names, map_columns(train, kind), ())
    scores, rng = bare.score_cells(train), np.random.default_rng(seed)
    mixture = fit_mixture(scores, plan, rng, tol=trial_tol(plan), each=map_threads).params
    return replace(bare, fits=(mixture,))


def log_slopes(bare: MixtureNetwork, held: Cells) -> Array:
    """Sum of the logarithms of the rise of scores per unit of a row's values, over their errors."""
    empty = np.isnan(held.values).all(axis=0)
    step = STEP * np.nanstd(np.where(empty, 0.0, held.values), axis=0)
    step = np.where(held.is_noisy, 0.0 if held.errors is None else held.errors, step)
    seen = ~np.isnan(held.values) & (step > 0)
    values, width = np.where(seen, held.values, np.nan), np.where(seen, step, 1.0)
    rise = (bare.scores(values + width) - bare.scores(values - width)) / (2 * width)
    return np.asarray(np.log(np.where(seen, np.maximum(rise, 1e-12), 1.0)).sum(axis=1))
