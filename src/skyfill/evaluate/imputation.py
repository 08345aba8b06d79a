"""Compare imputers on the same hidden cells: the paper's table for any data."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.errors import DataError
from skyfill.evaluate.fill_comparison import Comparison, Example, Score
from skyfill.evaluate.fill_scores import (
    Array,
    CellScores,
    Mask,
    column_means,
    covered,
    nrmse,
    score_cells,
    spreads,
    takes_limits,
)
from skyfill.evaluate.hide import Hidden, hide_cells
from skyfill.evaluate.methods import Factory, Progress, check_comparison, counted, seeded
from skyfill.impute import as_numbers
from skyfill.impute._inputs import check_learnable

COVERAGES = (0.5, 0.68, 0.9)
PIT_BINS = 20
# Pairs of true and filled values that each run keeps for the figure.
N_EXAMPLES = 500

Masker = Callable[..., Hidden]


def compare_imputers(  # noqa: PLR0913 - every choice of a comparison
    X: Any,
    methods: Mapping[str, Factory],
    *,
    rates: Sequence[float],
    mask: Masker | str = "cells",
    repeats: int = 5,
    train_fraction: float | None = 0.5,
    rng: int | np.random.Generator = 0,
    progress: Progress | None = None,
    groups: NDArray[np.intp] | None = None,
) -> Comparison:
    """Train imputers on one part of a table and score how they fill hidden cells of the other.

    Each repeat splits the rows differently. Cells are hidden in both parts by the same rule, and
    every method gets the same cells. Only cells with a known value can be scored.

    Parameters
    ----------
    X : array of shape (n, p), or a table
        What `skyfill.impute.as_numbers` accepts; it may have gaps of its own.
    methods : mapping of str to callable
        Each call gives a new imputer with ``fit`` and ``transform``; see `score_cells` for
        what else may be used. Where cells are hidden because they are faint, imputers whose
        ``fit`` takes ``lower`` are given the limits. A parameter ``random_state`` that is None
        gets the number of the repeat.
    rates : sequence of float
        Fractions of cells to hide.
    mask : "cells" or callable
        ``mask(X, rate=rate, rng=rng)`` gives a `Hidden`, such as
        ``functools.partial(hide_blocks, groups=[[0, 1], [2, 3]])``.
    repeats : int
        Splits; the standard errors are over these.
    train_fraction : float or None
        Fraction of the rows to train on. None: train in sample, on the very table that is filled,
        as Pichara & Protopapas (2013) did.
    rng : int or numpy.random.Generator
        The same seed gives the same splits and masks for any methods.
    progress : callable, optional
        Called with the number of runs done, of all runs, and the name of the method.
    groups : int array of shape (n,), optional
        Rows with the same number are of one object, and in one part.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from skyfill.impute import MeanImputer, NeighborsImputer
    >>> rng = np.random.default_rng(0)
    >>> V = rng.normal(18, 1, 300)
    >>> X = np.column_stack([V, V - 1 + rng.normal(0, 0.1, 300)])
    >>> methods = {"mean": MeanImputer, "knn": NeighborsImputer}
    >>> found = compare_imputers(X, methods, rates=[0.1, 0.2], repeats=2)
    >>> found.mean("nrmse", "knn", 0.1).value < 0.3 < found.mean("nrmse", "mean", 0.1).value
    True
    """
    numbers, names = as_numbers(X)
    check_comparison(methods, repeats)
    if train_fraction is not None and not 0 < train_fraction < 1:
        raise DataError(f"train_fraction must lie between 0 and 1, not {train_fraction}")
    design = Design(
        numbers,
        names or tuple(f"x{j}" for j in range(numbers.shape[1])),
        hide=_masker(mask),
        n_train=None if train_fraction is None else round(train_fraction * len(numbers)),
        seed=int(np.random.default_rng(rng).integers(2**31)),
        groups=groups,
    )
    plan = [(rate, repeat, name) for repeat in range(repeats) for rate in rates for name in methods]
    found, begin = [], counted(progress, len(plan))
    for rate, repeat, name in plan:
        begin(name)
        found.append(_run(methods[name], design.trial(rate, repeat), name))
    begin("")
    return Comparison(tuple(found))


@dataclass(frozen=True, eq=False)
class Trial:
    """One split with its hidden cells."""

    rate: float
    repeat: int
    names: tuple[str, ...]
    train: Hidden
    test: Hidden
    true: Array


@dataclass(frozen=True, eq=False)
class Design:
    """All that determines the splits and masks: everything except the methods."""

    X: Array
    names: tuple[str, ...]
    hide: Masker
    n_train: int | None
    seed: int
    groups: NDArray[np.intp] | None = None

    def trial(self, rate: float, repeat: int) -> Trial:
        """Split the rows and hide cells of both parts; in sample, both are the whole table."""
        rng = np.random.default_rng([self.seed, repeat, round(rate * 1e6)])
        if self.n_train is None:
            train = self.hide(self.X, rate=rate, rng=rng)
            check_learnable(train.X, self.names)
            return Trial(rate, repeat, self.names, train, train, self.X)
        learned, judged = self._split(repeat, self.n_train)
        train = self.hide(self.X[learned], rate=rate, rng=rng)
        check_learnable(train.X, self.names)
        true = self.X[judged]
        return Trial(rate, repeat, self.names, train, self.hide(true, rate=rate, rng=rng), true)

    def _split(self, repeat: int, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Deal the rows to two parts, of which none divides a group."""
        rng = np.random.default_rng([self.seed, repeat])
        if self.groups is None:
            order = rng.permutation(len(self.X))
            return order[:n], order[n:]
        codes = np.unique(self.groups, return_inverse=True)[1].ravel()
        place = rng.permutation(int(codes.max()) + 1)[codes]
        order = np.argsort(place, kind="stable")
        n = int(np.searchsorted(place[order], place[order[n - 1]], side="right"))
        return order[:n], order[n:]


