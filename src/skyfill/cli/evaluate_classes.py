"""The part of `skyfill evaluate` that compares classifiers: the paper's classification tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli.evaluate import progress_of
from skyfill.cli.terminal import note
from skyfill.errors import CatalogError, DataError

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.evaluate import ClassComparison

DEFAULT = "mixture,paper,nan-forest,nan-boosting,skyfill"


def evaluate_classes(table: Table, labels: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Cross-validate the asked classifiers on the features of a table and tell the result."""
    from skyfill.evaluate import classifiers, cross_validate, survey_columns, without_surveys

    if options["label"] in table.names:
        raise CatalogError(f"--label {options['label']}: it is among the --columns to classify by")
    names, X = table.names, table.numbers(*table.names)
    try:
        methods = classifiers((options["methods"] or DEFAULT).split(","))
        columns = sorted({j for text in options["without"] for j in survey_columns(names, text)})
    except DataError as error:
        raise CatalogError(f"--methods, --without: {error}") from None
    how = {key: options[key] for key in ("folds",)} | {"repeats": options["repeats"] or 1}
    n_fits = len(methods) * how["folds"] * how["repeats"] * (2 if columns else 1)
    with progress_of(n_fits) as progress:
        how |= {"rng": options["seed"], "progress": progress}
        found = cross_validate(X, labels, methods, **how)
        parts = (
            without_surveys(X, labels, methods, columns=columns, found=found, **how)
            if columns
            else {}
        )
    _tell(found, parts, options)
    _say_shape(found, len(table), len(names), how)


def _tell(
    found: ClassComparison, parts: Mapping[str, ClassComparison], options: Mapping[str, Any]
) -> None:
    if options["as_json"]:
        facts = found.to_dict()
        if parts:
            facts["without"] = {name: part.to_dict() for name, part in parts.items()}
        click.echo(json.dumps(facts, indent=2, allow_nan=False))
    else:
        click.echo("\n\n".join([*_tables(found), *_survey_tables(parts)]))
    if options["figure"]:
        from skyfill.evaluate.class_figures import draw_classification

        draw_classification(found).savefig(options["figure"], dpi=150)


def _tables(found: ClassComparison) -> list[str]:
    """Classes, all scores, differences from the last method, confusion of the last."""
    from skyfill.evaluate import class_table, confusion_table, difference_table, summary_table

    last = found.methods[-1]
    tables = [class_table(found), summary_table(found)]
    if len(found.methods) > 1:
        tables.append(difference_table(found, last))
    return [*tables, confusion_table(found, last)]


def _survey_tables(parts: Mapping[str, ClassComparison]) -> list[str]:
    """For each part of the objects and each method: with and without, side by side."""
    from skyfill.evaluate import class_table, summary_table

    texts = []
    for name, part in parts.items():
        texts.append(f"{name} objects, with and without the survey:")
        for method in part.methods[: len(part.methods) // 2]:
            texts.append(class_table(part.only([method, f"{method} without"])))
        texts.append(summary_table(part))
    return texts


def _say_shape(found: ClassComparison, n: int, p: int, how: Mapping[str, Any]) -> None:
    unlabelled = n - len(found.truth)
    more = f" ({unlabelled} without a label)" if unlabelled else ""
    note(
        f"{n} rows{more}, {p} columns, {len(found.classes)} classes, {len(found.methods)} methods, "
        f"{how['folds']} folds, {how['repeats']} repeats",
    )
