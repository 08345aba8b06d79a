"""Hide and score, compare methods: the paper's tables for any data."""

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

__all__ = [
    "Comparison",
    "Hidden",
    "Prediction",
    "Score",
    "compare_imputers",
    "covered",
    "crps_draws",
    "crps_gaussian",
    "crps_point",
    "crps_quantiles",
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
]
