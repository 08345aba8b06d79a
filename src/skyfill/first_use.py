"""Parts of a package that load on first use, so that importing the package stays fast."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def load_public(package: str, homes: Mapping[str, str], name: str) -> Any:
    """Return a public name of a package from the module that is its home.

    Examples
    --------
    >>> load_public("skyfill", {"DataError": "skyfill.errors"}, "DataError").__name__
    'DataError'
    """
    if name not in homes:
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    return getattr(import_module(homes[name]), name)
