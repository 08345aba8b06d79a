"""Inspect a file: columns, roles, gaps, ranges, and values that may be sentinels."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.brightness import ValueSample, brightness_of
from skyfill.catalog.column_info import Role
from skyfill.catalog.column_report import ColumnReport
from skyfill.catalog.column_summary import ColumnSummary, summarize_column
from skyfill.catalog.limit_rules import flag_column
from skyfill.catalog.roles import Guess, guess_roles, with_guessed_roles
from skyfill.catalog.schema import Schema
from skyfill.catalog.sentinels import find_suspects
from skyfill.catalog.table import Table
from skyfill.catalog.table_files import open_scan


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
    with open_scan(path, rules=rules) as scan:
        empty = Table(scan.schema.empty_table())
        rules.check(empty.names)
        table = rules.apply(empty)
        summaries = {name: ColumnSummary() for name in table.names}
        pairs, bare = _with_errors(table), Counter[str]()
        samples = {name: ValueSample() for name in _bright_columns(table)}
        for batch in scan.batches:
            part = rules.apply(Table(pa.Table.from_batches([batch])))
            for name, error in pairs.items():
                values, errors = part.column(name), part.column(error)
                bare[name] += pc.sum(pc.and_(values.is_valid(), errors.is_null())).as_py() or 0
            for name, sample in samples.items():
                sample.add(part.numbers(name)[:, 0])
            for name in part.names:
                summaries[name] += summarize_column(part.column(name).combine_chunks())
    used = {n: bare[n] for n, e in pairs.items() if summaries[e].n_null < summaries[e].n_rows}
    found = _report(str(path), table, summaries, used)
    columns = (replace(c, values=samples[c.name].values) if c.name in samples else c
               for c in found.columns)  # fmt: skip
    return replace(found, columns=tuple(columns))


def _bright_columns(table: Table) -> list[str]:
    """Name the columns of numbers that are magnitudes or fluxes."""
    features = with_guessed_roles(table).names_with(Role.FEATURE)
    numbers = [n for n in features if not pa.types.is_string(table.column(n).type)]
    return [name for name in numbers if brightness_of(name, table.info(name))]


def _with_errors(table: Table) -> dict[str, str]:
    """Find columns of numbers whose errors are in another column, by role or by name."""
    known = with_guessed_roles(table)
    found = {str(known.info(n).of): n for n in known.names_with(Role.ERROR) if known.info(n).of}
    return {name: error for name, error in found.items() if name in table.names}


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
    suspects = () if role is Role.REASON else tuple(find_suspects(summary, role, name, info))
    return ColumnReport(name, str(table.column(name).type), info, guess, summary, suspects)
