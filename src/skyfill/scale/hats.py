"""HATS catalogues on disk: opened and written with LSDB, with the metadata of their columns."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from copy import copy
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyfill.catalog import Table
from skyfill.catalog.provenance import PROVENANCE_KEY
from skyfill.catalog.table import schema_meta, with_facts
from skyfill.errors import CatalogError
from skyfill.scale.driver import Output, Run, Task, run_job
from skyfill.scale.job_folder import Done, JobFolder
from skyfill.scale.workers import Workers, alone
from skyfill.sky import find_position_columns, read_positions

PREFIX = "hats://"
MARGIN_ARCSEC, PARTITION_ROWS = 10.0, 1_000_000


def is_hats(path: object) -> bool:
    """Check whether a path denotes a HATS catalogue.

    Examples
    --------
    >>> is_hats("hats://catalogs/lmc"), is_hats("lmc.parquet")
    (True, False)
    """
    return str(path).startswith(PREFIX)


def hats_folder(path: str | Path) -> Path:
    """Return the folder of a HATS catalogue: ``hats://a/b`` is a/b, ``hats:///a/b`` is /a/b.

    Examples
    --------
    >>> hats_folder("hats:///data/lmc") == Path("/data/lmc")
    True
    """
    return Path(str(path).removeprefix(PREFIX))


def import_lsdb() -> Any:
    """Import LSDB, which takes seconds and warns about pandas options."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import lsdb
    except ImportError:
        raise CatalogError(
            "HATS catalogues need LSDB; install it with pip install 'skyfill[lsdb]'"
        ) from None
    _keep_compiled()
    return lsdb


@cache
def _keep_compiled() -> None:
    """Let Numba keep the kernels of hats: each process would compile them anew, for seconds."""
    from hats.pixel_tree import moc_filter, pixel_alignment

    kernels = {**vars(moc_filter), **vars(pixel_alignment)}.values()
    for kernel in filter(lambda value: hasattr(value, "enable_caching"), kernels):
        with suppress(RuntimeError):  # no folder can be written: compiled anew, as before
            kernel.enable_caching()


def open_hats(path: str | Path, columns: list[str] | None = None) -> Any:
    """Open a HATS catalogue with its margin, without reading any rows.

    Parameters
    ----------
    path : path
    columns : list of str, optional
        Those to read later; by default all.

    Returns
    -------
    lsdb.Catalog
    """
    lsdb = import_lsdb()
    folder = hats_folder(path)
    if not folder.is_dir():
        raise CatalogError(f"{path}: there is no such folder; give the folder of a HATS catalogue")
    try:
        return lsdb.open_catalog(folder, columns=columns or "all")
    except (OSError, ValueError, TypeError) as error:
        raise CatalogError(
            f"{path}: not a HATS catalogue ({error}); make one with write_hats or hats-import"
        ) from None


def stored_schema(opened: Any) -> pa.Schema:
    """Return the columns of an open catalogue with their metadata, such as units and roles."""
    import hats

    return hats.read_hats(opened.hc_structure.catalog_base_dir).schema


