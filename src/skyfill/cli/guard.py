"""Around every command: outputs are looked at before the work, errors name the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import click

from skyfill.errors import CatalogError, DataError

# Parameters that name files to write.
_OUTPUTS = ("output", "missing", "figure")
# Parameters that hold the table a command is about.
_TABLES = ("catalog", "results", "objects", "light_curves", "file")


def guarded(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command refuse bad outputs before it starts, and name its table in errors."""

    @wraps(callback)
    def run(*args: Any, **kwargs: Any) -> Any:
        context = click.get_current_context()
        if not _writes_folder(context):
            check_outputs(context.params)
        try:
            return callback(*args, **kwargs)
        except (CatalogError, DataError) as error:
            raise CatalogError(_with_file(str(error), context.params)) from error

    return run


def _with_file(message: str, params: dict[str, Any]) -> str:
    """Put the name of the table in front of a message that names no file."""
    paths = [str(path) for value in params.values() for path in _paths(value)]
    about = next((params[name] for name in _TABLES if params.get(name)), None)
    if about is None or message.startswith("--") or any(path in message for path in paths):
        return message
    return f"{about}: {message}"


def _writes_folder(context: click.Context) -> bool:
    """Tell whether the output is a folder: of the demo, or of work that is done in parts."""
    if context.info_name == "train":
        return False
    catalog = context.params.get("catalog")
    in_parts = context.params.get("scheduler") or (catalog and Path(catalog).is_dir())
    return bool(context.info_name == "demo" or in_parts)


def check_outputs(params: dict[str, Any]) -> None:
    """Refuse to write over an input, two outputs to one file, or where no file can be.

    Examples
    --------
    >>> check_outputs({"catalog": Path("a.fits"), "output": Path("b.fits")})
    >>> check_outputs({"output": Path("."), "catalog": Path("a.fits")})
    Traceback (most recent call last):
    skyfill.errors.CatalogError: .: is a directory; give a file name
    """
    outputs = {name: path for name in _OUTPUTS if isinstance(path := params.get(name), Path)}
    inputs = [
        path for name, value in params.items() if name not in _OUTPUTS for path in _paths(value)
    ]
    for name, path in outputs.items():
        if path.is_dir():
            raise CatalogError(f"{path}: is a directory; give a file name")
        if path.exists() and not path.is_file():
            raise CatalogError(f"{path}: is not a regular file; give a file name")
        if not path.parent.is_dir():
            raise CatalogError(f"{path}: there is no directory {path.parent}; create it first")
        if any(_is_same(path, other) for other in inputs):
            raise CatalogError(f"{path}: is an input as well; write to another file")
        if any(_is_same(path, other) for key, other in outputs.items() if key != name):
            raise CatalogError(f"{path}: is to be written twice; give each output its own file")


def _paths(value: Any) -> Iterator[Path]:
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, Path):
            yield each


def _is_same(one: Path, other: Path) -> bool:
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()
