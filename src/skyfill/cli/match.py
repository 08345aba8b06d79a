"""`skyfill match`: catalogues joined on the sky into one table with gaps."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.sky import MatchReport, Survey

Value = TypeVar("Value")
BASE = "base"
DEFAULT_RADIUS = 1.5


@click.command(
    "match",
    epilog="Example: skyfill match macho.fits 2mass.vot sage.csv --radius 1.5 --radius sage=3 "
    "-o joined.parquet",
)
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("others", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
@click.option(
    "--radius",
    multiple=True,
    metavar="ARCSEC|NAME=ARCSEC",
    help=f"Largest separation, for all surveys or for one.  [default: {DEFAULT_RADIUS}]",
)
@click.option("--name", multiple=True, help="Name of each OTHER in turn; else its file name.")
@click.option(
    "--keep",
    type=click.Choice(["symmetric", "best", "all"]),
    default="symmetric",
    show_default=True,
    help="One to one; the nearest for each base row; or every pair in a row of its own.",
)
@click.option("--remove-offset", is_flag=True, help="Measure and remove a systematic shift.")
@click.option(
    "--position",
    multiple=True,
    metavar="NAME=RA:DEC[:UNIT]",
    help="Position columns; NAME is a survey or `base`; in parts H+M+S:D+M+S.",
)
@click.option(
    "--epoch",
    multiple=True,
    metavar="YEAR|NAME=YEAR",
    help="Year at which to compare; or year of the positions of a survey or `base`.",
)
@click.option(
    "--footprint",
    multiple=True,
    metavar="NAME=FILE",
    help="MOC of a survey: tells `uncovered` from `unmatched`.",
)
@click.option(
    "--schema",
    multiple=True,
    metavar="NAME=FILE",
    help="TOML with roles, units and sentinels of a survey or `base`.",
)
@click.option(
    "--controls",
    type=click.IntRange(min=0),
    default=4,
    show_default=True,
    help="Shifted matches from which chance matches are estimated.",
)
@click.option("--json", "as_json", is_flag=True, help="Write the report as JSON.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Join the catalogues OTHERS to BASE by position; every row of BASE stays.

    The columns of a survey get the suffix _NAME; sep_NAME, n_NAME and flag_NAME tell how it
    matched. Gaps of unmatched objects say why in their companion columns.
    """
    from skyfill.catalog import Provenance, write_table
    from skyfill.sky import MatchRules, join_surveys

    base, *surveys = _read(options)
    rules = MatchRules(
        keep=options["keep"],
        remove_offset=options["remove_offset"],
        epoch=_common(options["epoch"], _year),
        n_controls=options["controls"],
    )
    table, reports = join_surveys(base.table, surveys, rules, positions=base.positions())
    provenance = Provenance(as_typed(context), inputs=_inputs(options))
    write_table(table, options["output"], provenance=provenance)
    _tell(reports, as_json=options["as_json"])
    shape = f"{len(table)} rows, {len(table.names)} columns"
    click.echo(f"{shape} -> {options['output']}", err=True)


def _read(options: Mapping[str, Any]) -> "list[Survey]":
    """Read the base and the surveys, each with the options that bear its name."""
    from skyfill.catalog import read_table
    from skyfill.sky import PositionColumns, Survey, read_footprint

    names = [BASE, *_names(options["others"], options["name"])]
    radius = _common(options["radius"], _arcsec)
    radii = _named(options["radius"], names[1:], "--radius", _arcsec)
    columns = _named(options["position"], names, "--position", PositionColumns.parse)
    epochs = _named(options["epoch"], names, "--epoch", _year)
    footprints = _named(options["footprint"], names[1:], "--footprint", read_footprint)
    schemas = _named(options["schema"], names, "--schema", str)
    return [
        Survey(
            name,
            read_table(path, schema=schemas.get(name)),
            radii.get(name, DEFAULT_RADIUS if radius is None else radius),
            position=columns.get(name),
            epoch=epochs.get(name),
            footprint=footprints.get(name),
        )
        for name, path in zip(names, [options["base"], *options["others"]], strict=True)
    ]


def _inputs(options: Mapping[str, Any]) -> list[Path]:
    beside = [*options["footprint"], *options["schema"]]
    return [options["base"], *options["others"], *(Path(text.split("=", 1)[1]) for text in beside)]


def _names(paths: Sequence[Path], given: Sequence[str]) -> list[str]:
    if given and len(given) != len(paths):
        raise CatalogError(f"{len(given)} --name for {len(paths)} surveys; give one for each")
    names = list(given) or [path.name.split(".")[0] for path in paths]
    for name in (BASE, *names):
        if [BASE, *names].count(name) > 1:
            raise CatalogError(
                f"two catalogues are called {name!r}; give each survey a --name of its own"
            )
    return names


def _common(texts: Sequence[str], read: Callable[[str], Value]) -> Value | None:
    """Give the last value that is for all catalogues, if there is one."""
    values = [read(text) for text in texts if "=" not in text]
    return values[-1] if values else None


def _named(
    texts: Sequence[str], names: Sequence[str], option: str, read: Callable[[str], Value]
) -> dict[str, Value]:
    """Read the NAME=VALUE forms of an option."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if equals and name not in names:
            raise CatalogError(f"{option} {text}: no {name!r}; the names are {', '.join(names)}")
        if equals:
            values[name] = read(value)
        elif read not in (_arcsec, _year):
            raise CatalogError(f"{option} {text}: write {option} NAME={text}")
    return values


def _arcsec(text: str) -> float:
    return _number(text, "--radius", "arcsec")


def _year(text: str) -> float:
    return _number(text, "--epoch", "a year such as 2016.0")


def _number(text: str, option: str, kind: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CatalogError(f"{option} {text}: {text!r} is not a number ({kind})") from None


def as_typed(context: click.Context) -> str:
    """Give the command as the user would type it."""
    words = context.command_path.split()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        value = context.params.get(parameter.name or "")
        for each in value if isinstance(value, tuple) else (value,) if given else ():
            flag = parameter.opts[-1:] if isinstance(parameter, click.Option) else []
            words += [*flag, *([] if each is True else [str(each)])]
    return shlex.join(words)


def _tell(reports: "Sequence[MatchReport]", *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([report.to_dict() for report in reports], indent=2))
    for report in reports:
        if not as_json:
            click.echo(_line(report))
        if report.advice:
            click.echo(f"warning: {report.advice}", err=True)


def _line(report: "MatchReport") -> str:
    counts = (
        f"{report.name} ({report.radius_arcsec:g} arcsec): {report.matched} matched "
        f"({report.ambiguous} ambiguous), {report.unmatched} unmatched ({report.taken} taken), "
        f"{report.uncovered} uncovered, {report.unplaced} without position"
    )
    offset = f"; offset removed: {report.offset}" if report.offset else ""
    chance = f"; expected chance matches: {report.chance}" if report.chance else ""
    return counts + offset + chance
