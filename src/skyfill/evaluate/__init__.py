"""Hide and score, compare methods: the paper's tables for any data."""

from skyfill.evaluate.class_comparison import ClassComparison, OutOfFold
from skyfill.evaluate.class_methods import FilledClassifier, classifiers
from skyfill.evaluate.class_scores import calibration_error, class_scores, confusion, reliability
from skyfill.evaluate.class_tables import (
    class_table,
    confusion_table,
    difference_table,
    summary_table,
)
from skyfill.evaluate.classification import cross_validate
from skyfill.evaluate.comparison import Comparison, Score
from skyfill.evaluate.hide import (
    Hidden,
    hide_blocks,
    hide_cells,
    hide_faint,
    hide_like,
    hide_mar,
)
from skyfill.evaluate.imputation import compare_imputers
from skyfill.evaluate.predictions import Prediction, predict_cells
from skyfill.evaluate.scores import (
    covered,
    crps_draws,
    crps_gaussian,
    crps_point,
    crps_quantiles,
    log_score_gaussian,
    nrmse,
    pit_draws,
    pit_gaussian,
)
from skyfill.evaluate.surveys import survey_columns, without_surveys

__all__ = [
    "ClassComparison",
    "Comparison",
    "FilledClassifier",
    "Hidden",
    "OutOfFold",
    "Prediction",
    "Score",
    "calibration_error",
    "class_scores",
    "class_table",
    "classifiers",
    "compare_imputers",
    "confusion",
    "confusion_table",
    "covered",
    "cross_validate",
    "crps_draws",
    "crps_gaussian",
    "crps_point",
    "crps_quantiles",
    "difference_table",
    "hide_blocks",
    "hide_cells",
    "hide_faint",
    "hide_like",
    "hide_mar",
    "log_score_gaussian",
    "nrmse",
    "pit_draws",
    "pit_gaussian",
    "predict_cells",
    "reliability",
    "summary_table",
    "survey_columns",
    "without_surveys",
]
