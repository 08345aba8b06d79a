"""Comparisons written as Markdown tables, the best in bold, and those as HTML for a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from skyfill.classify.class_scores import (
    HIGH_IS_GOOD,
    Array,
    ClassScores,
    averages,
)

AVERAGES = {"weighted average": "weighted", "macro average": "macro"}
COLUMNS = ("precision", "recall", "F")
_BOLD = re.compile(r"\*\*(.+?)\*\*")


class Mean(NamedTuple):
    """A mean and its standard error (NaN where there is none)."""

    value: float
    error: float


class Difference(NamedTuple):
    """A score of one method minus that of another, with a 95 % interval."""

    value: float
    low: float
    high: float


def class_table(classes: Sequence[str], scores: Mapping[str, ClassScores]) -> str:
    """Precision, recall and F of every class and method side by side, the best in bold.

    Examples
    --------
    >>> import numpy as np
    >>> right, wrong = (ClassScores(p, p, p, np.array([2.0])) for p in np.array([[1.0], [0.5]]))
    >>> print(class_table(["QSO"], {"a": right, "b": wrong}).splitlines()[2])
    | QSO | 2 | **1.000** | **1.000** | **1.000** | 0.500 | 0.500 | 0.500 |
    """
    support = next(iter(scores.values())).support
    rows = []
    for k, name in enumerate(classes):
        triples = [[float(values[k]) for values in each[:3]] for each in scores.values()]
        cells = _triples(triples) if support[k] else ["–"] * 3 * len(triples)
        rows.append([name, f"{support[k]:.0f}", *cells])
    for title, kind in AVERAGES.items():
        triples = [list(averages(each, kind)) for each in scores.values()]
        rows.append([title, f"{support.sum():.0f}", *_triples(triples)])
    titles = [c for method in scores for c in (f"{method} {COLUMNS[0]}", *COLUMNS[1:])]
    return markdown(["class", "n", *titles], rows)


def summary_table(means: Mapping[str, Sequence[Mean]], methods: Mapping[str, float]) -> str:
    """Scores over all objects with standard errors, the best in bold.

    Parameters
    ----------
    means : mapping of score to means, one for each method
    methods : mapping of method to the seconds that it took
    """
    columns = []
    for score, values in means.items():
        best = _best([mean.value for mean in values], high=score in HIGH_IS_GOOD)
        cells = zip(values, best, strict=True)
        columns.append([f"{bold(mean.value, b)} ± {mean.error:.3f}" for mean, b in cells])
    rows = zip(methods, *columns, (f"{spent:.1f}" for spent in methods.values()), strict=True)
    return markdown(["method", *_titles(means), "seconds"], rows)


def difference_table(differences: Mapping[str, Mapping[str, Difference]]) -> str:
    """Differences of scores, by title and score, with 95 % intervals.

    A difference is in bold where its interval does not hold 0.
    """
    rows = [[title, *map(_gap, scores.values())] for title, scores in differences.items()]
    scores = next(iter(differences.values()), {})
    return markdown(["difference", *_titles(scores)], rows)


def confusion_table(method: str, classes: Sequence[str], counts: Array) -> str:
    """Count objects by true class (rows) and predicted class (columns)."""
    rows = (
        [name, *(f"{n:g}" if n == round(n) else f"{n:.1f}" for n in row)]
        for name, row in zip(classes, counts, strict=True)
    )
    return markdown([f"{method}: true \\ predicted", *classes], rows)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write rows as a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def bold(value: float, is_best: bool) -> str:
    """Write a score, in bold where it is the best."""
    return f"**{value:.3f}**" if is_best else f"{value:.3f}"


def tables_html(*tables: str) -> str:
    r"""Turn Markdown tables, with bold cells, into HTML.

    Examples
    --------
    >>> tables_html("| nrmse | 5 % |\n| --- | --- |\n| mean | **1.0** |")[:36]
    '<table><thead><tr><th>nrmse</th><th>'
    """
    return "".join(_html(table) for table in tables)


def _html(table: str) -> str:
    head, _, *rows = (_html_cells(line) for line in table.strip().splitlines())
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _html_cells(line: str) -> list[str]:
    cells = escape(line.strip().strip("|")).split("|")
    return [_BOLD.sub(r"<b>\1</b>", cell.strip()) for cell in cells]


def _titles(scores: Iterable[str]) -> list[str]:
    return [score.replace("_", " ") for score in scores]


def _gap(gap: Difference) -> str:
    text = f"{gap.value:+.3f}"
    shown = text if gap.low <= 0 <= gap.high else f"**{text}**"
    return f"{shown} ({gap.low:+.3f} to {gap.high:+.3f})"


def _triples(triples: Sequence[Sequence[float]]) -> list[str]:
    """Write each method's three scores; the best of each kind in bold."""
    best = [_best(column, high=True) for column in zip(*triples, strict=True)]
    return [
        bold(value, best[k][m])
        for m, triple in enumerate(triples)
        for k, value in enumerate(triple)
    ]


def _best(values: Sequence[float], *, high: bool) -> list[bool]:
    """Mark the values that are best as they are shown; none where all are alike."""
    shown = [round(value, 3) for value in values]
    best = max(shown) if high else min(shown)
    return [len(set(shown)) > 1 and value == best for value in shown]
