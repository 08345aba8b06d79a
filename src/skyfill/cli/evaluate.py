"""`skyfill evaluate`: compare methods at filling hidden cells, or at classifying."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skyfill.cli import options as shared
from skyfill.cli.checks import check_repeats, check_training, mention_rules
from skyfill.cli.evaluate_classes import (
    class_tables,
    compare_levels,
    result_columns_of,
    score_results,
    survey_tables,
)
from skyfill.cli.expected_cost import CLASSIFYING as CLASS_COSTS
from skyfill.cli.expected_cost import FILLING as FILL_COSTS
from skyfill.cli.expected_cost import expect_methods
from skyfill.cli.field_shares import read_field, show_field_scores, takes_field
from skyfill.cli.input_warnings import warn_of_odd_field
from skyfill.cli.terminal import echo, note, write_json
from skyfill.cli.training_columns import (
    choose_features,
    refuse_without_label,
    takes_classes,
    takes_tree,
    with_labels,
)
from skyfill.cli.work_progress import work_bar
from skyfill.errors import CatalogError, DataError, counted, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from skyfill.catalog import Table
    from skyfill.classify.repeats import Groups
    from skyfill.evaluate import ClassComparison

FILLING = "mean,mixture,knn,missforest,paper,skyfill"
CLASSIFYING = "mixture,paper,nan-forest,nan-boosting,skyfill"
# Options that ask for a comparison of methods, also of a table that was classified.
COMPARING = ("methods", "columns", "without", "field", "tree", "figure")
SCORES = ("nrmse", "crps", "coverage_50", "coverage_90")


class Folds(click.IntRange):
    """A number of folds, or none: everything is learned from the table that is filled."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Read the number; 0 for none."""
        return 0 if value == "none" else super().convert(value, param, ctx)


@click.command(
    "evaluate",
    epilog=shared.examples(
        "skyfill evaluate training/joined.parquet --features V,R,J_two_mass --rates 5,20 "
        "--methods mean,skyfill",
        "skyfill evaluate training/joined.parquet --features V,R,J_two_mass,H_two_mass --mask "
        "blocks --survey macho=V,R --survey two_mass --methods mean,knn --repeats 2",
        "skyfill evaluate training/joined.parquet --features V,R,m36_sage,sigma_lc --label "
        "class_truth --without sage --methods mixture,paper --folds 3",
    ),
)
@click.argument("catalog", type=click.Path(path_type=Path))
@click.option(
    "--label",
    metavar="COLUMN",
    help="Compare classifiers of this column instead; or score what classify wrote against it.",
)
@click.option(
    "--folds",
    type=Folds(min=2),
    metavar="N|none",
    default=10,
    show_default=True,
    help="With --label: parts of the objects, each classified by what the others teach. none, for "
    "filling: learn from the very table that is filled, in sample, as in the paper.",
)
@shared.surveys("--without", "With --label: repeat without the features of this survey.")
@takes_tree
@takes_field(
    "With --label: also scores as they would be in this catalogue, with the shares of the classes "
    "that the last method finds there."
)
@click.option(
    "--rates", default="5,10,15,20", show_default=True, help="Percentages of cells to hide."
)
@click.option(
    "--methods",
    metavar="NAME,...",
    help="Methods to compare: mean, mixture, knn, missforest, paper, paper-printed, paper-bic, "
    "complete-rows (learns from rows without gaps alone), skyfill, skyfill-quick, skyfill-thorough "
    "(as train --quick and --thorough), skyfill-refined, skyfill-unrefined (with and without "
    "forests that correct the mixtures; with --label a forest on what they fill); with --label "
    "also complete-columns (leaves columns with gaps out), nan-forest, nan-boosting.",
)
@shared.choice(
    "--mask",
    "cells|blocks|faint",
    "Hide cells at random; the features of each survey together; or the faintest values.",
)
@shared.surveys(
    "--survey", "With --mask blocks: a survey.  [default: as recorded by skyfill match]"
)
@click.option(
    "--repeats",
    type=click.IntRange(min=1),
    help="[default: 5; with --label 1, each with all folds]",
)
@shared.feature_option("--columns", "columns")
@click.option("--log", "logs", multiple=True, metavar="COLUMN", help="Take log10 of a column.")
@takes_classes
@shared.force("results of classifiers")
@shared.group()
@shared.schema()
@shared.seed()
@shared.as_json("all scores")
@click.option("--figure", type=click.Path(path_type=Path), help="Draw the scores (.png, .pdf).")
def command(**options: Any) -> None:
    """Compare how well methods fill hidden cells of CATALOG or, with --label, classify it.

    Filling: each method learns from half of the rows and fills the other half. Errors are in
    units of each column's standard deviation, averaged over columns; the best is in bold; standard
    errors are over repeats.

    Classifying: every object is classified by a model trained on the other folds; everything,
    including how to fill gaps, is learned inside the fold. Intervals are paired, over objects.

    What skyfill classify wrote, with a column of true classes for --label, is scored as it is,
    without the objects that taught the model; --methods or --columns compares methods there too.
    """
    from skyfill.catalog import read_table
    from skyfill.model import before_filling

    refuse_without_label(options, ("without", "field", "tree", "merge", "min_class"))
    rules = shared.rules_of(options)
    table = read_table(options["catalog"], schema=rules)
    mention_rules(rules, table.names)
    if not len(table):
        raise CatalogError(f"{options['catalog']}: has no rows, so there is nothing to compare")
    is_plain = options["label"] and not any(options[name] for name in COMPARING)
    if is_plain and (columns := result_columns_of(table)):
        score_results(table, columns, options)
        return
    table = before_filling(table)
    if options["label"]:
        table = with_labels(table, options)
    names, judged = choose_features(table, options, "columns")
    options["judged"] = judged
    if not options["label"] and len(names) < 2:
        raise CatalogError("one feature cannot be filled from others; name two with --columns")
    raw, table = table, check_training(table, names, rules)
    groups = check_repeats(table, names, options["group"])
    numbers = _logarithms(table.select(names), options["logs"])
    if options["label"]:
        words = table.column(options["label"]).to_pylist()
        _compare_classifiers(numbers, words, groups, _field(raw, names, options), options)
    else:
        _compare_imputers(numbers, table, groups, options)


