"""Read and write tables of any format, recognized by content or by extension."""

import itertools
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from skyfill.catalog.arrays import normalized
from skyfill.catalog.column_info import Role
from skyfill.catalog.ecsv_header import ECSV_MAGIC, HeaderWarning, warn_of_numbers
from skyfill.catalog.file_io import first_bytes, open_atomic, reading
from skyfill.catalog.filled_names import described_by_name
from skyfill.catalog.format_contract import BatchWriter, Scan, plain_scan
from skyfill.catalog.provenance import PROVENANCE_KEY, Provenance
from skyfill.catalog.schema import Schema, as_schema
from skyfill.catalog.table import Table, normalized_schema, refuse_repeated_names, with_facts
from skyfill.errors import CatalogError

Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)

BATCH_ROWS = 1 << 17
_TABLE_ROWS = 1 << 20

# Modules with `scan` and, but for the last, `writer`; imported on first use.
_MODULES = {
    "parquet": "skyfill.catalog.parquet",
    "fits": "skyfill.catalog.fits",
    "votable": "skyfill.catalog.votable",
    "csv": "skyfill.catalog.csv_table",
    "whitespace": "skyfill.catalog.whitespace_table",
}
# Formats that need not state the types of columns.
_UNTYPED = ("csv", "whitespace")
_EXTENSIONS = {
    "parquet": (".parquet", ".parq", ".pq"),
    "fits": (".fits", ".fit", ".fts"),
    "votable": (".vot", ".votable", ".xml"),
    "csv": (".ecsv", ".csv", ".tsv"),
    "whitespace": (".txt", ".dat", ".tbl"),
}

# What other programs' tables begin with, and what to do about them.
_OTHERS = {
    b"PK\x03\x04": "a packed file, such as a sheet of Excel: save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "a sheet of Excel: save it as CSV",
    b"\x89HDF": "an HDF5 file: write its table as Parquet or FITS",
    b"ARROW1": "a Feather file: write it as Parquet",
}


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    schema: str | Path | Schema | None = None,
    identifiers: Sequence[str] = (),
) -> Table:
    r"""Read a table from Parquet, FITS, VOTable, ECSV, CSV or text separated by blanks.

    Parameters
    ----------
    path : str or path
        The format is recognized by the content, else by the extension; gzip is decompressed.
    columns : sequence of str, optional
        Read only these; for Parquet and FITS the others stay on disk.
    schema : path or Schema, optional
        Roles, units and sentinels to apply: a TOML file or the result of `read_schema`.
    identifiers : sequence of str
        Columns that are used as identifiers, besides those that are named so: in a plain text
        file they stay text, unless whole numbers are written exactly as in the file.

    Returns
    -------
    Table
        NaN, masked cells and declared null values are null. A sentinel stays a number until a
        schema declares it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "stars.csv"
    >>> _ = path.write_text("id,J\n007,14.2\n008,\n")
    >>> read_table(path).arrow.to_pydict()
    {'id': ['007', '008'], 'J': [14.2, None]}
    """
    rules = Schema() if schema is None else as_schema(schema)
    used = Schema.from_options(roles=[f"{name}={Role.IDENTIFIER}" for name in identifiers])
    with open_scan(path, columns=columns, batch_rows=_TABLE_ROWS, rules=used + rules) as scan:
        table = Table(pa.Table.from_batches(scan.batches, schema=scan.schema))
    if columns is None:
        rules.check(table.names)
    return rules.apply(table)


def read_batches(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = BATCH_ROWS,
    rules: Schema | None = None,
) -> Generator[pa.RecordBatch]:
    """Read a table batch by batch; the size of a batch bounds the memory.

    The schema of every batch carries the metadata of the whole table. VOTables of other programs
    and text separated by blanks are read whole first, because astropy cannot read them in parts.
    Whoever stops before the last batch closes the generator, or uses `open_scan`.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "stars.parquet"
    >>> write_table(Table.from_columns({"J": [14.2, 15.1, 12.9]}), path)
    >>> [batch.num_rows for batch in read_batches(path, batch_rows=2)]
    [2, 1]
    """
    return open_scan(path, columns=columns, batch_rows=batch_rows, rules=rules).batches


def open_scan(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    batch_rows: int = BATCH_ROWS,
    rules: Schema | None = None,
) -> Scan:
    """Open a table to read it once, in batches; their schema is known before the first.

    The file is open while batches are read: until the last, or the end of a ``with`` block.

    Parameters
    ----------
    rules : Schema, optional
        Which columns of a plain text file stay text. They are not applied here.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "stars.parquet"
    >>> write_table(Table.from_columns({"J": [14.2]}), path)
    >>> open_scan(path).schema.names
    ['J']
    """
    path = Path(path)
    if batch_rows < 1:
        raise CatalogError(f"a batch of {batch_rows} rows is too small; ask for at least one row")
    kind = format_of(path)
    if rules and kind == "whitespace" and (rules.layout.delimiter or " ").strip(" "):
        kind = "csv"
    module = import_module(_MODULES[kind])
    more = [rules] if rules and kind in _UNTYPED else []

    def scanned(columns: Sequence[str] | None) -> Scan:
        with reading(path, module.KIND):
            return plain_scan(path, module.KIND, module.scan(path, columns, batch_rows, *more))

    found = scanned(columns)
    if path.is_file():
        schema = described_by_name(found.schema, lambda names: scanned(names).batches)
        if schema is not found.schema:
            found = replace(found, schema=schema, batches=_with_schema(found.batches, schema))
    for text in found.notes:
        # The same words from wherever the file is opened again.
        warnings.warn(f"{path.name}: {text}", HeaderWarning, stacklevel=2)
    if kind in _UNTYPED and not first_bytes(path).startswith(ECSV_MAGIC):
        warn_of_numbers(path, found.schema.names)
    return found


