"""`skyfill impute`: the gaps of a catalogue filled by a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from skyfill.cli import options as shared
from skyfill.cli.applying import open_application, takes_model, takes_run
from skyfill.cli.terminal import note, write_json
from skyfill.errors import SkyfillError, counted

if TYPE_CHECKING:
    from skyfill.catalog import Table
    from skyfill.model import Filling, Model
    from skyfill.scale import Done


@click.command(
    "impute",
    epilog=shared.examples(
        "skyfill impute lmc.skyfill field/joined.parquet --quantiles 0.16,0.84 -o filled.fits",
    ),
)
@takes_model
@click.option("--quantiles", metavar="LEVEL,...", default="", help="Quantiles to write as well.")
@click.option(
    "--draws", type=click.IntRange(min=0), default=0, help="Joint draws to write as well."
)
@click.option(
    "--denoise", is_flag=True, help="Also write what values seen with an error are without it."
)
@shared.prefix("")
@takes_run
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Fill the gaps of CATALOG with MODEL: value, standard deviation and reason per filled cell.

    A table of all associations (match --probability --all) gives one row for each object: its
    associations are weighed by their probabilities.
    """
    done, model, _ = impute(context, options)
    filled = done.counts.get("filled", 0)
    if options["as_json"]:
        write_json({"rows": done.rows, "filled": filled, "model": model.identifier})
    note(f"{counted(gap=filled)} in {counted(row=done.rows)} filled -> {options['output']}")


class Imputed(NamedTuple):
    """Counts, the model, and the filled table where it was not written."""

    done: Done
    model: Model
    table: Table | None


def impute(context: click.Context, options: Mapping[str, Any]) -> Imputed:
    """Fill a catalogue as the options say; see `open_application`."""
    from skyfill.model import Filling

    levels, prefix = _levels(options["quantiles"]), options["prefix"]
    work = Filling(levels, options["draws"], options["seed"], options["denoise"], prefix)
    job = open_application(context, options, "filled")
    model = job.model
    done, table = job.run(
        work,
        "filling",
        lambda table: _weighed(model, work, table),
        lambda table: _count(model, table, prefix),
    )
    return Imputed(done, model, table)


def _weighed(model: Model, work: Filling, table: Table) -> Table:
    from skyfill.model import fill_associations

    if work.quantiles or work.n_draws or work.denoise:
        raise SkyfillError(
            "--quantiles, --draws, --denoise: associations are mixed by mean and standard "
            "deviation; leave these options out, or fill the table of the best counterparts"
        )
    return fill_associations(model, table, work.prefix)


def _count(model: Model, table: Table, prefix: str) -> Mapping[str, int]:
    import numpy as np

    from skyfill.catalog.filled_names import filled_name

    spreads = table.numbers(*(prefix + filled_name(name) for name in model.names))
    return {"filled": int(np.isfinite(spreads).sum())}


def _levels(text: str) -> tuple[float, ...]:
    try:
        levels = tuple(float(word) for word in text.split(",") if word.strip())
    except ValueError:
        levels = (2.0,)
    if any(not 0 < level < 1 for level in levels):
        raise click.BadParameter(f"{text!r}: give levels between 0 and 1", param_hint="--quantiles")
    return levels
