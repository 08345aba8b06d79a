"""`skyfill inspect`: the columns of a table, and values that may be sentinels."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.checks import mention_rules
from skyfill.cli.class_counts import class_table, count_classes
from skyfill.cli.terminal import GUESSED, echo, note, said_of_input, stages, write_json

if TYPE_CHECKING:
    from skyfill.catalog.column_report import ColumnReport
    from skyfill.catalog.inspection import Inspection


@click.command(
    "inspect",
    epilog=shared.examples(
        "skyfill inspect field/ubvi.csv",
        "skyfill inspect field/ubvi.csv --sentinel U=99.999 --json",
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
@click.option("--label", metavar="COLUMN", help="Column of the classes: count their objects.")
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    help="Draw magnitudes and fluxes with their faint edge (.png, .pdf).",
)
@shared.layout
@shared.text()
@shared.as_json("everything")
def command(file: Path, schema: Path | None, as_json: bool, **given: Any) -> None:
    """List the columns of FILE: type, role, unit, gaps, range, suspicious values.

    A role with a question mark is a guess. Nothing is converted. What is unmistakable is a gap for
    all commands that learn; to declare the other suspicious values as gaps or limits, or the depth
    of a survey, copy the lines at the end into a file for --schema.
    """
    from skyfill.catalog import Schema, inspect_file, read_schema

    facts = {key: given[key] for key in ("roles", "units", "sentinels")}
    rules = read_schema(schema) if schema else Schema()
    rules += Schema.from_options(**facts, text=shared.words_of(given["text"]))
    rules += shared.layout_of(given)
    with stages(f"reading {file}"):
        found = inspect_file(file, rules)
    mention_rules(rules, [column.name for column in found.columns])
    label = given["label"]
    classes = count_classes(file, label, rules) if label else {}
    if as_json:
        # Those that only look at the table see them there, with a question mark.
        said_of_input()[GUESSED] += [f"{c.name}: {_role(c)[:-1]}" for c in found.columns if c.guess]
        write_json(found.to_dict() | classes)
    else:
        _show(found)
        if label:
            echo("\n" + class_table(label, classes))
    if given["figure"]:
        from skyfill.report.faint_edge_figure import draw_faint_edges

        draw_faint_edges(found.columns).savefig(given["figure"], dpi=150)
    n_suspects = sum(len(column.suspects) for column in found.columns)
    note(
        f"{found.n_rows} rows, {len(found.columns)} columns, {n_suspects} suspicious values in "
        f"{file}"
    )


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
    mark, known = ("?", column.guess) if column.guess else ("", column.info)
    of = f" of {known.of}" if known.of else ""
    return "" if known.role == "other" else f"{known.role}{of}{mark}"


def _range(column: "ColumnReport") -> str:
    if column.range:
        return "{:.7g} .. {:.7g}".format(*column.range)
    words = column.summary.words
    return f"{len(words)}{'+' if column.summary.has_more_words else ''} texts" if words else ""
