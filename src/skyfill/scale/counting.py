"""How many rows there are to do, as far as a file's header tells."""

from __future__ import annotations

from pathlib import Path

from skyfill.catalog.files import format_of
from skyfill.catalog.fits_header import find_table
from skyfill.catalog.streams import reading


def count_rows(catalog: str | Path) -> int | None:
    """Count the rows of a file where its header tells; None where it would have to be read.

    Examples
    --------
    >>> import tempfile
    >>> from skyfill.catalog import Table, write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.parquet", "a.fits", "a.csv"):
    ...         write_table(Table.from_columns({"J": [14.2, 15.1]}), Path(folder) / name)
    ...         count_rows(Path(folder) / name)
    2
    2
    """
    path = Path(catalog)
    found = format_of(path)
    if found == "parquet":
        import pyarrow.parquet as pq

        with reading(path, "Parquet file"):
            return int(pq.read_metadata(path).num_rows)
    if found == "fits":
        with reading(path, "FITS file"):
            return find_table(path).n_rows
    return None
