"""Imputers: scikit-learn transformers that fill the gaps of new rows."""

from typing import Any

from skyfill.first_use import load_public

# They load on first use: models, which need other parts of this package, need no scikit-learn.
_PUBLIC = {
    "ForestImputer": "skyfill.impute.missforest",
    "GaussianMixtureImputer": "skyfill.impute.baselines",
    "MeanImputer": "skyfill.impute.baselines",
    "NeighborsImputer": "skyfill.impute.baselines",
    "NetworkImputer": "skyfill.impute.network_imputer",
    "Numbers": "skyfill.impute._inputs",
    "OneNetworkImputer": "skyfill.impute.one_network_imputer",
    "as_numbers": "skyfill.impute._inputs",
}

__all__ = [*_PUBLIC]  # noqa: PLE0604 - every key is a string


def __getattr__(name: str) -> Any:
    return load_public(__name__, _PUBLIC, name)


def __dir__() -> list[str]:
    return __all__
