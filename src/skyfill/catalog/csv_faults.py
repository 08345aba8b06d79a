"""Find the line of a CSV that cannot be read, so that the user can go there."""

import csv
import io
from collections.abc import Iterator
from typing import IO

from skyfill.catalog.ecsv import TextHeader
from skyfill.errors import CatalogError


def ragged_fault(stream: IO[bytes], header: TextHeader) -> CatalogError:
    """Name the first line with more or fewer cells than there are columns."""
    expected = len(header.names)
    for line, cells in _numbered_rows(stream, header):
        if len(cells) != expected:
            return CatalogError(
                f"line {line} has {len(cells)} cells where the header names {expected} columns; "
                f"mend the line"
            )
    return CatalogError("a row has more or fewer cells than the header names columns")


def conversion_fault(
    stream: IO[bytes], header: TextHeader, index: int, found: tuple[str, str]
) -> CatalogError:
    """Name line and column of the first cell that is not of the column's type."""
    kind, value = found
    rows = _numbered_rows(stream, header)
    line = next((n for n, row in rows if index < len(row) and row[index] == value), None)
    place = f"line {line}, " if line else ""
    return CatalogError(
        f"{place}column {header.names[index]!r}: {value!r} does not read as {kind}; correct it, "
        f"or give the column the type string in the header"
    )


def _numbered_rows(stream: IO[bytes], header: TextHeader) -> Iterator[tuple[int, list[str]]]:
    lines = io.TextIOWrapper(stream, "utf-8", "replace", newline="")
    # csv counts a quoted line break as a line, as an editor does.
    rows = csv.reader(_universal(lines), delimiter=header.delimiter)
    for row in rows:
        if rows.line_num > header.n_lines and row:
            yield rows.line_num, row


def _universal(lines: IO[str]) -> Iterator[str]:
    for line in lines:
        yield line.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
