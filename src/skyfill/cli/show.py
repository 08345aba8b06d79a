"""`skyfill show`: the contents of a model file, as `skyfill inspect` prints them."""

from pathlib import Path

import click

from skyfill.cli import options as shared
from skyfill.cli.model_lines import show_model


@click.command("show", epilog=shared.examples("skyfill show lmc.skyfill"))
@click.argument("model", type=click.Path(path_type=Path))
@shared.as_json("everything, including all arcs,")
def command(model: Path, as_json: bool) -> None:
    """Print the features, gaps, arcs and classes of MODEL, and how it was made."""
    show_model(model, as_json=as_json)
