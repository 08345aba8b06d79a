"""Comparisons of classifiers as Markdown: the paper's tables, the best in bold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from skyfill.evaluate.class_comparison import ClassComparison
from skyfill.evaluate.class_scores import HIGH_IS_GOOD, SCALARS, averages

AVERAGES = {"weighted average": "weighted", "macro average": "macro"}
COLUMNS = ("precision", "recall", "F")


def class_table(found: ClassComparison) -> str:
    """Precision, recall and F of every class and method side by side, the best in bold.

    Examples
    --------
    >>> from skyfill.evaluate import OutOfFold
    >>> sure = np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8]])
    >>> runs = (OutOfFold("a", 0, sure, 0.0, 0.0), OutOfFold("b", 0, sure[::-1], 0.0, 0.0))
    >>> comparison = ClassComparison(("QSO", "RRL"), np.array([0, 0, 1]), runs, np.arange(3))
    >>> print(class_table(comparison).splitlines()[2])
    | QSO | 2 | **1.000** | **1.000** | **1.000** | 0.500 | 0.500 | 0.500 |
    """
    scores = {method: found.by_class(method) for method in found.methods}
    support = np.bincount(found.truth, minlength=len(found.classes))
    rows = []
    for k, name in enumerate(found.classes):
        triples = [[float(v[k]) for v in scores[m][:3]] for m in found.methods]
        cells = _triples(triples) if support[k] else ["–"] * 3 * len(triples)
        rows.append([name, str(support[k]), *cells])
    for title, kind in AVERAGES.items():
        triples = [list(averages(scores[m], kind)) for m in found.methods]
        rows.append([title, str(support.sum()), *_triples(triples)])
    titles = [_title(method, column) for method in found.methods for column in COLUMNS]
    return markdown(["class", "n", *titles], rows)


def summary_table(found: ClassComparison) -> str:
    """Each method's scores over all objects with standard errors, the best in bold."""
    columns = []
    for score in SCALARS:
        means = [found.mean(score, method) for method in found.methods]
        best = _best([mean.value for mean in means], high=score in HIGH_IS_GOOD)
        cells = zip(means, best, strict=True)
        columns.append([f"{_bold(mean.value, b)} ± {mean.error:.3f}" for mean, b in cells])
    seconds = [f"{sum(found.seconds(method)):.1f}" for method in found.methods]
    rows = zip(found.methods, *columns, seconds, strict=True)
    return markdown(["method", *(score.replace("_", " ") for score in SCALARS), "seconds"], rows)


def difference_table(found: ClassComparison, reference: str) -> str:
    """Scores of the other methods minus those of one, with paired 95 % intervals.

    A difference is in bold where its interval does not hold 0.
    """
    others = [method for method in found.methods if method != reference]
    rows = [
        [f"{m} minus {reference}", *(_gap(found, s, m, reference) for s in SCALARS)] for m in others
    ]
    return markdown(["difference", *(score.replace("_", " ") for score in SCALARS)], rows)


def confusion_table(found: ClassComparison, method: str) -> str:
    """Count objects by true class (rows) and predicted class (columns)."""
    counts = found.confusion(method)
    rows = (
        [name, *(f"{n:g}" if n == round(n) else f"{n:.1f}" for n in row)]
        for name, row in zip(found.classes, counts, strict=True)
    )
    return markdown([f"{method}: true \\ predicted", *found.classes], rows)


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write rows as a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _gap(found: ClassComparison, score: str, method: str, reference: str) -> str:
    gap = found.difference(score, method, reference)
    text = f"{gap.value:+.3f}"
    shown = text if gap.low <= 0 <= gap.high else f"**{text}**"
    return f"{shown} ({gap.low:+.3f} to {gap.high:+.3f})"


def _triples(triples: Sequence[Sequence[float]]) -> list[str]:
    """Write each method's three scores; the best of each kind in bold."""
    best = [_best(column, high=True) for column in zip(*triples, strict=True)]
    return [
        _bold(value, best[k][m])
        for m, triple in enumerate(triples)
        for k, value in enumerate(triple)
    ]


def _best(values: Sequence[float], *, high: bool) -> list[bool]:
    """Tell which values are the best as they are shown; none where all are alike."""
    shown = [round(value, 3) for value in values]
    best = max(shown) if high else min(shown)
    return [len(set(shown)) > 1 and value == best for value in shown]


def _bold(value: float, bold: bool) -> str:
    return f"**{value:.3f}**" if bold else f"{value:.3f}"


def _title(method: str, column: str) -> str:
    return f"{method} {column}" if column == COLUMNS[0] else column
