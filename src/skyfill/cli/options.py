"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

if TYPE_CHECKING:
    from skyfill.catalog import Schema

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
Option = Callable[[Decorated], Decorated]

HATS = "hats://"
# As in `skyfill.model.results`, which takes long to import.
RESULTS_PREFIX = "sf_"
TEXT_HELP = "Columns of plain text files that stay text although they look like numbers."
# The name of a config file is left out: its options are written as if they had been typed.
_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)


class CatalogPath(click.Path):
    """A path, or ``hats://FOLDER`` exactly as typed, since a path would lose a slash."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Leave HATS catalogues as they were typed."""
        return value if str(value).startswith(HATS) else super().convert(value, param, ctx)


FILE = click.Path(path_type=Path)
CATALOG = CatalogPath(path_type=Path)

scheduler = click.option(
    "--scheduler",
    metavar="ADDRESS|local",
    help="Use the Dask cluster of this scheduler; local starts processes on this machine.",
)


def _use_device(context: click.Context, _: click.Parameter, name: str) -> None:
    from skyfill.device import chosen_device, use_device

    context.call_on_close(partial(use_device, chosen_device()))
    use_device(name)


device = click.option(
    "--device",
    type=click.Choice(["cpu", "gpu", "auto"]),
    default="auto",
    show_default=True,
    expose_value=False,
    callback=_use_device,
    help="Where to compute; auto: on the GPU, if there is one and the work is large.",
)
resume = click.option(
    "--resume",
    is_flag=True,
    help="Continue a run that was killed or interrupted; the result is the same.",
)


def stacked(*options: Option[Any]) -> Option[Any]:
    """Return one decorator for several options, in this order."""
    return lambda command: reduce(lambda inner, option: option(inner), reversed(options), command)


def count(flag: str, default: int, help_text: str, *, least: int) -> Option[Any]:
    """Ask for a whole number."""
    kind = click.IntRange(min=least)
    return click.option(flag, type=kind, default=default, show_default=True, help=help_text)


def choice(flag: str, words: str, help_text: str) -> Option[Any]:
    """Ask for one of the words, which have | between them; the first is the default."""
    kind = click.Choice(words.split("|"))
    first = kind.choices[0]
    return click.option(flag, type=kind, default=first, show_default=True, help=help_text)


def output(
    help_text: str = "Output file: .parquet, .fits, .vot, .ecsv or .csv.",
    *,
    required: bool = True,
    kind: Any = FILE,
) -> Option[Any]:
    """Return the option for the output: -o, --output."""
    return click.option("-o", "--output", type=kind, required=required, help=help_text)


def _one_character(context: Any, parameter: Any, value: str | None) -> str | None:
    found = {"tab": "\t", "\\t": "\t", "blank": " "}.get(value or "", value)
    if found is not None and len(found) != 1:
        raise click.BadParameter(f"{value!r} is not one character", param_hint="--delimiter")
    return found


schema_file = click.option("--schema", type=FILE, help="TOML file with roles, units and sentinels.")
roles = click.option(
    "--role",
    "roles",
    multiple=True,
    metavar="COLUMN=ROLE[:OF]",
    help="Set a role, such as e_J=error:J; may be repeated.",
)
layout = stacked(
    click.option(
        "--delimiter",
        metavar="CHARACTER",
        callback=_one_character,
        help="What separates cells of a text file: a character, tab or blank.  [default: found]",
    ),
    click.option(
        "--names", metavar="NAME,...", help="Columns of a text file without a line of names."
    ),
    click.option(
        "--no-header",
        is_flag=True,
        help="A text file has no line of names: without --names, its columns are col1, col2, ...",
    ),
)


def schema() -> Option[Any]:
    """Declare columns: --schema."""
    lines = click.option(
        "--declare",
        multiple=True,
        metavar="LINE",
        help="A line as in that file, such as columns.J.sentinels=[-99]; may be repeated.",
    )
    return stacked(schema_file, lines, roles, layout)


def layout_of(options: Mapping[str, Any]) -> Schema:
    """Give what --delimiter, --names and --no-header say about a text file."""
    from skyfill.catalog import Schema
    from skyfill.catalog.schema import Layout

    names = words_of(options["names"])
    return Schema((), Layout(options["delimiter"], names, options["no_header"]))


def text() -> Option[Any]:
    """Columns that are words, not numbers: --text."""
    return click.option("--text", metavar="COLUMN,...", help=TEXT_HELP)


def prefix(
    default: str, help_text: str = "Put this before the names of the columns that are added."
) -> Option[Any]:
    """Keep results apart from columns of the same names: --prefix."""
    given: dict[str, Any] = {"default": default, "show_default": bool(default)}
    return click.option("--prefix", metavar="TEXT", help=help_text, **given)


