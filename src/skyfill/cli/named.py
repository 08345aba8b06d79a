"""Options of `skyfill match` that hold for all surveys, or bear the name of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from skyfill.errors import CatalogError

Value = TypeVar("Value")
BASE = "base"
DEFAULT_RADIUS = 1.5


def survey_names(paths: Sequence[Path], given: Sequence[str]) -> list[str]:
    """Give the names of surveys: those that the user gives, else those of their files.

    Examples
    --------
    >>> survey_names([Path("field/sage.fits"), Path("two_mass.vot")], [])
    ['sage', 'two_mass']
    """
    if given and len(given) != len(paths):
        raise CatalogError(f"{len(given)} --name for {len(paths)} surveys; give one for each")
    names = list(given) or [path.name.split(".")[0] for path in paths]
    for name in (BASE, *names):
        if [BASE, *names].count(name) > 1:
            raise CatalogError(
                f"two catalogues are called {name!r}; give each survey a --name of its own"
            )
    return names


def common_value(texts: Sequence[str], read: Callable[[str], Value]) -> Value | None:
    """Give the last value that is for all catalogues, if there is one."""
    values = [read(text) for text in texts if "=" not in text]
    return values[-1] if values else None


def named_values(
    texts: Sequence[str], names: Sequence[str], option: str, read: Callable[[str], Value]
) -> dict[str, Value]:
    """Read the NAME=VALUE forms of an option."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if equals and name not in names:
            raise CatalogError(f"{option} {text}: no {name!r}; the names are {', '.join(names)}")
        if equals:
            values[name] = read(value)
        elif read not in (arcsec, year):
            raise CatalogError(f"{option} {text}: write {option} NAME={text}")
    return values


def radii_of(texts: Sequence[str], names: Sequence[str]) -> list[float]:
    """Read --radius for every survey, in arcsec.

    Examples
    --------
    >>> radii_of(["2", "sage=3"], ["sage", "two_mass"])
    [3.0, 2.0]
    """
    common = common_value(texts, arcsec)
    own = named_values(texts, names, "--radius", arcsec)
    return [own.get(name, DEFAULT_RADIUS if common is None else common) for name in names]


def arcsec(text: str) -> float:
    """Read a separation."""
    return _number(text, "--radius", "arcsec")


def year(text: str) -> float:
    """Read an epoch."""
    return _number(text, "--epoch", "a year such as 2016.0")


def _number(text: str, option: str, kind: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise CatalogError(f"{option} {text}: {text!r} is not a number ({kind})") from None