class HatsOutput:
    """A new HATS catalogue, whose partitions and metadata are computed and written by LSDB.

    Parameters
    ----------
    catalog : lsdb.Catalog
        Written with its margin.
    output : path
        The folder, with or without ``hats://``.
    columns : pyarrow.Schema
        With the metadata of the columns.
    count : callable
        Takes the file of a partition and returns counts of what it contains.
    properties : mapping
        Added to the properties of the catalogue.
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

        def prepare(folder: JobFolder) -> tuple[Output, Iterable[Task]]:
            return self, self._tasks(folder.parts)

        return run_job(run, workers, facts, hats_folder(self._output), prepare)

    def check(self) -> None:
        """Refuse a path that already exists."""
        if hats_folder(self._output).exists():
            raise CatalogError(f"{self._output}: exists; choose another folder, or remove it")

    def _tasks(self, parts: Path) -> Iterator[Task]:
        """Yield a task for each partition, named so that LSDB recognizes finished ones."""
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
                make = partial(_write_partition, graph, key, pixel, *where)
                yield Task(str(part.relative_to(parts)), make, self._files[part])

    def _datasets(self) -> Iterator[tuple[str, Any]]:
        yield self._name, self._catalog
        if self._catalog.margin is not None:
            info = self._catalog.margin.hc_structure.catalog_info
            yield f"{self._name}_{int(info.margin_threshold)}arcs", self._catalog.margin

    def add(self, part: Path) -> Mapping[str, int]:
        """Count the contents of a partition; margins repeat the rows of others."""
        file = self._files[part]
        if part.parents[1].name != self._name or not file.exists():
            return {"rows": 0}
        return {"rows": pq.read_metadata(file).num_rows, **self._count(file)}

    def publish(self, folder: JobFolder) -> None:
        """Write the metadata of the partitions and of the columns."""
        for part, file in self._files.items():
            if not file.exists():
                part.unlink()
                (part.parents[1] / "hists" / f"{part.name[:-4]}histogram.npz").unlink()
        kept = [_with_rows(dataset, folder.parts / name) for name, dataset in self._datasets()]
        main = kept[0]
        main.margin = kept[1] if len(kept) > 1 else None
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
    """Remove partitions without rows from a catalogue; LSDB would list them."""
    pixels = [p for p in dataset.get_healpix_pixels() if _part(folder, p).exists()]
    kept = copy(dataset)
    kept.hc_structure = dataset._create_modified_hc_structure(updated_pixels=pixels)
    return kept


def _part(folder: Path, pixel: Any) -> Path:
    """Return the file that marks a partition as finished for LSDB."""
    return folder / "done" / f"{pixel.order}_{pixel.pixel}_done"


def _map_order(dataset: Any) -> int:
    """Choose the order of the sky map as LSDB does when it writes the metadata."""
    order = dataset.hc_structure.catalog_info.skymap_order
    depth = max((pixel.order for pixel in dataset.get_healpix_pixels()), default=0)
    return int(max(depth, 8) if order is None else order)


def _write_partition(graph: Any, key: str, pixel: Any, base: str, order: int, path: Path) -> None:
    """Compute a partition, the result `key` of a Dask graph, and write it."""
    from dask.local import get_sync
    from hats.io.file_io import get_upath
    from lsdb.io.to_hats import perform_write

    perform_write(get_sync(graph, key), pixel, get_upath(base), order)
    path.touch()


def _describe_columns(folder: Path, columns: pa.Schema, provenance: str | None) -> None:
    """Write units, UCDs and roles, which pandas does not keep, to the metadata of a catalogue."""
    known = {field.name: field.metadata for field in columns}
    facts = schema_meta(columns) | ({PROVENANCE_KEY: provenance} if provenance else {})
    for path in folder.glob("*/dataset/_common_metadata"):
        schema = pq.read_schema(path)
        fields = [field.with_metadata(known.get(field.name)) for field in schema]
        pq.write_metadata(pa.schema(fields, metadata=with_facts(schema, facts)), path)


def hats_files(opened: Any) -> list[Path]:
    """List the files of an open catalogue in the order of its rows, without margins."""
    import hats

    base = opened.hc_structure.catalog_base_dir
    suffix = opened.hc_structure.catalog_info.npix_suffix
    pixels = opened.get_healpix_pixels()
    found = (hats.io.pixel_catalog_file(base, pixel, npix_suffix=suffix) for pixel in pixels)
    return [Path(file.path) for file in found]


def write_hats(
    table: Table,
    output: str | Path,
    *,
    margin_arcsec: float = MARGIN_ARCSEC,
    partition_rows: int = PARTITION_ROWS,
) -> None:
    """Write a table as a HATS catalogue; for tables larger than memory, use hats-import.

    Parameters
    ----------
    table : Table
        With positions in two columns in degrees; rows without a position are refused.
    output : path
        A new folder, with or without ``hats://``.
    margin_arcsec : float
        Width of the margin; a one-to-one match needs three times its radius, one with
        probabilities none. Narrow margins take long to make; 0 makes none.
    partition_rows : int
        Maximum number of rows of a partition.
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
        margin_threshold=margin_arcsec or None,
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
            "ordered by position: remove these rows"
        )
    ra, dec = found.ra[0], found.dec[0]
    if len(found.ra) + len(found.dec) > 2 or not np.array_equal(
        table.numbers(ra, dec), np.stack([places.ra_deg, places.dec_deg], axis=1)
    ):
        raise CatalogError(f"columns {ra!r} and {dec!r} are not in degrees; convert them first")
    return ra, dec
