"""Evaluations for the page, of filling and of classes, as `skyfill evaluate --json` wrote them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skyfill.errors import DataError

SHOWN = ("nrmse", "crps", "coverage_50", "coverage_90")
TITLES = {"without": "All features, and all but the survey's"}
# The keys by which each kind of evaluation is recognized.
FILLING, CLASSES = {"means", "runs"}, {"classes", "methods", "support"}


def read_evaluations(paths: Iterable[str | Path]) -> dict[str, Any]:
    """Read evaluations of filling and of classes; the last of each kind is used.

    Returns
    -------
    dict
        ``imputation`` and ``classification``, None where there is none.
    """
    found: dict[str, Any] = {"imputation": None, "classification": None}
    for path in paths:
        facts = _read(Path(path))
        try:
            found |= _recognized(facts, Path(path))
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise DataError(
                f"{path}: the evaluation is incomplete ({type(error).__name__}: {error}); write "
                "it again with skyfill evaluate --json"
            ) from None
    return found


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}: not JSON ({error}); write an evaluation with skyfill evaluate --json"
        ) from None


def _recognized(facts: Any, path: Path) -> dict[str, Any]:
    keys = set(facts) if isinstance(facts, dict) else set()
    if keys >= FILLING:
        return {"imputation": export_filling(facts)}
    main = next(_comparisons(facts), None)
    if main is not None:
        return {"classification": export_classes(facts)}
    raise DataError(
        f"{path}: neither an evaluation of filled values nor of classes; write one with "
        "skyfill evaluate CATALOG --json"
    )


def export_filling(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Arrange scores as methods by rates, with the PIT of each method and errors by feature."""
    methods = list(dict.fromkeys(mean["method"] for mean in facts["means"]))
    rates = sorted({mean["rate"] for mean in facts["means"]})
    cells = {(mean["method"], mean["rate"]): mean for mean in facts["means"]}
    scores = {s: [[cells[m, r][s] for r in rates] for m in methods] for s in SHOWN}
    pits = [{"method": m, "counts": _pit(facts["runs"], m)} for m in methods]
    return {
        "methods": methods,
        "rates": rates,
        "scores": scores,
        "pits": [pit for pit in reversed(pits) if pit["counts"]],
        "byFeature": _by_feature(facts["runs"], scores["nrmse"], methods),
        "inSample": any(run.get("in_sample") for run in facts["runs"]),
    }


def _pit(runs: Sequence[Mapping[str, Any]], method: str) -> list[int]:
    counts = [run["pit"] for run in runs if run["method"] == method and run["pit"]]
    return np.sum(counts, axis=0).astype(int).tolist() if counts else []


def _by_feature(
    runs: Sequence[Mapping[str, Any]], nrmse: list[Any], methods: list[str]
) -> dict[str, Any]:
    """Mean error of each feature, for the method that is best on average."""
    best = min(methods, key=lambda m: sum(cell["value"] for cell in nrmse[methods.index(m)]))
    tables = [run["by_feature"]["nrmse"] for run in runs if run["method"] == best]
    seen = {
        name: [table[name] for table in tables if table[name] is not None] for name in tables[0]
    }
    return {"method": best, "values": {n: float(np.mean(v)) for n, v in seen.items() if v}}


def export_classes(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the comparison for all objects, and those with and without a survey."""
    main = next(_comparisons(facts))
    kept = {key: main[key] for key in sorted(CLASSES)}
    return {**kept, "surveys": [*_surveys(facts)]}


def _comparisons(facts: Any) -> Iterator[Mapping[str, Any]]:
    """Search nested objects for comparisons of classifiers."""
    if _is_comparison(facts):
        yield facts
    if isinstance(facts, dict):
        for value in facts.values():
            yield from _comparisons(value)


def _surveys(facts: Any, title: str | None = None) -> Iterator[dict[str, Any]]:
    """Return objects that hold comparisons: the parts (all, matched, unmatched) of a survey."""
    if not isinstance(facts, dict):
        return
    parts = {key: value for key, value in facts.items() if _is_comparison(value)}
    if parts and title is not None:
        listed = [{"part": key, "methods": value["methods"]} for key, value in parts.items()]
        yield {"title": TITLES.get(title, title), "parts": listed}
    for key, value in facts.items():
        if key not in parts:
            yield from _surveys(value, key)


def _is_comparison(value: Any) -> bool:
    return isinstance(value, dict) and set(value) >= CLASSES
