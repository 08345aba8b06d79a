"""Inspect a file: columns, roles, gaps, ranges, and values that may be sentinels."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.column_info import ColumnInfo, Role
from skyfill.catalog.column_summary import ColumnSummary, summarize_column
from skyfill.catalog.limit_rules import LIMITS, flag_column
from skyfill.catalog.roles import Guess, guess_roles, with_guessed_roles
from skyfill.catalog.schema import Schema, fact_line, sentinel_line
from skyfill.catalog.sentinels import Sentinel, Suspect, find_suspects, is_limit
from skyfill.catalog.table import Table
from skyfill.catalog.table_files import open_scan


@dataclass(frozen=True)
class ColumnReport:
    """What was found about one column.

    Parameters
    ----------
    name, kind : str
        Of the column; `kind` is its Arrow type.
    info : ColumnInfo
        From the file or the schema.
    guess : Guess, optional
        The role that it seems to have, if none is set.
    summary : ColumnSummary
        Its values.
    suspects : tuple of Suspect
        Values that may be sentinels.
    n_without_error : int
        Values beside which the column of their errors is empty, though it has others: limits, by
        the custom of 2MASS and AllWISE.
    flag : tuple of str and int, optional
        The column beside it that marks limits with signs, and how many.
    """

    name: str
    kind: str
    info: ColumnInfo
    guess: Guess | None
    summary: ColumnSummary
    suspects: tuple[Suspect, ...]
    n_without_error: int = 0
    flag: tuple[str, int] | None = None

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
    def declaration(self) -> str | None:
        """The lines of a schema file that would declare the suspects and limits."""
        values = [suspect.value for suspect in self.suspects]
        plain = [value for value in values if not is_limit(value)]
        lines = [sentinel_line(self.name, plain)] if plain else []
        if len(plain) < len(values):
            lines.append(fact_line(self.name, LIMITS, "signs"))
        elif self.flag:
            lines.append(fact_line(self.name, LIMITS, "flag"))
        elif self.n_without_error:
            lines.append(fact_line(self.name, LIMITS, "no error"))
        return "\n".join(lines) or None

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        known: dict[str, Any] = {"name": self.name, "type": self.kind}
        known |= self.info.to_metadata()
        if self.guess:
            known["guessed_role"] = str(self.guess.role)
            known["guessed_of"] = self.guess.of
            known["guessed_from"] = self.guess.why
        return known | {
            "missing": self.summary.n_null,
            "range": self.range and [_for_json(end) for end in self.range],
            "suspects": [{**vars(s), "value": _for_json(s.value)} for s in self.suspects],
            "without_error": self.n_without_error,
            "flagged": self.flag and {"column": self.flag[0], "count": self.flag[1]},
            "declaration": self.declaration,
        }


@dataclass(frozen=True)
class Inspection:
    """What was found in a file."""

    path: str
    n_rows: int
    meta: Mapping[str, str]
    columns: tuple[ColumnReport, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        columns = [column.to_dict() for column in self.columns]
        return {"file": self.path, "rows": self.n_rows, "meta": dict(self.meta), "columns": columns}


def inspect_file(path: str | Path, schema: Schema | None = None) -> Inspection:
    r"""Inspect a file in batches, without changing it.

    Parameters
    ----------
    path : str or path
        A table in any format that `read_table` reads.
    schema : Schema, optional
        Applied first, so that declared sentinels are gaps.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "stars.csv"
    >>> _ = path.write_text("J,e_J\n14.2,0.1\n15.3,0.1\n99.999,9.999\n")
    >>> inspect_file(path).columns[0].declaration
    'columns.J.sentinels = [99.999]'
    """
    rules = schema or Schema()
    scan = open_scan(path, rules=rules)
    empty = Table(scan.schema.empty_table())
    rules.check(empty.names)
    table = rules.apply(empty)
    summaries = {name: ColumnSummary() for name in table.names}
    pairs, bare = _with_errors(table), Counter[str]()
    for batch in scan.batches:
        part = rules.apply(Table(pa.Table.from_batches([batch])))
        for name, error in pairs.items():
            values, errors = part.column(name), part.column(error)
            bare[name] += pc.sum(pc.and_(values.is_valid(), errors.is_null())).as_py() or 0
        for name in part.names:
            summaries[name] += summarize_column(part.column(name).combine_chunks())
    used = {n: bare[n] for n, e in pairs.items() if summaries[e].n_null < summaries[e].n_rows}
    return _report(str(path), table, summaries, used)


def _with_errors(table: Table) -> dict[str, str]:
    """Find columns of numbers whose errors are in another column, by role or by name."""
    known = with_guessed_roles(table)
    found = {str(known.info(n).of): n for n in known.names_with(Role.ERROR) if known.info(n).of}
    return {name: error for name, error in found.items() if name in table.names}


def _for_json(value: Sentinel) -> Sentinel:
    """Write infinity as text, because JSON has no number for it."""
    return value if isinstance(value, str) or math.isfinite(value) else str(value)


def _report(
    path: str, table: Table, summaries: dict[str, ColumnSummary], bare: Mapping[str, int]
) -> Inspection:
    guesses = guess_roles(table.arrow.schema)
    found = (_column(table, n, summaries[n], guesses.get(n)) for n in table.names)
    columns = tuple(
        replace(each, n_without_error=bare.get(each.name, 0), flag=_flag(table, each, summaries))
        for each in found
    )
    n_rows = max((summary.n_rows for summary in summaries.values()), default=0)
    return Inspection(path, n_rows, table.meta, columns)


def _flag(
    table: Table, column: ColumnReport, summaries: dict[str, ColumnSummary]
) -> tuple[str, int] | None:
    name = flag_column(table, column.name) if column.summary.lowest else None
    words = summaries[name].words if name else {}
    count = sum(n for word, n in words.items() if word.strip()[:1] in ("<", ">"))
    return (str(name), count) if count else None


def _column(table: Table, name: str, summary: ColumnSummary, guess: Guess | None) -> ColumnReport:
    info = table.info(name)
    role = guess.role if guess else info.role
    suspects = () if role is Role.REASON else tuple(find_suspects(summary, role, name))
    return ColumnReport(name, str(table.column(name).type), info, guess, summary, suspects)
