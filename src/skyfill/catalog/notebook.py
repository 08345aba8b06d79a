"""How tables show themselves in a notebook: first rows, units, and how much is missing."""

from __future__ import annotations

from html import escape
from typing import Any

from skyfill.catalog.table import Table

N_ROWS, N_COLUMNS = 8, 24


def table_html(table: Table) -> str:
    """Write the first rows and columns of a table as HTML, with units and shares of gaps.

    Examples
    --------
    >>> "50 % missing" in table_html(Table.from_columns({"J": [14.2, None]}))
    True
    """
    names = table.names[:N_COLUMNS]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    units = "".join(f"<td><small>{_facts(table, name)}</small></td>" for name in names)
    first = table.select(names).arrow.slice(0, N_ROWS).to_pylist()
    rows = "".join(
        "<tr>" + "".join(f"<td>{_cell(row[name])}</td>" for name in names) + "</tr>"
        for row in first
    )
    left = len(table.names) - len(names)
    more = f" ({left} columns not shown)" if left else ""
    return (
        f"<table><thead><tr>{head}</tr><tr>{units}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>{len(table)} rows, {len(table.names)} columns{more}</p>"
    )


def _facts(table: Table, name: str) -> str:
    unit = escape(table.info(name).unit or "")
    gaps = table.column(name).null_count
    share = f"{100 * gaps / len(table):.0f} % missing" if gaps else ""
    return "<br>".join(filter(None, (unit, share)))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))