def _compare_imputers(
    numbers: Table, table: Table, groups: Groups, options: Mapping[str, Any]
) -> None:
    from skyfill.evaluate import compare_imputers, imputers
    from skyfill.evaluate.score_figures import draw_comparison

    names, repeats = numbers.names, options["repeats"] or 5
    methods = _methods(options, imputers, FILLING)
    rates = _rates(options["rates"])
    costs = expect_methods(FILL_COSTS, list(methods), len(table), len(names))
    with _progress(costs, len(rates) * repeats) as progress:
        found = compare_imputers(
            numbers,
            methods,
            rates=rates,
            mask=_mask(options, table, names),
            repeats=repeats,
            rng=options["seed"],
            progress=progress,
            groups=groups.codes if groups.n_repeated else None,
            train_fraction=0.5 if options["folds"] else None,
        )
    tables = [found.table(score) for score in SCORES]
    _write(options, found.to_dict(), tables, partial(draw_comparison, found))
    how = "" if options["folds"] else ", learned from the table that is filled"
    sizes = counted(row=len(table), column=len(names), method=len(methods), repeat=repeats)
    note(f"{sizes}{how}")


def _compare_classifiers(
    numbers: Table,
    labels: Sequence[Any],
    groups: Groups,
    field: Table | None,
    options: Mapping[str, Any],
) -> None:
    from skyfill.evaluate import (
        classifiers,
        cross_validate,
        score_in_field,
        survey_columns,
        without_surveys,
    )
    from skyfill.evaluate.score_figures import draw_classification

    names = numbers.names
    X, methods = numbers.numbers(*names), _methods(options, classifiers, CLASSIFYING)
    columns = sorted({j for text in options["without"] for j in survey_columns(names, text)})
    folds, repeats = options["folds"], options["repeats"] or 1
    if not folds:
        message = "none is for filling: classes of objects that taught them would seem too good"
        raise click.BadParameter(message, param_hint="--folds")
    whole = _mention_complete(X, names, methods)
    parts: dict[str, ClassComparison] = {}
    costs = expect_methods(CLASS_COSTS, list(methods), len(X), len(names))
    with _progress(costs, folds * repeats * (2 if columns else 1)) as progress:
        how = {"folds": folds, "repeats": repeats, "rng": options["seed"], "progress": progress}
        how["groups"] = groups.codes if groups.n_repeated else None
        found = cross_validate(X, labels, methods, **how)
        if columns:
            parts = without_surveys(X, labels, methods, columns=columns, found=found, **how)
    facts = found.to_dict()
    if parts:
        facts["without"] = {name: part.to_dict() for name, part in parts.items()}
    tables = [*class_tables(found), *survey_tables(parts)]
    if "complete-rows" in methods and whole[found.rows].any():
        part = found.subset(whole)
        facts["objects"] = {"without a gap": part.to_dict()}
        tables += [f"the {len(part.truth)} objects without a gap:", part.summary_table()]
    if options["tree"]:
        facts["levels"], more_tables = compare_levels(found, options["tree"])
        tables += more_tables
    if field is not None:
        in_field = score_in_field(
            found, X, labels, methods, field.numbers(*names), seed=options["seed"]
        )
        facts["field"], more_tables = show_field_scores(in_field, len(field), options["field"])
        tables += more_tables
    _write(options, facts, tables, partial(draw_classification, found))
    unlabelled = len(X) - len(found.truth)
    more = f" ({unlabelled} without a label)" if unlabelled else ""
    sizes = {"column": len(names), "class": len(found.classes), "method": len(methods)}
    note(f"{counted(row=len(X))}{more}, {counted(**sizes, fold=folds, repeat=repeats)}")


