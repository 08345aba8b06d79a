"""Positions: cross-match of any number of catalogues into one table with gaps."""

from skyfill.sky.control import Chance, count_chance_matches
from skyfill.sky.footprint import Footprint, read_footprint
from skyfill.sky.join import NothingMatchedWarning, join, join_surveys
from skyfill.sky.matching import KEEP, Keep, Matches, match_positions, nearest_arcsec
from skyfill.sky.offset import Offset, fit_offset, shifted
from skyfill.sky.positions import (
    PositionColumns,
    Positions,
    find_position_columns,
    read_positions,
)
from skyfill.sky.survey import Flag, MatchReport, MatchRules, Survey, match_survey

__all__ = [
    "KEEP",
    "Chance",
    "Flag",
    "Footprint",
    "Keep",
    "MatchReport",
    "MatchRules",
    "Matches",
    "NothingMatchedWarning",
    "Offset",
    "PositionColumns",
    "Positions",
    "Survey",
    "count_chance_matches",
    "find_position_columns",
    "fit_offset",
    "join",
    "join_surveys",
    "match_positions",
    "match_survey",
    "nearest_arcsec",
    "read_footprint",
    "read_positions",
    "shifted",
]