def _with_schema(
    batches: Generator[pa.RecordBatch], schema: pa.Schema
) -> Generator[pa.RecordBatch]:
    with closing(batches):
        for batch in batches:
            pairs = zip(batch.columns, schema.types, strict=True)
            yield pa.RecordBatch.from_arrays(
                [cells.cast(kind) for cells, kind in pairs], schema=schema
            )


def write_table(
    table: Table,
    path: str | Path,
    *,
    provenance: Provenance | None = None,
    overwrite: bool = True,
) -> None:
    """Write a table in the format of the extension; it appears complete or not at all.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "stars.ecsv"
    >>> write_table(Table.from_columns({"J": [14.2]}), path, provenance=Provenance("by hand"))
    >>> "by hand" in read_table(path).meta["provenance"]
    True
    """
    with open_writer(
        path, table.arrow.schema, provenance=provenance, overwrite=overwrite
    ) as writer:
        for batch in table.arrow.to_batches(max_chunksize=BATCH_ROWS):
            writer.write(batch)


@contextmanager
def open_writer(
    path: str | Path,
    schema: pa.Schema,
    *,
    provenance: Provenance | None = None,
    overwrite: bool = True,
    once_complete: Callable[[], None] | None = None,
) -> Iterator[BatchWriter]:
    """Write a table batch by batch; on any error nothing is left behind.

    Parquet and CSV are written as the batches come. FITS and VOTable state the width of text
    columns in their headers, so batches wait in a temporary file beside the target until the end.

    Parameters
    ----------
    path : str or path
        The extension sets the format; a final ``.gz`` compresses (not for Parquet).
    schema : pyarrow.Schema
        Schema of all batches, with the metadata to write.
    provenance : Provenance, optional
        Replaces any provenance in `schema`.
    overwrite : bool
        Whether an existing file may be replaced.
    once_complete : callable, optional
        Called when the file is complete, before it gets its name; see `open_atomic`.

    Examples
    --------
    >>> import tempfile
    >>> table = Table.from_columns({"J": [14.2, None]})
    >>> path = Path(tempfile.mkdtemp()) / "stars.fits"
    >>> with open_writer(path, table.arrow.schema) as writer:
    ...     for batch in table.arrow.to_batches():
    ...         writer.write(batch)
    >>> read_table(path).column("J").to_pylist()
    [14.2, None]
    """
    path = Path(path)
    module = import_module(_MODULES[_writable(path)])
    refuse_repeated_names(schema.names)
    if not schema.names:
        raise CatalogError(f"{path}: a table without columns cannot be written")
    schema = normalized_schema(schema)
    if provenance is not None:
        facts = {PROVENANCE_KEY: provenance.to_json()}
        schema = schema.with_metadata(with_facts(schema, facts))
    with (
        open_atomic(path, overwrite=overwrite, once_complete=once_complete) as stream,
        module.writer(stream, schema, path) as writer,
    ):
        yield BatchWriter(lambda batch: writer.write(conforming(batch, schema)))


def conforming(rows: Rows, schema: pa.Schema) -> Rows:
    """Normalize a batch or a table and give it a schema; refuse it if its columns are others."""
    if not normalized_schema(rows.schema).equals(schema):
        raise CatalogError(
            f"a batch has columns {_described(rows.schema)} where the table has "
            f"{_described(schema)}"
        )
    return type(rows).from_arrays([normalized(column) for column in rows.columns], schema=schema)


def _described(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)


def format_of(path: Path) -> str:
    """Recognize the format of an existing file by its first bytes, then by its extension."""
    start = first_bytes(path)
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"SIMPLE  ="):
        return "fits"
    if b"<VOTABLE" in start or b":VOTABLE" in start:
        return "votable"
    if start.startswith(b"# %ECSV"):
        return "csv"
    if other := next((what for magic, what in _OTHERS.items() if start.startswith(magic)), None):
        raise CatalogError(f"{path}: {other}")
    found = _by_extension(path) or "whitespace"
    return "csv" if found == "whitespace" and _is_delimited(start) else found


def _is_delimited(start: bytes) -> bool:
    """Check whether the first two lines have the same number of some separator."""
    rows = (line for line in start.splitlines() if line.strip() and not line.startswith(b"#"))
    lines = list(itertools.islice(rows, 2))
    counts = [[line.count(mark) for line in lines] for mark in (b",", b"\t", b";", b"&")]
    return any(min(count, default=0) > 0 and len(set(count)) == 1 for count in counts)


def _by_extension(path: Path) -> str | None:
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    return next((name for name, known in _EXTENSIONS.items() if suffix in known), None)


def _writable(path: Path) -> str:
    found = _by_extension(path)
    if path.is_dir():
        raise CatalogError(f"{path}: is a directory; give a file name")
    if found is None or found == "whitespace" or (found, path.suffix) == ("parquet", ".gz"):
        raise CatalogError(
            f"{path}: no output format has this extension; use .parquet, .fits, .vot, .ecsv or "
            f".csv (all but the first may be followed by .gz)"
        )
    return found
