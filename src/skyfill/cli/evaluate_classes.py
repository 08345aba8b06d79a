"""`skyfill evaluate --label`: results against their labels; tables of classes and surveys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyfill.cli.quality_lines import class_lines
from skyfill.cli.terminal import GUESSED, echo, mention, note, warn, write_json
from skyfill.cli.training_columns import with_merged
from skyfill.errors import CatalogError, DataError, shortened

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.evaluate import ClassComparison


def result_columns_of(table: Table) -> dict[str, str]:
    """Find the classes that `skyfill classify` wrote into a table, and their probabilities."""
    from skyfill.model.results import CLASS, ENTROPY, class_columns, results_prefix

    prefix = results_prefix(table)
    written = {prefix + CLASS, prefix + ENTROPY} <= set(table.names)
    return class_columns(table) if written else {}


def score_results(table: Table, columns: Mapping[str, str], options: Mapping[str, Any]) -> None:
    """Compare probabilities in the columns of a table of results with a column of true classes."""
    import numpy as np

    from skyfill.classify.class_quality import NEW, class_quality
    from skyfill.model.results import CLASS, TRAINED_ON, results_prefix

    label, prefix = options["label"], results_prefix(table)
    if label in (prefix + CLASS, *columns.values()):
        raise CatalogError(
            f"--label {label}: skyfill classify wrote this column; name that of the true classes"
        )
    table, counts = with_merged(table, options)
    if line := counts.assumed():
        mention(GUESSED, line)
    texts, classes = np.array(table.column(label).to_pylist(), object), list(columns)
    known = np.zeros(len(table), bool)
    if prefix + TRAINED_ON in table.names:
        cells = table.column(prefix + TRAINED_ON).to_pylist()
        known = np.array([str(cell).strip().lower() in ("true", "1") for cell in cells], bool)
    is_labelled = np.array([text is not None for text in texts], bool)
    is_class = np.isin(texts.astype(str), classes) & is_labelled
    use, taught = is_class & ~known, int((is_class & known).sum())
    if strange := Counter(texts[is_labelled & ~is_class].tolist()):
        listed = shortened([f"{name} ({n})" for name, n in strange.most_common()], 130)
        warn(f"classes that the results do not know, left out: {listed}")
    if not use.any():
        why = f"all {taught} of them taught the model" if taught else "none is of a class in it"
        raise CatalogError(
            f"{options['catalog']}: no object can be scored by column {label!r}: {why}; classify "
            "objects that it did not learn from (skyfill inspect MODEL says how good its folds are)"
        )
    truth = np.array([classes.index(text) for text in texts[use]], np.intp)
    P = table.numbers(*columns.values())[use]
    found = {"label": label, **class_quality(P, truth, classes, apart=NEW)}
    found |= {"trained_on": taught, "unknown": dict(strange)}
    if options["as_json"]:
        write_json(found)
    else:
        echo("\n".join(class_lines(found)))
    left = f", {taught} left out that taught the model" if taught else ""
    note(f"{len(table)} rows, {use.sum()} objects scored by {label}{left}")


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
