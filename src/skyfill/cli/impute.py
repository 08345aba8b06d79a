"""`skyfill impute`: the gaps of a catalogue filled by a model."""

import json
from pathlib import Path
from typing import Any

import click

from skyfill.errors import SkyfillError


@click.command(
    "impute",
    epilog="Example: skyfill impute lmc.skyfill joined.fits --quantiles 0.16,0.84 -o filled.fits",
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("catalog", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
@click.option("--quantiles", metavar="LEVEL,...", default="", help="Quantiles to write as well.")
@click.option(
    "--draws", type=click.IntRange(min=0), default=0, help="Joint draws to write as well."
)
@click.option(
    "--schema", type=click.Path(path_type=Path), help="TOML with roles, units, sentinels."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draws.")
@click.option("--json", "as_json", is_flag=True, help="Write the counts as JSON.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Fill the gaps of CATALOG with MODEL: value, standard deviation and reason per filled cell."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TimeElapsedColumn

    from skyfill.catalog import Provenance, Schema, open_scan, read_schema
    from skyfill.cli.match import as_typed
    from skyfill.model import load_model
    from skyfill.scale import Extras, fill_file

    model = load_model(options["model"])
    extras = Extras(_levels(options["quantiles"]), options["draws"], options["seed"])
    _warn_absent(model.names, open_scan(options["catalog"]).schema.names, options["catalog"])
    inputs = [options["model"], options["catalog"]]
    made = Provenance(as_typed(context), inputs, seed=options["seed"], model=model.identifier)
    console = Console(stderr=True)
    columns = (SpinnerColumn(), "rows", MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("filling", total=None)
        rows, filled = fill_file(
            model,
            options["catalog"],
            options["output"],
            extras=extras,
            schema=read_schema(options["schema"]) if options["schema"] else Schema(),
            provenance=made,
            tell=lambda done: bar.advance(task, done),
        )
    if options["as_json"]:
        click.echo(json.dumps({"rows": rows, "filled": filled, "model": model.identifier}))
    click.echo(f"{filled} gaps in {rows} rows filled -> {options['output']}", err=True)


def _levels(text: str) -> tuple[float, ...]:
    try:
        levels = tuple(float(word) for word in text.split(",") if word.strip())
    except ValueError:
        levels = (2.0,)
    if any(not 0 < level < 1 for level in levels):
        raise click.BadParameter(f"{text!r}: give levels between 0 and 1", param_hint="--quantiles")
    return levels


def _warn_absent(features: tuple[str, ...], names: list[str], catalog: Path) -> None:
    absent = [name for name in features if name not in names]
    if len(absent) == len(features):
        raise SkyfillError(
            f"{catalog}: has none of the model's features ({', '.join(features)}); "
            "rename its columns or use another model"
        )
    if absent:
        click.echo(f"warning: {catalog} lacks {', '.join(absent)}: filled in every row", err=True)
