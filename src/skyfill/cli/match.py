"""`skyfill match`: catalogues joined on the sky into one table with gaps."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.match_columns import mention_columns, takes_depths, with_stated_depths
from skyfill.cli.match_probability import (
    match_with_probability,
    probability_options,
    refuse_without_probability,
)
from skyfill.cli.survey_options import (
    BASE,
    DEFAULT_RADIUS,
    common_value,
    named_values,
    radii_of,
    survey_names,
    year,
)
from skyfill.cli.terminal import echo, note, warn, write_json
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.sky import MatchReport, Survey

# If even nearest neighbors are further apart, the catalogues cover different parts of the sky.
FAR_ARCSEC = 3600.0


@click.command(
    "match",
    epilog=shared.examples(
        "skyfill match field/macho.ecsv field/sage.fits --radius sage=3 -o both.parquet",
        "skyfill match field/macho.ecsv field/lc.parquet --id lc=id -o with_features.parquet",
        "skyfill match field/macho.ecsv field/sage.fits --probability --radius 3 -o best.parquet",
    ),
)
@click.argument("base", type=shared.CATALOG)
@click.argument("others", type=shared.CATALOG, nargs=-1, required=True)
@shared.output(kind=shared.CATALOG)
@shared.scheduler
@click.option(
    "--radius",
    multiple=True,
    metavar="ARCSEC|NAME=ARCSEC",
    help=f"Largest separation, for all surveys or for one.  [default: {DEFAULT_RADIUS}]",
)
@click.option("--name", multiple=True, help="Name of each OTHER in turn.  [default: its file name]")
@shared.choice(
    "--keep",
    "symmetric|best|all",
    "One to one; the nearest for each base row; or every pair, one row each.",
)
@click.option("--remove-offset", is_flag=True, help="Measure and remove a systematic shift.")
@click.option(
    "--position",
    multiple=True,
    metavar="NAME=RA:DEC[:UNIT]",
    help="Position columns; NAME is a survey or `base`; H+M+S:D+M+S if they are in parts.",
)
@click.option(
    "--epoch",
    multiple=True,
    metavar="YEAR|NAME=YEAR",
    help="Epoch at which positions are compared, or epoch of the positions of a survey or `base`.",
)
@click.option(
    "--footprint",
    multiple=True,
    metavar="NAME=FILE",
    help="MOC of a survey, to distinguish `uncovered` from `unmatched`.",
)
@click.option(
    "--id",
    "keys",
    multiple=True,
    metavar="NAME=COLUMN|NAME=BASE_COLUMN:COLUMN",
    help="Join a survey by an identifier that it shares with the base, not by position.",
)
@click.option(
    "--schema",
    multiple=True,
    metavar="NAME=FILE",
    help="TOML file with roles, units and sentinels of a survey or `base`.",
)
@click.option("--text", multiple=True, metavar="NAME=COLUMN,...", help=shared.TEXT_HELP)
@takes_depths
@shared.count(
    "--controls", 4, "Number of shifted matches used to estimate chance matches.", least=0
)
@click.option(
    "--resume",
    is_flag=True,
    help="HATS catalogues: continue a match that was killed or interrupted.",
)
@probability_options
@shared.as_json("the report")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Join the catalogues OTHERS to BASE by position, keeping every row of BASE.

    The columns of a survey get the suffix _NAME; sep_NAME, n_NAME and flag_NAME describe the
    match. The gaps of unmatched objects have their reasons in companion columns, and with --depth
    their limits, which train and impute then use.

    With --probability every association of BASE with the surveys is weighed by positions, their
    errors and magnitudes; p_any and p_i give the probability of the counterpart.

    If all catalogues and the output are HATS catalogues (hats://FOLDER), their partitions are
    matched one to one, on this machine or on the cluster of --scheduler.
    """
    from skyfill.cli.match_hats import are_hats, match_catalogs

    if options["probability"]:
        from skyfill.cli.match_hats_probability import match_catalogs_with_probability

        if are_hats(options):
            shape = match_catalogs_with_probability(context, options)
        else:
            shape = match_with_probability(context, options, _read, _inputs)
        note(f"{shape} -> {options['output']}")
        return
    refuse_without_probability(context)
    match = match_catalogs if are_hats(options) else _match_tables
    shape, reports = match(context, options)
    _report(reports, as_json=options["as_json"])
    note(f"{shape} -> {options['output']}")


