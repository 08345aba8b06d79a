"""The batch contract on a Dask cluster: parts of files to workers, results in the order of rows."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from skyfill import __version__
from skyfill.catalog import Provenance, Schema, Table, open_writer, read_batches
from skyfill.errors import SkyfillError
from skyfill.model import Extras
from skyfill.model.results import filled_columns
from skyfill.scale.client import open_client
from skyfill.scale.partitions import (
    PART_ROWS,
    Part,
    common_schema,
    count_cells,
    plan_parts,
    read_part,
)
from skyfill.scale.stream import BATCH_ROWS
from skyfill.scale.work import Filling, Job, Work, worker_model

PARTS_SUFFIX = ".dask-parts"


def fill_files_on_dask(
    model: str | Path,
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    scheduler: str | None = None,
    extras: Extras | None = None,
    **options: Any,
) -> tuple[int, int]:
    """Fill the gaps of files on a cluster, row for row as `fill_file` does on one machine.

    Parameters
    ----------
    model : path
        Model file that every worker can read.
    inputs : paths
        Files with the same columns, or folders of Parquet files.
    output : path
        A table file (written in the order of the inputs), or, without an extension, a new folder
        of Parquet files, one for each part.
    scheduler : str, optional
        See `open_client`.
    extras : Extras, optional
        Quantiles and draws to write as well.
    **options
        Of `score_files_on_dask`.

    Returns
    -------
    n_rows, n_filled : int
    """
    work = Filling(extras or Extras())
    return score_files_on_dask(model, inputs, output, work=work, scheduler=scheduler, **options)


def score_files_on_dask(  # noqa: PLR0913 - as `fill_file`, plus the work and the cluster
    model: str | Path,
    inputs: Sequence[str | Path],
    output: str | Path,
    *,
    work: Work,
    scheduler: str | None = None,
    schema: Schema | None = None,
    provenance: Provenance | None = None,
    part_rows: int = PART_ROWS,
    resume: bool = False,
    tell: Callable[[int], None] = lambda rows: None,
) -> tuple[int, int]:
    """Do `work` to all batches of files on a cluster; see `fill_files_on_dask`.

    Parameters
    ----------
    work : Work
        Sent to the workers, so it must be importable there.
    schema : Schema, optional
        Roles, units and sentinels to apply first.
    provenance : Provenance, optional
        Written into the output.
    part_rows : int
        Rows of a task, about.
    resume : bool
        Take the parts that a run of the same job left in ``OUTPUT.dask-parts`` when it failed.
    tell : callable
        Called with the number of rows of each part that is done.
    """
    output = Path(output)
    job = Job.of(model, work, rules=schema or Schema(), provenance=provenance)
    parts = plan_parts(inputs, part_rows=part_rows)
    # Fails here, on the client, where columns, units or the model do not fit.
    columns = job.schema(common_schema(parts))
    with _beside(output, resume=resume) as kept, open_client(scheduler) as client:
        folder = kept / _digest(job, parts)
        folder.mkdir(exist_ok=True)
        counts = score_partitions(client, parts, job, folder, tell=tell)
        if output.suffix:
            _assemble(folder, len(parts), output, schema=columns, provenance=provenance)
        else:
            _settle(folder, output)
    return sum(count.rows for count in counts), sum(count.filled for count in counts)


@dataclass(frozen=True)
class Count:
    """Rows of a part that were scored, and gaps that were filled."""

    rows: int
    filled: int


def score_partitions(
    client: Any,
    parts: Sequence[Part],
    job: Job,
    folder: Path,
    *,
    tell: Callable[[int], None] = lambda rows: None,
) -> list[Count]:
    """Score parts on a cluster into one Parquet file each, `part_name(i)` in `folder`.

    A part that was on a worker when it died is scored again: the same rows give the same file.

    Parameters
    ----------
    client : distributed.Client
    parts : sequence of Part
    job : Job
    folder : path
        On a disk that all workers share.
    tell : callable
        Called with the number of rows of each part that is done.
    """
    from distributed import as_completed
    from distributed.scheduler import KilledWorker

    calls = [(part, str(folder / part_name(i)), job) for i, part in enumerate(parts)]
    futures = client.map(_score_part, *zip(*calls, strict=True), pure=False)
    try:
        for future in as_completed(futures):
            tell(future.result().rows)
        counts: list[Count] = client.gather(futures)
    except KilledWorker as error:
        raise SkyfillError(
            f"workers died again and again on the same rows ({error}); give them more memory, or "
            "make the parts smaller"
        ) from None
    finally:
        client.cancel(futures)
    return counts


def part_name(index: int) -> str:
    """Name of the file of a part; names sort in the order of rows.

    Examples
    --------
    >>> part_name(7)
    'part-000007.parquet'
    """
    return f"part-{index:06d}.parquet"


def _score_part(part: Part, output: str, job: Job) -> Count:
    columns = job.schema(common_schema([part]))
    if not Path(output).exists():  # a file has its name only when it is whole
        _write_part(part, output, job, columns)
    return Count(*count_cells(output, filled_columns(Table(columns.empty_table()))))


def _write_part(part: Part, output: str, job: Job, columns: pa.Schema) -> None:
    model = worker_model(job.model, job.identifier)
    with open_writer(output, columns, provenance=job.provenance) as writer:
        for place, table in enumerate(read_part(part), part.place):
            done = job.work(model, job.rules.apply(table), place)
            for batch in done.arrow.combine_chunks().to_batches():
                writer.write(batch)


def _digest(job: Job, parts: Sequence[Part]) -> str:
    """Name what the parts of a result depend on; parts of another job are not taken for them."""
    stats = [Path(path).stat() for path in dict.fromkeys(part.path for part in parts)]
    inputs = [(stat.st_size, stat.st_mtime_ns) for stat in stats]
    facts = repr((job.identifier, job.work, job.rules, parts, inputs, __version__))
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


@contextmanager
def _beside(output: Path, *, resume: bool) -> Iterator[Path]:
    """Make a folder for parts beside the output; it goes when all of them are in place."""
    target = output.resolve()
    if not target.parent.is_dir():
        raise SkyfillError(f"{output}: there is no directory {output.parent}; create it first")
    if not output.suffix and target.exists():
        raise SkyfillError(f"{output}: exists; choose another folder, or remove it")
    folder = target.with_name(target.name + PARTS_SUFFIX)
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(exist_ok=True)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _assemble(
    folder: Path,
    n_parts: int,
    output: Path,
    *,
    schema: pa.Schema,
    provenance: Provenance | None,
) -> None:
    with open_writer(output, schema, provenance=provenance) as writer:
        for i in range(n_parts):
            for batch in read_batches(folder / part_name(i), batch_rows=BATCH_ROWS):
                writer.write(batch.replace_schema_metadata(schema.metadata))


def _settle(folder: Path, output: Path) -> None:
    for left in folder.glob(".*"):
        left.unlink()
    os.replace(folder, output)
