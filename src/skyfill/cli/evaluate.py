"""`skyfill evaluate`: hide seen cells of a catalogue and compare how well methods fill them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.evaluate import Comparison

# Name -> class in skyfill.impute, and its options.
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "mean": ("MeanImputer", {}),
    "mixture": ("GaussianMixtureImputer", {}),
    "knn": ("NeighborsImputer", {}),
    "forest": ("ForestImputer", {"n_jobs": -1}),
    "network": ("NetworkImputer", {}),
}


@click.command(
    "evaluate",
    epilog="Example: skyfill evaluate joined.parquet --rates 5,10,15,20 --log PeriodLS "
    "--mask blocks --group J,H,K --group V,I --figure errors.png",
)
@click.argument("catalog", type=click.Path(path_type=Path))
@click.option("--rates", default="5,10,15,20", show_default=True, help="Percent of cells to hide.")
@click.option(
    "--methods",
    default="mean,mixture,knn,forest,network",
    show_default=True,
    help="Which methods to compare.",
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
@click.option("--repeats", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--columns", metavar="COLUMN,...", help="Columns to use; else those of role feature.")
@click.option("--log", "logs", multiple=True, metavar="COLUMN", help="Take log10 of a column.")
@click.option("--schema", type=click.Path(path_type=Path), help="TOML with roles and sentinels.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Write all scores as JSON.")
@click.option("--figure", type=click.Path(path_type=Path), help="Draw the scores (.png, .pdf).")
def command(**options: Any) -> None:
    """Hide seen cells of CATALOG and compare how well methods fill them.

    Half of the rows train each method, the other half is filled. Errors are in units of each
    column's standard deviation, averaged over columns; the best is in bold; standard errors are
    over repeats.
    """
    from skyfill.catalog import read_table
    from skyfill.evaluate import compare_imputers

    table = read_table(options["catalog"], schema=options["schema"])
    names = _features(table, options)
    table = _logarithms(table.select(names), options["logs"])
    methods = _methods(options["methods"])
    with _progress() as progress:
        found = compare_imputers(
            table,
            methods,
            rates=_rates(options["rates"]),
            mask=_mask(options, names),
            repeats=options["repeats"],
            rng=options["seed"],
            progress=progress,
        )
    _tell(found, options)
    shape = f"{len(table)} rows, {len(names)} columns"
    click.echo(f"{shape}, {len(methods)} methods, {options['repeats']} repeats", err=True)


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
    names = list(
        table.names_with(Role.FEATURE) or with_guessed_roles(table).names_with(Role.FEATURE)
    )
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
        if name not in METHODS:
            raise CatalogError(f"--methods: no {name!r}; the methods are {', '.join(METHODS)}")
    return {name: partial(getattr(impute, METHODS[name][0]), **METHODS[name][1]) for name in wanted}


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
def _progress() -> Iterator[Callable[[int, int, str], None] | None]:
    """Show a bar on stderr when it is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, name: bar.update(
            task, completed=done, total=total, description=name
        )
