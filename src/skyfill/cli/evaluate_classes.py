"""Tables of `skyfill evaluate --label`: classes, surveys, levels of a tree of classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyfill.errors import CatalogError, DataError

if TYPE_CHECKING:
    from skyfill.evaluate import ClassComparison


def class_tables(found: ClassComparison) -> list[str]:
    """Classes, all scores, differences from the last method, confusion of the last."""
    last = found.methods[-1]
    tables = [found.class_table(), found.summary_table()]
    if len(found.methods) > 1:
        tables.append(found.difference_table(last))
    return [*tables, found.confusion_table(last)]


def survey_tables(parts: Mapping[str, ClassComparison]) -> list[str]:
    """For each part of the objects and each method: with and without, side by side."""
    texts = []
    for name, part in parts.items():
        texts.append(f"{name} objects, with and without the survey:")
        for method in part.methods[: len(part.methods) // 2]:
            texts.append(part.only([method, f"{method} without"]).class_table())
        texts.append(part.summary_table())
    return texts


def compare_levels(found: ClassComparison, path: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """Scores at every level of a tree of classes above the classes: for JSON, and as tables."""
    from skyfill.classify import ClassTree

    tree = ClassTree.read(path)
    try:
        tree.check(found.classes)
    except DataError as error:
        raise CatalogError(f"{path}: {error}") from None
    facts, tables = [], []
    for k, names in enumerate(tree.levels(found.classes), 1):
        level = found.merged(names)
        if len(level.classes) < 2:
            continue
        facts.append({"level": k, **level.to_dict()})
        tables += [f"level {k} of the tree:", level.class_table(), level.summary_table()]
    return facts, tables
