"""`skyfill publish`: a catalogue with full metadata, and a ReadMe next to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skyfill.cli import options
from skyfill.cli.checks import mention_rules
from skyfill.cli.terminal import GUESSED, listing, mention, note, warn, write_json


@click.command(
    "publish",
    epilog=options.examples(
        "skyfill publish classified.parquet --title 'Variables in the LMC' --license CC-BY-4.0 "
        "-o lmc.fits",
    ),
)
@click.argument("results", type=click.Path(path_type=Path))
@options.output()
@click.option(
    "--title",
    default="Catalogue of classified objects",
    show_default=True,
    help="Title of the table.",
)
@click.option("--authors", default="", help="Authors of the table.")
@click.option("--license", default="", help="License of the table.")
@click.option("--citation", default="", help="What to cite.")
@options.schema()
@options.as_json("the counts")
@click.pass_context
def command(context: click.Context, /, **given: Any) -> None:
    """Write RESULTS as FITS, VOTable or Parquet for others to use.

    Columns get descriptions, units and UCDs as far as their names say, which are listed; declare
    others, as in --declare 'columns.n.description="Number of epochs"'. The file <name>_ReadMe.txt
    next to the table describes its contents, the number of objects in each class, and how it was
    made.
    """
    from skyfill.catalog import Provenance, open_scan
    from skyfill.report.publish import Notes, publish

    words = {key: given[key] for key in ("title", "authors", "license", "citation")}
    made = Provenance(options.as_typed(context), [given["results"]])
    rules = options.rules_of(given)
    mention_rules(rules, open_scan(given["results"], rules=rules).schema.names)
    readme, tally = publish(
        given["results"], given["output"], notes=Notes(**words), provenance=made, rules=rules
    )
    if found := [f"{name}: {text}" for name, text in tally.guessed.items()]:
        mention(GUESSED, listing("", found, between="; "))
    if unknown := tally.unknown:
        how = f"declare it, as in --declare 'columns.{unknown[0]}.description=\"...\"'"
        warn(listing("no description is known of ", unknown, f"; {how}"))
    if tally.formulas and given["output"].name.removesuffix(".gz").endswith("csv"):
        (name, count), *_ = tally.formulas.most_common(1)
        warn(
            f"column {name!r} has {count} cells that a spreadsheet would run as formulas; they are "
            "written as they are: publish FITS, VOTable or Parquet, or warn your readers"
        )
    if given["as_json"]:
        facts = {"rows": tally.rows, "classes": tally.classes, "readme": str(readme)}
        write_json({**facts, "described": tally.guessed, "undescribed": tally.unknown})
    note(f"{tally.rows} rows -> {given['output']}, {readme}")
