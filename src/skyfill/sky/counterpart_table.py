"""Tables of counterparts: the best association of each object, or all with their weights."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.catalog.new_columns import check_new
from skyfill.sky.associations import Associations
from skyfill.sky.counterparts import CounterpartRules, Found
from skyfill.sky.join import check_survey_names, join_matches
from skyfill.sky.matching import Matches
from skyfill.sky.neighbors import count_neighbors
from skyfill.sky.shifts import Offset
from skyfill.sky.sphere import Floats, Rows, arcsec_of_chord, unit_vectors
from skyfill.sky.surroundings import Surroundings
from skyfill.sky.survey import Flag, MatchReport, Survey, SurveyMatch, count_flags

# Columns of a table of all associations: row of the base object, and probability.
BASE_ROW, PROBABILITY = "base_row", "prob_association"


class Doubt(StrEnum):
    """How sure the counterpart of an object is.

    ``secure``: one association stands out; ``several``: others have at least half its probability;
    ``none``: there is none, or p_any is below the threshold.

    Examples
    --------
    >>> str(Doubt.SEVERAL)
    'several'
    """

    SECURE = "secure"
    SEVERAL = "several"
    NONE = "none"


_INFOS = {
    "p_any": ("stat.probability", "probability that there is a counterpart in any survey"),
    "p_i": ("stat.probability", "probability of this association, given that there is one"),
    "n_rivals": ("meta.number", "other associations with at least half its probability"),
    "flag": ("meta.code", "secure, several or none"),
}


@dataclass(frozen=True)
class CounterpartReport:
    """What was found in one survey.

    Attributes
    ----------
    completeness : float
        Share of the base objects with a counterpart, as stated or estimated.
    sigma_arcsec : float
        Median position error of the survey along one direction.
    density_deg2 : float
        Median number of sources per square degree around the objects.
    matched : int
        Objects whose chosen association has a source of this survey.
    expected_false : float
        How many of those are expected to be wrong, by their own probabilities.
    offset : Offset or None
    """

    name: str
    completeness: float
    sigma_arcsec: float
    density_deg2: float
    matched: int
    expected_false: float
    offset: Offset | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return asdict(self)


def counterpart_table(
    base: Table,
    surveys: Sequence[Survey],
    field: Surroundings,
    found: Found,
    rules: CounterpartRules,
) -> tuple[Table, tuple[CounterpartReport, ...]]:
    """Add the best association of each object, with its probability.

    Besides what `join_surveys` adds: ``p_any``, ``p_i``, ``n_rivals`` and ``flag`` (see `Doubt`),
    and for each survey ``prob_NAME`` (probability of its row, or of having none) and ``sigma_NAME``
    (separation in standard deviations). Objects below the threshold of `rules` have no values.
    """
    check_survey_names(base, surveys)
    _refuse_taken(base, [*_INFOS, *(f"{n}_{s.name}" for s in surveys for n in ("sigma", "prob"))])
    best = found.best
    rows = found.associations.rows[best.chosen]
    doubt = _doubts(found, rules)
    rows = np.where((doubt == Doubt.NONE)[:, None], -1, rows)
    counts = [_candidates(field, k) for k in range(len(surveys))]
    matches = [_as_match(s, field, k, rows[:, k], counts[k]) for k, s in enumerate(surveys)]
    table, _ = join_matches(base, surveys, matches, (field.base.ra_deg, field.base.dec_deg))
    for k, survey in enumerate(surveys):
        table = _with_doubt(table, survey.name, field, k, rows[:, k], best.p_survey[:, k])
    facts = {"p_any": best.p_any, "p_i": best.p_i, "n_rivals": best.n_rivals, "flag": doubt}
    for name, values in facts.items():
        ucd, words = _INFOS[name]
        table = table.with_column(name, values, ColumnInfo(ucd=ucd, description=words))
    reports = []
    for k in range(len(surveys)):
        matched = rows[:, k] >= 0
        wrong = float((1 - best.p_survey[matched, k]).sum())
        reports.append(report_survey(field, found, k, int(matched.sum()), wrong))
    return table, tuple(reports)


def _refuse_taken(base: Table, names: Sequence[str]) -> None:
    advice = "rename or drop columns of the base"
    check_new(base, dict.fromkeys(names, ColumnInfo()), advice=advice)


def _doubts(found: Found, rules: CounterpartRules) -> np.ndarray:
    best, starts = found.best, found.associations.starts[:-1]
    doubt = np.where(best.n_rivals > 0, Doubt.SEVERAL.value, Doubt.SECURE.value)
    without = (best.chosen == starts) | (best.p_any < rules.p_any)
    return np.where(without, Doubt.NONE.value, doubt)


def _as_match(survey: Survey, field: Surroundings, k: int, rows: Rows, counts: Rows) -> SurveyMatch:
    """Give the chosen rows of one survey the form of a match by position."""
    left = np.flatnonzero(rows >= 0)
    matches = Matches(left, rows[left].astype(np.int64), _separations(field, k, rows)[left], counts)
    flags = np.full(len(rows), Flag.UNMATCHED.value, dtype="<U9")
    flags[~field.covered[:, k]] = Flag.UNCOVERED
    flags[np.isnan(field.base.ra_deg)] = Flag.UNPLACED
    flags[left] = np.where(counts[left] > 1, Flag.AMBIGUOUS, Flag.MATCHED)
    count: dict[str, Any] = dict(count_flags(flags))
    report = MatchReport(survey.name, survey.radius_arcsec, **count)
    return SurveyMatch(matches, flags, report)


def _candidates(field: Surroundings, k: int) -> Rows:
    """Count the sources of a survey within reach of each object."""
    base, survey = field.base, field.surveys[k]
    places = (base.ra_deg, base.dec_deg), (survey.ra_deg, survey.dec_deg)
    return count_neighbors(*places, field.radius_arcsec[:, k])


def _separations(field: Surroundings, k: int, rows: Rows) -> Floats:
    """Angle to the row of a survey, in arcsec; NaN without one."""
    base, survey, at = field.base, field.surveys[k], np.maximum(rows, 0)
    here = unit_vectors(base.ra_deg, base.dec_deg)
    there = unit_vectors(survey.ra_deg[at], survey.dec_deg[at])
    apart = arcsec_of_chord(np.sqrt(np.sum((here - there) ** 2, axis=1)))
    return np.where(rows >= 0, apart, np.nan)


def separation_sigmas(field: Surroundings, k: int, rows: Rows) -> Floats:
    """Separation from the row of a survey in standard deviations, along its direction."""
    base, survey, at = field.base, field.surveys[k], np.maximum(rows, 0)
    east, both, north = (base.cov + survey.cov[at]).T
    turn = np.mod(survey.ra_deg[at] - base.ra_deg + 180, 360) - 180
    x = turn * 3600 * np.cos(np.radians((base.dec_deg + survey.dec_deg[at]) / 2))
    y = (survey.dec_deg[at] - base.dec_deg) * 3600
    square = (north * x**2 - 2 * both * x * y + east * y**2) / (east * north - both**2)
    return np.where(rows >= 0, np.sqrt(square), np.nan)


def _with_doubt(
    table: Table, name: str, field: Surroundings, k: int, rows: Rows, p: Floats
) -> Table:
    sigma = ColumnInfo(ucd="stat.value", description=f"{name}: separation in standard deviations")
    words = f"{name}: probability of this row, or of none"
    table = table.with_column(f"sigma_{name}", separation_sigmas(field, k, rows), sigma)
    return table.with_column(
        f"prob_{name}", p, ColumnInfo(ucd="stat.probability", description=words)
    )


def report_survey(
    field: Surroundings, found: Found, k: int, matched: int, expected_false: float
) -> CounterpartReport:
    """Report on one survey, of which so many sources are counterparts."""
    return CounterpartReport(
        field.names[k],
        float(found.completeness.shares[k]),
        float(np.sqrt(np.median(field.surveys[k].variance))),
        float(np.median(field.density[:, k]) * 3600**2),
        matched,
        expected_false,
        field.offsets[k],
    )


def association_table(
    base: Table, surveys: Sequence[Survey], field: Surroundings, found: Found, *, least: float = 0.0
) -> Table:
    """Put every association into its own row, including "none", with its probability.

    ``base_row`` is the row of the base object (from 0), ``prob_association`` sums to one over its
    rows. Such a table can be classified and filled: the rows of an object are weighed together.

    Parameters
    ----------
    least : float
        Associations below this probability are left out, except "none"; the others are raised so
        that they still sum to one.
    """
    check_survey_names(base, surveys)
    _refuse_taken(base, [BASE_ROW, PROBABILITY, *(f"sigma_{survey.name}" for survey in surveys)])
    kept, p = _kept(found.associations, found.p, least)
    owner = found.associations.base[kept]
    rows = found.associations.rows[kept]
    part = field.take(owner)
    counts = [_candidates(field, k)[owner] for k in range(len(surveys))]
    matches = [_as_match(s, part, k, rows[:, k], counts[k]) for k, s in enumerate(surveys)]
    at = part.base.ra_deg, part.base.dec_deg
    table, _ = join_matches(Table(base.arrow.take(owner)), surveys, matches, at)
    for k, survey in enumerate(surveys):
        info = ColumnInfo(description=f"{survey.name}: separation in standard deviations")
        table = table.with_column(
            f"sigma_{survey.name}", separation_sigmas(part, k, rows[:, k]), info
        )
    row = ColumnInfo(ucd="meta.id", description="row of the base object", role=Role.IDENTIFIER)
    share = ColumnInfo(ucd="stat.probability", description="probability of this association")
    return table.with_column(BASE_ROW, owner, row).with_column(PROBABILITY, p, share)


def _kept(found: Associations, p: Floats, least: float) -> tuple[Rows, Floats]:
    wanted = p >= least
    wanted[found.starts[:-1]] = True
    kept = np.flatnonzero(wanted)
    total = np.bincount(found.base[kept], weights=p[kept], minlength=found.n_base)
    return kept, p[kept] / total[found.base[kept]]
