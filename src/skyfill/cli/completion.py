"""`skyfill completion`: a script for completing commands and options in a shell."""

import click

from skyfill.cli.options import examples
from skyfill.cli.terminal import echo


@click.command(
    "completion",
    epilog=examples(
        "skyfill completion bash >> ~/.bashrc",
        "skyfill completion zsh >> ~/.zshrc",
        "skyfill completion fish > ~/.config/fish/completions/skyfill.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, /, shell: str) -> None:
    """Print a script that completes skyfill's commands and options in SHELL."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    root = context.find_root().command
    # Not `source()`, which first asks the shell on this machine for its version.
    script = kind(root, {}, "skyfill", "_SKYFILL_COMPLETE")
    echo(script.source_template % script.source_vars())
