"""Imputers: scikit-learn transformers that fill the gaps of new rows."""

from skyfill.impute._inputs import Numbers, as_numbers
from skyfill.impute.baselines import GaussianMixtureImputer, MeanImputer, NeighborsImputer
from skyfill.impute.missforest import ForestImputer
from skyfill.impute.network_imputer import NetworkImputer
from skyfill.impute.one_network_imputer import OneNetworkImputer

__all__ = [
    "ForestImputer",
    "GaussianMixtureImputer",
    "MeanImputer",
    "NeighborsImputer",
    "NetworkImputer",
    "Numbers",
    "OneNetworkImputer",
    "as_numbers",
]
