"""`skyfill features`: light curves in, a table with one row of features per object out."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from skyfill.catalog import Provenance, Table
    from skyfill.lightcurve import FeatureSet, Opened, Request

_COLUMNS = ("id", "time", "value", "error", "band")


def _column_option(name: str) -> Any:
    return click.option(f"--{name}", metavar="COLUMN", help=f"Column of the {name}; else guessed.")


@click.command(
    "features",
    epilog="Example: skyfill features light_curves.parquet -o features.fits --band-order B,R",
)
@click.argument("light_curves", type=click.Path(path_type=Path), metavar="LIGHTCURVES")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
@click.option(
    "--set",
    "names",
    default="macho14",
    show_default=True,
    metavar="macho14|all|NAMES",
    help="The 14 of the paper, of the first band; all, of every band; or names with commas.",
)
@click.option(
    "--every-band/--first-band",
    default=None,
    help="Whether features of one band are computed of each band or of the first.",
)
@click.option("--band-order", metavar="B,R", help="Bands to use, the bluest first; else guessed.")
@_column_option("id")
@_column_option("time")
@_column_option("value")
@_column_option("error")
@_column_option("band")
@click.option("--flux", "is_flux", is_flag=True, default=None, help="The values are fluxes.")
@click.option(
    "--clip",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SIGMA",
    help="Drop values further than this many robust standard deviations from the median.",
)
@click.option("--json", "as_json", is_flag=True, help="Write counts as JSON.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Compute features of LIGHTCURVES: one row per object, with units and reasons of gaps.

    LIGHTCURVES is a table with a row per measurement (sorted by object it is read in bounded
    memory), a table with lists in a row per object, or a folder with a file per object. A column
    inside a nested one is written lightcurve.mjd; where each band has columns of its own, write
    mag_{band}.
    """
    from skyfill.catalog import Provenance
    from skyfill.cli.match import as_typed
    from skyfill.lightcurve import choose_features, open_light_curves

    path = options["light_curves"]
    chosen = choose_features(options["names"], every_band=options["every_band"])
    opened = open_light_curves(path, _request(options))
    inputs = [] if path.is_dir() else [path]
    totals = _write(opened, chosen, options, Provenance(as_typed(context), inputs=inputs))
    if options["as_json"]:
        click.echo(json.dumps({"bands": opened.layout.about.bands, **totals}, indent=2))
    click.echo(_line(opened, totals, options["output"]), err=True)


def _request(options: dict[str, Any]) -> "Request":
    from skyfill.lightcurve import Columns, Request

    order = options["band_order"]
    return Request(
        columns=Columns(**{part: options[part] for part in _COLUMNS}),
        bands=tuple(word.strip() for word in order.split(",")) if order else None,
        is_flux=options["is_flux"],
    )


def _write(
    opened: "Opened", chosen: "FeatureSet", options: dict[str, Any], provenance: "Provenance"
) -> dict[str, int]:
    """Compute and write table after table; add up what is in them."""
    from skyfill.catalog import open_writer
    from skyfill.lightcurve import empty_table, stream_features

    totals = dict.fromkeys(("objects", "features", "gaps", "points", "dropped"), 0)
    schema = empty_table(opened.layout.about, chosen).arrow.schema
    with (
        open_writer(options["output"], schema, provenance=provenance) as writer,
        _progress(opened.n_objects) as advance,
    ):
        tables = stream_features(opened.parts, chosen, clip=options["clip"], advance=advance)
        for table in tables:
            for batch in table.arrow.to_batches():
                writer.write(batch)
            _add(totals, table)
    return totals


def _add(totals: dict[str, int], table: "Table") -> None:
    from skyfill.catalog import Role

    features = table.names_with(Role.FEATURE)
    counts = {name: int(table.numbers(name).sum()) for name in table.names if name[:2] == "n_"
              and name not in features and table.info(name).ucd == "meta.number"}  # fmt: skip
    used = sum(count for name, count in counts.items() if name.startswith("n_points"))
    totals["objects"] += len(table)
    totals["features"] = len(features)
    totals["gaps"] += sum(table.column(name).null_count for name in features)
    totals["points"] += used
    totals["dropped"] += sum(counts.values()) - used


def _line(opened: "Opened", totals: dict[str, int], output: Path) -> str:
    bands = ", ".join(opened.layout.about.bands)
    return (
        f"{totals['objects']} objects, {totals['features']} features with {totals['gaps']} gaps"
        f"{f' (bands {bands})' if bands else ''}; {totals['points']} epochs used, "
        f"{totals['dropped']} dropped -> {output}"
    )


@contextmanager
def _progress(total: int | None) -> "Iterator[Callable[[int], object]]":
    """Show a bar on stderr where that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("objects", total=total)
        yield lambda n: progress.advance(task, n)
