"""`skyfill evaluate`: hide seen cells of a catalogue and compare how well methods fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skyfill.cli import options as shared
from skyfill.cli.terminal import note, progress_bar
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.evaluate import Comparison

# Name -> class in skyfill.impute, and its options.
IMPUTERS: dict[str, tuple[str, dict[str, Any]]] = {
    "mean": ("MeanImputer", {}),
    "mixture": ("GaussianMixtureImputer", {}),
    "knn": ("NeighborsImputer", {}),
    "forest": ("ForestImputer", {"n_jobs": -1}),
    "network": ("NetworkImputer", {}),
    "network-quick": ("NetworkImputer", {"n_components": 6, "n_fits": 1, "tol": 1e-3}),
}
DEFAULT = "mean,mixture,knn,forest,network"


@click.command(
    "evaluate",
    epilog=shared.examples(
        "skyfill evaluate training/joined.parquet --features V,R,J_two_mass --rates 5,20 "
        "--methods mean,network",
        "skyfill evaluate training/joined.parquet --features V,R,J_two_mass,H_two_mass --mask "
        "blocks --group V,R --group J_two_mass,H_two_mass --methods mean,knn --repeats 2",
        "skyfill evaluate training/joined.parquet --features V,R,m36_sage,sigma_lc --label "
        "class_truth --without sage --methods mixture,paper --folds 3",
    ),
)
@click.argument("catalog", type=click.Path(path_type=Path))
@click.option("--label", metavar="COLUMN", help="Compare classifiers of this column instead.")
@click.option("--folds", type=click.IntRange(min=2), default=10, show_default=True)
@click.option(
    "--without",
    multiple=True,
    metavar="SURVEY|COLUMN,...",
    help="With --label: also without the columns that end in _SURVEY, or those listed.",
)
@click.option("--rates", default="5,10,15,20", show_default=True, help="Percent of cells to hide.")
@click.option(
    "--methods",
    metavar="NAME,...",
    help="Which to compare: of mean, mixture, knn, forest, network, network-quick; with --label "
    "of mean, mixture, neighbors, missforest, nan-forest, nan-boosting, paper, skyfill, "
    "skyfill-quick.",
)
@click.option(
    "--mask",
    type=click.Choice(["cells", "blocks", "faint"]),
    default="cells",
    show_default=True,
    help="Hide cells at random; the columns of each --group together; or the faintest values.",
)
@click.option(
    "--group", "groups", multiple=True, metavar="COLUMN,...", help="Columns of one survey."
)
@click.option(
    "--repeats", type=click.IntRange(min=1), help="[default: 5; with --label 1, all folds each]"
)
@shared.features("--columns", "columns")
@click.option("--log", "logs", multiple=True, metavar="COLUMN", help="Take log10 of a column.")
@shared.schema()
@shared.seed()
@shared.as_json("all scores")
@click.option("--figure", type=click.Path(path_type=Path), help="Draw the scores (.png, .pdf).")
def command(**options: Any) -> None:
    """Compare how well methods fill hidden cells of CATALOG or, with --label, classify it.

    Filling: half of the rows train each method, the other half is filled. Errors are in units of
    each column's standard deviation, averaged over columns; the best is in bold; standard errors
    are over repeats.

    Classifying: every object is classified by what the other folds teach; everything, the
    filling of gaps too, is learned inside the fold. Intervals are over objects, paired.
    """
    from skyfill.catalog import read_table

    table = read_table(options["catalog"], schema=options["schema"])
    if not len(table):
        raise CatalogError(f"{options['catalog']}: has no rows; nothing can be compared")
    names = _features(table, options)
    numbers = _logarithms(table.select(names), options["logs"])
    if options["label"]:
        from skyfill.cli.evaluate_classes import evaluate_classes

        evaluate_classes(numbers, table.column(options["label"]).to_pylist(), options)
    else:
        _evaluate_imputers(numbers, options)


def _evaluate_imputers(table: Table, options: Mapping[str, Any]) -> None:
    from skyfill.evaluate import compare_imputers

    names, repeats = list(table.names), options["repeats"] or 5
    methods = _methods(options["methods"] or DEFAULT)
    rates = _rates(options["rates"])
    with progress_of(len(methods) * len(rates) * repeats) as progress:
        found = compare_imputers(
            table,
            methods,
            rates=rates,
            mask=_mask(options, names),
            repeats=repeats,
            rng=options["seed"],
            progress=progress,
        )
    _tell(found, options)
    shape = f"{len(table)} rows, {len(names)} columns"
    note(f"{shape}, {len(methods)} methods, {repeats} repeats")


def _tell(found: Comparison, options: Mapping[str, Any]) -> None:
    if options["as_json"]:
        click.echo(found.to_json())
    else:
        scores = ("nrmse", "crps", "coverage_50", "coverage_90")
        click.echo("\n\n".join(found.table(score) for score in scores))
    if options["figure"]:
        from skyfill.evaluate.figures import draw_comparison

        draw_comparison(found).savefig(options["figure"], dpi=150)


def _features(table: Table, options: Mapping[str, Any]) -> list[str]:
    """Name the columns to use: as asked, by role, or by guessed role."""
    from skyfill.catalog import Role, with_guessed_roles

    if options["columns"]:
        return str(options["columns"]).split(",")
    known = table.names_with(Role.FEATURE)
    names = list(known or with_guessed_roles(table).names_with(Role.FEATURE))
    names = [name for name in names if name != options["label"]]
    if len(names) < 2:
        raise CatalogError(
            f"{options['catalog']}: {len(names)} columns have the role feature, two are needed; "
            "name them with --columns, or set roles with --schema (see skyfill inspect)"
        )
    return names


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
        raise CatalogError(f"--rates {text}: write percent such as 5,10,15,20") from None
    if not all(0 < rate < 1 for rate in rates):
        raise CatalogError(f"--rates {text}: each must lie between 0 and 100 percent")
    return rates


def _methods(text: str) -> dict[str, Callable[[], Any]]:
    from skyfill import impute

    wanted = text.split(",")
    for name in wanted:
        if name not in IMPUTERS:
            raise CatalogError(f"--methods: no {name!r}; the methods are {', '.join(IMPUTERS)}")
    return {n: partial(getattr(impute, IMPUTERS[n][0]), **IMPUTERS[n][1]) for n in wanted}


def _mask(options: Mapping[str, Any], names: list[str]) -> Any:
    from skyfill.evaluate import hide_blocks, hide_faint

    if options["mask"] == "cells":
        return "cells"
    if options["mask"] == "faint":
        return partial(hide_faint, columns=range(len(names)))
    groups = [[_place(name, names) for name in text.split(",")] for text in options["groups"]]
    if len(groups) < 2:
        raise CatalogError(
            "--mask blocks: give the columns of each survey with --group, twice or more"
        )
    return partial(hide_blocks, groups=groups)


def _place(name: str, names: list[str]) -> int:
    if name not in names:
        raise CatalogError(f"--group: no column {name!r} among {', '.join(names)}")
    return names.index(name)


@contextmanager
def progress_of(n_fits: int) -> Iterator[Callable[[int, int, str], None]]:
    """Show how many fits are done, as the comparisons report them."""
    with progress_bar("comparing", "fits", n_fits) as advance:
        yield lambda done, total, name: advance(1 if done else 0)
