"""A command as the user would type it, for the provenance of what it writes."""

import shlex

import click
from click.core import ParameterSource

# A file with options is left out: what it says is written as if it had been typed.
_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)


def as_typed(context: click.Context) -> str:
    """Give the command as the user would type it, with what a config file adds."""
    words = ["skyfill", *context.command_path.split()[1:]]
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in context.params and is_given(context, name):
            value = context.params[name]
            for each in value if isinstance(value, tuple) else (value,):
                words += _words(parameter, each)
    return shlex.join(words)


def is_given(context: click.Context, name: str) -> bool:
    """Tell whether the user has set an option, in a config file or by typing it."""
    return context.get_parameter_source(name) in _GIVEN


def _words(parameter: click.Parameter, value: object) -> list[str]:
    if not isinstance(parameter, click.Option):
        return [str(value)]
    if value is False:
        return list(parameter.secondary_opts[-1:])
    return [parameter.opts[-1], *([] if value is True else [str(value)])]
