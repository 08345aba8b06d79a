"""HATS catalogues on disk: opened and written through LSDB, with what their columns mean."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyfill.catalog import Table
from skyfill.catalog.provenance import PROVENANCE_KEY
from skyfill.catalog.table import with_facts
from skyfill.errors import CatalogError
from skyfill.scale.driver import Output, Run, Task, run_job
from skyfill.scale.job_folder import Done, JobFolder
from skyfill.scale.workers import Workers, alone
from skyfill.sky import find_position_columns, read_positions

PREFIX = "hats://"
MARGIN_ARCSEC, PARTITION_ROWS = 10.0, 1_000_000


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


class HatsOutput:
    """A new HATS catalogue: LSDB computes and writes each partition, and the metadata of all.

    Parameters
    ----------
    catalog : lsdb.Catalog
        Its margin is written too.
    output : path
        The folder, with ``hats://`` before it or not.
    columns : pyarrow.Schema
        What the columns mean.
    count : callable
        What to count in the file of a partition.
    properties : mapping
        Facts about the catalogue that go into its properties.
    """

    def __init__(
        self,
        catalog: Any,
        output: str | Path,
        columns: pa.Schema,
        *,
        count: Callable[[Path], Mapping[str, int]] = lambda file: {},
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._catalog, self._columns, self._count = catalog, columns, count
        self._output, self._name = output, hats_folder(output).name
        self._properties = dict(properties or {})
        self._files: dict[Path, Path] = {}

    def write(self, run: Run, workers: Workers, facts: Mapping[str, Any]) -> Done:
        """Compute and write the catalogue; see `run_job`."""
        return run_job(run, workers, facts, hats_folder(self._output), self._prepare)

    def _prepare(self, folder: JobFolder) -> tuple[Output, Iterable[Task]]:
        return self, self._tasks(folder.parts)

    def check(self) -> None:
        """Fail where there is something of that name."""
        if hats_folder(self._output).exists():
            raise CatalogError(f"{self._output}: exists; choose another folder, or remove it")

    def _tasks(self, parts: Path) -> Iterator[Task]:
        """Give a task for each partition; LSDB knows by the names of the parts what is done."""
        import hats
        from dask.optimization import cull

        for name, dataset in self._datasets():
            for made in ("done", "hists"):
                (parts / name / made).mkdir(parents=True, exist_ok=True)
            where, built = (str(parts / name), _map_order(dataset)), dataset._operation.build()
            for pixel, key in built.pixel_to_key_map.items():
                part = _part(parts / name, pixel)
                self._files[part] = Path(hats.io.pixel_catalog_file(parts / name, pixel).path)
                graph, _ = cull(built.graph, [key])
                yield Task(
                    str(part.relative_to(parts)),
                    partial(_write_partition, graph, key, pixel, *where),
                )

    def _datasets(self) -> Iterator[tuple[str, Any]]:
        yield self._name, self._catalog
        if self._catalog.margin is not None:
            info = self._catalog.margin.hc_structure.catalog_info
            yield f"{self._name}_{int(info.margin_threshold)}arcs", self._catalog.margin

    def add(self, part: Path) -> Mapping[str, int]:
        """Count what is in a partition; margins repeat rows of others."""
        file = self._files[part]
        if part.parents[1].name != self._name or not file.exists():
            return {"rows": 0}
        return {"rows": pq.read_metadata(file).num_rows, **self._count(file)}

    def publish(self, folder: JobFolder) -> None:
        """Write the metadata of all partitions and of their columns."""
        for part, file in self._files.items():
            if not file.exists():
                part.unlink()
                (part.parents[1] / "hists" / f"{part.name[:-4]}histogram.npz").unlink()
        main, *margins = (_with_rows(dataset, folder.parts / name)
                          for name, dataset in self._datasets())  # fmt: skip
        main.margin = margins[0] if margins else None
        main.write_catalog(
            folder.parts,
            catalog_name=self._name,
            progress_bar=False,
            resume=True,
            addl_hats_properties=self._properties,
        )
        _describe_columns(folder.parts, self._columns, folder.provenance)
        os.replace(folder.parts, hats_folder(self._output))


def _with_rows(dataset: Any, folder: Path) -> Any:
    """Give a catalogue without the partitions that have no rows, which LSDB would list."""
    pixels = [p for p in dataset.get_healpix_pixels() if _part(folder, p).exists()]
    kept = copy(dataset)
    kept.hc_structure = dataset._create_modified_hc_structure(updated_pixels=pixels)
    return kept


def _part(folder: Path, pixel: Any) -> Path:
    """Name the file by which LSDB knows that a partition is done."""
    return folder / "done" / f"{pixel.order}_{pixel.pixel}_done"


def _map_order(dataset: Any) -> int:
    """Choose the order of the map of counts as LSDB does when it writes the metadata."""
    order = dataset.hc_structure.catalog_info.skymap_order
    depth = max((pixel.order for pixel in dataset.get_healpix_pixels()), default=0)
    return int(max(depth, 8) if order is None else order)


def _write_partition(
    graph: Any, key: str, pixel: Any, base: str, map_order: int, path: Path
) -> None:
    """Compute a partition, which is the result `key` of a graph, and write it."""
    from dask.local import get_sync
    from hats.io.file_io import get_upath
    from lsdb.io.to_hats import perform_write

    perform_write(get_sync(graph, key), pixel, get_upath(base), map_order)
    path.touch()


def _describe_columns(folder: Path, columns: pa.Schema, provenance: str | None) -> None:
    """Put units, UCDs and roles, which pandas forgets, into the metadata of a written catalogue."""
    known = {field.name: field.metadata for field in columns}
    facts = {PROVENANCE_KEY: provenance} if provenance else {}
    for path in folder.glob("*/dataset/_common_metadata"):
        schema = pq.read_schema(path)
        fields = [field.with_metadata(known.get(field.name)) for field in schema]
        pq.write_metadata(pa.schema(fields, metadata=with_facts(schema, facts)), path)


def hats_files(opened: Any) -> list[Path]:
    """Name the files of an opened catalogue in the order of its rows, margins left out."""
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
    tables = [pq.read_table(file, partitioning=None) for file in hats_files(opened)]
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
    frame = table.arrow.to_pandas(types_mapper=pd.ArrowDtype)
    catalog = lsdb.from_dataframe(
        frame,
        ra_column=ra,
        dec_column=dec,
        catalog_name=hats_folder(output).name,
        margin_threshold=margin_arcsec,
        partition_rows=partition_rows,
    )
    HatsOutput(catalog, output, table.arrow.schema).write(Run(), alone(), {})


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
