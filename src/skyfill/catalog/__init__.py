"""Read and write tables: one Arrow-backed table for FITS, VOTable, ECSV, CSV and Parquet."""

from skyfill.catalog.column_info import ColumnInfo, Reason, Role
from skyfill.catalog.format_contract import Scan
from skyfill.catalog.inspection import Inspection, inspect_file
from skyfill.catalog.provenance import Provenance
from skyfill.catalog.roles import Verdict, judge, with_guessed_roles
from skyfill.catalog.schema import Schema, read_schema
from skyfill.catalog.sentinels import declare, find_suspects
from skyfill.catalog.table import Table
from skyfill.catalog.table_files import (
    open_scan,
    open_writer,
    read_batches,
    read_table,
    write_table,
)
from skyfill.catalog.units import in_unit, numbers_in

__all__ = [
    "ColumnInfo",
    "Inspection",
    "Provenance",
    "Reason",
    "Role",
    "Scan",
    "Schema",
    "Table",
    "Verdict",
    "declare",
    "find_suspects",
    "judge",
    "in_unit",
    "inspect_file",
    "numbers_in",
    "open_scan",
    "open_writer",
    "read_batches",
    "read_schema",
    "read_table",
    "with_guessed_roles",
    "write_table",
]
