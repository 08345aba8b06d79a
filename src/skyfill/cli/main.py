"""The root command: finds the commands without importing them, and turns errors into one line."""

from importlib import import_module
from typing import Any, NoReturn

import click

from skyfill import __version__
from skyfill.errors import SkyfillError

# name -> (module, one line for `skyfill --help`); a command's module is imported when it is used,
# so that `skyfill --help` starts at once.
COMMANDS = {
    "demo": ("skyfill.cli.demo", "Learn a network from a simulated table with gaps and fill it."),
    "inspect": (
        "skyfill.cli.inspect",
        "List columns, roles, gaps and suspicious values.",
    ),
    "match": ("skyfill.cli.match", "Join catalogues on the sky into one table with gaps."),
    "features": ("skyfill.cli.features", "Turn light curves into variability features."),
    "train": ("skyfill.cli.train", "Learn a model from a catalogue with gaps."),
    "impute": ("skyfill.cli.impute", "Fill the gaps of a catalogue with a model."),
    "show": ("skyfill.cli.show", "Print what is in a model."),
    "evaluate": (
        "skyfill.cli.evaluate",
        "Hide cells of a catalogue; compare how methods fill them.",
    ),
    "data": ("skyfill.cli.data", "List and fetch public tables; simulate a field."),
}


class _UserError(click.ClickException):
    exit_code = 2


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order in which data flows."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what the user can mend becomes one line and exit code 2."""
        try:
            return super().invoke(ctx)
        except SkyfillError as error:
            raise _UserError(str(error)) from None
        except OSError as error:
            _complain(error)


def _complain(error: OSError) -> NoReturn:
    if error.filename is None:
        raise error
    raise _UserError(f"{error.filename}: {error.strerror}") from None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="skyfill")
def main() -> None:
    """Join catalogues with gaps, fill the gaps, classify every object."""
