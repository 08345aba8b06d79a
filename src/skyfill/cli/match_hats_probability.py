"""`skyfill match --probability` of HATS catalogues: learned on a sample, found by partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli.match_columns import EDGE, mention_errors, with_stated_depths
from skyfill.cli.match_hats import refuse_options
from skyfill.cli.match_photometry import choose_bands
from skyfill.cli.match_probability import (
    Search,
    described,
    draw,
    refuse_with_probability,
    search,
    tell,
)
from skyfill.cli.options import as_typed, typed_options
from skyfill.cli.survey_options import BASE, named_values, survey_names, year
from skyfill.cli.terminal import note, shown_run
from skyfill.errors import CatalogError

if TYPE_CHECKING:
    from skyfill.scale.hats_counterparts import CounterpartMatch, HatsSurvey
    from skyfill.sky import CounterpartReport, Survey

# Options that other matches of HATS catalogues do not have.
_ONLY_HERE = ("keep", "controls", "epoch", "remove_offset", "footprint", "depths")


def match_catalogs_with_probability(context: click.Context, options: Mapping[str, Any]) -> str:
    """Find counterparts in HATS catalogues; give the shape of the result."""
    from dataclasses import replace

    from skyfill.catalog import Provenance
    from skyfill.scale import open_source
    from skyfill.scale.hats_match import join_hats_with_probability
    from skyfill.scale.hats_sample import read_sample
    from skyfill.scale.job_folder import identify

    refuse_options(context, options, harmless=_ONLY_HERE)
    refuse_with_probability(options)
    places = _catalogs(options)
    stated = described([_without_rows(place) for place in places], options)
    stated = [stated[0], *_with_depths(stated[1:], options)]
    mention_errors(stated)
    bands = choose_bands(stated[0], stated[1:], options)
    places = _with_options(places, stated, bands)
    done = search(*_split(read_sample(places[0], places[1:], stated)), bands, options)
    rule = _rule(places, done, options)
    base = open_source(options["base"])
    files = [f for p in (options["base"], *options["others"]) for f in open_source(p).checked_files]
    footprints = [Path(text.split("=", 1)[1]) for text in options["footprint"]]
    files += footprints
    made = Provenance(as_typed(context), files)
    facts = {**typed_options(context), "footprints": identify(footprints)}
    with shown_run("matching", base, options, made) as run:
        rows = join_hats_with_probability(rule, options["output"], run, facts).rows
    if options["all_file"]:
        every = replace(rule, every=True)
        with shown_run("associations", base, options, made) as run:
            n_all = join_hats_with_probability(every, options["all_file"], run, facts).rows
        note(f"{n_all} associations -> {options['all_file']}")
    draw(done.threshold, options["figure"])
    flags, reports = _reports(options["output"], places[1:], done)
    tell(reports, flags, done.threshold, done.rules, as_json=options["as_json"])
    return f"{rows} rows, {len(rule.schema.names)} columns"


def _catalogs(options: Mapping[str, Any]) -> list[HatsSurvey]:
    from dataclasses import replace

    import pyarrow as pa

    from skyfill.scale.hats import hats_folder, open_hats, stored_schema
    from skyfill.scale.hats_counterparts import HatsSurvey
    from skyfill.sky import read_footprint

    folders = [hats_folder(path) for path in (options["base"], *options["others"])]
    names = [BASE, *survey_names(folders[1:], options["name"])]
    epochs = named_values(options["epoch"], names, "--epoch", year)
    footprints = named_values(options["footprint"], names[1:], "--footprint", read_footprint)
    out = []
    for name, folder in zip(names, folders, strict=True):
        opened = open_hats(folder)
        known = stored_schema(opened)
        plain = [n for n in opened.columns if not pa.types.is_nested(known.field(n).type)]
        found = HatsSurvey(name, str(folder), tuple(plain), epoch=epochs.get(name))
        out.append(replace(found, footprint=footprints.get(name)))
    return out


def _with_depths(surveys: Sequence[Survey], options: Mapping[str, Any]) -> list[Survey]:
    from skyfill.catalog import Schema

    rules = {survey.name: Schema() for survey in surveys}
    found = with_stated_depths(surveys, options["depths"], rules)
    for survey in found:
        for name, depth in survey.depths.items():
            if depth is None:
                raise CatalogError(
                    f"--depth {survey.name}={EDGE}: the faint edge is measured on whole tables; "
                    f"state the depth, as in --depth {survey.name}={name}:20.5, or match files"
                )
    return found


def _without_rows(place: HatsSurvey) -> Survey:
    """Describe the columns of a catalogue."""
    from skyfill.catalog import Table
    from skyfill.scale.hats_around import tiles_of

    return place.with_rows(Table(tiles_of(place.folder).schema.empty_table()).select(place.columns))


def _with_options(
    places: Sequence[HatsSurvey],
    stated: Sequence[Survey],
    bands: Sequence[Sequence[str]] | None,
) -> list[HatsSurvey]:
    from dataclasses import replace

    used = bands or [[] for _ in places]
    return [
        replace(place, bands=tuple(own), radius_arcsec=survey.radius_arcsec, depths=survey.depths)
        for place, survey, own in zip(places, stated, used, strict=True)
    ]


def _split(surveys: Sequence[Survey]) -> tuple[Survey, Sequence[Survey]]:
    return surveys[0], surveys[1:]


def _rule(
    places: Sequence[HatsSurvey], done: Search, options: Mapping[str, Any]
) -> CounterpartMatch:
    from skyfill.scale.hats_counterparts import CounterpartMatch, density_circle

    there, found = done.there, done.found
    ratio: Any = found.ratio
    return CounterpartMatch(
        places[0],
        tuple(places[1:]),
        done.rules,
        conditions=there.conditions,  # type: ignore[arg-type]
        learned=found.learned,
        ratio=None if ratio is None else ratio.learned,
        reach_arcsec=float(there.radius_arcsec.max()),
        density_arcsec=density_circle(there),
        beam_arcsec=options["beam"] or 0.0,
    )


def _reports(
    output: str, surveys: Sequence[HatsSurvey], done: Search
) -> tuple[Counter[str], list[CounterpartReport]]:
    """Count what was found in the whole catalogue; what was learned comes from the sample."""
    import numpy as np

    from skyfill.scale import open_source
    from skyfill.sky.counterpart_table import report_survey

    flags, matched, wrong = Counter[str](), np.zeros(len(surveys), int), np.zeros(len(surveys))
    columns = [f"{word}_{s.name}" for s in surveys for word in ("sep", "prob")]
    for table in open_source(output).tables(["flag", *columns]):
        flags.update(table.column("flag").to_pylist())
        facts = table.numbers(*columns)
        has = np.isfinite(facts[:, ::2])
        matched += has.sum(axis=0)
        wrong += np.where(has, 1 - facts[:, 1::2], 0.0).sum(axis=0)
    reports = [
        report_survey(done.there, done.found, k, int(matched[k]), float(wrong[k]))
        for k in range(len(surveys))
    ]
    return flags, reports
