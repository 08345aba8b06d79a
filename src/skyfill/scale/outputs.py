"""What becomes of finished parts: one file of any format, or a folder of Parquet files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from skyfill.catalog import Table, open_scan, open_writer, read_table
from skyfill.catalog.table_files import conforming
from skyfill.errors import CatalogError
from skyfill.scale.driver import Output, Run, Task, run_job
from skyfill.scale.job_folder import Done, JobFolder
from skyfill.scale.parquet_join import JoinedFile, write_groups
from skyfill.scale.workers import alone

# What else to count in a part, a Parquet file.
Count = Callable[[Path], Mapping[str, int]]


def part_name(index: int) -> str:
    """Name of the file of a part; names sort in the order of rows.

    Examples
    --------
    >>> part_name(7)
    'part-000007.parquet'
    """
    return f"part-{index:06d}.parquet"


class FolderOutput:
    """A new folder that holds the parts as they are."""

    def __init__(self, path: Path, count: Count) -> None:
        self.path, self._count = path, count

    def check(self) -> None:
        """Fail where there is something of that name."""
        if self.path.exists():
            raise CatalogError(f"{self.path}: exists; choose another folder, or remove it")

    def add(self, part: Path) -> Mapping[str, int]:
        """Count what is in a part."""
        with _reading(part):
            return {"rows": count_rows_of(part), **self._count(part)}

    def publish(self, folder: JobFolder) -> None:
        """Let the folder of the parts be the output."""
        for left in folder.parts.glob(".*"):
            left.unlink()
        os.replace(folder.parts, self.path)


class FileOutput:
    """One file with the rows of all parts, in their order.

    Parquet files are joined while later parts are made; other formats are written at the end.
    """

    def __init__(self, path: Path, schema: pa.Schema, count: Count, folder: JobFolder) -> None:
        self.path, self._schema, self._count = path, schema, count
        self._parts: list[Path] = []
        is_parquet = path.suffix.lower() in (".parquet", ".parq", ".pq")
        self._joined = JoinedFile(folder.path / "joined") if is_parquet else None

    def check(self) -> None:
        """Fail where the format, the folder or a column would fail at the end."""
        try:
            with open_writer(self.path, self._schema):
                raise _EnoughError
        except _EnoughError:
            return

    def add(self, part: Path) -> Mapping[str, int]:
        """Append a part."""
        self._parts.append(part)
        with _reading(part):
            rows = self._joined.add(part) if self._joined else count_rows_of(part)
            return {"rows": rows, **self._count(part)}

    def publish(self, folder: JobFolder) -> None:
        """Put the rows in place: as they are, or converted to the format that was asked for."""
        if self._joined is None:
            with open_writer(self.path, self._schema) as writer:
                for part in self._parts:
                    for batch in open_scan(part).batches:
                        writer.write(batch)
            return
        self._joined.close(self._schema)
        output = self.path.resolve()
        if output.exists():
            shutil.copymode(output, self._joined.path)
        os.replace(self._joined.path, output)


class _EnoughError(Exception):
    """Leaves a writer before anything is written."""


def count_rows_of(part: Path) -> int:
    """Count the rows of a Parquet file from its footer."""
    import pyarrow.parquet as pq

    return int(pq.read_metadata(part).num_rows)


@contextmanager
def _reading(part: Path) -> Iterator[None]:
    try:
        yield
    except (CatalogError, OSError):
        raise
    except Exception as error:
        raise CatalogError(
            f"{part}: the part is damaged ({error}); run without --resume to start anew"
        ) from error


def write_tables(
    run: Run,
    facts: Mapping[str, Any],
    output: Path,
    tables: Callable[[int], Iterator[Table]],
    *,
    columns: pa.Schema,
    count: Callable[[Table], Mapping[str, int]],
) -> Done:
    """Write tables to one file, as they are made one after the other in this thread.

    Parameters
    ----------
    run, facts, output
        As in `run_job`.
    tables : callable
        Takes the number of rows that an earlier run finished, gives the tables with all others.
    columns : pyarrow.Schema
        Of every table.
    count : callable
        What to count in a table.
    """

    def prepare(folder: JobFolder) -> tuple[Output, Iterable[Task]]:
        schema = folder.describe(columns)
        finished = sorted(folder.parts.glob("part-*"))
        rest = tables(sum(map(count_rows_of, finished)))
        made = enumerate((conforming(table.arrow, schema) for table in rest), len(finished))
        tasks = (Task(part_name(i), partial(write_groups, [rows], schema)) for i, rows in made)
        done = (Task(part.name, Path.touch) for part in finished)
        return FileOutput(output, schema, counted, folder), chain(done, tasks)

    def counted(part: Path) -> Mapping[str, int]:
        return count(read_table(part))

    return run_job(run, alone(), facts, output, prepare, keep=False)