def _match_tables(
    context: click.Context, options: Mapping[str, Any]
) -> "tuple[str, Sequence[MatchReport]]":
    """Match tables in memory; return the shape of the result and the reports."""
    from skyfill.catalog import Provenance, write_table
    from skyfill.sky import MatchRules, join_surveys

    base, *surveys = _read(options)
    rules = MatchRules(
        keep=options["keep"],
        remove_offset=options["remove_offset"],
        epoch=common_value(options["epoch"], year),
        n_controls=options["controls"],
    )
    by_position = any(survey.key is None for survey in surveys)
    positions = base.positions() if by_position else None
    table, reports = join_surveys(base.table, surveys, rules, positions=positions)
    _refuse_no_overlap(reports)
    provenance = Provenance(shared.as_typed(context), inputs=_inputs(options))
    write_table(table, options["output"], provenance=provenance)
    for advice in filter(None, (report.advice for report in reports)):
        warn(advice)
    return f"{len(table)} rows, {len(table.names)} columns", reports


def _read(options: Mapping[str, Any]) -> "list[Survey]":
    """Read the base and the surveys, each with its own options."""
    from skyfill.catalog import Schema, read_schema, read_table
    from skyfill.sky import PositionColumns, Survey, read_footprint
    from skyfill.sky.identifiers import key_columns

    names = [BASE, *survey_names(options["others"], options["name"])]
    # The base has no radius; any value will do.
    radii = [DEFAULT_RADIUS, *radii_of(options["radius"], names[1:])]
    columns = named_values(options["position"], names, "--position", PositionColumns.parse)
    epochs = named_values(options["epoch"], names, "--epoch", year)
    footprints = named_values(options["footprint"], names[1:], "--footprint", read_footprint)
    keys = named_values(options["keys"], names[1:], "--id", str)
    schemas = named_values(options["schema"], names, "--schema", read_schema)
    texts = named_values(options["text"], names, "--text", shared.words_of)
    rules = {
        name: schemas.get(name, Schema()) + Schema.from_options(text=texts.get(name, ()))
        for name in names
    }
    pairs = {name: key_columns(key) for name, key in keys.items()}
    used = {BASE: tuple(ours for ours, _ in pairs.values())}
    used |= {name: (theirs,) for name, (_, theirs) in pairs.items()}
    found = [
        Survey(
            name,
            read_table(path, schema=rules[name], identifiers=used.get(name, ())),
            radius,
            position=columns.get(name),
            epoch=epochs.get(name),
            footprint=footprints.get(name),
            key=keys.get(name),
        )
        for name, path, radius in zip(
            names, [options["base"], *options["others"]], radii, strict=True
        )
    ]
    mention_columns(found[0], found[1:], rules)
    return [found[0], *with_stated_depths(found[1:], options["depths"], rules)]


def _refuse_no_overlap(reports: "Sequence[MatchReport]") -> None:
    """Write nothing if all surveys cover other parts of the sky: usually a unit is wrong."""
    if all((report.median_nearest_arcsec or 0.0) > FAR_ARCSEC for report in reports):
        raise CatalogError("; ".join(report.advice or report.name for report in reports))


def _inputs(options: Mapping[str, Any]) -> list[Path]:
    beside = [*options["footprint"], *options["schema"]]
    return [options["base"], *options["others"], *(Path(text.split("=", 1)[1]) for text in beside)]


def _report(reports: "Sequence[MatchReport]", *, as_json: bool) -> None:
    if as_json:
        write_json({"surveys": [report.to_dict() for report in reports]})
        return
    for report in reports:
        echo(_line(report))


def _line(report: "MatchReport") -> str:
    how = f"{report.radius_arcsec:g} arcsec" if report.key is None else f"by {report.key}"
    counts = (
        f"{report.name} ({how}): {report.matched} matched "
        f"({report.ambiguous} ambiguous), {report.unmatched} unmatched ({report.taken} taken), "
        f"{report.uncovered} uncovered, {report.unplaced} without position"
    )
    offset = f"; offset removed: {report.offset}" if report.offset else ""
    chance = f"; expected chance matches: {report.chance}" if report.chance else ""
    return counts + offset + chance
