"""Choose the maps of columns that were seen with errors.

Ranks of noisy values are those of values and errors together, and an error that is normal on the
scale of a column is not normal in its ranks. Where this costs more than the shape of the column
gains, held-out values are likelier under linear maps.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from skyfill.network.cells import Cells
from skyfill.network.mixture.fit import PLAN_ROWS, Plan, fit_mixture, trial_tol
from skyfill.network.mixture.margin import map_columns
from skyfill.network.mixture.mixture import expect_parts, split
from skyfill.network.mixture.network import MixtureNetwork
from skyfill.threads import map_threads

KINDS = ("ranks", "linear")
# Share of the rows that are held out; steps of exact values, in standard deviations of a column.
HELD_OUT, STEP = 0.25, 0.05


def choose_noisy_maps(cells: Cells, plan: Plan, rng: Generator) -> str:
    """Choose maps by ranks or linear ones, by the likelihood of held-out values in their units."""
    rows = rng.permutation(len(cells))[:PLAN_ROWS]
    n_held = int(HELD_OUT * len(rows))
    held, train = cells.take(rows[:n_held]), cells.take(rows[n_held:])
    seed = int(rng.integers(2**31))
    return max(KINDS, key=lambda kind: _likelihood(kind, held, train, plan, seed))


def _likelihood(kind: str, held: Cells, train: Cells, plan: Plan, seed: int) -> float:
    """Log-likelihood of held-out values, per unit of their columns."""
    names = tuple(map(str, range(held.values.shape[1])))
    bare = MixtureNetwork(names, map_columns(train, kind), ())
    scores, rng = bare.score_cells(train), np.random.default_rng(seed)
    mixture = fit_mixture(scores, plan, rng, tol=trial_tol(plan), each=map_threads).params
    found = expect_parts(split(bare.score_cells(held)), mixture, map_threads).loglik
    return found + _log_slopes(bare, held)


def _log_slopes(bare: MixtureNetwork, held: Cells) -> float:
    """Sum of the logarithms of the rise of scores per unit of seen values, over their errors."""
    step = STEP * np.nanstd(held.values, axis=0)
    step = np.where(held.is_noisy, 0.0 if held.errors is None else held.errors, step)
    seen = ~np.isnan(held.values) & (step > 0)
    values, width = np.where(seen, held.values, np.nan), np.where(seen, step, 1.0)
    rise = (bare.scores(values + width) - bare.scores(values - width)) / (2 * width)
    return float(np.log(np.maximum(rise[seen], 1e-12)).sum())
