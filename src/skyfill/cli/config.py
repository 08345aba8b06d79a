"""Options from a TOML file, with a section for each command; unknown names are errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from skyfill.errors import SkyfillError

# Options without a meaning in a file.
_LEFT_OUT = ("config", "help", "version")


def defaults_from(path: Path, context: click.Context) -> dict[str, Any]:
    """Read the options of the command that is about to run.

    Keys before the first section apply to every command that has such an option. Names are those
    of the long options without the leading dashes. A list is written for words with commas or for
    an option that may be repeated, a table for NAME=VALUE pairs.
    """
    facts = _read(path)
    _check(path, facts, context.find_root())
    section = context.command_path.split()[1:]
    found: dict[str, Any] = {}
    known = _known(context.command)
    for key, value in facts.items():
        if not isinstance(value, dict) and _plain(key) in known:
            found |= _converted(context, known[_plain(key)], value, f"{path}: {key}")
    for key, value in _section(facts, section).items():
        where = f"{path}: [{'.'.join(section)}] {key}"
        found |= _converted(context, known[_plain(key)], value, where)
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SkyfillError(f"{path}: not TOML ({error})") from None


def _section(facts: Mapping[str, Any], names: list[str]) -> Mapping[str, Any]:
    for name in names:
        facts = facts.get(name, {})
    return facts


def _check(path: Path, facts: Mapping[str, Any], root: click.Context) -> None:
    """Report the first key or section that no command has."""
    commands = dict(_commands(root))
    shared = {key for command in commands.values() for key in _known(command)}
    for key, value in facts.items():
        if isinstance(value, dict):
            _check_section(path, (key,), value, commands)
        elif _plain(key) not in shared:
            raise _unknown(f"{path}: {key}", "no command has such an option", key, sorted(shared))


def _check_section(
    path: Path,
    names: tuple[str, ...],
    facts: Mapping[str, Any],
    commands: Mapping[tuple[str, ...], click.Command],
) -> None:
    where = f"{path}: [{'.'.join(names)}]"
    if names not in commands:
        within = [known for known in commands if known[: len(names)] == names]
        if not within:
            known = [".".join(known) for known in commands]
            raise _unknown(where, "there is no such command", ".".join(names), known)
        for key, value in facts.items():
            inner = value if isinstance(value, dict) else {}
            _check_section(path, (*names, key), inner, commands)
        return
    known_keys = _known(commands[names])
    for key in facts:
        if _plain(key) not in known_keys:
            words = f"skyfill {' '.join(names)} has no such option"
            raise _unknown(f"{where} {key}", words, key, sorted(known_keys))


def _unknown(where: str, what: str, key: str, known: list[str]) -> SkyfillError:
    from skyfill.catalog.table import nearest

    return SkyfillError(f"{where}: {what}; {nearest(key, known, 'names')}")


def _commands(root: click.Context) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield all commands with their nested names."""
    group = root.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(root):
        command = group.get_command(root, name)
        if isinstance(command, click.Group):
            yield from (((name, inner), found) for inner, found in command.commands.items())
        elif command is not None:
            yield (name,), command


def _plain(key: str) -> str:
    return key.replace("_", "-")


def _known(command: click.Command) -> dict[str, click.Parameter]:
    """Return the parameters by the names that a file may use."""
    known: dict[str, click.Parameter] = {}
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            keys = [option.lstrip("-") for option in parameter.opts if option.startswith("--")]
        else:
            keys = [str(parameter.name)]
        known |= {_plain(key): parameter for key in keys if key not in _LEFT_OUT}
    return known


def _converted(
    context: click.Context, parameter: click.Parameter, value: Any, where: str
) -> dict[str, Any]:
    """Convert a value as the command line would; an error names the file and the key."""
    many = parameter.multiple if isinstance(parameter, click.Option) else parameter.nargs == -1
    is_flag = isinstance(parameter, click.Option) and parameter.is_flag
    value = value if is_flag else _as_typed(value, many=many)
    try:
        parameter.type_cast_value(context, value)
    except click.BadParameter as error:
        raise SkyfillError(f"{where} = {value!r}: {error.message}") from None
    return {str(parameter.name): value}


def _as_typed(value: Any, *, many: bool) -> Any:
    """Convert numbers, lists and tables to text, as a user would type them."""
    if isinstance(value, dict):
        value = [f"{key}={each}" for key, each in value.items()]
    if isinstance(value, list):
        words = [str(each) for each in value]
        return words if many else ",".join(words)
    return [str(value)] if many else str(value)