def rules_of(options: Mapping[str, Any]) -> Schema:
    """Give what --schema, --declare, --role and --text declare about the columns."""
    from skyfill.catalog import Schema, read_schema

    declared = read_schema(options["schema"]) if options["schema"] else Schema()
    declared += Schema.from_toml("\n".join(options["declare"])) + layout_of(options)
    words = words_of(options.get("text"))
    return declared + Schema.from_options(roles=options["roles"], text=words)


def check_text(options: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse --text for a column that does not exist."""
    from skyfill.catalog import Schema

    Schema.from_options(text=words_of(options["text"])).check(names)


def words_of(text: str | None) -> tuple[str, ...]:
    """Split words with commas between them."""
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def seed(help_text: str = "Seed for all random numbers.") -> Option[Any]:
    """Make a run reproducible: --seed."""
    return count("--seed", 0, help_text, least=0)


def feature_option(*names: str) -> Option[Any]:
    """Choose columns: --features, and other names of it."""
    text = "Columns to use.  [default: all features that inspect lists]"
    return click.option("--features", *names, metavar="COLUMN,...", help=text)


def surveys(flag: str, help_text: str) -> Option[Any]:
    """Name surveys by the suffix of their features, or with a list of features."""
    text = f"{help_text} NAME alone means the features that end in _NAME."
    return click.option(flag, multiple=True, metavar="NAME[=COLUMN,...]", help=text)


def force(kinds: str) -> Option[Any]:
    """Take features that are refused otherwise: --force."""
    text = f"Features to take although they are identifiers, positions, dates or {kinds}."
    return click.option("--force", metavar="COLUMN,...", default="", help=text)


def group() -> Option[Any]:
    """Name the column that tells objects apart: --group."""
    text = "Rows with the same value there are of one object, and never on both sides of a fold."
    default = "  [default: an identifier, or rows with equal values]"
    return click.option("--group", metavar="COLUMN", help=text + default)


uncertainties = stacked(
    choice(
        "--limits",
        "auto|off",
        "Use limits and depths of what was not detected; auto: where the table states any.",
    ),
    choice(
        "--errors",
        "auto|on|off",
        "Use errors of values; auto: those whose role is declared, if they make 1 % of the "
        "variance of some feature; on: always, with those that their names tell, and a value may "
        "pass its limit by the error of the faintest values.",
    ),
)


def as_json(what: str) -> Option[Any]:
    """Return the option for output that a program can read: --json."""
    return click.option("--json", "as_json", is_flag=True, help=f"Write {what} as JSON to stdout.")


def examples(*commands: str) -> str:
    """Make the end of a help text: commands to copy, one per line."""
    title = "Example" if len(commands) == 1 else "Examples"
    return "\n".join(["\b", f"{title}:", *(f"  {command}" for command in commands)])


def as_typed(context: click.Context) -> str:
    """Return the command as the user would type it, with the options of a config file.

    Without ``--resume``, because a resumed run writes what the first one would have written.
    """
    words = ["skyfill", *context.command_path.split()[1:]]
    for parameter in context.command.params:
        name = parameter.name or ""
        if name != "resume" and name in context.params and is_given(context, name):
            value = context.params[name]
            for each in value if isinstance(value, tuple) else (value,):
                words += _words(parameter, each)
    return shlex.join(words)


# Options that only drive the machine, or say where something is written.
_DRIVING = ("output", "all_file", "figure", "as_json", "resume", "scheduler", "out_of_core")


def typed_options(context: click.Context) -> dict[str, Any]:
    """Return the options of a command by their names, without those that drive the machine.

    Files are identified by size and time as well: their names do not say what they contain.
    """
    from skyfill.scale.job_folder import identify

    found: dict[str, Any] = {}
    for parameter in context.command.params:
        name = parameter.name or ""
        if isinstance(parameter, click.Option) and name in context.params and name not in _DRIVING:
            value = context.params[name]
            is_file = isinstance(value, Path) and value.is_file()
            found[parameter.opts[-1]] = identify([value]) if is_file else str(value)
    return found


def is_given(context: click.Context, name: str) -> bool:
    """Whether the user has set an option, on the command line or in a config file."""
    return context.get_parameter_source(name) in _GIVEN


def _words(parameter: click.Parameter, value: object) -> list[str]:
    if not isinstance(parameter, click.Option):
        return [str(value)]
    if value is False:
        return list(parameter.secondary_opts[-1:])
    return [parameter.opts[-1], *([] if value is True else [str(value)])]


def shares_of(text: str, option: str = "--prior") -> dict[str, float]:
    """Read CLASS=SHARE,...; the shares need not sum to 1."""
    try:
        pairs = [word.rsplit("=", 1) for word in text.split(",")]
        return {name.strip(): float(share) for name, share in pairs}
    except ValueError:
        raise click.BadParameter(
            f"{text!r}: write CLASS=NUMBER,..., as in QSO=0.01,RRL=0.99", param_hint=option
        ) from None
