"""`skyfill match --probability`: every counterpart with how likely it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from skyfill.cli import options as shared
from skyfill.cli.match_columns import mention_errors
from skyfill.cli.match_photometry import choose_bands, read_photometry
from skyfill.cli.options import is_given
from skyfill.cli.survey_options import arcsec, area, common_value, named_values, number, year
from skyfill.cli.terminal import echo, note, warn, write_json
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.sky import (
        CounterpartReport,
        CounterpartRules,
        Found,
        Surroundings,
        Survey,
        Threshold,
    )

probability_options = shared.stacked(
    click.option(
        "--probability", is_flag=True, help="Weigh all associations; give each a probability."
    ),
    click.option(
        "--error",
        "errors",
        multiple=True,
        metavar="NAME=ARCSEC|COLUMN[:UNIT]|MAJOR:MINOR:ANGLE[:UNIT]|auto",
        help="Position errors of a survey or `base`: standard deviations, or with @90 radii that "
        "hold 90 %.  [default: columns with known names, else auto]",
    ),
    click.option(
        "--area",
        "areas",
        multiple=True,
        metavar="DEG2|NAME=DEG2",
        help="Area that a survey covers evenly.  [default: that of its footprint, else local "
        "densities]",
    ),
    click.option(
        "--completeness",
        multiple=True,
        metavar="NAME=SHARE",
        help="Share of BASE with a counterpart in a survey.  [default: estimated]",
    ),
    click.option(
        "--beam",
        type=click.FloatRange(min=0, min_open=True),
        metavar="ARCSEC",
        help="Resolution of BASE, if it may see several sources as one, between them.",
    ),
    shared.choice(
        "--photometry",
        "learn|none",
        "Learn which magnitudes counterparts have, or use positions alone.",
    ),
    click.option(
        "--bands",
        multiple=True,
        metavar="NAME=COLUMN,...",
        help="Columns for photometry, of a survey or `base`.  [default: magnitudes of the surveys]",
    ),
    click.option(
        "--prior-from",
        type=shared.FILE,
        help="Table of known counterparts, joined by match: learn magnitudes from it.",
    ),
    click.option(
        "--false-rate",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        help="Wanted share of false matches: sets the least p_any by shifted positions.",
    ),
    click.option(
        "--p-any",
        type=click.FloatRange(0, 1),
        default=0.5,
        show_default=True,
        help="Objects with a lower p_any have no counterpart.",
    ),
    click.option(
        "--all",
        "all_file",
        type=shared.CATALOG,
        help="Also write every association into this file (or HATS catalogue).",
    ),
    click.option("--figure", type=shared.FILE, help="Draw purity and completeness (.png, .pdf)."),
)
_ONLY_HERE = (
    *("errors", "areas", "completeness", "beam", "photometry", "bands", "prior_from"),
    *("false_rate", "p_any", "all_file", "figure"),
)


def refuse_without_probability(context: click.Context) -> None:
    """Refuse options that mean nothing for a match by position alone."""
    for parameter in context.command.params:
        if parameter.name in _ONLY_HERE and is_given(context, parameter.name):
            raise CatalogError(f"{parameter.opts[-1]}: only with --probability; add that option")


class Search(NamedTuple):
    """What was searched for, and found."""

    there: Surroundings
    found: Found
    rules: CounterpartRules
    threshold: Threshold | None


def search(
    base: Survey,
    surveys: Sequence[Survey],
    bands: Sequence[Sequence[str]] | None,
    options: Mapping[str, Any],
) -> Search:
    """Find counterparts, and the least p_any for a wanted rate of false ones."""
    from skyfill.sky import CounterpartRules, find_counterparts, read_surroundings

    epoch = common_value(options["epoch"], year)
    surveys = _with_bands(surveys, bands)
    there = read_surroundings(base, surveys, remove_offset=options["remove_offset"], epoch=epoch)
    rules = CounterpartRules(one_to_one=options["keep"] == "symmetric", p_any=options["p_any"])
    photometry = read_photometry(base, surveys, bands, there, options["prior_from"])
    found = find_counterparts(there, rules, photometry)
    threshold = _threshold(there, found, rules, options)
    if options["false_rate"] and threshold:
        rules = _at_threshold(rules, threshold)
    return Search(there, found, rules, threshold)


def _with_bands(surveys: Sequence[Survey], bands: Sequence[Sequence[str]] | None) -> list[Survey]:
    from dataclasses import replace

    own = bands[1:] if bands else [()] * len(surveys)
    return [replace(survey, bands=tuple(b)) for survey, b in zip(surveys, own, strict=True)]


def match_with_probability(
    context: click.Context,
    options: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], list[Survey]],
    inputs: Callable[[Mapping[str, Any]], list[Path]],
) -> str:
    """Find counterparts, write the tables, print the report; give the shape of the result."""
    from skyfill.catalog import Provenance, write_table
    from skyfill.sky import association_table, counterpart_table

    refuse_with_probability(options)
    base, *surveys = described(read(options), options)
    mention_errors([base, *surveys])
    there, found, rules, threshold = search(
        base, surveys, choose_bands(base, surveys, options), options
    )
    table, reports = counterpart_table(base.table, surveys, there, found, rules)
    every = association_table(base.table, surveys, there, found) if options["all_file"] else None
    del there, found  # writing does not need millions of associations
    files = [*inputs(options), *([options["prior_from"]] if options["prior_from"] else [])]
    provenance = Provenance(shared.as_typed(context), inputs=files)
    write_table(table, options["output"], provenance=provenance)
    if every is not None:
        write_table(every, options["all_file"], provenance=provenance)
        note(f"{len(every)} associations -> {options['all_file']}")
    draw(threshold, options["figure"])
    flags = table.column("flag").to_pylist()
    tell(reports, Counter(flags), threshold, rules, as_json=options["as_json"])
    return f"{len(table)} rows, {len(table.names)} columns"


def draw(threshold: Threshold | None, figure: Path | None) -> None:
    """Draw purity and completeness, if asked for."""
    if figure is None or threshold is None:
        return
    from skyfill.report.counterpart_figure import draw_threshold

    draw_threshold(threshold).savefig(figure, dpi=150)


def refuse_with_probability(options: Mapping[str, Any]) -> None:
    """Refuse what has no meaning with probabilities."""
    if options["keep"] == "all":
        raise CatalogError(
            "--keep all: with --probability every association goes into a separate file; write "
            "--all FILE"
        )
    if options["keys"]:
        raise CatalogError(
            "--id: a survey that is joined by identifier has no probability; join it first, "
            "without --probability"
        )


def described(surveys: Sequence[Survey], options: Mapping[str, Any]) -> list[Survey]:
    """Add errors, areas and completeness to the surveys; other radii follow from errors."""
    from dataclasses import replace

    from skyfill.sky import PositionError

    names = [survey.name for survey in surveys]
    errors = named_values(options["errors"], names, "--error", PositionError.parse)
    areas = named_values(options["areas"], names[1:], "--area", area)
    of_all = common_value(options["areas"], area)
    shares = named_values(options["completeness"], names[1:], "--completeness", _share)
    own = named_values(options["radius"], names[1:], "--radius", arcsec)
    common = common_value(options["radius"], arcsec) or 0.0
    return [
        replace(
            survey,
            radius_arcsec=own.get(survey.name, common),
            error=errors.get(survey.name),
            area_deg2=areas.get(survey.name, of_all),
            completeness=shares.get(survey.name),
            beam_arcsec=options["beam"] or 0.0,
        )
        for survey in surveys
    ]


def _share(text: str) -> float:
    share = number(text, "--completeness", "a share between 0 and 1")
    if not 0 < share < 1:
        raise CatalogError(f"--completeness {text}: a share between 0 and 1 was expected")
    return share


def _threshold(
    there: Surroundings, found: Found, rules: CounterpartRules, options: Mapping[str, Any]
) -> Threshold | None:
    from skyfill.sky import find_threshold

    if not (options["false_rate"] or options["figure"]):
        return None
    rate, shifts = options["false_rate"] or 0.05, max(options["controls"], 1)
    return find_threshold(there, found, rules, false_rate=rate, n_shifts=shifts)


def _at_threshold(rules: CounterpartRules, threshold: Threshold) -> CounterpartRules:
    from dataclasses import replace

    if threshold.p_any > 1:
        warn(
            f"no p_any keeps false matches below {100 * threshold.false_rate:g} %; nothing is "
            "accepted: allow more (--false-rate) or give better positions"
        )
    return replace(rules, p_any=threshold.p_any)


def tell(
    reports: Sequence[CounterpartReport],
    flags: Mapping[str, int],
    threshold: Threshold | None,
    rules: CounterpartRules,
    *,
    as_json: bool,
) -> None:
    """Print the report."""
    counts = {flag: flags.get(flag, 0) for flag in ("secure", "several", "none")}
    if as_json:
        cut = None if threshold is None else threshold.p_any
        surveys = [report.to_dict() for report in reports]
        write_json({"flags": counts, "threshold": cut, "surveys": surveys})
        return
    for report in reports:
        echo(_line(report))
    words = ", ".join(f"{n} {flag}" for flag, n in counts.items())
    echo(f"p_any >= {rules.p_any:.2f}: {words}")
    if threshold is not None:
        purity, completeness = threshold.at(min(rules.p_any, 1.0))
        echo(
            f"by shifted positions: purity {purity:.3f}, completeness {completeness:.3f} at this "
            f"p_any; {100 * threshold.false_rate:g} % false matches at p_any {threshold.p_any:.2f}"
        )


def _line(report: CounterpartReport) -> str:
    offset = f"; offset removed: {report.offset}" if report.offset else ""
    return (
        f"{report.name}: {report.matched} counterparts, {report.expected_false:.1f} of them "
        f"expected to be wrong; completeness {report.completeness:.2f}, position error "
        f"{report.sigma_arcsec:.3g} arcsec, {report.density_deg2:.0f} sources per square "
        f"degree{offset}"
    )
