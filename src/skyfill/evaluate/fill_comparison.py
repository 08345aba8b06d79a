"""The result of comparing imputers: scores of every run, means with standard errors, tables."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from skyfill.errors import DataError
from skyfill.evaluate.score_tables import Mean, bold, markdown, tables_html

# The coverage nearest to its level is best; for all other scores, the lowest value.
TARGETS = {"coverage_50": 0.5, "coverage_68": 0.68, "coverage_90": 0.9}
SCORES = ("nrmse", "mae", "crps", "log_score", *TARGETS, "fit_seconds", "fill_seconds")


class Example(NamedTuple):
    """Some hidden cells of a run, in standard deviations from the mean of their column."""

    true: tuple[float, ...]
    filled: tuple[float, ...]


@dataclass(frozen=True)
class Score:
    """One method, trained and applied once.

    Attributes
    ----------
    nrmse, mae, crps, log_score : float
        Means over columns, each in units of its column's standard deviation (nats for the log
        score); NaN where the method has none.
    coverage_50, coverage_68, coverage_90 : float
        Fractions of hidden cells inside their central intervals.
    by_feature : dict of str to dict of str to float
        The first four for each column.
    pit : tuple of int
        Counts of the probability integral transform in even bins; empty where there is none.
    example : Example
        True and filled values of some cells.
    uses_limits : bool
        Whether it was given the limits beyond which hidden values lie.
    in_sample : bool
        Whether it learned from the very table that it filled.
    """

    method: str
    rate: float
    repeat: int
    nrmse: float
    mae: float
    crps: float
    log_score: float
    coverage_50: float
    coverage_68: float
    coverage_90: float
    fit_seconds: float
    fill_seconds: float
    by_feature: Mapping[str, Mapping[str, float]]
    pit: tuple[int, ...]
    example: Example
    uses_limits: bool = False
    in_sample: bool = False


@dataclass(frozen=True)
class Comparison:
    """Scores of every method, rate and repeat; comparisons with the same seed can be added.

    Examples
    --------
    >>> from skyfill.evaluate import compare_imputers
    >>> from skyfill.impute import MeanImputer
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> found = compare_imputers(X, {"mean": MeanImputer}, rates=[0.1], repeats=2)
    >>> found.methods, found.rates, len(found.to_rows())
    (('mean',), (0.1,), 2)
    """

    scores: tuple[Score, ...]

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(self.scores + other.scores)

    def _repr_html_(self) -> str:
        return tables_html(self.table("nrmse"), self.table("crps"))

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the methods, in order."""
        return tuple(dict.fromkeys(score.method for score in self.scores))

    @property
    def rates(self) -> tuple[float, ...]:
        """Fractions of hidden cells, in order."""
        return tuple(sorted({score.rate for score in self.scores}))

    def mean(self, score: str, method: str, rate: float) -> Mean:
        """Mean of a score over repeats, with its standard error."""
        if score not in SCORES:
            raise DataError(f"no score {score!r}; the scores are {', '.join(SCORES)}")
        values = [getattr(run, score) for run in self.runs(method, rate)]
        if not values:
            return Mean(math.nan, math.nan)
        error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
        return Mean(float(np.mean(values)), float(error))

    def runs(self, method: str, rate: float) -> tuple[Score, ...]:
        """Return the repeats of one method at one rate."""
        return tuple(run for run in self.scores if run.method == method and run.rate == rate)

    def table(self, score: str = "nrmse") -> str:
        """Write one score as a Markdown table, methods by rates, the best in bold.

        The lowest value is best; for a coverage, the one nearest to its level. Where some methods
        were given limits, a column says which. The head says where methods learned from the table
        that they filled.
        """
        means = {rate: [self.mean(score, m, rate) for m in self.methods] for rate in self.rates}
        columns = [_cells(column, TARGETS.get(score)) for column in means.values()]
        title = score.replace("_", " ")
        title += ", in sample" if any(run.in_sample for run in self.scores) else ""
        head = [title, *(f"{100 * rate:g} %" for rate in self.rates)]
        users = {run.method for run in self.scores if run.uses_limits}
        if users:
            head.append("limits")
            columns.append(["yes" if method in users else "no" for method in self.methods])
        return markdown(head, zip(self.methods, *columns, strict=True))

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one flat dictionary for each run."""
        names = [field.name for field in fields(Score)][: 3 + len(SCORES)]
        return [{name: getattr(run, name) for name in names} for run in self.scores]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, None for scores that a method does not have."""
        means = [
            {"method": method, "rate": rate}
            | {score: self.mean(score, method, rate)._asdict() for score in SCORES}
            for rate in self.rates
            for method in self.methods
        ]
        runs = [asdict(run) for run in self.scores]
        for run in runs:
            run["example"] = dict(zip(("true", "filled"), run["example"], strict=True))
        return {"means": plain(means), "runs": plain(runs)}

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """Read what `to_json` wrote."""
        return cls(tuple(_score(run) for run in json.loads(text)["runs"]))


def _score(run: dict[str, Any]) -> Score:
    """Build a run from plain values: None becomes NaN, lists become tuples."""
    example = Example(*(tuple(run["example"][side]) for side in ("true", "filled")))
    by_feature = {
        score: {name: math.nan if value is None else value for name, value in values.items()}
        for score, values in run["by_feature"].items()
    }
    numbers = {name: math.nan if run[name] is None else run[name] for name in SCORES}
    rest = {"pit": tuple(run["pit"]), "example": example, "by_feature": by_feature}
    return Score(**(run | numbers | rest))


def _cells(means: list[Mean], target: float | None) -> list[str]:
    """Write means with errors; the best in bold."""
    ranks = [mean.value if target is None else abs(mean.value - target) for mean in means]
    known = [rank for rank in ranks if not math.isnan(rank)]
    best = min(known, default=math.nan)
    return [_cell(mean, rank == best) for mean, rank in zip(means, ranks, strict=True)]


def _cell(mean: Mean, is_best: bool) -> str:
    if math.isnan(mean.value):
        return "–"
    value = bold(mean.value, is_best)
    return value if math.isnan(mean.error) else f"{value} ± {mean.error:.3f}"


def plain(value: Any) -> Any:
    """Replace what JSON cannot represent."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