def _run(factory: Factory, trial: Trial, name: str) -> Score:
    """Fit and fill once, and score what was filled."""
    imputer = seeded(factory(), trial.repeat)
    can_use = takes_limits(imputer)
    learned, asked = (part.limits if can_use else {} for part in (trial.train, trial.test))
    start = time.perf_counter()
    imputer.fit(trial.train.X, **learned)
    fitted = time.perf_counter()
    filled = np.asarray(imputer.transform(trial.test.X, **asked))
    done = time.perf_counter()
    rng = np.random.default_rng(trial.repeat)
    cells = score_cells(imputer, trial.test, true=trial.true, filled=filled, rng=rng)
    return Score(
        method=name,
        rate=trial.rate,
        repeat=trial.repeat,
        **_scores(cells, filled, trial),
        **_calibration(cells.pit),
        fit_seconds=fitted - start,
        fill_seconds=done - fitted,
        example=_example(filled, trial),
        uses_limits=bool(asked),
        in_sample=trial.train is trial.test,
    )


def _scores(cells: CellScores, filled: Array, trial: Trial) -> dict[str, Any]:
    """Errors in standard deviations of their column; the mean over columns, and each column's."""
    mask, true = trial.test.mask, trial.true
    sd = spreads(true)
    by_column = {
        "nrmse": nrmse(filled, true, mask),
        "mae": column_means(np.abs(filled - true), mask) / sd,
        "crps": _spread_out(cells.crps, mask) / sd,
        "log_score": _spread_out(cells.log_score, mask) - np.log(sd),
    }
    of_names = {
        key: dict(zip(trial.names, map(float, values), strict=True))
        for key, values in by_column.items()
    }
    return {key: _mean(values) for key, values in by_column.items()} | {"by_feature": of_names}


def _calibration(pit: Array | None) -> dict[str, Any]:
    """Fractions of truths inside central intervals, and the histogram of the PIT."""
    found: dict[str, Any] = {"pit": ()}
    for level in COVERAGES:
        share = np.nan if pit is None else float(covered(pit, level).mean())
        found[f"coverage_{round(100 * level)}"] = share
    if pit is not None:
        found["pit"] = tuple(np.histogram(pit, PIT_BINS, (0, 1))[0].tolist())
    return found


def _spread_out(values: Array | None, mask: Mask) -> Array:
    """Mean of each column of values that are given for masked cells only."""
    table = np.full(mask.shape, np.nan)
    if values is not None:
        table[mask] = values
    return column_means(table, mask)


def _mean(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else np.nan


def _example(filled: Array, trial: Trial) -> Example:
    """Keep some hidden cells, in standard deviations from the mean of their column."""
    center = np.array([column[~np.isnan(column)].mean() for column in trial.true.T])
    sd = spreads(trial.true)
    rows, columns = np.nonzero(trial.test.mask & ~np.isnan(sd))
    picked = np.random.default_rng(0).permutation(len(rows))[:N_EXAMPLES]
    rows, columns = rows[picked], columns[picked]
    true, value = ((table - center) / sd for table in (trial.true, filled))
    return Example(tuple(true[rows, columns].tolist()), tuple(value[rows, columns].tolist()))


def _masker(mask: Masker | str) -> Masker:
    if callable(mask):
        return mask
    if mask == "cells":
        return hide_cells
    raise DataError(
        f"mask {mask!r}: give 'cells' or a function of (X, rate=, rng=), such as "
        "functools.partial(hide_blocks, groups=...)"
    )
