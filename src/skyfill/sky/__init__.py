"""Positions: cross-match any number of catalogues into one table with gaps."""

from skyfill.sky.associations import Associations, associate
from skyfill.sky.density import density_of_area, local_density
from skyfill.sky.ellipses import Sources, circles, ellipses
from skyfill.sky.error_fit import fit_error
from skyfill.sky.footprint import Footprint, read_footprint
from skyfill.sky.join import NothingMatchedWarning, join, join_surveys
from skyfill.sky.matching import KEEP, Keep, Matches, match_positions, nearest_arcsec
from skyfill.sky.one_to_one import choose_one_to_one
from skyfill.sky.positions import (
    PositionColumns,
    Positions,
    find_position_columns,
    read_positions,
)
from skyfill.sky.posterior import (
    Completeness,
    Counterparts,
    fit_completeness,
    probabilities,
    summarize,
)
from skyfill.sky.shifts import Chance, Offset, count_chance_matches, fit_offset, shifted
from skyfill.sky.survey import Flag, MatchReport, MatchRules, Survey, match_survey

__all__ = [
    "KEEP",
    "Associations",
    "Chance",
    "Completeness",
    "Counterparts",
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
    "Sources",
    "Survey",
    "associate",
    "choose_one_to_one",
    "circles",
    "count_chance_matches",
    "density_of_area",
    "ellipses",
    "find_position_columns",
    "fit_completeness",
    "fit_error",
    "fit_offset",
    "join",
    "join_surveys",
    "local_density",
    "match_positions",
    "match_survey",
    "nearest_arcsec",
    "probabilities",
    "read_footprint",
    "read_positions",
    "shifted",
    "summarize",
]
