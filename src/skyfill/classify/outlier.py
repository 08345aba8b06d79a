"""Objects unlike the training set, recognized by the likelihood of their seen values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from skyfill.network import Cells, MixtureNetwork
from skyfill.network.cells import as_cells
from skyfill.network.mixture.fit import GIVEN, Plan
from skyfill.network.mixture.learn import fit_plan
from skyfill.network.mixture.margin import Margin
from skyfill.network.mixture.one_network import refit

Array = NDArray[np.float64]

# Share of the training set that is held out to learn how likely an ordinary object is.
HELD_OUT = 0.25
# With fewer rows nothing is held out: the same rows serve for fitting and for calibration.
LEAST_ROWS = 40
# Most rows to learn from, and steps of the table of tails.
MOST_ROWS, STEPS = 8000, 512
# Shares of cells hidden in copies of the held-out rows: other catalogs have other gaps.
THINNED = (0.0, 0.3, 0.6)
# Least variance of a log-likelihood: that of one seen normal cell is 1/2.
LEAST_SPREAD = 0.1
# Beyond this share of the held-out rows the tail is taken to be exponential: the few rows
# further out lie outside the range of the training set and would hide all outliers.
TAIL = 0.995
FLAGGED = 1e-3
# Chances below this are not told apart.
LEAST_CHANCE = 1e-30
# No part of a log-likelihood comes near this; sums of such parts are finite.
MAX_PART = 1e12


@dataclass(frozen=True, eq=False)
class OutlierRule:
    """How low the likelihood of an ordinary object may be, whichever of its columns were seen.

    The log-likelihood of the seen cells is compared with its mean over held-out rows, in units of
    its spread there; mean and variance are each a constant plus a term for every seen column. The
    result is then ranked among the held-out rows.

    Attributes
    ----------
    center, spread : array of shape (p + 1,)
        Constant, and terms of the columns, of the mean and the variance of the log-likelihood.
    surprise : array
        Surprises of held-out rows in increasing order, at even steps of their ranks up to `TAIL`.
    """

    center: Array
    spread: Array
    surprise: Array

    def score(self, seen: Array, X: Array) -> Array:
        """Minus log10 of the share of ordinary rows that are less likely than each row.

        `seen` is the log-likelihood of `MixtureNetwork.look`, in which patterns of gaps do not
        count: a catalog that lacks a column is not full of outliers. Beyond the least likely
        held-out row the tail is extrapolated as an exponential.
        """
        return self._tail(self._surprise(seen, X))

    def flag(self, score: Array) -> NDArray[np.bool_]:
        """Flag rows less likely than 99.9 % of ordinary rows."""
        return np.asarray(score > -np.log10(FLAGGED))

    def _surprise(self, loglik: Array, X: Array) -> Array:
        """Return how much less likely rows are than expected, in standard deviations."""
        seen = ~np.isnan(X)
        # Not a product of matrices: it is too small for threads, and its last bits would depend on
        # the number of rows.
        center, variance = (
            parts[0] + np.einsum("ij,j->i", seen, parts[1:]) for parts in (self.center, self.spread)
        )
        spread = np.sqrt(np.maximum(variance, LEAST_SPREAD))
        return np.where(seen.any(axis=1), (center - loglik) / spread, -np.inf)

    def _tail(self, surprise: Array) -> Array:
        """Minus log10 of the share of held-out rows beyond; linear beyond the table."""
        heights = -np.log10(1.0 - TAIL * np.linspace(0, 1, len(self.surprise)))
        first = int(0.9 * len(self.surprise))
        run = max(self.surprise[-1] - self.surprise[first], 1e-9)
        beyond = np.maximum(surprise - self.surprise[-1], 0.0)
        slope = (heights[-1] - heights[first]) / run
        return np.asarray(np.interp(surprise, self.surprise, heights) + slope * beyond)


def range_score(margins: Sequence[Margin], X: Array) -> Array:
    """Minus log10 of the chance that values of an ordinary row lie so far outside the range seen.

    Likelihoods take values far outside for ones at the end of the range. Here each value beyond it
    has the share of a normal tail that goes on as the column does just inside; the values of a row
    are combined by the rule of Simes (1986), which allows for values that move together.

    Parameters
    ----------
    margins : sequence of Margin
        Of the columns; those that are not maps of ranks have no range.
    X : array of shape (n, p)

    Returns
    -------
    array of shape (n,)
        0 for rows within the range of every column.
    """
    shares = np.ones(X.shape)
    for j, margin in enumerate(margins):
        if type(margin) is Margin:
            ends, slopes = (margin.x[0], margin.x[-1]), margin._slopes
            for sign, end, score, slope in zip(
                (-1, 1), ends, margin.z[[0, -1]], slopes, strict=True
            ):
                rows = np.flatnonzero(sign * (X[:, j] - end) > 0)
                shares[rows, j] = 2 * ndtr(-(np.abs(score) + np.abs(X[rows, j] - end) / slope))
    outside = np.flatnonzero((shares < 1).any(axis=1))
    n_seen = (~np.isnan(X[outside])).sum(axis=1, keepdims=True)
    ordered = np.sort(shares[outside], axis=1)
    chance = (ordered * n_seen / np.arange(1, X.shape[1] + 1)).min(axis=1)
    found = np.zeros(len(X))
    found[outside] = -np.log10(np.clip(chance, LEAST_CHANCE, 1.0))
    return found


def fit_outlier_rule(
    X: Array | Cells,
    plan: Plan,
    rng: np.random.Generator,
    n_fits: int = 2,
    *,
    given: MixtureNetwork | None = None,
) -> OutlierRule:
    """Learn from held-out rows how likely ordinary objects are.

    Parameters
    ----------
    X : array of shape (n, p), or Cells
        The training set, with NaN for gaps.
    plan : Plan
        What the network was fitted with; the rows not held out are fitted in the same way.
    rng : numpy.random.Generator
        Chooses the rows.
    n_fits : int
        Fits to average.
    given : MixtureNetwork, optional
        The network itself, where the plan takes its arcs as given.
    """
    cells = as_cells(X)
    rows = rng.permutation(len(cells))[:MOST_ROWS]
    n_held = int(HELD_OUT * len(rows)) if len(rows) >= LEAST_ROWS else 0
    held = cells.take(rows[:n_held] if n_held else rows)
    train = _not_held(cells, rows, n_held)
    if given is not None and plan.arcs == GIVEN:
        network = refit(given, train)
    else:
        network = _fit(train, plan=plan, n_fits=n_fits, rng=rng)
    some = [held.hide(rng.random(held.values.shape) < rate) for rate in THINNED]
    some = [part.take(~np.isnan(part.values).all(axis=1)) for part in some]
    table = np.vstack([part.values for part in some])
    loglik = np.concatenate([network.look(part).seen for part in some])
    design = np.hstack([np.ones((len(table), 1)), ~np.isnan(table)])
    center = _ridge(design, loglik)
    spread = _ridge(design, (loglik - design @ center) ** 2)
    rule = OutlierRule(center, np.maximum(spread, 0.0), np.zeros(2))
    surprise = np.quantile(rule._surprise(loglik, table), TAIL * np.linspace(0, 1, STEPS))
    return replace(rule, surprise=np.maximum.accumulate(surprise))


def _not_held(cells: Cells, rows: NDArray[np.int64], n_held: int) -> Cells:
    """Take the rows to fit; held-out rows help where a column is empty without them."""
    train = cells.take(rows[n_held:])
    return cells.take(rows) if np.isnan(train.values).all(axis=0).any() else train


def _fit(train: Cells, *, plan: Plan, n_fits: int, rng: np.random.Generator) -> MixtureNetwork:
    """Fit by the plan that was found; what gaps say is no part of how ordinary values are."""
    plan = plan._replace(n_components=min(plan.n_components, len(train)), informative=False)
    return fit_plan(train, plan, rng, n_fits)


def _ridge(design: Array, values: Array) -> Array:
    gram = design.T @ design + 1e-3 * len(design) * np.eye(design.shape[1])
    return np.asarray(np.linalg.solve(gram, design.T @ values))


def check_rule(rule: OutlierRule, p: int) -> None:
    """Refuse arrays that do not fit together, such as those of a damaged file."""
    parts: Sequence[Array] = (rule.center, rule.spread)
    if any(part.shape != (p + 1,) for part in parts) or rule.surprise.ndim != 1:
        raise ValueError("the outlier rule does not fit the features")
    if not all((np.abs(part) <= MAX_PART).all() for part in (*parts, rule.surprise)):
        raise ValueError(f"the outlier rule has parts beyond {MAX_PART:g}")
    if not (rule.spread >= 0).all():
        raise ValueError("the outlier rule has a negative spread")
    if len(rule.surprise) < 2 or not (np.diff(rule.surprise) >= 0).all():
        raise ValueError("the surprises of the outlier rule must not decrease")
