"""Join any number of catalogues to a base: one table, whose gaps have reasons."""

import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import ColumnInfo, Reason, Role, Table
from skyfill.errors import CatalogError, SkyfillWarning
from skyfill.sky.depths import Places, new_limits, with_depths
from skyfill.sky.identifiers import match_identifiers
from skyfill.sky.matching import Matches
from skyfill.sky.positions import MAIN_UCDS, Positions, find_position_columns, read_positions
from skyfill.sky.sphere import Rows
from skyfill.sky.survey import Flag, MatchReport, MatchRules, Survey, SurveyMatch, match_survey

_MAIN = re.compile(r";meta\.main|_main$", re.IGNORECASE)
# The flag column says why these are missing; companion columns would only repeat it.
_WITHOUT_REASONS = (Role.IDENTIFIER, Role.POSITION, Role.ERROR, Role.REASON)


class NothingMatchedWarning(SkyfillWarning):
    """No object of the base has a counterpart in a survey."""


def join(
    base: Table,
    others: Mapping[str, Table],
    radius_arcsec: float,
    *,
    rules: MatchRules | None = None,
) -> Table:
    """Join catalogues to a base by position; every row of the base is kept.

    Each column of a survey gets the suffix ``_NAME``; ``sep_NAME`` (arcsec), ``n_NAME``
    (candidates within the radius) and ``flag_NAME`` (see `Flag`) are added. The gaps of an
    unmatched row have the reason `unmatched`. Gaps and reasons of the survey itself are kept.
    The counts of each match are in ``table.meta`` under ``match_NAME``, as JSON.

    Parameters
    ----------
    others : mapping of str to Table
        Catalogues by name. With `join_surveys` each can have its own radius, position columns,
        epoch and footprint.
    rules : MatchRules, optional
        With ``keep="all"`` a row of the base is repeated for each of its counterparts.

    Warns
    -----
    NothingMatchedWarning
        If a survey has no counterpart at all.

    Examples
    --------
    >>> base = Table.from_columns({"id": ["a", "b"], "ra": [10.0, 20.0], "dec": [0.0, 0.0]})
    >>> nir = Table.from_columns({"ra": [20.0], "dec": [0.0], "J": [14.2]})
    >>> joined = join(base, {"nir": nir}, 1.0)
    >>> joined.column("J_nir").to_pylist(), joined.reasons("J_nir").to_pylist()
    ([None, 14.2], ['unmatched', None])
    >>> joined.column("flag_nir").to_pylist()
    ['unmatched', 'matched']
    """
    surveys = [Survey(name, table, radius_arcsec) for name, table in others.items()]
    table, reports = join_surveys(base, surveys, rules or MatchRules())
    for report in reports:
        if report.advice:
            warnings.warn(report.advice, NothingMatchedWarning, stacklevel=2)
    return table


def join_surveys(
    base: Table,
    surveys: Sequence[Survey],
    rules: MatchRules,
    *,
    positions: Positions | None = None,
) -> tuple[Table, tuple[MatchReport, ...]]:
    """Join surveys, each with its own radius, columns, epoch and footprint; see `join`.

    Parameters
    ----------
    positions : Positions, optional
        Positions of the base, by default read from its columns.

    Returns
    -------
    table : Table
    reports : tuple of MatchReport
        One for each survey.

    Examples
    --------
    >>> base = Table.from_columns({"ra": [10.0], "dec": [0.0]})
    >>> wise = Survey("wise", Table.from_columns({"ra": [10.001], "dec": [0.0]}), 6.0)
    >>> joined, (report,) = join_surveys(base, [wise], MatchRules())
    >>> joined.numbers("sep_wise").round(3), report.matched
    (array([[3.6]]), 1)
    """
    check_survey_names(base, surveys)
    by_position = any(survey.key is None for survey in surveys)
    places = positions or (read_positions(base) if by_position else None)
    matches = (_match(base, places, survey, rules) for survey in surveys)
    at = None if places is None else (places.ra_deg, places.dec_deg)
    return join_matches(base, surveys, matches, at)


def join_matches(
    base: Table,
    surveys: Sequence[Survey],
    matches: Iterable[SurveyMatch],
    places: Places | None = None,
) -> tuple[Table, tuple[MatchReport, ...]]:
    """Add the matched rows of each survey to those of the base; see `join_surveys`.

    `places` are right ascensions and declinations of the base, for depths that are measured.
    """
    table, rows = _with_main_position(base), np.arange(len(base))
    reports = []
    for survey, found in zip(surveys, matches, strict=True):
        repeats, partners, separations = _spread(rows, found.matches)
        if len(repeats) > len(rows):
            table, rows = Table(table.arrow.take(repeats)), rows[repeats]
        table = _beside(table, _columns(survey, partners, found.flags[rows]))
        table = _with_facts(table, survey, found, rows=rows, separations=separations)
        at = None if places is None else (places[0][rows], places[1][rows])
        table = with_depths(table, survey, at)
        reports.append(found.report)
    return table, tuple(reports)


def _with_main_position(base: Table) -> Table:
    """Mark the positions of the base as those of the objects, unless they are in parts."""
    try:
        found = find_position_columns(base)
    except CatalogError:  # matched by identifiers, or by columns that the user named
        return base
    if len(found.ra) == len(found.dec) == 1:
        for name, ucd in zip((*found.ra, *found.dec), MAIN_UCDS[0], strict=True):
            base = base.with_info(name, ucd=base.info(name).ucd or ucd, role=Role.POSITION)
    return base


def _match(base: Table, places: Positions | None, survey: Survey, rules: MatchRules) -> SurveyMatch:
    if survey.key is not None:
        return match_identifiers(base, survey, survey.key)
    return match_survey(places or read_positions(base), survey, rules)


