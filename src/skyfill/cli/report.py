"""`skyfill report`: one self-contained HTML page about a model and its results."""

import json
from pathlib import Path
from typing import Any

import click

from skyfill.cli import options as shared
from skyfill.cli.checks import mention_position, mention_training
from skyfill.cli.terminal import note, warn, write_json


@click.command(
    "report",
    epilog=shared.examples(
        "skyfill report lmc.skyfill classified.parquet --evaluation classes.json -o page.html",
    ),
)
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("results", type=click.Path(path_type=Path), required=False)
@shared.output("File for the page.")
@click.option(
    "--evaluation",
    "evaluations",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Output of skyfill evaluate --json; may be repeated, for filling and for classes.",
)
@shared.surveys("--survey", "A survey, drawn in one color.  [default: guessed]")
@click.option(
    "--title",
    help="Heading of the page.  [default: the column of the classes and the file that MODEL was "
    "learned from]",
)
@shared.count(
    "--max-objects",
    10_000,
    "Maximum number of objects on the page; a random sample is taken if there are more.",
    least=1,
)
@click.option(
    "--figures",
    metavar="FOLDER",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write figures for a paper: network, pair and gaps (.png).",
)
@click.option(
    "--pair",
    metavar="KNOWN[=VALUE],FILLED",
    help="With --figures: features of the figure of a joint, a marginal and a conditional "
    "distribution.",
)
@click.option(
    "--position", metavar="RA:DEC[:UNIT]", help="Position columns of RESULTS; guessed by default."
)
@shared.prefix("", "What stands before the names of the results in RESULTS.")
@shared.schema()
@shared.as_json("a summary of the page")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Write a page about MODEL and the objects of RESULTS that opens offline.

    RESULTS is the output of `skyfill classify`, `impute` or `candidates`, or any catalogue with
    the model's features. The page shows the gaps, the network, the effect of given values, the
    quality of filled values and classes, and a panel for every object.
    """
    from skyfill.catalog import Provenance, Table, open_scan
    from skyfill.evaluate import name_groups
    from skyfill.model import load_model
    from skyfill.model.declared import cleaned
    from skyfill.model.results import PREFIX, results_prefix, without_prefix
    from skyfill.report import Report, read_evaluations, read_results, write_page
    from skyfill.sky import PositionColumns

    model = load_model(options["model"])
    results = None
    if options["results"]:
        rules, schema = shared.rules_of(options), open_scan(options["results"]).schema
        model = mention_training(model, rules, schema.names)
        prefix = results_prefix(Table(schema.empty_table()), options["prefix"]) or PREFIX
        results = read_results(
            options["results"],
            model.features,
            options["max_objects"],
            prepare=lambda table: cleaned(
                model, without_prefix(rules.apply(table), prefix, model.names), every=True
            ),
            position=PositionColumns.parse(options["position"]) if options["position"] else None,
        )
        if not options["position"]:
            _mention_position(results.table)
    given = (options["model"], options["results"], *options["evaluations"])
    inputs = [path for path in given if path]
    made = Provenance(shared.as_typed(context), inputs, model=model.identifier)
    report = Report(
        model,
        results,
        read_evaluations(options["evaluations"]),
        name_groups(model.names, options["survey"]) if options["survey"] else None,
        options["title"] or _title(model, options["model"]),
        json.loads(made.to_json()),
    )
    write_page(report, options["output"])
    _write_figures(report, options)
    _report(report, options)


def _title(model: Any, path: Path) -> str:
    """Name the column of the classes, and the file that a model was learned from."""
    label, inputs = model.quality.get("classes", {}).get("label"), model.provenance.get("inputs")
    try:
        name = Path(inputs[0]["file"]).name
    except (LookupError, TypeError):
        name = path.stem
    return f"{label} of {name}" if label else name


def _mention_position(table: Any) -> None:
    """List the position columns that are guessed; without any, the page has no map."""
    from skyfill.errors import CatalogError

    try:
        mention_position(table)
    except CatalogError as error:
        if "several positions" in str(error):
            warn(f"{error}; the page has no map of the sky")


def _write_figures(report: Any, options: dict[str, Any]) -> None:
    if not options["figures"]:
        return
    from skyfill.report.figure_files import write_figures

    pair, at = _read_pair(options["pair"]) if options["pair"] else (None, None)
    for path in write_figures(report, options["figures"], pair, at=at):
        note(f"-> {path}")


def _read_pair(text: str) -> tuple[tuple[str, str], float | None]:
    """Read KNOWN[=VALUE],FILLED."""
    known, comma, filled = text.rpartition(",")
    known, equals, value = known.partition("=")
    try:
        at = float(value) if equals else None
    except ValueError:
        comma = ""
    if not (comma and known and filled):
        message = f"{text!r}: name two features, as in V,J or V=18.5,J"
        raise click.BadParameter(message, param_hint="--pair")
    return (known.strip(), filled.strip()), at


def _report(report: Any, options: dict[str, Any]) -> None:
    size = options["output"].stat().st_size
    shown, rows = (len(report.results.table), report.results.n_rows) if report.results else (0, 0)
    if options["as_json"]:
        facts = {"model": report.model.identifier, "objects": rows, "shown": shown, "bytes": size}
        write_json(facts)
    part = f" ({shown} shown)" if shown < rows else ""
    note(f"{rows} objects{part} -> {options['output']} ({size / 1e6:.1f} MB)")
