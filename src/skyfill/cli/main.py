"""The root command: finds the commands without importing them, and turns errors into one line."""

import time
import traceback
from importlib import import_module
from typing import Any, NoReturn

import click

from skyfill import __version__
from skyfill.cli.notes import detail, plain_warnings
from skyfill.cli.options import examples, with_common
from skyfill.errors import SkyfillError

# name -> one line for `skyfill --help`; a command's module, skyfill.cli.<name>, is imported when it
# is used, so that `skyfill --help` starts at once.
COMMANDS = {
    "demo": "All steps on a simulated field, in three minutes: start here.",
    "inspect": "List columns, roles, gaps and suspicious values.",
    "match": "Join catalogues on the sky into one table with gaps.",
    "features": "Turn light curves into variability features.",
    "train": "Learn a model from a catalogue with gaps.",
    "impute": "Fill the gaps of a catalogue with a model.",
    "classify": "Classify the objects of a catalogue, also those with gaps.",
    "candidates": "Rank probable members of a class; compare with published lists.",
    "next": "Say which missing measurement would tell most.",
    "evaluate": "Compare how methods fill hidden cells, or classify.",
    "report": "Write a page about a model and its results that opens offline.",
    "publish": "Write a catalogue with full metadata and a ReadMe.",
    "show": "Print what is in a model.",
    "send": "Send a table to TOPCAT or Aladin.",
    "data": "List and fetch public tables; simulate a field.",
    "completion": "Print the script that lets a shell complete commands.",
}
INTERRUPTED = 130


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

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the user can mend becomes one line and exit code 2."""
        start = time.perf_counter()
        try:
            with plain_warnings():
                return super().invoke(ctx)
        except SkyfillError as error:
            _complain(str(error))
        except OSError as error:
            if error.filename is None:
                raise
            _complain(f"{error.filename}: {error.strerror}")
        except MemoryError:
            _complain("not enough memory; use fewer rows or columns, or a larger machine")
        except KeyboardInterrupt:
            click.echo("\ninterrupted", err=True)
            ctx.exit(INTERRUPTED)
        finally:
            detail(f"{time.perf_counter() - start:.1f} s")


def _complain(message: str) -> NoReturn:
    """End with one line; -v shows where the error comes from."""
    detail(traceback.format_exc())
    raise _UserError(message) from None


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=examples("skyfill demo", "skyfill train --help"),
)
@click.version_option(__version__, "-V", "--version", prog_name="skyfill")
def main() -> None:
    """Join catalogues with gaps, fill the gaps, classify every object.

    The examples of the commands work in the folder that `skyfill demo` writes.
    """
