"""How many rows there are to do, as far as headers tell."""

from __future__ import annotations

from pathlib import Path

from skyfill.catalog.file_io import reading
from skyfill.catalog.fits_header import find_table
from skyfill.catalog.table_files import format_of
from skyfill.scale.hats_store import is_hats, open_hats
from skyfill.scale.partitions import plan_parts


def count_rows(catalog: str | Path) -> int | None:
    """Count the rows of a file, of a folder of Parquet files, or of a HATS catalogue.

    None where a file would have to be read for that, because its header does not tell.

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
    if is_hats(catalog):
        return int(open_hats(catalog).hc_structure.catalog_info.total_rows)
    path = Path(catalog)
    if path.is_dir():
        return sum(part.rows or 0 for part in plan_parts([path]))
    found = format_of(path)
    if found == "parquet":
        import pyarrow.parquet as pq

        with reading(path, "Parquet file"):
            return int(pq.read_metadata(path).num_rows)
    if found == "fits":
        with reading(path, "FITS file"):
            return find_table(path).n_rows
    return None
