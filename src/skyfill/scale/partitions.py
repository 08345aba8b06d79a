"""Files cut into parts that workers read on their own, in the batches of a single machine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from skyfill.catalog import Table, open_scan
from skyfill.catalog.file_io import reading
from skyfill.catalog.format_contract import Scan, plain_scan
from skyfill.catalog.table_files import format_of
from skyfill.errors import CatalogError
from skyfill.scale.stream import BATCH_ROWS

# A worker holds one batch at a time; parts are small enough to share out evenly, and few enough.
# A billion rows make four thousand of them.
PART_ROWS = 1 << 18
_KIND = "Parquet file"
# What astropy hides in a Parquet file of its own takes the whole file to read.
_ASTROPY_KEY = b"table_meta_yaml"


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a file.

    Parameters
    ----------
    path : str
        The file, by a name that every worker can open.
    start : int
        First row; a batch of the single machine begins there.
    rows : int, optional
        None for all rows of a file that only can be read from its beginning.
    """

    path: str
    start: int = 0
    rows: int | None = None

    @property
    def place(self) -> int:
        """Number of the first batch within the file."""
        return self.start // BATCH_ROWS


def plan_parts(inputs: Iterable[str | Path], *, part_rows: int = PART_ROWS) -> list[Part]:
    """Cut files into parts of about `part_rows` rows, along their row groups.

    Parameters
    ----------
    inputs : paths
        Tables of any format, or folders of Parquet files (taken in the order of their names).
        Only Parquet files are cut; any other file is one part.
    part_rows : int
        A part ends with the first row group that makes it so large.

    Examples
    --------
    >>> import tempfile
    >>> from skyfill.catalog import write_table
    >>> path = Path(tempfile.mkdtemp()) / "stars.parquet"
    >>> write_table(Table.from_columns({"J": [14.2, 15.1]}), path)
    >>> [(part.start, part.rows) for part in plan_parts([path])]
    [(0, 2)]
    """
    return [part for path in _files(inputs) for part in _cut(path, part_rows)]


def _files(inputs: Iterable[str | Path]) -> Iterator[Path]:
    for path in map(Path, inputs):
        if not path.is_dir():
            yield path
            continue
        found = sorted(p for p in path.rglob("*.parquet") if not p.name.startswith((".", "_")))
        if not found:
            raise CatalogError(f"{path}: the folder holds no Parquet files (*.parquet)")
        yield from found


def _cut(path: Path, part_rows: int) -> Iterator[Part]:
    name = str(path.resolve())
    ends = _group_ends(path)
    if ends is None:
        yield Part(name)
        return
    start, total = 0, ends[-1] if ends else 0
    for end in ends:
        # Up to the end of a batch: parts have the batches, and so the draws, of one machine.
        edge = min(-(-end // BATCH_ROWS) * BATCH_ROWS, total)
        if edge - start >= part_rows or end == total:
            if edge > start:
                yield Part(name, start, edge - start)
            start = edge
    if not total:
        yield Part(name, 0, 0)


def _group_ends(path: Path) -> list[int] | None:
    """Row after the last of each row group; None where the file cannot be cut."""
    if format_of(path) != "parquet":
        return None
    import pyarrow.parquet as pq

    with reading(path, _KIND), pq.ParquetFile(path) as file:
        if _ASTROPY_KEY in (file.schema_arrow.metadata or {}):
            return None
        return list(accumulate(_sizes(file)))


def _sizes(file: Any) -> list[int]:
    metadata = file.metadata
    return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]


def part_schema(part: Part) -> pa.Schema:
    """Columns of a part, as every table of it has them."""
    return open_scan(part.path).schema


def read_part(part: Part, columns: Sequence[str] | None = None) -> Iterator[Table]:
    """Read a part in the batches that a single machine reads; an empty part gives no batch."""
    scan = open_scan(part.path, columns=columns, batch_rows=BATCH_ROWS)
    if part.rows is not None:
        scan = plain_scan(Path(part.path), _KIND, Scan(scan.schema, _batches(part, scan.schema)))
    for batch in scan.batches:
        yield Table(pa.Table.from_batches([batch]))


def _batches(part: Part, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(part.path, pre_buffer=False) as file:
        first, groups = _groups(file, part)
        found = file.iter_batches(BATCH_ROWS, row_groups=groups, columns=schema.names)
        yield from _recut(found, part.start - first, part.rows or 0)


def _groups(file: Any, part: Part) -> tuple[int, list[int]]:
    """Row groups that hold rows of a part, and the first row of the first of them."""
    sizes = _sizes(file)
    starts = [0, *accumulate(sizes)]
    stop = part.start + (part.rows or 0)
    held = [i for i, size in enumerate(sizes) if starts[i] < stop and starts[i] + size > part.start]
    return (starts[held[0]] if held else part.start), held


def _recut(batches: Iterable[pa.RecordBatch], skip: int, rows: int) -> Iterator[pa.RecordBatch]:
    """Leave `skip` rows out, then give `rows` rows in batches of BATCH_ROWS."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        fresh = batch.slice(skip)
        skip = max(skip - batch.num_rows, 0)
        while fresh.num_rows and rows:
            taken = fresh.slice(0, min(BATCH_ROWS - count, rows))
            fresh = fresh.slice(taken.num_rows)
            held.append(taken)
            count, rows = count + taken.num_rows, rows - taken.num_rows
            if count == BATCH_ROWS or not rows:
                yield pa.concat_batches(held)
                held, count = [], 0


def common_schema(parts: Sequence[Part]) -> pa.Schema:
    """Give the schema that all files share; CatalogError names the first that differs."""
    paths = list(dict.fromkeys(part.path for part in parts))
    if not paths:
        raise CatalogError("no input files; name at least one")
    first = part_schema(Part(paths[0]))
    for path in paths[1:]:
        if not part_schema(Part(path)).equals(first):
            raise CatalogError(
                f"{path}: its columns are not those of {paths[0]}; files that are scored together "
                "need the same columns and types, in the same order"
            )
    return first


def count_cells(path: str | Path, names: Collection[str]) -> tuple[int, int]:
    """Count rows, and cells of some columns that are not null, from a Parquet file's footer."""
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    seen = 0
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        cells = (group.column(i) for i in range(group.num_columns))
        nulls = [c.statistics.null_count for c in cells if c.path_in_schema in names]
        seen += group.num_rows * len(nulls) - sum(nulls)
    return metadata.num_rows, seen
