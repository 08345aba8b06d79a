"""Imputers: scikit-learn transformers that fill the gaps of new rows."""

from importlib import import_module
from typing import Any

# They load on first use: models, which need other parts of this package, need no scikit-learn.
_HOMES = {
    "ForestImputer": "missforest",
    "GaussianMixtureImputer": "baselines",
    "MeanImputer": "baselines",
    "NeighborsImputer": "baselines",
    "NetworkImputer": "network_imputer",
    "Numbers": "_inputs",
    "OneNetworkImputer": "one_network_imputer",
    "as_numbers": "_inputs",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - every key is a string


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'skyfill.impute' has no attribute {name!r}")
    return getattr(import_module(f"skyfill.impute.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
