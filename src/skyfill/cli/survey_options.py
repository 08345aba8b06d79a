"""Options of `skyfill match` that have a value for each survey, or one for all."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from skyfill.errors import CatalogError

Value = TypeVar("Value")

BASE = "base"
DEFAULT_RADIUS = 1.5


def number(text: str, option: str, kind: str) -> float:
    """Read a number that an option gives."""
    try:
        return float(text)
    except ValueError:
        raise CatalogError(f"{option} {text}: {text!r} is not a number ({kind})") from None


arcsec = partial(number, option="--radius", kind="arcsec")
year = partial(number, option="--epoch", kind="a year such as 2016.0")
area = partial(number, option="--area", kind="square degrees")


def survey_names(paths: Sequence[Path], given: Sequence[str]) -> list[str]:
    """Return the names of surveys: as given by the user, or else taken from their files.

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
                f"two catalogues are called {name!r}; give each survey its own --name"
            )
    return names


def common_value(texts: Sequence[str], read: Callable[[str], Value]) -> Value | None:
    """Return the last value that applies to all catalogues, if there is one."""
    values = [read(text) for text in texts if "=" not in text]
    return values[-1] if values else None


def named_values(
    texts: Sequence[str], names: Sequence[str], option: str, read: Callable[[str], Value]
) -> dict[str, Value]:
    """Read the NAME=VALUE forms of an option; a number alone, where it may be, is for all."""
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if equals and name not in names:
            raise CatalogError(f"{option} {text}: no {name!r}; the names are {', '.join(names)}")
        if equals:
            values[name] = read(value)
        elif read not in (arcsec, year, area):
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
