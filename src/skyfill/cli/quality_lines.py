"""How good a model is, in lines: after training, of a model file, and of results with labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skyfill.errors import shortened

MOST_LINES = 15
_APART = {
    "folds": "rows that each fold did not learn from",
    "bags": "rows that each tree did not learn from (out of bag)",
    "new": "rows that taught the model nothing",
}
# A tree knows two thirds of the rows.
_FEW_VOTES = "only a third of the trees vote for each, so that the log loss is too high"


def quality_lines(quality: Mapping[str, Any]) -> Iterator[str]:
    """Say how good the classes and the filled values of a model are."""
    if found := quality.get("classes"):
        yield from class_lines(found)
    if found := quality.get("filling"):
        yield from _filling_lines(found)


def class_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Say how good classes are: over all objects in one line, then in a table of the classes.

    Examples
    --------
    >>> print(*class_lines({"not_measured": "no folds are made with --no-calibration"}))
    classes not measured: no folds are made with --no-calibration
    """
    if "not_measured" in found:
        yield f"classes not measured: {found['not_measured']}"
        return
    scores, where = found["methods"][0], f"on {found['objects']} {_APART[found['apart']]}"
    names = {"accuracy": "accuracy", "macro_f": "macro F1", "log_loss": "log loss"}
    listed = (
        f"{word} {scores[key]['value']:.3f} ± {scores[key]['error']:.3f}"
        for key, word in names.items()
    )
    differences = [abs(a - b) for a, b in zip(found["stated"], found["true"], strict=True)]
    most = max(differences)
    apart = f"{most:.3f} at most ({found['classes'][differences.index(most)]})"
    yield f"{where}: {', '.join(listed)}; stated and true shares differ by {apart}"
    if found["apart"] == "bags":
        yield _FEW_VOTES
    if found["unmeasured"]:
        lost = [f"{name} ({n})" for name, n in found["unmeasured"].items()]
        why = "without probabilities" if found["apart"] == "new" else "in no fold"
        yield f"objects that were not measured, being {why}: {shortened(lost, 130)}"
    yield from _table(("class", "objects", "precision", "recall", "F1"), _classes(found))


def _classes(found: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Give a line for each class, the rarest together if they are many."""
    each = sorted(found["methods"][0]["by_class"], key=lambda one: -one["support"])
    shown = each if len(each) <= MOST_LINES else each[: MOST_LINES - 1]
    lines = [
        (
            one["class"],
            f"{one['support']:.0f}",
            *(f"{one[k]:.3f}" for k in ("precision", "recall", "f")),
        )
        for one in shown
    ]
    if rest := each[len(shown) :]:
        names, counts = found["classes"], found["methods"][0]["confusion"]
        mine = [names.index(one["class"]) for one in rest]
        hits = sum(counts[c][c] for c in mine)
        named = sum(row[c] for row in counts for c in mine)
        n = sum(sum(counts[c]) for c in mine)
        parts = (hits / max(named, 1), hits / max(n, 1), 2 * hits / max(named + n, 1))
        lines.append((f"{len(rest)} others", f"{n:.0f}", *(f"{part:.3f}" for part in parts)))
    return lines


def _filling_lines(found: Mapping[str, Any]) -> Iterator[str]:
    if "not_measured" in found:
        yield f"filled values not measured: {found['not_measured']}"
        return
    features = found["features"]
    yield f"values that were hidden, and filled by what other rows teach ({found['rows']} rows):"
    worst = sorted(features, key=lambda one: -one["error"] / (one["mean_error"] or 1.0))
    shown = features if len(features) <= MOST_LINES else worst[:MOST_LINES]
    lines = [
        (one["name"], str(one["cells"]), f"{one['error']:.3g}", f"{one['mean_error']:.3g}",
         f"{one['inside_90']:.3f}")
        for one in shown
    ]  # fmt: skip
    yield from _table(("feature", "cells", "error", "error of the mean", "in 90 % interval"), lines)
    if len(shown) < len(features):
        yield f"{len(features) - len(shown)} other features are filled better (--json lists all)"
    reasons: dict[str, list[str]] = {}
    for name, why in found["unmeasured"].items():
        reasons.setdefault(why, []).append(name)
    if reasons:
        listed = "; ".join(f"{why}: {shortened(names, 100)}" for why, names in reasons.items())
        yield f"not measured: {listed}"


def _table(head: tuple[str, ...], lines: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    for name, *cells in (head, *lines):
        right = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join((name.ljust(widths[0]), *right)).rstrip()
