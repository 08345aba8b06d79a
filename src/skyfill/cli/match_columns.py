"""Which columns `match` uses: what is said of them before the work, and depths of surveys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from skyfill.cli.checks import mention_position, mention_rules
from skyfill.cli.survey_options import named_values
from skyfill.cli.terminal import DECLARED, GUESSED, mention
from skyfill.errors import CatalogError, shortened

if TYPE_CHECKING:
    from skyfill.catalog import Schema
    from skyfill.sky import Survey

# In place of a depth: that of the catalogue nearby.
EDGE = "edge"
Depths = dict[str, float | None]

takes_depths = click.option(
    "--depth",
    "depths",
    multiple=True,
    metavar=f"{EDGE}|NAME={EDGE}|NAME=COLUMN:NUMBER,...",
    help="Write limits for unmatched objects: the faint edge of the survey nearby, of all its "
    f"magnitudes and fluxes; or the depth of each COLUMN, a number or {EDGE}.",
)


def with_stated_depths(
    surveys: Sequence[Survey], texts: Sequence[str], rules: Mapping[str, Schema]
) -> list[Survey]:
    """Give the surveys the depths of --depth, or else of their schema files."""
    names = [survey.name for survey in surveys]
    named = named_values([text for text in texts if text != EDGE], names, "--depth", str)
    found = [_with_depths(survey, named, EDGE in texts, rules[survey.name]) for survey in surveys]
    for survey in found:
        for name, depth in survey.depths.items():
            how = "the faint edge nearby" if depth is None else f"{depth:g}"
            mention(DECLARED, f"{survey.name}: depth of {name}: {how}")
    return found


def _with_depths(survey: Survey, named: Mapping[str, str], edges: bool, rules: Schema) -> Survey:
    from skyfill.sky.depths import check_depths, find_brightness

    depths = _declared_depths(survey, rules)
    text = named.get(survey.name, EDGE if edges else "")
    if text == EDGE:
        found = find_brightness(survey.table)
        if not found and survey.name in named:
            raise CatalogError(
                f"--depth {survey.name}={EDGE}: no column has the unit mag or the UCD of a "
                f"magnitude or flux; declare units in the file of --schema {survey.name}=FILE"
            )
        depths = dict.fromkeys(found) | depths
    elif text:
        depths |= _parse(survey.name, text)
    check_depths(survey.table, depths, survey.name)
    return replace(survey, depths=depths)


def _declared_depths(survey: Survey, rules: Schema) -> Depths:
    facts = rules.only(survey.table.names).to_dict()
    for name, stated in facts.items():
        if "depth" in stated and "convert" in stated:
            raise CatalogError(
                f"{survey.name}: column {name!r} has a depth and is converted; state the depth in "
                f"the new unit, as --depth {survey.name}={name}:NUMBER"
            )
    return {name: float(stated["depth"]) for name, stated in facts.items() if "depth" in stated}


def _parse(survey: str, text: str) -> Depths:
    found: Depths = {}
    for word in text.split(","):
        name, _, depth = word.rpartition(":")
        try:
            found[name] = None if depth == EDGE else float(depth)
        except ValueError:
            name = ""
        if not name:
            raise CatalogError(
                f"--depth {survey}={text}: write {survey}=COLUMN:NUMBER,..., {survey}=COLUMN:"
                f"{EDGE},... or {survey}={EDGE}"
            )
    return found


def mention_columns(base: Survey, surveys: Sequence[Survey], rules: Mapping[str, Schema]) -> None:
    """List what is declared about the tables, and the positions and motions that are guessed."""
    placed = [survey for survey in surveys if survey.key is None]
    for survey in (base, *surveys):
        mention_rules(rules[survey.name], survey.table.names, f"{survey.name}: ")
    for survey in (base, *placed) if placed else ():
        _mention_position(survey)


def _mention_position(survey: Survey) -> None:
    from skyfill.catalog.file_io import naming
    from skyfill.sky.motion import motion_columns

    if survey.position is None:
        with naming(survey.name):
            mention_position(survey.table, f"{survey.name}: ")
    if moving := motion_columns(survey.table):
        mention(GUESSED, f"{survey.name}: proper motion {shortened(moving, 200)}")


def mention_errors(surveys: Iterable[Survey]) -> None:
    """List the position errors that probabilities are guessed to rest on."""
    from skyfill.sky.position_errors import find_position_error

    for survey in surveys:
        if survey.error is None:
            found = find_position_error(survey.table)
            words = shortened(found.columns, 150) or "estimated from the separations"
            unit = f" ({found.unit})" if found.columns and found.unit else ""
            mention(GUESSED, f"{survey.name}: position error {words}{unit}")
