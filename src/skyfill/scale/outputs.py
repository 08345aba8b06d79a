"""Outputs made of finished parts: one file of any format, or a folder of Parquet files."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import Table, open_scan, open_writer, read_table
from skyfill.catalog.table_files import conforming
from skyfill.errors import CatalogError
from skyfill.model.results import CLASS, OUTLIER, TRAINED_ON, filled_columns
from skyfill.scale.driver import Output, Run, Task, run_job
from skyfill.scale.job_folder import Done, JobFolder
from skyfill.scale.parquet_join import JoinedFile, write_groups
from skyfill.scale.workers import alone

# Takes a part (a Parquet file) and returns counts of what it contains.
Count = Callable[[Path], Mapping[str, int]]


def part_name(index: int) -> str:
    """Return the file name of a part; names sort in the order of rows.

    Examples
    --------
    >>> part_name(7)
    'part-000007.parquet'
    """
    return f"part-{index:06d}.parquet"


class FolderOutput:
    """A new folder that contains the parts as they are."""

    def __init__(self, path: Path, count: Count) -> None:
        self.path, self._count = path, count

    def check(self) -> None:
        """Refuse a path that already exists."""
        if self.path.exists():
            raise CatalogError(f"{self.path}: exists; choose another folder, or remove it")

    def add(self, part: Path) -> Mapping[str, int]:
        """Count the contents of a part."""
        with _reading(part):
            return {"rows": count_rows_of(part), **self._count(part)}

    def publish(self, folder: JobFolder) -> None:
        """Rename the folder of the parts to the output."""
        os.replace(folder.parts, self.path)


class FileOutput:
    """One file with the rows of all parts, in order.

    A Parquet file grows while later parts are being made; other formats are written at the end.
    """

    def __init__(self, schema: pa.Schema, folder: JobFolder, path: Path, count: Count) -> None:
        self.path, self._schema, self._count = path, schema, count
        self._parts: list[Path] = []
        is_parquet = path.suffix.lower() in (".parquet", ".parq", ".pq")
        self._joined = JoinedFile(folder.path / "joined") if is_parquet else None

    def check(self) -> None:
        """Refuse, before any work, a format, folder or column that could not be written."""
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
        """Put the joined file in place, or write the rows in the requested format."""
        if self._joined is None:
            with open_writer(self.path, self._schema) as writer:
                for part in self._parts:
                    with open_scan(part) as scan:
                        for batch in scan.batches:
                            writer.write(batch)
            return
        self._joined.close(self._schema)
        output = self.path.resolve()
        if output.exists():
            shutil.copymode(output, self._joined.path)
        os.replace(self._joined.path, output)


class _EnoughError(Exception):
    """Raised to leave a writer before anything is written."""


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
            f"{part}: the part is damaged ({error}); run without --resume to start again"
        ) from error


def count_results(part: Path, columns: pa.Schema, prefix: str = "") -> dict[str, int]:
    """Count filled cells, classes and outliers in a Parquet file with these columns."""
    import pyarrow.parquet as pq

    counts: Counter[str] = Counter()
    names, metadata = filled_columns(Table(columns.empty_table())), pq.read_metadata(part)
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        cells = (group.column(i) for i in range(group.num_columns))
        nulls = [c.statistics.null_count for c in cells if c.path_in_schema in names]
        counts["filled"] += group.num_rows * len(nulls) - sum(nulls)
    best, outlier = prefix + CLASS, prefix + OUTLIER
    if best in columns.names and outlier in columns.names and _is_flag(columns, outlier):
        table = pq.read_table(part, columns=[best, outlier], partitioning=None)
        for item in pc.value_counts(table.column(best)).to_pylist():
            counts[f"class.{item['values']}"] = item["counts"]
        counts["outliers"] = pc.sum(table.column(outlier)).as_py() or 0
    known = prefix + TRAINED_ON
    if known in columns.names and _is_flag(columns, known):
        table = pq.read_table(part, columns=[known], partitioning=None)
        counts[TRAINED_ON] = pc.sum(table.column(known)).as_py() or 0
    return dict(counts)


def _leading(parts: Path) -> list[Path]:
    """Return the finished parts up to the first that is missing; remove those after it."""
    every = sorted(parts.glob("part-*"))
    names = [part_name(i) for i in range(len(every))]
    pairs = zip(every, names, strict=True)
    good = [path for path, _ in takewhile(lambda pair: pair[0].name == pair[1], pairs)]
    for path in every[len(good) :]:
        path.unlink()
    return good


def _is_flag(columns: pa.Schema, name: str) -> bool:
    return bool(pa.types.is_boolean(columns.field(name).type))


def write_tables(
    run: Run,
    facts: Mapping[str, Any],
    output: Path,
    tables: Callable[[int], Iterator[Table]],
    *,
    columns: pa.Schema,
    count: Callable[[Table], Mapping[str, int]],
) -> Done:
    """Write tables to one file; they are made in this thread, one after another.

    Parameters
    ----------
    run, facts, output
        As in `run_job`.
    tables : callable
        Takes the number of rows that an earlier run finished; returns the tables of the others.
    columns : pyarrow.Schema
        Of every table.
    count : callable
        Takes a table and returns counts of what it contains.
    """

    def prepare(folder: JobFolder) -> tuple[Output, Iterable[Task]]:
        schema = folder.describe(columns)
        finished = _leading(folder.parts)
        rest = tables(sum(map(count_rows_of, finished)))
        made = enumerate((conforming(table.arrow, schema) for table in rest), len(finished))
        tasks = (Task(part_name(i), partial(write_groups, [rows], schema)) for i, rows in made)
        done = (Task(part.name, Path.touch) for part in finished)
        return FileOutput(schema, folder, output, counted), chain(done, tasks)

    def counted(part: Path) -> Mapping[str, int]:
        return count(read_table(part))

    return run_job(run, alone(), facts, output, prepare, keep=False)
