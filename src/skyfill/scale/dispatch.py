"""One call for the command line: a HATS catalogue, a file or a folder, here or on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from skyfill.catalog import Provenance, Schema, Table
from skyfill.errors import CatalogError
from skyfill.scale.cluster import score_files_on_dask
from skyfill.scale.hats import score_hats
from skyfill.scale.hats_store import (
    hats_files,
    hats_folder,
    is_hats,
    open_hats,
    stored_schema,
)
from skyfill.scale.partitions import common_schema, plan_parts, read_part
from skyfill.scale.work import Work


def is_distributed(catalog: str | Path, scheduler: str | None) -> bool:
    """Tell whether a job is for Dask or LSDB: a HATS catalogue, a folder, or any scheduler.

    Examples
    --------
    >>> is_distributed("stars.fits", None), is_distributed("hats://stars", None)
    (False, True)
    """
    return scheduler is not None or is_hats(catalog) or Path(catalog).is_dir()


def score_distributed(  # noqa: PLR0913 - as `score_files_on_dask`
    model: str | Path,
    catalog: str | Path,
    output: str | Path,
    *,
    work: Work,
    scheduler: str | None = None,
    schema: Schema | None = None,
    provenance: Provenance | None = None,
    resume: bool = False,
    tell: Callable[[int], None] = lambda rows: None,
) -> tuple[int, int]:
    """Do `work` to all rows of a catalogue; see `score_hats` and `score_files_on_dask`.

    Returns
    -------
    n_rows, n_filled : int
    """
    if is_hats(catalog) != is_hats(output):
        raise CatalogError(
            f"{catalog} -> {output}: a HATS catalogue gives a HATS catalogue; write hats:// before "
            "both or before none"
        )
    if not is_hats(catalog):
        return score_files_on_dask(
            model,
            [catalog],
            output,
            work=work,
            scheduler=scheduler,
            schema=schema,
            provenance=provenance,
            resume=resume,
            tell=tell,
        )
    return score_hats(
        model,
        catalog,
        output,
        work=work,
        scheduler=scheduler,
        schema=schema,
        provenance=provenance,
        resume=resume,
        tell=tell,
    )


def column_names(catalog: str | Path) -> list[str]:
    """Name the columns of a file, of a folder of Parquet files, or of a HATS catalogue."""
    if is_hats(catalog):
        return list(open_hats(catalog).columns)
    return list(common_schema(plan_parts([catalog])[:1]).names)


def table_without_rows(catalog: str | Path) -> Table:
    """Read what the columns of a file, of a folder or of a HATS catalogue are, and no rows."""
    if is_hats(catalog):
        opened = open_hats(catalog)
        return Table(stored_schema(opened).empty_table()).select(list(opened.columns))
    return Table(common_schema(plan_parts([catalog])[:1]).empty_table())


def read_columns(catalog: str | Path, columns: Sequence[str]) -> Iterator[Table]:
    """Read some columns of a file, of a folder or of a HATS catalogue, batch by batch."""
    for part in plan_parts(table_files(catalog)):
        yield from read_part(part, columns)


def table_files(catalog: str | Path) -> Sequence[str | Path]:
    """Name the files, or the folder, that hold the rows of a catalogue in their order."""
    return hats_files(catalog) if is_hats(catalog) else [catalog]


def input_files(catalog: str | Path) -> list[Path]:
    """Name the files whose checksums stand for an input in the provenance.

    A HATS catalogue is known by its properties; of a folder of files none is read for that.
    """
    if is_hats(catalog):
        return sorted(hats_folder(catalog).glob("*.properties"))[:1]
    return [] if Path(catalog).is_dir() else [Path(catalog)]
