"""HATS catalogues on disk: opened and written through LSDB, with what their columns mean."""

from __future__ import annotations

import os
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyfill.catalog import Provenance, Table
from skyfill.catalog.table import with_facts
from skyfill.errors import CatalogError
from skyfill.sky import find_position_columns, read_positions

PREFIX = "hats://"
MARGIN_ARCSEC, PARTITION_ROWS = 10.0, 1_000_000
# So often a folder that is being written is looked at.
LOOK_SECONDS = 1.0


def is_hats(path: object) -> bool:
    """Tell whether the user means a HATS catalogue.

    Examples
    --------
    >>> is_hats("hats://catalogs/lmc"), is_hats("lmc.parquet")
    (True, False)
    """
    return str(path).startswith(PREFIX)


def hats_folder(path: str | Path) -> Path:
    """Give the folder of a HATS catalogue: ``hats://a/b`` is a/b, ``hats:///a/b`` is /a/b.

    Examples
    --------
    >>> hats_folder("hats:///data/lmc") == Path("/data/lmc")
    True
    """
    return Path(str(path).removeprefix(PREFIX))


def import_lsdb() -> Any:
    """Import LSDB; it takes seconds, and warns of pandas options of its own."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import lsdb
    except ImportError:
        raise CatalogError(
            "HATS catalogues need LSDB; install it with pip install 'skyfill[lsdb]'"
        ) from None
    return lsdb


def open_hats(path: str | Path, columns: Any = "all") -> Any:
    """Open a HATS catalogue with its margin; nothing is read yet.

    Returns
    -------
    lsdb.Catalog
    """
    lsdb = import_lsdb()
    folder = hats_folder(path)
    if not folder.is_dir():
        raise CatalogError(f"{path}: there is no such folder; give the folder of a HATS catalogue")
    try:
        return lsdb.open_catalog(folder, columns=columns)
    except (OSError, ValueError, TypeError) as error:
        raise CatalogError(
            f"{path}: not a HATS catalogue ({error}); make one with write_hats or hats-import"
        ) from None


def stored_schema(opened: Any) -> pa.Schema:
    """Columns of an opened catalogue as its metadata describe them, with units and roles."""
    import hats

    found = hats.read_hats(opened.hc_structure.catalog_base_dir)
    return found.schema


@contextmanager
def appearing(output: str | Path, identifier: str, *, resume: bool) -> Iterator[Path]:
    """Write beside the output; what an interrupted run leaves there can be resumed."""
    target = hats_folder(output).resolve()
    if target.exists():
        raise CatalogError(f"{output}: exists; choose another folder, or remove it")
    if not target.parent.is_dir():
        raise CatalogError(f"{output}: there is no directory {target.parent}; create it first")
    partial = target.with_name(f".{target.name}.{identifier}.part")
    if not resume:
        shutil.rmtree(partial, ignore_errors=True)
    yield partial
    os.replace(partial, target)


def write_catalog(
    catalog: Any,
    folder: Path,
    *,
    name: str,
    facts: Mapping[str, str],
    resume: bool = False,
    tell: Callable[[int], None] = lambda rows: None,
) -> None:
    """Let LSDB compute and write a catalogue with its margin; tell the rows of each partition."""
    with _watched(folder / name / "dataset", tell):
        catalog.write_catalog(
            folder,
            catalog_name=name,
            progress_bar=False,
            resume=resume,
            addl_hats_properties=dict(facts),
        )


@contextmanager
def _watched(folder: Path, tell: Callable[[int], None]) -> Iterator[None]:
    """Tell the rows of every partition that appears: the workers write, LSDB says nothing."""
    told: set[Path] = set()
    over = threading.Event()

    def look() -> None:
        for path in sorted(set(folder.glob("**/Npix=*.parquet")) - told):
            with suppress(OSError, pa.ArrowInvalid):  # still being written
                rows = pq.read_metadata(path).num_rows
                told.add(path)
                tell(rows)

    def watch() -> None:
        while not over.wait(LOOK_SECONDS):
            look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
    look()


def describe_columns(
    folder: Path, columns: pa.Schema, provenance: Provenance | None = None
) -> None:
    """Put units, UCDs and roles, which pandas forgets, into the metadata of a written catalogue."""
    known = {field.name: field.metadata for field in columns}
    facts = {"provenance": provenance.to_json()} if provenance else {}
    for path in folder.glob("*/dataset/_common_metadata"):
        schema = pq.read_schema(path)
        fields = [field.with_metadata(known.get(field.name)) for field in schema]
        pq.write_metadata(pa.schema(fields, metadata=with_facts(schema, facts)), path)


def hats_files(path: str | Path) -> list[Path]:
    """Name the files of a HATS catalogue in the order of its rows, margins left out."""
    opened = open_hats(path)
    import hats

    base = opened.hc_structure.catalog_base_dir
    suffix = opened.hc_structure.catalog_info.npix_suffix
    pixels = opened.get_healpix_pixels()
    found = (hats.io.pixel_catalog_file(base, pixel, npix_suffix=suffix) for pixel in pixels)
    return [Path(file.path) for file in found]


def read_hats_table(path: str | Path) -> Table:
    """Read a whole HATS catalogue, in its order of rows, without the index.

    Returns
    -------
    Table
        As `read_table` gives it: null for NaN, units and roles where the metadata hold them.
    """
    opened = open_hats(path)
    schema = stored_schema(opened)
    tables = [pq.read_table(file, partitioning=None) for file in hats_files(path)]
    arrow = pa.concat_tables(tables, promote_options="default").select(list(opened.columns))
    fields = [f.with_metadata(schema.field(f.name).metadata) for f in arrow.schema]
    described = pa.schema(fields, metadata=schema.metadata)
    return Table.from_arrow(pa.Table.from_arrays(arrow.columns, schema=described))


def write_hats(
    table: Table,
    output: str | Path,
    *,
    margin_arcsec: float = MARGIN_ARCSEC,
    partition_rows: int = PARTITION_ROWS,
) -> None:
    """Write a table that fits into memory as a HATS catalogue (larger ones: hats-import).

    Parameters
    ----------
    table : Table
        Its positions must be two columns in degrees; rows without one are refused.
    output : path
        A new folder, with ``hats://`` before it or not.
    margin_arcsec : float
        Width of the margin; a one-to-one match needs three times its radius.
    partition_rows : int
        Most rows of a partition.
    """
    lsdb = import_lsdb()
    import pandas as pd

    ra, dec = _position_names(table)
    name = hats_folder(output).name
    frame = table.arrow.to_pandas(types_mapper=pd.ArrowDtype)
    catalog = lsdb.from_dataframe(
        frame,
        ra_column=ra,
        dec_column=dec,
        catalog_name=name,
        margin_threshold=margin_arcsec,
        partition_rows=partition_rows,
    )
    with appearing(output, "table", resume=False) as partial:
        write_catalog(catalog, partial, name=name, facts={})
        describe_columns(partial, table.arrow.schema)


def _position_names(table: Table) -> tuple[str, str]:
    found = find_position_columns(table)
    places = read_positions(table, found)
    lost = np.flatnonzero(np.isnan(places.ra_deg) | np.isnan(places.dec_deg))
    if lost.size:
        raise CatalogError(
            f"row {lost[0] + 1} has no position ({lost.size} such rows); a HATS catalogue is "
            "ordered by position: leave them out"
        )
    ra, dec = found.ra[0], found.dec[0]
    if len(found.ra) + len(found.dec) > 2 or not np.array_equal(
        table.numbers(ra, dec), np.stack([places.ra_deg, places.dec_deg], axis=1)
    ):
        raise CatalogError(f"columns {ra!r} and {dec!r} are not in degrees; convert them first")
    return ra, dec
