"""`skyfill data`: list and fetch public tables, write a simulated field."""

from pathlib import Path
from typing import Any

import click

from skyfill.cli import options
from skyfill.cli.terminal import echo, note, write_json


@click.group(
    epilog=options.examples("skyfill data list", "skyfill data simulate field --objects 2000")
)
def command() -> None:
    """List and fetch public tables; simulate a field."""


@command.command("list", epilog=options.examples("skyfill data list"))
@options.as_json("the list")
def list_datasets(as_json: bool) -> None:
    """List the tables; `here` means no download is needed, `absent` cannot be downloaded."""
    from skyfill.datasets import DATASETS, dataset_files, dataset_state

    rows = [
        {"name": name, "state": dataset_state(name), "line": line, "files": dataset_files(name)}
        for name, (_, line) in DATASETS.items()
    ]
    if as_json:
        write_json({"datasets": rows})
        return
    width = max(len(name) for name in DATASETS)
    for row in rows:
        echo(f"{row['name']:{width}}  {row['state']:8}  {row['line']}")


@command.command("fetch", epilog=options.examples("skyfill data fetch macho -o macho.parquet"))
@click.argument("name")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the table here: .parquet, .fits, .vot, .ecsv or .csv.",
)
def fetch(name: str, output: Path | None) -> None:
    """Fetch and verify the table NAME; write it, or print the paths of its files."""
    from skyfill.catalog import Provenance, write_table
    from skyfill.datasets import dataset_files, find_file, load_dataset

    files = [find_file(path) for path in dataset_files(name)]
    if output is None:
        for file in files:
            echo(file)
        if not files:
            note(f"{name} is simulated, so there is no file; use -o to write one")
        return
    table = load_dataset(name)
    provenance = Provenance(f"skyfill data fetch {name} -o {output}", inputs=files)
    write_table(table, output, provenance=provenance)
    note(f"{len(table)} rows -> {output}; cite {table.meta['citation']}")


@command.command(
    "simulate",
    epilog=options.examples(
        "skyfill data simulate field --objects 2000", "skyfill data simulate training --training"
    ),
)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("-n", "--objects", type=click.IntRange(min=1), default=10_000, show_default=True)
@options.choice(
    "--kind",
    "lmc|xray|crowded",
    "Surveys of the LMC; X-ray sources over a deep field; a crowded field with blends.",
)
@click.option(
    "--training", is_flag=True, help="Simulate the paper's 1833 labelled objects instead."
)
@click.option("--light-curves", is_flag=True, help="Also write two-band light curves.")
@click.option(
    "--variables",
    type=click.FloatRange(min=0, max=50),
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Factor by which variable stars and quasars are more common than in the sky.",
)
@options.seed()
def simulate(*, folder: Path, training: bool, light_curves: bool, seed: int, **how: Any) -> None:
    """Write the catalogues that surveys of a simulated LMC field would publish to FOLDER."""
    from skyfill.datasets import simulate_field, simulate_training_set, write_field

    if how["kind"] != "lmc":
        _simulate_counterparts(how["kind"], how["objects"], folder, seed)
        return
    if training:
        field = simulate_training_set(seed=seed, light_curves=light_curves)
    else:
        shares = _shares(how["variables"])
        field = simulate_field(
            how["objects"], seed=seed, light_curves=light_curves, fractions=shares
        )
    for path in write_field(field, folder).values():
        echo(path)
    note(f"{len(field.macho)} objects -> {folder}")


def _simulate_counterparts(kind: str, n_objects: int, folder: Path, seed: int) -> None:
    from skyfill.datasets import (
        simulate_crowded_field,
        simulate_xray_field,
        write_counterpart_field,
    )

    simulate_one = simulate_xray_field if kind == "xray" else simulate_crowded_field
    field = simulate_one(n_objects, seed=seed)
    for path in write_counterpart_field(field, folder).values():
        echo(path)
    note(f"{len(field.base)} objects over {field.area_deg2:.3g} square degrees -> {folder}")


def _shares(factor: float) -> dict[str, float]:
    from skyfill.datasets.field.draw import FRACTIONS

    shares = {name: factor * share for name, share in FRACTIONS.items() if name != "NV"}
    return shares | {"NV": 1 - sum(shares.values())}
