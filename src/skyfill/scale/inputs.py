"""Reading catalogues in parts: a file, a folder of Parquet files or a HATS catalogue."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from skyfill.catalog import Schema, Table, open_scan, read_table
from skyfill.catalog.file_io import reading
from skyfill.catalog.fits_header import find_table
from skyfill.catalog.format_contract import Scan, plain_scan
from skyfill.catalog.table_files import format_of
from skyfill.errors import CatalogError
from skyfill.scale.driver import Run
from skyfill.scale.hats import hats_files, hats_folder, is_hats, open_hats, stored_schema

# Rows that are processed at once.
BATCH_ROWS = 1 << 16
_KIND = "Parquet file"
# Key of the metadata that astropy writes to Parquet files; such a file is read as a whole.
_ASTROPY_KEY = b"table_meta_yaml"


T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """A catalogue to be read; see `open_source`.

    Attributes
    ----------
    path : str or Path
        As given by the user.
    files : tuple of Path
        All files with rows, in the order of the rows.
    schema : pyarrow.Schema
        Of all its rows.
    n_rows : int, optional
        If known without opening the files.
    rules : Schema, optional
        Which columns of plain text files stay text.
    """

    path: str | Path
    files: tuple[Path, ...]
    schema: pa.Schema
    n_rows: int | None = None
    rules: Schema | None = None

    @property
    def is_one_file(self) -> bool:
        """Whether it is a table file rather than a folder or a HATS catalogue."""
        return not is_hats(self.path) and not Path(self.path).is_dir()

    @property
    def checked_files(self) -> list[Path]:
        """The files whose checksums identify it in the provenance.

        A HATS catalogue is identified by its properties; the files of a folder are not read.
        """
        if is_hats(self.path):
            return sorted(hats_folder(self.path).glob("*.properties"))[:1]
        return list(self.files) if self.is_one_file else []

    def table(self) -> Table:
        """Return a table with its columns and no rows."""
        return Table(self.schema.empty_table())

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[Table]:
        """Read all rows, or some columns of them, batch by batch."""
        for part in plan_parts(self.files, rules=self.rules):
            for _, table in part.tables(columns):
                yield table

    def sample(self, columns: Sequence[str], *, n_places: int = 4, rows: int = 1 << 15) -> Table:
        """Read a few rows at the start and at some places further on.

        Only Parquet files can be entered further on; others are read from their start. The time
        does not depend on the number of rows, except for text files, whose types must be found.
        """
        tables = [Table(self.table().select(columns).arrow)]
        for file in _spread(self.files, n_places):
            for part in _spread(
                list(_cut(file, BATCH_ROWS, self.rules)), n_places // min(len(self.files), 4)
            ):
                with closing(part.tables(columns)) as batches:
                    _, first = next(batches, (0, tables[0]))
                tables.append(Table(first.arrow.slice(0, rows)))
        return Table(pa.concat_tables([table.arrow for table in tables]))

    def count_rows(self) -> int | None:
        """Count its rows; None if a file would have to be read for that."""
        if self.n_rows is not None:
            return self.n_rows
        counts = [count_rows(file) for file in self.files]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None


@dataclass(frozen=True)
class TableSource(Source):
    """A table in memory, read as if it were a file; messages call it by its `path`.

    Attributes
    ----------
    rows : Table
    """

    rows: Table = Table(pa.table({}))

    @classmethod
    def of(cls, table: Table, name: str = "table") -> TableSource:
        """Take a table, and what to call it."""
        return cls(name, (), table.arrow.schema, len(table), rows=table)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def is_one_file(self) -> bool:
        """It has one order of rows, as a file has."""
        return True

    def tables(self, columns: Sequence[str] | None = None) -> Iterator[Table]:
        """Give all rows, or some columns of them, batch by batch."""
        arrow = self.rows.arrow if columns is None else self.rows.select(columns).arrow
        for start in range(0, len(self.rows), BATCH_ROWS):
            yield Table(arrow.slice(start, BATCH_ROWS))

    def sample(self, columns: Sequence[str], *, n_places: int = 4, rows: int = 1 << 15) -> Table:
        """Give a few rows at the start and at some places further on."""
        places = _spread(list(self.tables(columns)), n_places)
        tables = [table.arrow.slice(0, rows) for table in places]
        return Table(pa.concat_tables([self.table().select(columns).arrow, *tables]))


def read_whole(catalog: str | Path | Source, rules: Schema) -> Table:
    """Read all rows of a table file, or of an opened catalogue, and apply rules."""
    if not isinstance(catalog, Source):
        return read_table(catalog, schema=rules)
    schema = catalog.schema
    tables = [table.select(schema.names).arrow.cast(schema) for table in catalog.tables()]
    rules.check(schema.names)
    return rules.apply(Table(pa.concat_tables([schema.empty_table(), *tables])))


def open_source(catalog: str | Path | Source, rules: Schema | None = None) -> Source:
    """Inspect a file, a folder of Parquet files, or a HATS catalogue (``hats://``).

    `rules` tell which columns of a plain text file stay text; they are not applied here. What was
    opened before is given back.

    Examples
    --------
    >>> import tempfile
    >>> from skyfill.catalog import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a", "b"):
    ...         write_table(Table.from_columns({"J": [14.2]}), Path(folder) / f"{name}.parquet")
    ...     source = open_source(folder)
    ...     source.schema.names, source.count_rows()
    (['J'], 2)
    """
    if isinstance(catalog, Source):
        return catalog
    if is_hats(catalog):
        opened = open_hats(catalog)
        columns = Table(stored_schema(opened).empty_table()).select(list(opened.columns))
        n_rows = int(opened.hc_structure.catalog_info.total_rows)
        return Source(catalog, tuple(hats_files(opened)), columns.arrow.schema, n_rows)
    files = tuple(files_in([catalog]))
    return Source(catalog, files, open_scan(files[0], rules=rules).schema, rules=rules)


def _spread(items: Sequence[T], n: int) -> list[T]:
    """Choose `n` items, the first among them, at even distances."""
    return (
        [items[i * len(items) // n] for i in range(min(n, len(items)))]
        if n < len(items)
        else [*items]
    )


def count_rows(file: Path) -> int | None:
    """Count the rows of a file from its header; None if the header does not contain it."""
    found = format_of(file)
    if found == "parquet":
        import pyarrow.parquet as pq

        with reading(file, _KIND):
            return int(pq.read_metadata(file).num_rows)
    if found == "fits":
        with reading(file, "FITS file"):
            return int(find_table(file).n_rows)
    return None


def files_in(inputs: Iterable[str | Path]) -> Iterator[Path]:
    """List the files of inputs; a folder stands for its Parquet files, sorted by name."""
    for path in map(Path, inputs):
        if not path.is_dir():
            yield path
            continue
        found = sorted(p for p in path.rglob("*.parquet") if not p.name.startswith((".", "_")))
        if not found:
            raise CatalogError(f"{path}: the folder holds no Parquet files (*.parquet)")
        yield from found


@dataclass(frozen=True)
class Batch:
    """Rows that were already read, and the number of the first one within the file."""

    first_row: int
    rows: pa.RecordBatch

    def tables(self) -> Iterator[tuple[int, Table]]:
        """Yield the rows with the number of the first one."""
        yield self.first_row, Table(pa.Table.from_batches([self.rows]))


@dataclass(frozen=True)
class Part:
    """Consecutive rows of a file, to be read by the worker that processes them.

    Parameters
    ----------
    path : str
        The file, by a name that every worker can open.
    start : int
        First row, at the beginning of a batch of the whole file.
    rows : int, optional
        None for all rows of a file that can only be read from its beginning.
    rules : Schema, optional
        Which columns of a plain text file stay text.
    before : int
        Number of rows in the files before.
    """

    path: str
    start: int = 0
    rows: int | None = None
    rules: Schema | None = None
    before: int = 0

    def tables(self, columns: Sequence[str] | None = None) -> Generator[tuple[int, Table]]:
        """Read the rows in batches, each with the number of its first row in all files.

        Without rows there is no batch.
        """
        scan = open_scan(self.path, columns=columns, batch_rows=BATCH_ROWS, rules=self.rules)
        if self.rows is not None:
            own = Scan(scan.schema, _batches(self, scan.schema))
            scan = plain_scan(Path(self.path), _KIND, own)
        with scan:
            for first_row, batch in _counted(scan.batches, self.before + self.start):
                yield first_row, Table(pa.Table.from_batches([batch]))


def read_in_batches(file: Path, rules: Schema | None = None) -> Iterator[Batch]:
    """Read a file from beginning to end."""
    with open_scan(file, batch_rows=BATCH_ROWS, rules=rules) as scan:
        for first_row, rows in _counted(scan.batches):
            yield Batch(first_row, rows)


def _counted(
    batches: Iterable[pa.RecordBatch], first_row: int = 0
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Give each batch the number of its first row."""
    for batch in batches:
        yield first_row, batch
        first_row += batch.num_rows


def plan_parts(
    inputs: Iterable[str | Path], *, part_rows: int = Run.part_rows, rules: Schema | None = None
) -> list[Part]:
    """Cut files into parts of about `part_rows` rows, along their row groups.

    Parameters
    ----------
    inputs : paths
        Tables of any format, or folders of Parquet files (taken in the order of their names).
        Only Parquet files are cut; any other file is one part.
    part_rows : int
        A part ends with the row group that makes it this large.
    rules : Schema, optional
        Which columns of plain text files stay text.

    Examples
    --------
    >>> import tempfile
    >>> from skyfill.catalog import write_table
    >>> path = Path(tempfile.mkdtemp()) / "stars.parquet"
    >>> write_table(Table.from_columns({"J": [14.2, 15.1]}), path)
    >>> [(part.start, part.rows) for part in plan_parts([path])]
    [(0, 2)]
    """
    parts: list[Part] = []
    before = 0
    for path in files_in(inputs):
        mine = list(_cut(path, part_rows, rules, before))
        rows = sum(part.rows for part in mine if part.rows is not None)
        before += (count_rows(path) or 0) if mine[0].rows is None else rows
        parts += mine
    return parts


def _cut(path: Path, part_rows: int, rules: Schema | None, before: int = 0) -> Iterator[Part]:
    name = str(path.resolve())
    ends = _group_ends(path)
    if ends is None:
        yield Part(name, rules=rules, before=before)
        return
    start, total = 0, ends[-1] if ends else 0
    for end in ends:
        # At the end of a batch, so that parts have the batches of the whole file.
        edge = min(-(-end // BATCH_ROWS) * BATCH_ROWS, total)
        if edge - start >= part_rows or end == total:
            if edge > start:
                yield Part(name, start, edge - start, before=before)
            start = edge
    if not total:
        yield Part(name, 0, 0, before=before)


def _group_ends(path: Path) -> list[int] | None:
    """Return the end of each row group, in rows; None if the file cannot be divided."""
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


def _batches(part: Part, schema: pa.Schema) -> Generator[pa.RecordBatch]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(part.path, pre_buffer=False) as file:
        first, groups = _groups(file, part)
        found = file.iter_batches(BATCH_ROWS, row_groups=groups, columns=schema.names)
        yield from _recut(found, part.start - first, part.rows or 0)


def _groups(file: Any, part: Part) -> tuple[int, list[int]]:
    """Return the first row of the row groups with rows of a part, and these row groups."""
    sizes = _sizes(file)
    starts = [0, *accumulate(sizes)]
    stop = part.start + (part.rows or 0)
    held = [i for i, size in enumerate(sizes) if starts[i] < stop and starts[i] + size > part.start]
    return (starts[held[0]] if held else part.start), held


def _recut(batches: Iterable[pa.RecordBatch], skip: int, rows: int) -> Iterator[pa.RecordBatch]:
    """Skip `skip` rows, then yield `rows` rows in batches of BATCH_ROWS."""
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
                # pyarrow has concat_batches since version 19.
                yield pa.Table.from_batches(held).combine_chunks().to_batches()[0]
                held, count = [], 0


def common_schema(files: Sequence[str | Path], rules: Schema | None = None) -> pa.Schema:
    """Return the schema of all files; CatalogError names the first file that differs."""
    if not files:
        raise CatalogError("no input files; name at least one")
    first = open_scan(files[0], rules=rules).schema
    for path in files[1:]:
        if not open_scan(path, rules=rules).schema.equals(first):
            raise CatalogError(
                f"{path}: its columns are not those of {files[0]}; files in one folder need "
                "the same columns and types, in the same order"
            )
    return first
