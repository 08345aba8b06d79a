"""`skyfill features`: a table of variability features, one row per object, from light curves."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skyfill.cli import options as shared
from skyfill.cli.checks import check_values
from skyfill.cli.terminal import GUESSED, listing, mention, note, progress_bar, write_json

if TYPE_CHECKING:
    from skyfill.catalog import Provenance, Table
    from skyfill.lightcurve import FeatureSet, LightCurves, Opened, Request

# Values of light curves that are looked at for undeclared sentinels.
VALUES_CHECKED = 1 << 18
_COLUMNS = ("id", "time", "value", "error", "band")
_takes_columns = shared.stacked(
    *(
        click.option(
            f"--{name}", metavar="COLUMN", help=f"Column of the {name}; guessed by default."
        )
        for name in _COLUMNS
    )
)


@click.command(
    "features",
    epilog=shared.examples(
        "skyfill features field/light_curves.parquet --set mean,sigma,color -o features.fits",
    ),
)
@click.argument("light_curves", type=click.Path(path_type=Path), metavar="LIGHTCURVES")
@shared.output()
@click.option(
    "--set",
    "chosen",
    default="macho14",
    show_default=True,
    metavar="macho14|all|NAMES",
    help="The 14 of the paper, in the first band; all, in every band; or names with commas.",
)
@click.option(
    "--every-band/--first-band",
    default=None,
    help="Compute features of a single band for each band, or for the first only.",
)
@click.option(
    "--band-order", metavar="B,R", help="Bands to use, the bluest first; guessed by default."
)
@_takes_columns
@click.option("--flux", "is_flux", is_flag=True, default=None, help="The values are fluxes.")
@click.option(
    "--clip",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SIGMA",
    help="Drop values further than this many robust standard deviations from the median.",
)
@click.option(
    "--sentinel",
    type=float,
    multiple=True,
    metavar="VALUE",
    help="A value that means no value; may be repeated.",
)
@shared.layout
@shared.device
@shared.resume
@shared.as_json("counts")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Compute features of LIGHTCURVES: one row per object, with units and reasons for gaps.

    LIGHTCURVES is a table with one row per measurement (read in bounded memory if it is sorted by
    object), a table with one row of lists per object, or a folder or archive (zip, tar, tar.gz)
    with one file per object. Write lightcurve.mjd for a column inside a nested one, and mag_{band}
    where each band has its own column. In files without a line of names, give the names with
    --names; else their columns are taken to be time, value and error.
    """
    from skyfill.catalog import Provenance
    from skyfill.lightcurve import choose_features, open_light_curves

    path = options["light_curves"]
    chosen = choose_features(options["chosen"], every_band=options["every_band"])
    opened = open_light_curves(path, _request(options))
    _mention_columns(opened, options)
    inputs = [] if path.is_dir() else [path]
    made = Provenance(shared.as_typed(context), inputs=inputs)
    totals = _write(opened, chosen, options, made)
    if options["as_json"]:
        write_json({"bands": opened.layout.about.bands, **totals})
    note(_line(opened, totals, options["output"]))


def _request(options: dict[str, Any]) -> "Request":
    from skyfill.lightcurve import CurveColumns, Request

    order = options["band_order"]
    return Request(
        columns=CurveColumns(**{part: options[part] for part in _COLUMNS}),
        bands=tuple(word.strip() for word in order.split(",")) if order else None,
        is_flux=options["is_flux"],
        text=shared.layout_of(options).layout,
    )


def _mention_columns(opened: "Opened", options: dict[str, Any]) -> None:
    """List the columns that the user did not name, and what they are taken for."""
    columns, about = opened.layout.columns, opened.layout.about
    kind = "fluxes" if about.is_flux else "magnitudes"
    means = {"time": " (days)" if opened.layout.to_days == 1 else "", "value": f" ({kind})"}
    found = [
        f"{part}: {name}{means.get(part, '')}"
        for part in _COLUMNS
        if not options[part] and (name := getattr(columns, part))
    ]
    if found:
        mention(GUESSED, listing("", found, between="; "))
    if len(about.bands) > 1 and not options["band_order"]:
        mention(GUESSED, listing("bands, the bluest first: ", about.bands))


