"""Positions: cross-match any number of catalogues into one table with gaps."""

from skyfill.sky.associations import Associations, associate
from skyfill.sky.completeness import Completeness, fit_completeness
from skyfill.sky.conditions import Conditions
from skyfill.sky.counterpart_table import (
    BASE_ROW,
    PROBABILITY,
    CounterpartReport,
    Doubt,
    association_table,
    counterpart_table,
)
from skyfill.sky.counterparts import (
    CounterpartRules,
    Found,
    Learned,
    Photometry,
    find_counterparts,
    weigh_counterparts,
)
from skyfill.sky.density import density_of_area, local_density
from skyfill.sky.depths import faint_edge
from skyfill.sky.ellipses import Sources, circles, ellipses
from skyfill.sky.elsewhere import group_elsewhere
from skyfill.sky.error_fit import fit_error
from skyfill.sky.footprint import Footprint, read_footprint
from skyfill.sky.join import NothingMatchedWarning, join, join_surveys
from skyfill.sky.matching import KEEP, Keep, Matches, match_positions, nearest_arcsec
from skyfill.sky.one_to_one import choose_one_to_one
from skyfill.sky.position_errors import PositionError
from skyfill.sky.positions import (
    PositionColumns,
    Positions,
    find_position_columns,
    read_positions,
)
from skyfill.sky.posterior import (
    Counterparts,
    pattern_shares,
    probabilities,
    summarize,
)
from skyfill.sky.shifts import Chance, Offset, count_chance_matches, fit_offset, shifted
from skyfill.sky.surroundings import CounterpartWarning, Surroundings, read_surroundings
from skyfill.sky.survey import Flag, MatchReport, MatchRules, Survey, match_survey
from skyfill.sky.threshold import Threshold, find_threshold

__all__ = [
    "BASE_ROW",
    "KEEP",
    "PROBABILITY",
    "Associations",
    "Chance",
    "Completeness",
    "Conditions",
    "CounterpartReport",
    "CounterpartRules",
    "CounterpartWarning",
    "Counterparts",
    "Doubt",
    "Surroundings",
    "Flag",
    "Footprint",
    "Found",
    "Keep",
    "Learned",
    "MatchReport",
    "MatchRules",
    "Matches",
    "NothingMatchedWarning",
    "Offset",
    "Photometry",
    "PositionColumns",
    "PositionError",
    "Positions",
    "Sources",
    "Survey",
    "Threshold",
    "associate",
    "association_table",
    "choose_one_to_one",
    "circles",
    "count_chance_matches",
    "counterpart_table",
    "density_of_area",
    "ellipses",
    "faint_edge",
    "find_counterparts",
    "find_position_columns",
    "find_threshold",
    "fit_completeness",
    "fit_error",
    "fit_offset",
    "group_elsewhere",
    "join",
    "join_surveys",
    "local_density",
    "match_positions",
    "match_survey",
    "nearest_arcsec",
    "pattern_shares",
    "probabilities",
    "read_surroundings",
    "read_footprint",
    "read_positions",
    "shifted",
    "summarize",
    "weigh_counterparts",
]
