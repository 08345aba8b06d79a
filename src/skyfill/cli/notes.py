"""What a command says on stderr: notes, warnings, and details for those who want them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

_LEVEL = "skyfill.level"
QUIET, NORMAL, VERBOSE = -1, 0, 1


def level() -> int:
    """Tell how much the user wants to read: QUIET, NORMAL or VERBOSE."""
    context = click.get_current_context(silent=True)
    found: int = NORMAL if context is None else context.meta.get(_LEVEL, NORMAL)
    return found


def set_level(context: click.Context, value: int) -> None:
    """Set how much is said, for this context and those within."""
    context.meta[_LEVEL] = value


def note(text: str) -> None:
    """Say what was done."""
    if level() > QUIET:
        click.echo(text, err=True)


def warn(text: str) -> None:
    """Say what may be wrong; also where notes are silenced."""
    click.echo(f"warning: {text}", err=True)


def detail(text: str) -> None:
    """Say what only a curious user wants to read."""
    if level() >= VERBOSE:
        click.echo(text, err=True)


def has_bars() -> bool:
    """Tell whether bars may move: stderr is a terminal, and the user wants notes."""
    return sys.stderr.isatty() and level() > QUIET


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings of the library as one line, without the place in the code."""

    def show(message: Warning | str, category: type[Warning], *_: Any) -> None:
        warn(str(message))

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        yield