def _mention_complete(
    X: NDArray[np.float64], names: Sequence[str], methods: Mapping[str, Any]
) -> NDArray[np.bool_]:
    """Say what methods have that learn from complete data alone; mark the rows without a gap."""
    from skyfill.evaluate.methods import COMPLETE

    seen = ~np.isnan(X)
    whole, shares = np.asarray(seen.all(axis=1)), seen.mean(axis=0)
    columns = [name for name, share in zip(names, shares, strict=True) if share >= COMPLETE]
    if "complete-rows" in methods:
        note(f"complete-rows: {whole.sum()} of {len(X)} rows have no gap")
    if "complete-columns" in methods:
        note(f"complete-columns: {shortened(columns, 200) or 'all features have gaps'}")
    return whole


def _field(table: Table, names: Sequence[str], options: Mapping[str, Any]) -> Table | None:
    """Read a sample of the field, in the units of the table."""
    from skyfill.catalog import Table
    from skyfill.model import features_of
    from skyfill.model.training import knowing, untrained

    if not options["field"]:
        return None
    rules, force = shared.rules_of(options), shared.words_of(options["force"])
    found = read_field(options["field"], names, rules)
    how = {"rules": rules, "force": force, "rng": options["seed"]}
    warn_of_odd_field(table, found, names, options["field"], **how)
    X = features_of(knowing(untrained(table, names, rules=rules), found), found)[0]
    return _logarithms(Table.from_columns(dict(zip(names, X.T, strict=True))), options["logs"])


def _write(
    options: Mapping[str, Any],
    facts: Mapping[str, Any],
    tables: Sequence[str],
    draw: Callable[[], Figure],
) -> None:
    """Print the comparison as JSON or as tables, and draw the figure if there is one to draw."""
    if options["as_json"]:
        write_json({**facts, "columns": options["judged"]})
    else:
        echo("\n\n".join(tables))
    if options["figure"]:
        draw().savefig(options["figure"], dpi=150)


def _logarithms(table: Table, names: Sequence[str]) -> Table:
    for name in names:
        values = table.numbers(name)[:, 0]
        row = np.flatnonzero(values <= 0)
        if row.size:
            raise CatalogError(
                f"--log {name}: {values[row[0]]:g} in row {row[0] + 1} has no logarithm; declare "
                "it as a sentinel (--schema) or leave the column as it is"
            )
        table = table.with_column(name, np.log10(values))
    return table


def _rates(text: str) -> list[float]:
    try:
        rates = [float(word) / 100 for word in text.split(",")]
    except ValueError:
        raise CatalogError(f"--rates {text}: write percentages such as 5,10,15,20") from None
    if not all(0 < rate < 1 for rate in rates):
        raise CatalogError(f"--rates {text}: each must lie between 0 and 100 percent")
    return rates


def _methods(
    options: Mapping[str, Any], look_up: Callable[[list[str]], dict[str, Any]], default: str
) -> dict[str, Any]:
    try:
        return look_up((options["methods"] or default).split(","))
    except DataError as error:
        raise CatalogError(f"--methods: {error}") from None


def _mask(options: Mapping[str, Any], table: Table, names: Sequence[str]) -> Any:
    from skyfill.evaluate import find_surveys, hide_blocks, hide_faint

    if options["mask"] == "cells":
        return "cells"
    if options["mask"] == "faint":
        return partial(hide_faint, columns=range(len(names)))
    groups = list(find_surveys(table, names, options["survey"]).values())
    if len(groups) < 2:
        raise CatalogError(
            "--mask blocks: name two surveys or more with --survey NAME or --survey NAME=COLUMN,..."
        )
    return partial(hide_blocks, groups=groups)


@contextmanager
def _progress(
    costs: Mapping[str, float], n_each: int
) -> Iterator[Callable[[int, int, str | None], None]]:
    """Show how much is done, as the comparisons report the fits that they begin.

    `costs` are those of one fit of each method; every method is fitted `n_each` times.
    """
    words = f"{counted(method=len(costs), fit=n_each)} each"
    with work_bar("comparing", n_each * sum(costs.values()), words) as advance:
        begun: list[str] = []

        def begin(done: int, total: int, name: str | None) -> None:
            for before in begun:
                advance(costs[before])
            begun[:] = [name] if name is not None and name in costs else []

        yield begin
        begin(0, 0, None)
