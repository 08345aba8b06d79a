"""Inspect a file: columns, roles, gaps, ranges, and values that may be sentinels."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.brightness import brightness_of
from skyfill.catalog.column_info import Role
from skyfill.catalog.column_report import ColumnReport
from skyfill.catalog.column_summary import ColumnSummary, summarize_column
from skyfill.catalog.filled_names import is_filled_part
from skyfill.catalog.limit_rules import flag_column
from skyfill.catalog.roles import RESULT, Verdict, judge, thinning, with_guessed_roles
from skyfill.catalog.schema import Schema
from skyfill.catalog.sentinels import find_suspects
from skyfill.catalog.table import Table
from skyfill.catalog.table_files import open_scan


@dataclass(frozen=True)
class Inspection:
    """What was found in a file; `sample` holds the rows that were looked at closely."""

    path: str
    n_rows: int
    meta: Mapping[str, str]
    columns: tuple[ColumnReport, ...]
    sample: Table

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        columns = [column.to_dict() for column in self.columns]
        return {"file": self.path, "rows": self.n_rows, "meta": dict(self.meta), "columns": columns}


def inspect_file(
    path: str | Path,
    schema: Schema | None = None,
    judged: Callable[[Table], Mapping[str, Verdict]] = judge,
) -> Inspection:
    r"""Inspect a file in batches, without changing it.

    Parameters
    ----------
    path : str or path
        A table in any format that `read_table` reads.
    schema : Schema, optional
        Applied first, so that declared sentinels are gaps.
    judged : callable
        Says what each column is, from some rows; what it does not name is a result of skyfill.

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
        kept, step, n_rows = [table.arrow], 1, 0
        for batch in scan.batches:
            part = rules.apply(Table(pa.Table.from_batches([batch])))
            for name, error in pairs.items():
                values, errors = part.column(name), part.column(error)
                bare[name] += pc.sum(pc.and_(values.is_valid(), errors.is_null())).as_py() or 0
            for name in part.names:
                summaries[name] += summarize_column(part.column(name).combine_chunks())
            kept.append(_every(part.arrow.slice(-n_rows % step), step))
            n_rows += len(part)
            # The rows that `judge` looks at in a table of this size.
            wider = thinning(n_rows, len(table.names)) // step
            if wider > 1:
                kept, step = [_every(pa.concat_tables(kept), wider)], step * wider
    sample = Table(pa.concat_tables(kept))
    verdicts, result = judged(sample), Verdict(Role.OTHER, None, RESULT)
    found = (_column(sample, n, summaries[n], verdicts.get(n, result)) for n in table.names)
    columns = (
        replace(
            each,
            n_without_error=_count_bare(each.name, pairs, bare, summaries),
            flag=_flag(table, each, summaries),
        )
        for each in found
    )
    return Inspection(str(path), n_rows, table.meta, tuple(columns), sample)


def _every(rows: pa.Table, step: int) -> pa.Table:
    return rows if step == 1 else rows.take(np.arange(0, len(rows), step))


def _with_errors(table: Table) -> dict[str, str]:
    """Find columns of numbers whose errors are in another column, by role or by name."""
    known = with_guessed_roles(table)
    errors = [n for n in known.names_with(Role.ERROR) if not is_filled_part(known, n)]
    found = {str(known.info(n).of): n for n in errors if known.info(n).of}
    return {name: error for name, error in found.items() if name in table.names}


def _count_bare(
    name: str, pairs: Mapping[str, str], bare: Counter[str], summaries: Mapping[str, ColumnSummary]
) -> int:
    """Count values without an error beside them, unless no value has one."""
    errors = summaries[pairs[name]] if name in pairs else ColumnSummary()
    return bare[name] if errors.n_null < errors.n_rows else 0


def _flag(
    table: Table, column: ColumnReport, summaries: Mapping[str, ColumnSummary]
) -> tuple[str, int] | None:
    name = flag_column(table, column.name) if column.summary.lowest else None
    words = summaries[name].words if name else {}
    count = sum(n for word, n in words.items() if word.strip()[:1] in ("<", ">"))
    return (str(name), count) if count else None


def _column(sample: Table, name: str, summary: ColumnSummary, verdict: Verdict) -> ColumnReport:
    info, kind = sample.info(name), sample.column(name).type
    role = verdict.role if info.role is Role.OTHER else info.role
    suspects = () if role is Role.REASON else tuple(find_suspects(summary, role, name, info))
    is_bright = verdict.is_feature and not pa.types.is_string(kind) and brightness_of(name, info)
    values = sample.numbers(name)[:, 0] if is_bright else None
    values = None if values is None else values[np.isfinite(values)]
    return ColumnReport(name, str(kind), info, verdict, summary, suspects, values=values)
