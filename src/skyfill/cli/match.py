"""`skyfill match`: catalogues joined on the sky into one table with gaps."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from skyfill.cli import options as shared
from skyfill.cli.notes import note, warn
from skyfill.cli.typed import as_typed
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.sky import MatchReport, Survey

Value = TypeVar("Value")
BASE = "base"
DEFAULT_RADIUS = 1.5
# Where even nearest neighbors are further apart, catalogues lie in different parts of the sky.
FAR_ARCSEC = 3600.0


@click.command(
    "match",
    epilog=shared.examples(
        "skyfill match field/macho.csv field/sage.fits --radius sage=3 -o both.parquet",
        "skyfill match field/macho.csv field/lc.parquet --id lc=id -o with_features.parquet",
    ),
)
@click.argument("base", type=click.Path(path_type=Path))
@click.argument("others", type=click.Path(path_type=Path), nargs=-1, required=True)
@shared.output()
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
    "--id",
    "keys",
    multiple=True,
    metavar="NAME=COLUMN",
    help="Join a survey by an identifier that the base has too, not by position.",
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
@shared.as_json("the report")
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
    by_position = any(survey.key is None for survey in surveys)
    positions = base.positions() if by_position else None
    table, reports = join_surveys(base.table, surveys, rules, positions=positions)
    _refuse_no_overlap(reports)
    provenance = Provenance(as_typed(context), inputs=_inputs(options))
    write_table(table, options["output"], provenance=provenance)
    _tell(reports, as_json=options["as_json"])
    shape = f"{len(table)} rows, {len(table.names)} columns"
    note(f"{shape} -> {options['output']}")


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
    keys = _named(options["keys"], names[1:], "--id", str)
    schemas = _named(options["schema"], names, "--schema", str)
    return [
        Survey(
            name,
            read_table(path, schema=schemas.get(name)),
            radii.get(name, DEFAULT_RADIUS if radius is None else radius),
            position=columns.get(name),
            epoch=epochs.get(name),
            footprint=footprints.get(name),
            key=keys.get(name),
        )
        for name, path in zip(names, [options["base"], *options["others"]], strict=True)
    ]


def _refuse_no_overlap(reports: "Sequence[MatchReport]") -> None:
    """Write nothing where all surveys lie elsewhere: most often a unit is wrong."""
    if all((report.median_nearest_arcsec or 0.0) > FAR_ARCSEC for report in reports):
        raise CatalogError("; ".join(report.advice or report.name for report in reports))


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


def _tell(reports: "Sequence[MatchReport]", *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([report.to_dict() for report in reports], indent=2))
    for report in reports:
        if not as_json:
            click.echo(_line(report))
        if report.advice:
            warn(report.advice)


def _line(report: "MatchReport") -> str:
    counts = (
        f"{report.name} ({_how(report)}): {report.matched} matched "
        f"({report.ambiguous} ambiguous), {report.unmatched} unmatched ({report.taken} taken), "
        f"{report.uncovered} uncovered, {report.unplaced} without position"
    )
    offset = f"; offset removed: {report.offset}" if report.offset else ""
    chance = f"; expected chance matches: {report.chance}" if report.chance else ""
    return counts + offset + chance


def _how(report: "MatchReport") -> str:
    return f"{report.radius_arcsec:g} arcsec" if report.key is None else f"by {report.key}"
