"""The root command: every command has help, an example that parses, and the common options."""

import re
import shlex
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from skyfill.cli import main
from skyfill.cli.main import COMMANDS

ROOT = click.Context(main, info_name="skyfill")


def every_command():
    for name in COMMANDS:
        command = main.get_command(ROOT, name)
        yield (name,), command
        if isinstance(command, click.Group):
            yield from (((name, inner), found) for inner, found in command.commands.items())


def examples(text):
    """Lines of a help text that call skyfill, without where the shell sends the output."""
    lines = re.findall(r"^\s+(skyfill .*)$", text, re.MULTILINE)
    return [shlex.split(re.split(r" >>? ", line)[0])[1:] for line in lines]


ALL = list(every_command())
LEAVES = [(names, command) for names, command in ALL if not isinstance(command, click.Group)]


@pytest.mark.parametrize(
    ("names", "command"), ALL, ids=lambda x: " ".join(x) if type(x) is tuple else ""
)
def test_help_has_an_example_and_every_example_parses(names, command):
    said = CliRunner().invoke(main, [*names, "--help"])
    assert said.exit_code == 0, said.output
    found = examples(said.stdout)
    assert found, f"no example in skyfill {' '.join(names)} --help"
    for words in found:
        assert tuple(words[: len(names)]) == names
        parse(main, words)


def parse(group, words):
    """Parse as a call would, without doing anything."""
    context = click.Context(group, info_name="skyfill")
    while isinstance(group, click.Group) and words:
        name, *words = words
        group = group.get_command(context, name)
        assert group is not None, name
        if isinstance(group, click.Group):
            context = click.Context(group, parent=context, info_name=name)
    group.make_context(name, list(words), parent=context)


@pytest.mark.parametrize(
    ("names", "command"), LEAVES, ids=lambda x: " ".join(x) if type(x) is tuple else ""
)
def test_every_command_can_be_configured_and_silenced(names, command):
    options = {option for parameter in command.params for option in parameter.opts}
    assert {"--config", "-v", "--verbose", "-q", "--quiet"} <= options
    assert len([p.name for p in command.params]) == len({p.name for p in command.params})


@pytest.mark.parametrize(
    ("names", "command"), LEAVES, ids=lambda x: " ".join(x) if type(x) is tuple else ""
)
def test_an_option_has_the_same_kind_and_meaning_everywhere(names, command):
    for parameter in command.params:
        if "--output" in parameter.opts:
            assert "-o" in parameter.opts
        if "--json" in parameter.opts:
            assert parameter.is_flag
            assert "JSON" in parameter.help
        if "--seed" in parameter.opts:
            assert (parameter.default, parameter.type.min) == (0, 0)
        if isinstance(parameter, click.Option) and not parameter.is_flag:
            assert parameter.help or parameter.metavar or parameter.type.name != "text"


def test_an_unknown_command_or_option_is_a_users_mistake():
    for words in (["dance"], ["demo", "--dance"], ["demo", "extra"], ["train", "--seed", "-1"]):
        said = CliRunner().invoke(main, words)
        assert said.exit_code == 2
        assert "Traceback" not in said.output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell):
    said = CliRunner().invoke(main, ["completion", shell])
    assert said.exit_code == 0
    assert "_SKYFILL_COMPLETE" in said.stdout


def test_the_completion_knows_commands_and_options():
    environment = {
        "_SKYFILL_COMPLETE": "bash_complete",
        "COMP_WORDS": "skyfill ca",
        "COMP_CWORD": "1",
    }
    said = CliRunner().invoke(main, [], env=environment, prog_name="skyfill")
    assert "plain,candidates" in said.output


def test_bash_accepts_its_script():
    script = CliRunner().invoke(main, ["completion", "bash"]).stdout
    checked = subprocess.run(
        ["bash", "-n"], input=script, text=True, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_quiet_silences_notes_and_verbose_tells_options(tmp_path):
    words = ["data", "simulate", str(tmp_path / "field"), "-n", "5"]
    usual, quiet, verbose = (
        CliRunner().invoke(main, words + more) for more in ([], ["-q"], ["-v"])
    )
    assert usual.stderr == f"5 objects -> {tmp_path / 'field'}\n"
    assert quiet.stderr == ""
    assert "objects = 5 (commandline)" in verbose.stderr
    assert "seed = 0 (default)" in verbose.stderr
    assert re.search(r"^\d+\.\d s$", verbose.stderr, re.MULTILINE)
    assert usual.stdout == quiet.stdout == verbose.stdout


def test_verbose_shows_where_an_error_comes_from(tmp_path):
    said = CliRunner().invoke(main, ["show", str(tmp_path / "none.skyfill"), "-v"])
    assert said.exit_code == 2
    assert "Traceback" in said.stderr
    assert said.stderr.splitlines()[-1].startswith("Error: ")


def test_no_color_codes_reach_a_log_or_a_terminal_that_wants_none(tmp_path):
    code = "from skyfill.cli import main; main()"
    words = [sys.executable, "-c", code, "data", "simulate", str(tmp_path / "field"), "-n", "5"]
    said = subprocess.run(words, capture_output=True, check=True, env={"NO_COLOR": "1"})
    assert b"\x1b" not in said.stdout + said.stderr


def test_an_interrupt_before_the_command_begins_ends_as_one_within(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(main), "parse_args", interrupt)
    assert CliRunner().invoke(main, ["show", "m.skyfill"]).exit_code == 130
