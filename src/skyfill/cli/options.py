"""Options that several commands share: one name, one help text, one place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from skyfill.cli.config import defaults_from
from skyfill.cli.guard import guarded
from skyfill.cli.notes import QUIET, VERBOSE, detail, set_level

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Option = Callable[[Decorated], Decorated]

FILE = click.Path(path_type=Path)


def output(
    help_text: str = "Where to write: .parquet, .fits, .vot, .ecsv or .csv.",
    *,
    required: bool = True,
    kind: Any = FILE,
) -> Option[Any]:
    """Where to write: -o, --output."""
    return click.option("-o", "--output", type=kind, required=required, help=help_text)


def schema() -> Option[Any]:
    """Declare columns: --schema."""
    return click.option("--schema", type=FILE, help="TOML with roles, units and sentinels.")


def seed(help_text: str = "Seed of all random numbers.") -> Option[Any]:
    """Make it again: --seed."""
    kind = click.IntRange(min=0)
    return click.option("--seed", type=kind, default=0, show_default=True, help=help_text)


def features(*names: str) -> Option[Any]:
    """Choose columns: --features, and other names of it."""
    text = "Columns to use; else those of role feature."
    return click.option("--features", *names, metavar="COLUMN,...", help=text)


def as_json(what: str) -> Option[Any]:
    """Write for a program: --json."""
    return click.option("--json", "as_json", is_flag=True, help=f"Write {what} as JSON to stdout.")


def examples(*commands: str) -> str:
    """Give the end of a help text: commands to copy, each on a line of its own."""
    title = "Example" if len(commands) == 1 else "Examples"
    return "\n".join(["\b", f"{title}:", *(f"  {command}" for command in commands)])


def with_common(command: click.Command) -> click.Command:
    """Give a command, and those within, the options that all commands have."""
    if isinstance(command, click.Group):
        for inner in command.commands.values():
            with_common(inner)
    elif all(parameter.name != "config" for parameter in command.params):
        command.params += _common()
        command.callback = guarded(command.callback) if command.callback else None
    return command


def _common() -> list[click.Parameter]:
    return [
        click.Option(
            ["--config"],
            type=click.Path(path_type=Path, dir_okay=False),
            is_eager=True,
            expose_value=False,
            callback=_configure,
            help="TOML with options: a [section] for each command.",
        ),
        _flag("-v", "--verbose", _speak_up, "Say more: options in force, time, origin of errors."),
        _flag("-q", "--quiet", _be_quiet, "Say only warnings and errors."),
    ]


def _flag(short: str, long: str, callback: Callable[..., None], help_text: str) -> click.Option:
    return click.Option(
        [short, long], is_flag=True, expose_value=False, callback=callback, help=help_text
    )


def _configure(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is not None:
        context.default_map = {**(context.default_map or {}), **defaults_from(path, context)}


def _be_quiet(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        set_level(context, QUIET)


def _speak_up(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        set_level(context, VERBOSE)
        context.call_on_close(lambda: _tell_options(context))


def _tell_options(context: click.Context) -> None:
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        where = source.name.lower().replace("_", " ") if source else "unknown"
        detail(f"  {name} = {value} ({where.replace('default map', 'config file')})")
