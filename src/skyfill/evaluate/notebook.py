"""How comparisons show themselves in a notebook: their Markdown tables as HTML."""

from __future__ import annotations

import re
from html import escape

_BOLD = re.compile(r"\*\*(.+?)\*\*")


def tables_html(*tables: str) -> str:
    r"""Turn Markdown tables, with bold cells, into HTML.

    Examples
    --------
    >>> tables_html("| nrmse | 5 % |\n| --- | --- |\n| mean | **1.0** |")[:36]
    '<table><thead><tr><th>nrmse</th><th>'
    """
    return "".join(_table(table) for table in tables)


def _table(table: str) -> str:
    head, _, *rows = (_cells(line) for line in table.strip().splitlines())
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _cells(line: str) -> list[str]:
    cells = escape(line.strip().strip("|")).split("|")
    return [_BOLD.sub(r"<b>\1</b>", cell.strip()) for cell in cells]
