"""Where a catalogue lies and where it is worked on: options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

HATS = "hats://"


class CatalogPath(click.Path):
    """A path, or the words ``hats://FOLDER`` as they were typed: a path would lose a slash."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Leave HATS catalogues alone."""
        return value if str(value).startswith(HATS) else super().convert(value, param, ctx)


CATALOG = CatalogPath(path_type=Path)

scheduler = click.option(
    "--scheduler",
    metavar="ADDRESS|local",
    help="Work on the Dask cluster of this scheduler; local starts processes on this machine.",
)