def _write(
    opened: "Opened", chosen: "FeatureSet", options: dict[str, Any], provenance: "Provenance"
) -> dict[str, int]:
    """Compute and write one table after another; count what they contain."""
    from skyfill.catalog import Role
    from skyfill.lightcurve import empty_table, stream_features
    from skyfill.scale import Run
    from skyfill.scale.outputs import write_tables

    empty = empty_table(opened.layout.about, chosen)
    facts: dict[str, Any] = {
        key: str(options[key]) for key in ("chosen", "every_band", "clip", "sentinel")
    }
    facts |= {"request": repr(_request(options)), "inputs": _input_facts(options, provenance)}
    with progress_bar("features", "objects", opened.n_objects) as advance:

        def tables(n_done: int) -> "Iterator[Table]":
            advance(n_done)
            rest = _cleaned(_without(opened.parts, n_done), options["sentinel"])
            how = {"clip": options["clip"], "n_objects": opened.n_objects or 0}
            return stream_features(rest, chosen, advance=advance, **how)

        run, columns = Run(provenance, options["resume"]), empty.arrow.schema
        how: dict[str, Any] = {"columns": columns, "count": _count}
        done = write_tables(run, facts, options["output"], tables, **how)
    counts = {name: done.counts.get(name, 0) for name in ("gaps", "points", "dropped")}
    return {"objects": done.rows, "features": len(empty.names_with(Role.FEATURE)), **counts}


def _input_facts(options: dict[str, Any], provenance: "Provenance") -> list[Any]:
    """Identify the input: by its checksum, or by the files of a folder."""
    from skyfill.scale.job_folder import identify

    files = sorted(path for path in options["light_curves"].rglob("*") if path.is_file())
    return list(provenance.checksums) or identify(files)


def _without(parts: "Iterator[LightCurves]", n_objects: int) -> "Iterator[LightCurves]":
    """Skip the parts with the first objects; tables end where parts end."""
    seen = 0
    for part in parts:
        if seen >= n_objects:
            yield part
        seen += len(part)


def _cleaned(
    parts: "Iterator[LightCurves]", sentinels: tuple[float, ...]
) -> "Iterator[LightCurves]":
    """Drop values that mean no value; warn of others that may, among the first ones."""
    import numpy as np

    first, n_left = [np.empty(0)], VALUES_CHECKED
    for part in parts:
        value = np.where(np.isin(part.value, sentinels), np.nan, part.value)
        # Epochs whose error is not positive are dropped in any case.
        is_used = part.error > 0 if part.about.has_errors else slice(None)
        first.append(value[is_used][:n_left])
        n_left -= len(first[-1])
        yield replace(part, value=value)
    check_values(np.concatenate(first))


def _count(table: "Table") -> dict[str, int]:
    from skyfill.catalog import Role

    features = table.names_with(Role.FEATURE)
    counts = {name: int(table.numbers(name).sum()) for name in table.names if name[:2] == "n_"
              and name not in features and table.info(name).ucd == "meta.number"}  # fmt: skip
    used = sum(count for name, count in counts.items() if name.startswith("n_points"))
    gaps = sum(table.column(name).null_count for name in features)
    return {"gaps": gaps, "points": used, "dropped": sum(counts.values()) - used}


def _line(opened: "Opened", totals: dict[str, int], output: Path) -> str:
    bands = ", ".join(opened.layout.about.bands)
    return (
        f"{totals['objects']} objects, {totals['features']} features with {totals['gaps']} gaps"
        f"{f' (bands {bands})' if bands else ''}; {totals['points']} epochs used, "
        f"{totals['dropped']} dropped -> {output}"
    )
