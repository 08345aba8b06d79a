"""`skyfill impute`: the gaps of a catalogue filled by a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.checks import mention_training
from skyfill.cli.terminal import note, shown_run, warn, write_json
from skyfill.errors import SkyfillError

if TYPE_CHECKING:
    from skyfill.catalog import Provenance
    from skyfill.model import Filling, Model
    from skyfill.scale import Done


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
    from skyfill.model import Filling, load_model
    from skyfill.scale import apply_model, open_source
    from skyfill.scale.scoring import absent_features

    model, source = load_model(options["model"]), open_source(options["catalog"])
    rules = read_schema(options["schema"]) if options["schema"] else Schema()
    model = mention_training(model, rules, source.schema.names)
    levels, seed = _levels(options["quantiles"]), options["seed"]
    work = Filling(levels, options["draws"], seed, options["denoise"])
    if absent := absent_features(model, source):
        warn(f"{options['catalog']} lacks {', '.join(absent)}: filled in every row")
    inputs = [options["model"], *source.checked_files]
    made = Provenance(shared.as_typed(context), inputs, seed=seed, model=model.identifier)
    places = options["model"], options["catalog"], options["output"]
    if shared.has_associations(source, options):
        done = _fill_associations(model, work, options, made)
    else:
        with shown_run("filling", source, options, made) as run:
            done = apply_model(work, *places, rules=rules, run=run)
    filled = done.counts.get("filled", 0)
    if options["as_json"]:
        write_json({"rows": done.rows, "filled": filled, "model": model.identifier})
    note(f"{filled} gaps in {done.rows} rows filled -> {options['output']}")


def _fill_associations(
    model: Model, work: Filling, options: dict[str, Any], made: Provenance
) -> Done:
    """Fill all associations of each object, weighed by their probabilities."""
    import numpy as np

    from skyfill.catalog import read_table, write_table
    from skyfill.model import fill_associations
    from skyfill.model.results import filled_name
    from skyfill.scale import Done

    if work.quantiles or work.n_draws:
        raise SkyfillError(
            "--quantiles, --draws: associations are mixed by mean and standard deviation; leave "
            "these options out, or fill the table of the best counterparts"
        )
    table = read_table(options["catalog"], schema=options["schema"])
    filled = fill_associations(model, table)
    write_table(filled, options["output"], provenance=made)
    note(f"{len(table)} associations of {len(filled)} objects weighed")
    spreads = filled.numbers(*(filled_name(name) for name in model.names))
    return Done(len(filled), {"filled": int(np.isfinite(spreads).sum())})


def _levels(text: str) -> tuple[float, ...]:
    try:
        levels = tuple(float(word) for word in text.split(",") if word.strip())
    except ValueError:
        levels = (2.0,)
    if any(not 0 < level < 1 for level in levels):
        raise click.BadParameter(f"{text!r}: give levels between 0 and 1", param_hint="--quantiles")
    return levels
