"""Fill the gaps of survey catalogues with probability distributions and classify every object."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from skyfill.compiled_cache import ensure_cache
from skyfill.first_use import load_public

__version__ = "0.1.0.dev0"

# Heavy parts load on first use, so that `import skyfill` stays fast.
_PUBLIC = {
    "CatalogClassifier": "skyfill.estimators",
    "DiscreteNetwork": "skyfill.network",
    "GaussianNetwork": "skyfill.network",
    "Model": "skyfill.api",
    "NetworkImputer": "skyfill.estimators",
    "OneNetworkImputer": "skyfill.estimators",
    "SkyfillWarning": "skyfill.errors",
    "fit_parameters": "skyfill.network",
    "learn_network": "skyfill.network",
    "load_model": "skyfill.api",
    "train": "skyfill.api",
    "use_device": "skyfill.device",
}

__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604 - every key is a string


def __getattr__(name: str) -> Any:
    return load_public(__name__, _PUBLIC, name)


def __dir__() -> list[str]:
    return __all__


if (_LINE := ensure_cache(Path(__file__).parent)) is not None:
    sys.stderr and print(_LINE, file=sys.stderr)

if "IPython" in sys.modules:  # notebooks draw networks, in a room that networks know nothing of
    import_module("skyfill.report.network_html")
