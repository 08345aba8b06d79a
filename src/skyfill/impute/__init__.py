"""Imputers: scikit-learn transformers that fill the gaps of new rows."""

from skyfill.impute._inputs import Numbers, as_numbers
from skyfill.impute.forest import ForestImputer
from skyfill.impute.independent_mixtures import GaussianMixtureImputer
from skyfill.impute.mean import MeanImputer
from skyfill.impute.neighbors import NeighborsImputer
from skyfill.impute.network import NetworkImputer

__all__ = [
    "ForestImputer",
    "GaussianMixtureImputer",
    "MeanImputer",
    "NeighborsImputer",
    "NetworkImputer",
    "Numbers",
    "as_numbers",
]
