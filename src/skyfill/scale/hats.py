"""HATS catalogues through a model: LSDB's `map_partitions` of the batch contract."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from skyfill.catalog import Provenance, Role, Schema, Table
from skyfill.errors import CatalogError
from skyfill.model import Extras, Model
from skyfill.model.results import before_name, filled_columns
from skyfill.scale.client import client_for
from skyfill.scale.hats_store import (
    appearing,
    describe_columns,
    hats_files,
    hats_folder,
    open_hats,
    stored_schema,
    write_catalog,
)
from skyfill.scale.partitions import count_cells
from skyfill.scale.work import Filling, Job, Work, worker_model


def fill_hats(
    model: str | Path,
    catalog: str | Path,
    output: str | Path,
    *,
    extras: Extras | None = None,
    **options: Any,
) -> tuple[int, int]:
    """Fill the gaps of a HATS catalogue; `options` are those of `score_hats`.

    Returns
    -------
    n_rows, n_filled : int
    """
    return score_hats(model, catalog, output, work=Filling(extras or Extras()), **options)


def score_hats(  # noqa: PLR0913 - as `score_files_on_dask`
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
    """Do `work` to every partition of a HATS catalogue and of its margin; write the result.

    Columns that the work does not touch stay as they are, NaN and null included. In the columns
    that it uses both are gaps.

    Parameters
    ----------
    model : path
        Model file that every worker can read.
    catalog, output : paths
        Folders, with ``hats://`` before them or not. The output must not exist; it appears whole.
    work : Work
        Its `place` is the number of the HEALPix pixel, so draws do not depend on the partitions
        that are beside it.
    scheduler : str, optional
        Address of a Dask scheduler or ``"local"``; None for the threads of this process, or for
        the client that is already open.
    schema : Schema, optional
        Roles, units and sentinels to apply first.
    provenance : Provenance, optional
        Written into the metadata of the output.
    resume : bool
        Go on with what an interrupted run of the same model left beside the output.
    tell : callable
        Called with the number of rows of each partition that is done.

    Returns
    -------
    n_rows, n_filled : int
        `n_filled` is 0 where the work fills nothing.
    """
    opened = open_hats(catalog)
    job = Job.of(model, work, rules=schema or Schema())
    used = _used_schema(opened, job, catalog)
    empty = score_frame(opened.meta, None, job, used)
    scored = opened.map_partitions(score_frame, job, used, meta=empty, include_pixel=True)
    facts = {"skyfill_model": job.identifier}
    columns = _result_schema(opened, job, used)
    with client_for(scheduler), appearing(output, job.identifier, resume=resume) as partial:
        how: dict[str, Any] = {"facts": facts, "resume": resume, "tell": tell}
        write_catalog(scored, partial, name=hats_folder(output).name, **how)
        describe_columns(partial, columns, provenance)
    return _counts(hats_folder(output), columns)


def score_frame(frame: Any, pixel: Any, job: Job, used: bytes) -> Any:
    """Score one partition, which may be empty: a frame with the same index in the same order."""
    import pandas as pd

    known = pa.ipc.read_schema(pa.py_buffer(used))
    table = job.rules.apply(_as_table(frame, known))
    model = worker_model(job.model, job.identifier)
    place = 4 ** (pixel.order + 1) + pixel.pixel if pixel is not None else 0
    done = job.work(model, table, place)
    touched = _touched(model, table, done)
    columns = {
        name: pd.arrays.ArrowExtensionArray(done.column(name))
        if name in touched
        else frame[name].array
        for name in done.names
    }
    columns |= {name: frame[name].array for name in frame.columns if name not in columns}
    return type(frame)(columns, index=frame.index)


def _as_table(frame: Any, known: pa.Schema) -> Table:
    """Take columns from a frame, with what is known about them."""
    arrow = pa.Table.from_pandas(frame[known.names], preserve_index=False)
    fields = [f.with_metadata(known.field(f.name).metadata) for f in arrow.schema]
    return Table.from_arrow(pa.Table.from_arrays(arrow.columns, schema=pa.schema(fields)))


def _touched(model: Model, table: Table, done: Table) -> set[str]:
    """Name the columns that the work may have changed, the same for every partition."""
    new = set(done.names) - set(table.names)
    reasons = {n for n in done.names_with(Role.REASON) if done.info(n).of in model.names}
    moved = {name for name in done.names if before_name(name) in new}
    return (new | reasons | moved | set(model.names)) & set(done.names)


def _used_schema(opened: Any, job: Job, path: str | Path) -> bytes:
    """Give the columns that are no nested tables, serialized for the workers."""
    model = worker_model(job.model, job.identifier)
    if not set(model.names) & set(opened.columns):
        raise CatalogError(
            f"{path}: has none of the model's features ({', '.join(model.names)}); rename its "
            "columns or use another model"
        )
    stored = stored_schema(opened)
    plain = [n for n in opened.columns if not pa.types.is_nested(stored.field(n).type)]
    buffer = Table(stored.empty_table()).select(plain).arrow.schema.serialize()
    return bytes(buffer.to_pybytes())


def _result_schema(opened: Any, job: Job, used: bytes) -> pa.Schema:
    """Describe all columns of the result."""
    known = job.schema(pa.ipc.read_schema(pa.py_buffer(used)))
    nested = [field for field in stored_schema(opened) if field.name not in known.names]
    return pa.schema([*known, *nested])


def _counts(folder: Path, columns: pa.Schema) -> tuple[int, int]:
    """Count rows and filled gaps."""
    filled = filled_columns(Table(columns.empty_table()))
    found = [count_cells(path, filled) for path in hats_files(folder)]
    return sum(rows for rows, _ in found), sum(cells for _, cells in found)
