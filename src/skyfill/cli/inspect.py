"""`skyfill inspect`: the columns and classes of a table and what may be wrong; or a model."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.checks import mention_rules
from skyfill.cli.class_counts import class_facts, class_table, count_classes
from skyfill.cli.model_lines import show_model
from skyfill.cli.terminal import echo, note, stages, warn, write_json
from skyfill.cli.training_columns import LEAST, judged, mention_classes, mention_columns
from skyfill.errors import DataError, counted

if TYPE_CHECKING:
    from skyfill.catalog.column_report import ColumnReport
    from skyfill.catalog.inspection import Inspection
    from skyfill.classify.training_set import ClassCounts

MODEL = ".skyfill"


@click.command(
    "inspect",
    epilog=shared.examples(
        "skyfill inspect field/ubvi.ecsv",
        "skyfill inspect field/ubvi.ecsv --sentinel U=99.999 --json",
        "skyfill inspect training/joined.parquet --label class_truth",
        "skyfill inspect lmc.skyfill",
    ),
)
@click.argument("file", type=click.Path(path_type=Path))
@shared.schema_file
@shared.roles
@click.option("--unit", "units", multiple=True, metavar="COLUMN=UNIT", help="Set a unit.")
@click.option(
    "--sentinel",
    "sentinels",
    multiple=True,
    metavar="COLUMN=VALUE[,VALUE...]",
    help="Declare values that mean a gap.",
)
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    help="Draw magnitudes and fluxes with their faint edge (.png, .pdf).",
)
@shared.layout
@shared.text()
@click.option("--label", metavar="COLUMN", help="Column of the classes: count their objects.")
@shared.as_json("everything")
def command(
    file: Path, schema: Path | None, label: str | None, as_json: bool, **given: Any
) -> None:
    """List the columns of FILE: type, role, unit, gaps, range, suspicious values.

    A role with a question mark is a guess. What is listed as a feature is what train takes by
    itself, with --label for its classes. Nothing is converted. What is unmistakable is a gap for
    all commands that learn; to declare the other suspicious values as gaps or limits, or the depth
    of a survey, copy the lines at the end into a file for --schema.

    A model is described: its features, gaps, arcs and classes, and how it was made.
    """
    from skyfill.catalog import Schema, inspect_file, read_schema

    if file.suffix == MODEL:
        show_model(file, as_json=as_json)
        return
    facts = {key: given[key] for key in ("roles", "units", "sentinels")}
    rules = read_schema(schema) if schema else Schema()
    rules += Schema.from_options(**facts, text=shared.words_of(given["text"]))
    rules += shared.layout_of(given)
    with stages(f"reading {file}"):
        found = inspect_file(file, rules, partial(judged, label=label, rules=rules))
        classes = count_classes(file, label, rules) if label else None
    mention_rules(rules, [column.name for column in found.columns])
    if not as_json:
        _show(found)
        if classes:
            echo("\n" + class_table(classes))
    _mention_training(found, classes)
    if as_json:
        write_json(found.to_dict() | (class_facts(classes) if classes else {}))
    if given["figure"]:
        from skyfill.report.faint_edge_figure import draw_faint_edges

        draw_faint_edges(found.columns).savefig(given["figure"], dpi=150)
    n_suspects = sum(len(column.suspects) for column in found.columns)
    sizes = counted(row=found.n_rows, column=len(found.columns), suspicious_value=n_suspects)
    note(f"{sizes} in {file}")


def _mention_training(found: "Inspection", classes: "ClassCounts | None") -> None:
    """Say what train would learn from, or why it would not."""
    verdicts = {column.name: column.verdict for column in found.columns}
    names = [name for name, verdict in verdicts.items() if verdict.is_feature]
    mention_columns(verdicts, names, classes.label if classes else None)
    try:
        if classes:
            mention_classes(classes, LEAST)
    except DataError as error:
        warn(f"train would refuse this label: {error}")


def _show(found: "Inspection") -> None:
    header = ("column", "type", "role", "unit", "missing", "range", "suspicious")
    rows = [header, *(_cells(column) for column in found.columns)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        echo("  ".join(cells).rstrip())
    suspicious = [column for column in found.columns if column.declaration]
    if suspicious:
        echo("\nTo declare them as gaps, put these lines into a TOML file for --schema:")
    for column in suspicious:
        why = sorted({suspect.why for suspect in column.suspects})
        if sure := [f"{each.value:.15g}" for each in column.suspects if each.unmistakable]:
            why.append(f"{', '.join(sure)}: a gap for train in any case")
        if column.n_without_error:
            why.append(f"{column.n_without_error} values without an error, which may be limits")
        if column.flag:
            why.append("{} marks {} limits".format(*column.flag))
        if column.n_negative:
            why.append(f"{column.n_negative} negative values, which may be limits of their size")
        echo(f"{column.declaration}  # {'; '.join(why)}")
    _show_depths(found)


def _show_depths(found: "Inspection") -> None:
    deep = [column for column in found.columns if column.depth_line]
    if deep:
        echo("\nFaint edges, which are depths if gaps were not detected; --figure FILE draws them:")
    for column in deep:
        side = "brighter" if column.brightness == "magnitude" else "larger"
        echo(f"{column.depth_line}  # 98 % of the values are {side}")


def _cells(column: "ColumnReport") -> tuple[str, ...]:
    return (
        column.name,
        column.kind,
        _role(column),
        column.info.unit or "",
        f"{column.missing_percent:.1f} %",
        _range(column),
        ", ".join(f"{suspect.value!r} × {suspect.count}" for suspect in column.suspects),
    )


def _role(column: "ColumnReport") -> str:
    if column.info.role != "other":
        role, of, mark = column.info.role, column.info.of, ""
    else:
        role, of, mark = column.verdict.role, column.verdict.of, "?"
    return "" if role == "other" else f"{role}{f' of {of}' if of else ''}{mark}"


def _range(column: "ColumnReport") -> str:
    if column.range:
        return "{:.7g} .. {:.7g}".format(*column.range)
    words = column.summary.words
    return f"{len(words)}{'+' if column.summary.has_more_words else ''} texts" if words else ""
