"""Match one survey to the base, and report on the match."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from skyfill.catalog import Table
from skyfill.catalog.file_io import naming
from skyfill.sky.footprint import Footprint
from skyfill.sky.matching import Keep, Matches, match_positions, nearest_arcsec
from skyfill.sky.position_errors import PositionError
from skyfill.sky.positions import PositionColumns, Positions, read_positions
from skyfill.sky.shifts import Chance, Offset, count_chance_matches, fit_offset, shifted


class Flag(StrEnum):
    """What became of a base row in one survey.

    ``matched``: the only candidate within the radius is the counterpart; ``ambiguous``: matched,
    with other candidates within the radius; ``taken``: all candidates are closer to other rows;
    ``unmatched``: no candidate; ``uncovered``: none, and outside the footprint; ``unplaced``: the
    row has no position.

    Examples
    --------
    >>> str(Flag.TAKEN)
    'taken'
    """

    MATCHED = "matched"
    AMBIGUOUS = "ambiguous"
    TAKEN = "taken"
    UNMATCHED = "unmatched"
    UNCOVERED = "uncovered"
    UNPLACED = "unplaced"


@dataclass(frozen=True)
class Survey:
    """A catalogue to join to the base.

    Parameters
    ----------
    name : str
        Suffix of its columns in the joined table.
    table : Table
    radius_arcsec : float
        With probabilities 0 leaves it to the position errors.
    position : PositionColumns, optional
        By default found in the table.
    epoch : float, optional
        Julian year of its positions.
    footprint : Footprint, optional
        Distinguishes `uncovered` from `unmatched`.
    key : str, optional
        Column of identifiers shared with the base: join by it, not by position.
    error : PositionError, optional
        For probabilities: how uncertain its positions are; found in the table where not given.
    area_deg2 : float, optional
        For probabilities: area that it covers evenly; else that of the footprint, else densities
        are measured around each object.
    completeness : float, optional
        For probabilities: share of the base objects that have a counterpart in it; else estimated.
    beam_arcsec : float
        For probabilities, of the base: its resolution, within which it sees several sources as one.
    bands : tuple of str
        For probabilities: columns of magnitudes or fluxes by which the beam of the base joins its
        sources.
    depths : mapping of str to float or None
        Columns for which unmatched objects get a limit: this one or, if None, the faint edge of
        the survey nearby.
    """

    name: str
    table: Table
    radius_arcsec: float
    position: PositionColumns | None = None
    epoch: float | None = None
    footprint: Footprint | None = None
    key: str | None = None
    error: PositionError | None = None
    area_deg2: float | None = None
    completeness: float | None = None
    beam_arcsec: float = 0.0
    bands: tuple[str, ...] = ()
    depths: Mapping[str, float | None] = field(default_factory=dict)

    def positions(self) -> Positions:
        """Read the positions; an error names the survey."""
        with naming(self.name):
            return read_positions(self.table, self.position, epoch=self.epoch)


@dataclass(frozen=True)
class MatchRules:
    """How all surveys are matched to the base.

    Parameters
    ----------
    keep : {"symmetric", "best", "all"}
        See `match_positions`.
    remove_offset : bool
        Measure and remove a systematic shift of each survey before matching.
    epoch : float, optional
        Julian year at which positions are compared; by default the epoch of the catalogue
        without proper motions.
    n_controls : int
        Shifted matches that estimate the number of chance matches; 0 for none.
    """

    keep: Keep = "symmetric"
    remove_offset: bool = False
    epoch: float | None = None
    n_controls: int = 4


@dataclass(frozen=True)
class MatchReport:
    """Counts of one survey's match, in objects of the base.

    Attributes
    ----------
    matched, ambiguous, taken, unmatched, uncovered, unplaced : int
        Rows of the base; `matched` includes `ambiguous`, `unmatched` includes `taken`.
    offset : Offset or None
        Shift that was removed.
    chance : Chance or None
        Expected number of chance matches.
    median_nearest_arcsec : float or None
        Set if nothing matched.
    key : str or None
        Column of identifiers, if the match was by identifier.
    """

    name: str
    radius_arcsec: float
    matched: int
    ambiguous: int
    taken: int
    unmatched: int
    uncovered: int
    unplaced: int
    offset: Offset | None = None
    chance: Chance | None = None
    median_nearest_arcsec: float | None = None
    key: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return asdict(self)

    @property
    def advice(self) -> str | None:
        """State what may be wrong if nothing matched."""
        if self.matched:
            return None
        if self.key is not None:
            return f"{self.name}: the base has none of the identifiers in its column {self.key!r}"
        if self.median_nearest_arcsec is None:
            return f"{self.name}: nothing to match: the survey or the base has no positions"
        return (
            f"{self.name}: nothing lies within {self.radius_arcsec:g} arcsec; the median distance "
            f"to the nearest neighbor is {_length(self.median_nearest_arcsec)}: check the units of "
            f"the positions (degrees, radians, hours), the radius, and whether the catalogues "
            f"overlap on the sky"
        )


@dataclass(frozen=True)
class SurveyMatch:
    """Pairs of one survey with the base, a flag for each base row, and the report."""

    matches: Matches
    flags: np.ndarray
    report: MatchReport


def match_survey(base: Positions, survey: Survey, rules: MatchRules) -> SurveyMatch:
    """Match one survey to the positions of the base.

    Examples
    --------
    >>> base = Positions(np.array([10.0, 20.0]), np.array([0.0, 0.0]))
    >>> other = Table.from_columns({"ra": [20.0], "dec": [0.0], "J": [14.2]})
    >>> found = match_survey(base, Survey("nir", other, 1.0), MatchRules())
    >>> found.flags.tolist(), found.report.matched
    (['unmatched', 'matched'], 1)
    """
    base, other = _at_common_epoch(base, survey.positions(), rules.epoch)
    left, right = (base.ra_deg, base.dec_deg), (other.ra_deg, other.dec_deg)
    offset = None
    if rules.remove_offset:
        offset = fit_offset(left, right, survey.radius_arcsec)
        right = shifted(*right, offset)
    matches = match_positions(*left, *right, survey.radius_arcsec, keep=rules.keep)
    flags = _flags(base, matches, survey.footprint)
    chance = None
    if rules.n_controls:
        chance = count_chance_matches(
            left, right, survey.radius_arcsec, keep=rules.keep, n_shifts=rules.n_controls
        )
    median = None if len(matches) else _median(nearest_arcsec(*left, *right))
    report = MatchReport(
        survey.name,
        survey.radius_arcsec,
        **count_flags(flags),
        offset=offset,
        chance=chance,
        median_nearest_arcsec=median,
        key=survey.key,
    )
    return SurveyMatch(matches, flags, report)


def _at_common_epoch(
    base: Positions, other: Positions, epoch: float | None
) -> tuple[Positions, Positions]:
    if epoch is None:
        still = next((p for p in (other, base) if p.motion is None), other)
        epoch = still.single_epoch
    if epoch is None:
        return base, other
    return base.at(epoch), other.at(epoch)


def _flags(base: Positions, matches: Matches, footprint: Footprint | None) -> np.ndarray:
    flags = np.full(len(base), Flag.UNMATCHED, dtype="<U9")
    if footprint is not None:
        flags[~footprint.covers(base.ra_deg, base.dec_deg)] = Flag.UNCOVERED
    flags[matches.n_candidates > 0] = Flag.TAKEN
    flags[np.isnan(base.ra_deg)] = Flag.UNPLACED
    flags[matches.left] = Flag.MATCHED
    flags[matches.left[matches.n_candidates[matches.left] > 1]] = Flag.AMBIGUOUS
    return flags


def count_flags(flags: np.ndarray) -> dict[str, int]:
    """Count rows by flag; matched includes ambiguous, unmatched includes taken.

    Examples
    --------
    >>> found = count_flags(np.array(["matched", "ambiguous", "taken"]))
    >>> found["matched"], found["unmatched"], found["ambiguous"]
    (2, 1, 1)
    """
    counts = {str(flag): int(np.count_nonzero(flags == flag)) for flag in Flag}
    counts["matched"] += counts["ambiguous"]
    counts["unmatched"] += counts["taken"]
    return counts


def _median(angles: np.ndarray) -> float | None:
    seen = angles[np.isfinite(angles)]
    return float(np.median(seen)) if seen.size else None


def _length(arcsec: float) -> str:
    if arcsec < 120:
        return f"{arcsec:.1f} arcsec"
    return f"{arcsec / 60:.1f} arcmin" if arcsec < 7200 else f"{arcsec / 3600:.1f} degrees"
