"""`skyfill match` of HATS catalogues: partition by partition, here or on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from skyfill.cli.options import HATS, as_typed, is_given
from skyfill.cli.survey_options import radii_of, survey_names
from skyfill.cli.terminal import shown_run, warn
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.scale import Source
    from skyfill.scale.hats_match import Counterpart
    from skyfill.sky import MatchReport

# Options that need whole tables, or that a HATS catalogue specifies itself.
NOT_FOR_HATS = {
    "keep": "pairs of HATS catalogues are one to one",
    "remove_offset": "a shift is measured on whole tables",
    "position": "a HATS catalogue knows its position columns",
    "epoch": "positions of HATS catalogues are compared as they are",
    "footprint": "objects outside a footprint are not distinguished in HATS catalogues",
    "keys": "HATS catalogues are matched by position",
    "schema": "the columns of a HATS catalogue are described in it",
    "depths": "depths are measured on whole tables",
    "text": "the columns of a HATS catalogue have types",
    "controls": "chance matches are estimated on whole tables",
}


def are_hats(options: Mapping[str, Any]) -> bool:
    """Check whether all catalogues are HATS catalogues; a mixture is refused."""
    places = [options["base"], *options["others"], options["output"]]
    if options["all_file"]:
        places.append(options["all_file"])
    found = [str(place).startswith(HATS) for place in places]
    if any(found) and not all(found):
        plain = places[found.index(False)]
        raise CatalogError(
            f"{plain}: HATS catalogues are matched with HATS catalogues, into one; write hats:// "
            "before all names or before none (write_hats makes a HATS catalogue of a table)"
        )
    if options["resume"] and not any(found):
        raise CatalogError("--resume: files are matched in memory, in one go; leave it out")
    if options["scheduler"] and not any(found):
        raise CatalogError(
            "--scheduler: files are matched on this machine, leave it out; on a cluster match HATS "
            "catalogues (hats://FOLDER)"
        )
    return all(found)


def match_catalogs(
    context: click.Context, options: Mapping[str, Any]
) -> tuple[str, Sequence[MatchReport]]:
    """Match HATS catalogues; return the shape of the result and reports."""
    from skyfill.catalog import Provenance
    from skyfill.scale import open_source
    from skyfill.scale.hats_match import join_hats

    refuse_options(context, options)
    others = _counterparts(options)
    base, *rest = (open_source(path) for path in (options["base"], *options["others"]))
    inputs = [file for source in (base, *rest) for file in source.checked_files]
    made = Provenance(as_typed(context), inputs)
    with shown_run("matching", base, options, made) as run:
        done = join_hats(options["base"], others, options["output"], run)
    joined = open_source(options["output"])
    reports = _reports(joined, others)
    _warn_alone(reports)
    return f"{done.rows} rows, {len(joined.schema.names)} columns", reports


def refuse_options(
    context: click.Context, options: Mapping[str, Any], harmless: Container[str] = ()
) -> None:
    """Refuse options that HATS catalogues cannot have."""
    for parameter in context.command.params:
        name = parameter.name or ""
        is_harmless = name in harmless or (name == "keep" and options["keep"] == "symmetric")
        if name in NOT_FOR_HATS and is_given(context, name) and not is_harmless:
            raise CatalogError(
                f"{parameter.opts[-1]}: {NOT_FOR_HATS[name]}; leave it out, or match files"
            )


def _counterparts(options: Mapping[str, Any]) -> list[Counterpart]:
    from skyfill.scale.hats import hats_folder
    from skyfill.scale.hats_match import Counterpart

    names = survey_names([hats_folder(other) for other in options["others"]], options["name"])
    radii = radii_of(options["radius"], names)
    return [
        Counterpart(other, name, radius)
        for other, name, radius in zip(options["others"], names, radii, strict=True)
    ]


def _reports(joined: Source, others: Sequence[Counterpart]) -> list[MatchReport]:
    """Count the flags of the rows in each survey."""
    import numpy as np

    from skyfill.sky import MatchReport
    from skyfill.sky.survey import count_flags

    counts = [Counter[str]() for _ in others]
    for table in joined.tables([f"flag_{other.name}" for other in others]):
        for count, flags in zip(counts, table.arrow.columns, strict=True):
            count.update(count_flags(np.asarray(flags.to_pylist(), dtype=object)))
    return [
        MatchReport(other.name, other.radius_arcsec, **cast("dict[str, Any]", count))
        for other, count in zip(others, counts, strict=True)
    ]


def _warn_alone(reports: Sequence[MatchReport]) -> None:
    for report in reports:
        if not report.matched:
            warn(
                f"{report.name}: nothing lies within {report.radius_arcsec:g} arcsec; check the "
                "radius, and whether the catalogues overlap on the sky"
            )
