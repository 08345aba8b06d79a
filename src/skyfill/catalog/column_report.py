"""What was found about one column of a file, and the lines of a schema file that would say so."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog.brightness import Brightness, brightness_of, find_edge
from skyfill.catalog.column_info import ColumnInfo
from skyfill.catalog.column_summary import ColumnSummary
from skyfill.catalog.limit_rules import DEPTH, LIMITS
from skyfill.catalog.roles import Verdict
from skyfill.catalog.schema import fact_line, sentinel_line
from skyfill.catalog.sentinels import Sentinel, Suspect, is_limit

# Negative values are limits of their size if at least so many are, and the smallest of them is
# this share of the largest or more: noise about zero comes closer to it.
LEAST_NEGATIVE, NEGATIVE_SPREAD = 5, 0.02


@dataclass(frozen=True)
class ColumnReport:
    """What was found about one column.

    Parameters
    ----------
    name, kind : str
        Of the column; `kind` is its Arrow type.
    info : ColumnInfo
        From the file or the schema.
    verdict : Verdict
        What it is, and whether it is a feature.
    summary : ColumnSummary
        Its values.
    suspects : tuple of Suspect
        Values that may be sentinels.
    n_without_error : int
        Values beside which the column of their errors is empty, though it has others: limits, by
        the custom of 2MASS and AllWISE.
    flag : tuple of str and int, optional
        The column beside it that marks limits with signs, and how many.
    values : array, optional
        Some of its values, if they are magnitudes or fluxes.
    """

    name: str
    kind: str
    info: ColumnInfo
    verdict: Verdict
    summary: ColumnSummary
    suspects: tuple[Suspect, ...]
    n_without_error: int = 0
    flag: tuple[str, int] | None = None
    values: NDArray[np.float64] | None = None

    @property
    def missing_percent(self) -> float:
        """Percentage of rows without a value."""
        return 100 * self.summary.n_null / max(self.summary.n_rows, 1)

    @property
    def range(self) -> tuple[float, float] | None:
        """Smallest and largest number, including undeclared sentinels."""
        low, high = self.summary.lowest, self.summary.highest
        return (min(low), max(high)) if low else None

    @property
    def brightness(self) -> Brightness | None:
        """Whether it holds magnitudes or fluxes, as far as that can be seen."""
        return brightness_of(self.name, self.info)

    @property
    def measured(self) -> NDArray[np.float64]:
        """Those of its `values` that are no suspects and no negative fluxes."""
        values = np.empty(0) if self.values is None else self.values
        values = values[~np.isin(values, [s.value for s in self.suspects if _is_real(s.value)])]
        return values[values > 0] if self.brightness is Brightness.FLUX else values

    @property
    def depth(self) -> float | None:
        """The faint edge of its values, if they are magnitudes or fluxes."""
        return None if self.brightness is None else find_edge(self.measured, self.brightness)

    @property
    def n_negative(self) -> int:
        """How many of its `values` are negative fluxes that may be limits of their size."""
        if self.brightness is not Brightness.FLUX or self.values is None:
            return 0
        suspects = [s.value for s in self.suspects if _is_real(s.value)]
        sizes = -self.values[(self.values < 0) & ~np.isin(self.values, suspects)]
        if len(np.unique(sizes)) < LEAST_NEGATIVE or sizes.min() < NEGATIVE_SPREAD * sizes.max():
            return 0
        return len(sizes)

    @property
    def declaration(self) -> str | None:
        """The lines of a schema file that would declare the suspects and limits."""
        values = [suspect.value for suspect in self.suspects]
        plain = [value for value in values if not is_limit(value)]
        lines = [self._sentinel_line(plain)] if plain else []
        if len(plain) < len(values):
            lines.append(fact_line(self.name, LIMITS, "signs"))
        elif self.flag:
            lines.append(fact_line(self.name, LIMITS, "flag"))
        elif self.n_negative:
            lines.append(fact_line(self.name, LIMITS, "negative"))
        elif self.n_without_error:
            lines.append(fact_line(self.name, LIMITS, "no error"))
        return "\n".join(lines) or None

    @property
    def depth_line(self) -> str | None:
        """The line of a schema file that would declare the depth, if there are gaps."""
        if self.depth is None or not (self.summary.n_null or self.declaration):
            return None
        line = fact_line(self.name, DEPTH, self.depth)
        if self.brightness is Brightness.MAGNITUDE and not self.info.is_magnitude:
            line += "\n" + fact_line(self.name, "unit", "mag")
        return line

    def _sentinel_line(self, values: list[Sentinel]) -> str:
        """Give each of two sentinels of a magnitude or flux a reason, by the usual custom."""
        faint = [v for v in values if _is_real(v) and self._means_faint(float(v))]
        rest = [value for value in values if value not in faint]
        if self.brightness is None or not faint or not rest or any(map(_is_text, rest)):
            return sentinel_line(self.name, values)
        lines = [sentinel_line(self.name, faint, "undetected")]
        return "\n".join([*lines, sentinel_line(self.name, rest, "uncovered")])

    def _means_faint(self, value: float) -> bool:
        """Whether a sentinel stands at the faint end: zero flux, or a magnitude such as 99."""
        return value > 0 if self.brightness is Brightness.MAGNITUDE else value == 0

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        known: dict[str, Any] = {"name": self.name, "type": self.kind}
        known |= self.info.to_metadata()
        return known | {
            "guessed_role": str(self.verdict.role),
            "guessed_of": self.verdict.of,
            "guessed_from": " ".join(filter(None, (self.verdict.why, self.verdict.example))),
            "gives_away": list(self.verdict.tells),
            "missing": self.summary.n_null,
            "range": self.range and [_for_json(end) for end in self.range],
            "suspects": [{**vars(s), "value": _for_json(s.value)} for s in self.suspects],
            "without_error": self.n_without_error,
            "negative": self.n_negative,
            "depth": self.depth,
            "flagged": self.flag and {"column": self.flag[0], "count": self.flag[1]},
            "declaration": self.declaration,
            "depth_declaration": self.depth_line,
        }


def _is_text(value: Sentinel) -> bool:
    return isinstance(value, str)


def _is_real(value: Sentinel) -> bool:
    return not isinstance(value, str)


def _for_json(value: Sentinel) -> Sentinel:
    """Write infinity as text, because JSON has no number for it."""
    return value if isinstance(value, str) or math.isfinite(value) else str(value)