def check_survey_names(base: Table, surveys: Iterable[Survey]) -> None:
    """Refuse surveys whose columns would take the names of others."""
    # Without regard to case, as FITS and many programs compare names.
    owners = {name.lower(): "the base" for name in base.names}
    for survey in surveys:
        if not survey.name.strip():
            raise CatalogError("a survey needs a name, which becomes the suffix of its columns")
        names = _new_names(survey)
        for place, name in enumerate(names):
            owner = survey.name if name in names[:place] else owners.get(name.lower())
            if owner is not None:
                raise CatalogError(
                    f"{survey.name}: column {name!r} is already a column of {owner}; give this "
                    "survey another name, or rename the column"
                )
        owners |= {name.lower(): survey.name for name in names}


def _new_names(survey: Survey) -> list[str]:
    names = [f"{name}_{survey.name}" for name in _own_columns(survey.table)]
    gaps = [f"{name}_{survey.name}_gap" for name in _explained(survey.table)]
    facts = [f"{fact}_{survey.name}" for fact in ("sep", "n", "flag")]
    return [*names, *gaps, *facts, *new_limits(survey)]


def _own_columns(table: Table) -> list[str]:
    return [name for name in table.names if table.info(name).role is not Role.REASON]


def _explained(table: Table) -> list[str]:
    """List the columns whose gaps get a reason: features, and those with reasons already."""
    already = {table.info(name).of for name in table.names_with(Role.REASON)}
    roles = ((name, table.info(name).role) for name in table.names)
    return [name for name, role in roles if role not in _WITHOUT_REASONS or name in already]


def _spread(rows: Rows, matches: Matches) -> tuple[Rows, Rows, np.ndarray]:
    """Assign each output row its counterpart (-1: none); rows with several are repeated."""
    n_base = len(matches.n_candidates)
    n_pairs = np.bincount(matches.left, minlength=n_base)
    first = np.cumsum(n_pairs) - n_pairs
    copies = np.maximum(n_pairs[rows], 1)
    repeats = np.repeat(np.arange(len(rows)), copies)
    nth = np.arange(len(repeats)) - np.repeat(np.cumsum(copies) - copies, copies)
    pair = first[rows][repeats] + nth
    lost = n_pairs[rows][repeats] == 0
    pair[lost] = -1
    partners = np.append(matches.right, -1)[pair]
    return repeats, partners, np.append(matches.separation_arcsec, np.nan)[pair]


def _columns(survey: Survey, partners: Rows, flags: np.ndarray) -> Table:
    """Take the rows of the survey that belong to the base; a null index gives nulls."""
    source = survey.table
    taken = Table(source.arrow.combine_chunks().take(pa.array(partners, mask=partners < 0)))
    own = taken.select(_own_columns(source))
    own = Table(own.arrow.rename_columns([f"{name}_{survey.name}" for name in own.names]))
    for name in own.names:
        info = own.info(name)
        if info.of is not None:
            own = own.with_info(name, of=f"{info.of}_{survey.name}")
        if info.ucd and _MAIN.search(info.ucd):  # the main position and identifier are the base's
            own = own.with_info(name, ucd=_MAIN.sub("", info.ucd))
    lost = _reasons(flags)
    for name in _explained(source):
        own = own.with_reasons(f"{name}_{survey.name}", _either(taken.reasons(name), lost))
    return own


def _either(brought: pa.Array, lost: pa.Array) -> pa.Array:
    """Prefer the reasons of the survey itself; columns without any share one array."""
    return lost if brought.null_count == len(brought) else pc.coalesce(brought, lost)


def _reasons(flags: np.ndarray) -> pa.Array:
    """Why rows have no counterpart; of a row without a position a survey says nothing either."""
    silent = np.isin(flags, (Flag.UNCOVERED, Flag.UNPLACED))
    words = np.where(silent, Reason.UNCOVERED.value, Reason.UNMATCHED.value)
    found = (flags == Flag.MATCHED) | (flags == Flag.AMBIGUOUS)
    return pa.array(words.astype(object), mask=found, type=pa.string())


def _beside(table: Table, other: Table) -> Table:
    fields = [*table.arrow.schema, *other.arrow.schema]
    schema = pa.schema(fields, metadata=table.arrow.schema.metadata)
    return Table(pa.Table.from_arrays([*table.arrow.columns, *other.arrow.columns], schema=schema))


def _with_facts(
    table: Table, survey: Survey, found: SurveyMatch, *, rows: Rows, separations: np.ndarray
) -> Table:
    name, reach = survey.name, survey.radius_arcsec
    how = f"within {reach:g} arcsec" if reach else "within 5 standard deviations"
    if survey.key is not None:
        how, separations = f"by {survey.key}", np.full(len(rows), np.nan)
    counts = found.matches.n_candidates[rows].astype(np.int32)
    after = " after the offset was removed" if found.report.offset else ""
    facts = {
        f"sep_{name}": (separations, "arcsec", "pos.angDistance", f"separation{after}"),
        f"n_{name}": (counts, None, "meta.number", f"candidates {how}"),
        f"flag_{name}": (found.flags[rows], None, "meta.code", f"how it matched {how}"),
    }
    for column, (values, unit, ucd, words) in facts.items():
        info = ColumnInfo(unit=unit, ucd=ucd, description=f"{name}: {words}")
        table = table.with_column(column, values, info)
    return table.with_meta(**_meta(survey, found.report))


def _meta(survey: Survey, report: MatchReport) -> dict[str, str]:
    """Keep the facts of the survey (above all its citation) and the counts of the match."""
    facts = survey.table.meta.items()
    carried = {f"{key}_{survey.name}": text for key, text in facts if key != "provenance"}
    return {**carried, f"match_{survey.name}": json.dumps(report.to_dict())}
