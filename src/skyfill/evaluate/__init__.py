"""Hide and score, compare methods: the paper's tables for any data."""

from skyfill.classify.class_scores import calibration_error, class_scores, confusion, reliability
from skyfill.evaluate.class_comparison import ClassComparison, OutOfFold
from skyfill.evaluate.classification import cross_validate, without_surveys
from skyfill.evaluate.field_scores import FieldScores, score_in_field
from skyfill.evaluate.fill_comparison import Comparison, Score
from skyfill.evaluate.fill_scores import (
    CellScores,
    covered,
    crps_draws,
    crps_gaussian,
    crps_point,
    crps_quantiles,
    log_score_gaussian,
    nrmse,
    pit_draws,
    pit_gaussian,
    score_cells,
)
from skyfill.evaluate.hide import (
    Hidden,
    hide_blocks,
    hide_cells,
    hide_faint,
    hide_like,
    hide_mar,
)
from skyfill.evaluate.imputation import compare_imputers
from skyfill.evaluate.methods import FilledClassifier, classifiers, imputers
from skyfill.evaluate.surveys import find_surveys, guess_groups, name_groups, survey_columns

__all__ = [
    "CellScores",
    "ClassComparison",
    "Comparison",
    "FieldScores",
    "FilledClassifier",
    "Hidden",
    "OutOfFold",
    "Score",
    "calibration_error",
    "class_scores",
    "classifiers",
    "compare_imputers",
    "confusion",
    "covered",
    "cross_validate",
    "crps_draws",
    "crps_gaussian",
    "crps_point",
    "crps_quantiles",
    "find_surveys",
    "guess_groups",
    "hide_blocks",
    "hide_cells",
    "hide_faint",
    "hide_like",
    "hide_mar",
    "imputers",
    "log_score_gaussian",
    "name_groups",
    "nrmse",
    "pit_draws",
    "pit_gaussian",
    "reliability",
    "score_cells",
    "score_in_field",
    "survey_columns",
    "without_surveys",
]
