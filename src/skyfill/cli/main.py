"""The root command: it lists commands without importing them, and turns errors into one line."""

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import click

from skyfill import __version__
from skyfill.cli.config import defaults_from
from skyfill.cli.options import examples
from skyfill.cli.paths import check_paths, paths_of, remember_config
from skyfill.cli.terminal import (
    QUIET,
    VERBOSE,
    detail,
    echo,
    never_silent,
    plain_warnings,
    set_level,
    visible,
    within_line,
)
from skyfill.errors import CatalogError, DataError, SkyfillError
from skyfill.limits import VARIABLE, read_limits

# name -> one line for `skyfill --help`; a command's module, skyfill.cli.<name>, is imported when it
# is used, so that `skyfill --help` starts at once.
COMMANDS = {
    "demo": "Run every step on a simulated field, in three minutes: start here.",
    "inspect": "List columns, roles, gaps and suspicious values.",
    "match": "Join catalogues on the sky into one table with gaps.",
    "features": "Compute variability features of light curves.",
    "train": "Learn a model from a catalogue with gaps.",
    "impute": "Fill the gaps of a catalogue with a model.",
    "classify": "Classify the objects of a catalogue, including those with gaps.",
    "candidates": "Rank probable members of a class and compare with published lists.",
    "next": "Find the missing measurement that would reveal most about the class.",
    "evaluate": "Compare methods for filling hidden cells, or for classifying.",
    "report": "Write an offline page about a model and its results.",
    "publish": "Write a catalogue with full metadata and a ReadMe.",
    "show": "Describe a model.",
    "send": "Send a table to TOPCAT or Aladin.",
    "data": "List and fetch public tables; simulate a field.",
    "completion": "Print a script for completing commands in a shell.",
}
INTERRUPTED, TERMINATED = 130, 143
# Parameters that hold the table a command is about.
_TABLES = ("catalog", "results", "objects", "light_curves", "file")


class _TerminatedError(KeyboardInterrupt):
    """SIGTERM, after which everything is tidied up as after Ctrl-C."""


@contextmanager
def _terminable() -> Iterator[None]:
    def end(number: int, frame: object) -> NoReturn:
        raise _TerminatedError

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _UserError(click.ClickException):
    exit_code = 2


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order in which data flows."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command and give it the options that all have."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"skyfill.cli.{cmd_name}").command
        return with_common(command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the command line; Ctrl-C ends as it does within a command."""
        try:
            return super().make_context(*args, **kwargs)
        except KeyboardInterrupt:
            echo("\ninterrupted", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; an error that the user can fix becomes one line and exit code 2."""
        start = time.perf_counter()
        try:
            occupy_streams()
            with plain_warnings(), _terminable():
                result = super().invoke(ctx)
                if sys.stdout is not None:
                    sys.stdout.flush()
                return result
        except SkyfillError as error:
            _complain(str(error))
        except BrokenPipeError:
            raise  # whoever read the output wants no more of it
        except OSError as error:
            _drop_output()
            _complain(f"{error.filename or 'standard output'}: {error.strerror or error}")
        except UnicodeError as error:
            _complain(f"text that is not valid Unicode: {error}")
        except RecursionError:
            _complain("an input is nested too deeply to be read")
        except MemoryError:
            _complain("not enough memory; use fewer rows or columns, or a machine with more")
        except _TerminatedError:
            echo("\nterminated", err=True)
            ctx.exit(TERMINATED)
        except KeyboardInterrupt:
            echo("\ninterrupted", err=True)
            ctx.exit(INTERRUPTED)
        finally:
            detail(f"{time.perf_counter() - start:.1f} s")


def _complain(message: str) -> NoReturn:
    """Exit with one line; -v also shows the traceback."""
    detail(traceback.format_exc())
    raise _UserError(visible(within_line(message))) from None


def _drop_output() -> None:
    """Send what is left of the output nowhere: at the end it would fail once more."""
    if sys.stdout is not None:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def occupy_streams() -> None:
    """Open streams that the shell has closed: an output file must not take their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def with_common(command: click.Command) -> click.Command:
    """Add the options that all commands have to a command and its subcommands."""
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
            help="TOML file with options, in a [section] for each command.",
        ),
        click.Option(
            ["--limit"],
            multiple=True,
            metavar="NAME=NUMBER",
            expose_value=False,
            is_eager=True,
            callback=_raise_limits,
            help="Raise a limit that protects against harmful files, as its error message says.",
        ),
        _flag(
            "-v",
            "--verbose",
            _be_verbose,
            "Print more: options in use, run time, origin of errors.",
        ),
        _flag("-q", "--quiet", _be_quiet, "Print only warnings and errors."),
    ]


def _flag(short: str, long: str, callback: Callable[..., None], help_text: str) -> click.Option:
    return click.Option(
        [short, long], is_flag=True, expose_value=False, callback=callback, help=help_text
    )


def _configure(context: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is not None:
        remember_config(context, path)
        context.default_map = {**(context.default_map or {}), **defaults_from(path, context)}


def _raise_limits(context: click.Context, _: click.Parameter, words: tuple[str, ...]) -> None:
    """Set limits for this command and the processes that it starts."""
    if words:
        before = os.environ.get(VARIABLE, "")
        text = ",".join(filter(None, (before, *words)))
        read_limits(text)
        os.environ[VARIABLE] = text
        context.call_on_close(lambda: os.environ.update({VARIABLE: before}))


def _be_quiet(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        set_level(context, QUIET)


def _be_verbose(context: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        set_level(context, VERBOSE)
        context.call_on_close(lambda: _list_options(context))


def _list_options(context: click.Context) -> None:
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        where = source.name.lower().replace("_", " ") if source else "unknown"
        detail(f"  {name} = {value} ({where.replace('default map', 'config file')})")


def guarded(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Make a command check its outputs before it starts, and name its table in errors."""

    @wraps(callback)
    def run(*args: Any, **kwargs: Any) -> Any:
        context = click.get_current_context()
        _check_texts(context)
        check_paths(context)
        about = _about(context.params)
        try:
            with never_silent(f"reading {about}") if about else nullcontext():
                return callback(*args, **kwargs)
        except (CatalogError, DataError) as error:
            raise CatalogError(with_file(str(error), context.params)) from error

    return run


def _check_texts(context: click.Context) -> None:
    """Refuse words that are not UTF-8, which no output could hold; names of files may be."""
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        for word in value if isinstance(value, tuple) else (value,):
            if isinstance(word, str):
                _check_text(parameter.opts[-1], word)


def _check_text(option: str, word: str) -> None:
    try:
        word.encode()
    except UnicodeEncodeError:
        raise CatalogError(f"{option} {word}: is not UTF-8 text") from None


def _about(params: Mapping[str, Any]) -> Any:
    return next((params[name] for name in _TABLES if params.get(name)), None)


def with_file(message: str, params: Mapping[str, Any]) -> str:
    """Put the name of the table in front of a message that names no file."""
    paths = [str(path) for value in params.values() for path in paths_of(value)]
    about = _about(params)
    if about is None or message.startswith("--") or any(path in message for path in paths):
        return message
    return f"{about}: {message}"


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples("skyfill demo", "skyfill train --help"),
)
@click.version_option(__version__, "-V", "--version", prog_name="skyfill")
def main() -> None:
    """Join catalogues with gaps, fill the gaps and classify every object.

    The examples in the help of each command work in the folder written by `skyfill demo`.
    """
