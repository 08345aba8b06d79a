"""Files through a function, one record batch after the other: bounded memory, all cores, resumed.

Every batch is scored and encoded on its own, so batches run side by side; their bytes are put
into the output in the order of the input. What is finished is kept in a `Ledger` until all is.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from skyfill import __version__
from skyfill.catalog import Provenance, Schema, Table, open_scan, open_writer
from skyfill.catalog.arrays import normalized
from skyfill.catalog.provenance import PROVENANCE_KEY
from skyfill.catalog.table import normalized_schema, with_facts
from skyfill.errors import CatalogError
from skyfill.scale.footer import RowGroup, encode_group, group_head
from skyfill.scale.journal import parts_folder
from skyfill.scale.ledger import ROWS, Done, open_ledger
from skyfill.threads import n_threads, thread_pool

T = TypeVar("T")
BATCH_ROWS = 1 << 16
# Batches that are under way beside those that the cores work on.
AHEAD = 1


@dataclass(frozen=True)
class Target:
    """Where a stream of tables goes.

    Parameters
    ----------
    output : path
        Any format that `write_table` writes.
    schema : pyarrow.Schema
        Of every table.
    job : mapping
        What the result depends on (identifier of the model, options), as JSON: finished parts of
        another job are never taken for this one's.
    provenance : Provenance, optional
        Written into the output; its checksums say which input the parts belong to.
    resume : bool
        Go on with the parts that a run left that was killed or interrupted.
    """

    output: str | Path
    schema: pa.Schema
    job: Mapping[str, Any] = field(default_factory=dict)
    provenance: Provenance | None = None
    resume: bool = False


def stream_file(
    score: Callable[[Table, int], Table],
    catalog: str | Path,
    target: Callable[[pa.Schema], Target],
    *,
    rules: Schema | None = None,
    count: Callable[[Table], Mapping[str, int]] = lambda table: {},
    tell: Callable[[int], None] = lambda rows: None,
) -> Done:
    """Score a file batch by batch; the output appears whole or not at all.

    Parameters
    ----------
    score : callable
        Takes a table and the number of its batch; gives a table with the same rows. Called from
        several threads, for batches in any order.
    catalog : path
        Any format that `read_table` reads.
    target : callable
        Takes the schema of what `score` gives for a table without rows, gives the `Target`.
    rules : Schema, optional
        Roles, units and sentinels to apply to the catalog first.
    count : callable
        What to count in each scored table; `Done.counts` has the sums over all batches, also over
        those of the run that was killed.
    tell : callable
        Called with the number of rows of each batch that is done, and first with those that an
        earlier run did.
    """
    rules = rules or Schema()
    scan = open_scan(catalog, batch_rows=BATCH_ROWS)
    empty = rules.apply(Table(scan.schema.empty_table()))
    place = target(score(empty, 0).arrow.schema)
    facts = {"batch_rows": BATCH_ROWS, "rules": repr(rules), **_input_facts(catalog, place)}

    def items(done: Done) -> Iterator[tuple[int, pa.RecordBatch]]:
        return islice(enumerate(scan.batches), done.parts, None)

    def work(item: tuple[int, pa.RecordBatch]) -> Table:
        return score(rules.apply(Table(pa.Table.from_batches([item[1]]))), item[0])

    bound = Target(
        place.output, place.schema, {**place.job, **facts}, place.provenance, place.resume
    )
    return write_parts(bound, items, work, count=count, tell=tell)


def write_parts(
    target: Target,
    items: Callable[[Done], Iterable[T]],
    work: Callable[[T], Table],
    *,
    count: Callable[[Table], Mapping[str, int]] = lambda table: {},
    tell: Callable[[int], None] = lambda rows: None,
) -> Done:
    """Write the tables that `work` makes of items, in their order; see `stream_file`.

    Parameters
    ----------
    target : Target
    items : callable
        Takes what is done already (`Done`), gives the items that are left.
    work : callable
        Makes a table of an item. The tables of all items, one after the other, are the output.
    count, tell : callables
        As in `stream_file`.
    """
    _check_output(target)
    made = target.provenance.to_json() if target.provenance else None
    job = {**target.job, "made_with": versions()}
    with open_ledger(target.output, job, provenance=made, resume=target.resume) as ledger:
        schema = _full_schema(target.schema, ledger.provenance)
        tell(ledger.done.rows)
        if ledger.is_published:
            _check_published(target)
            shutil.rmtree(parts_folder(target.output))
            return ledger.done

        def encode(item: T) -> tuple[RowGroup | None, int, Mapping[str, int]]:
            table = work(item)
            rows = _conforming(table, schema)
            return (encode_group(rows) if len(rows) else None), len(rows), count(table)

        for group, n_rows, counts in _side_by_side(encode, items(ledger.done)):
            if group is not None:
                ledger.append(group, n_rows, counts)
                tell(n_rows)
        ledger.finish(group_head(schema))
        _publish(target)
        return ledger.done


def _side_by_side(work: Callable[[T], Any], items: Iterable[T]) -> Iterator[Any]:
    """Map over items on all cores, results in order; few are held at a time."""
    workers = n_threads()
    waiting: deque[Future[Any]] = deque()
    with thread_pool(workers) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) >= workers + AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class _EnoughError(Exception):
    """Leaves a writer before anything is written."""


def _check_output(target: Target) -> None:
    """Fail before any work where the format, the folder or a column would fail at the end."""
    try:
        with open_writer(target.output, target.schema):
            raise _EnoughError
    except _EnoughError:
        return


def _publish(target: Target) -> None:
    """Put the rows in place: as they are, or converted to the format that was asked for."""
    folder, output = parts_folder(target.output), Path(target.output).resolve()
    if _is_parquet(output):
        if output.exists():
            shutil.copymode(output, folder / ROWS)
        os.replace(folder / ROWS, output)
    else:
        scan = open_scan(folder / ROWS, batch_rows=BATCH_ROWS)
        with open_writer(output, scan.schema) as writer:
            for batch in scan.batches:
                writer.write(batch)
        # Before the journal: a kill in between must not look like work that is left.
        (folder / ROWS).unlink()
    shutil.rmtree(folder)


def _check_published(target: Target) -> None:
    if not Path(target.output).exists():
        raise CatalogError(
            f"{target.output}: was finished and is gone; run without --resume to make it again"
        )


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".parq", ".pq")


def _full_schema(schema: pa.Schema, provenance: str | None) -> pa.Schema:
    schema = normalized_schema(schema)
    if provenance is None:
        return schema
    return schema.with_metadata(with_facts(schema, {PROVENANCE_KEY: provenance}))


def _conforming(table: Table, schema: pa.Schema) -> pa.Table:
    if not normalized_schema(table.arrow.schema).equals(schema):
        both = (table.arrow.schema, schema)
        found, wanted = (", ".join(f"{f.name} ({f.type})" for f in each) for each in both)
        raise CatalogError(f"a batch has columns {found} where the table has {wanted}")
    columns = [normalized(column) for column in table.arrow.combine_chunks().columns]
    return pa.Table.from_arrays(columns, schema=schema)


def versions() -> str:
    """Name what the bytes of a result depend on, apart from its inputs."""
    return f"skyfill {__version__}, pyarrow {pa.__version__}, {platform.machine()}"


def _input_facts(catalog: str | Path, target: Target) -> dict[str, Any]:
    """Say what the input is: by its checksum where that was taken, else by size and time."""
    if target.provenance and target.provenance.checksums:
        return {"inputs": list(target.provenance.checksums)}
    stat = Path(catalog).stat()
    return {"input": [str(Path(catalog).resolve()), stat.st_size, stat.st_mtime_ns]}
