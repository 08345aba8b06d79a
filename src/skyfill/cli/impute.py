"""`skyfill impute`: the gaps of a catalogue filled by a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.terminal import note, row_progress, warn
from skyfill.errors import SkyfillError

if TYPE_CHECKING:
    from skyfill.model import Extras, Model


@click.command(
    "impute",
    epilog=shared.examples(
        "skyfill impute lmc.skyfill field/joined.parquet --quantiles 0.16,0.84 -o filled.fits",
    ),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("catalog", type=shared.CATALOG)
@shared.output(kind=shared.CATALOG)
@shared.scheduler
@click.option("--quantiles", metavar="LEVEL,...", default="", help="Quantiles to write as well.")
@click.option(
    "--draws", type=click.IntRange(min=0), default=0, help="Joint draws to write as well."
)
@click.option(
    "--denoise", is_flag=True, help="Also write what values seen with an error are without it."
)
@shared.schema()
@shared.seed("Seed of the draws.")
@shared.resume
@shared.as_json("the counts")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Fill the gaps of CATALOG with MODEL: value, standard deviation and reason per filled cell.

    A table of all associations (match --probability --all) gives one row for each object: its
    associations are weighed by their probabilities.
    """
    from skyfill.catalog import Provenance, Schema, read_schema
    from skyfill.model import Extras, load_model
    from skyfill.scale.dispatch import column_names, input_files

    model = load_model(options["model"])
    levels = _levels(options["quantiles"])
    extras = Extras(levels, options["draws"], options["seed"], options["denoise"])
    _warn_absent(model.names, column_names(options["catalog"]), options["catalog"])
    inputs = [options["model"], *input_files(options["catalog"])]
    made = Provenance(
        shared.as_typed(context), inputs, seed=options["seed"], model=model.identifier
    )
    schema = read_schema(options["schema"]) if options["schema"] else Schema()
    rows, filled = _fill(model, options, extras=extras, schema=schema, provenance=made)
    if options["as_json"]:
        click.echo(json.dumps({"rows": rows, "filled": filled, "model": model.identifier}))
    note(f"{filled} gaps in {rows} rows filled -> {options['output']}")


def _fill(
    model: Model, options: dict[str, Any], *, extras: Extras, **facts: Any
) -> tuple[int, int]:
    from skyfill.scale import fill_file
    from skyfill.scale.dispatch import is_distributed, score_distributed
    from skyfill.scale.work import Filling

    catalog, output = options["catalog"], options["output"]
    if shared.has_associations(options):
        return _fill_associations(model, options, extras=extras, **facts)
    with row_progress(catalog, "filling") as tell:
        facts |= {"resume": options["resume"], "tell": tell}
        if is_distributed(catalog, options["scheduler"]):
            facts |= {"work": Filling(extras), "scheduler": options["scheduler"]}
            return score_distributed(options["model"], catalog, output, **facts)
        return fill_file(model, catalog, output, extras=extras, **facts)


def _fill_associations(
    model: Model, options: dict[str, Any], *, extras: Extras, **facts: Any
) -> tuple[int, int]:
    """Fill all associations of each object, weighed by their probabilities."""
    import numpy as np

    from skyfill.catalog import read_table, write_table
    from skyfill.model.results import filled_name
    from skyfill.model.weighing import fill_associations

    if extras.quantiles or extras.n_draws:
        raise SkyfillError(
            "--quantiles, --draws: associations are mixed by mean and standard deviation; leave "
            "these options out, or fill the table of the best counterparts"
        )
    table = read_table(options["catalog"], schema=options["schema"])
    done = fill_associations(model, table)
    write_table(done, options["output"], provenance=facts["provenance"])
    note(f"{len(table)} associations of {len(done)} objects weighed")
    spreads = done.numbers(*(filled_name(name) for name in model.names))
    return len(done), int(np.isfinite(spreads).sum())


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
        warn(f"{catalog} lacks {', '.join(absent)}: filled in every row")
