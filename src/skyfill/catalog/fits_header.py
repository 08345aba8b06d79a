"""The header of a FITS table: where the rows are, and what the columns are."""

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from skyfill.catalog.column_info import ColumnInfo, Role
from skyfill.catalog.ecsv_header import comment_infos
from skyfill.catalog.file_io import open_bytes
from skyfill.catalog.fixed_width_cells import unescape
from skyfill.catalog.provenance import PROVENANCE_KEY
from skyfill.errors import CatalogError

# Keywords of the facts of a column; TROLEn, TROFn and those below are our own.
INFO_KEYS = {"unit": "TUNIT", "ucd": "TUCD", "description": "TCOMM", "role": "TROLE", "of": "TROF"}
KIND, PROVENANCE, META = "TSKYT", "SKYPROV", "SKYMETA"
# Values of TSKYTn for text with escapes, and for columns returned as stored.
ESCAPED, AS_STORED = "escaped", "stored"
MOST_COLUMNS = 999

_CODES = {
    "L": "S1", "X": ">u1", "B": ">u1", "I": ">i2", "J": ">i4", "K": ">i8", "A": "S",
    "E": ">f4", "D": ">f8", "C": ">f4", "M": ">f8", "P": ">i4", "Q": ">i8",
}  # fmt: skip


@dataclass(frozen=True)
class FitsColumn:
    """One column as the header describes it.

    Parameters
    ----------
    name : str
        Of the column.
    code : str
        Letter of TFORMn; lower case for an ASCII table.
    repeat : int
        Elements per cell, or bytes of text.
    cell : numpy dtype
        Layout of a cell.
    item : str
        Letter of the elements of an array of variable length.
    scale, zero, null
        TSCALn, TZEROn, TNULLn.
    kind : str, optional
        Type of the column before it was stored, if skyfill wrote the file.
    info : ColumnInfo
        Unit, UCD, description, role.
    """

    name: str
    code: str
    repeat: int
    cell: np.dtype
    item: str
    scale: float
    zero: float
    null: Any
    kind: str | None
    info: ColumnInfo


@dataclass(frozen=True)
class FitsTable:
    """The position of a table in its file, and its columns."""

    columns: tuple[FitsColumn, ...]
    rows: np.dtype
    n_rows: int
    start: int
    heap: tuple[int, int]
    meta: dict[str, str]


def find_table(path: Path) -> FitsTable:
    """Find the first table of a FITS file."""
    from astropy.io import fits

    how = {"memmap": False, "lazy_load_hdus": True, "ignore_missing_simple": False}
    with open_bytes(path) as stream, fits.open(stream, **how) as file:
        end = -1
        for hdu in file:
            end = _next_end(hdu, end)
            if hdu.header.get("XTENSION", "").strip() in ("BINTABLE", "TABLE", "A3DTABLE"):
                return _table(hdu.header, int(hdu.fileinfo()["datLoc"]))
    raise CatalogError("the file holds no table, only images")


def _next_end(hdu: Any, end: int) -> int:
    """Check that astropy advances: in a damaged file it can find the same part forever."""
    place = hdu.fileinfo() if hasattr(hdu, "fileinfo") else None
    if place is None or place["datLoc"] <= end:
        raise CatalogError("the header of an extension is damaged; fetch the file again")
    return int(place["datLoc"])


def _table(header: Any, start: int) -> FitsTable:
    n_columns, n_rows = int(header["TFIELDS"]), int(header["NAXIS2"])
    if not 0 < n_columns <= MOST_COLUMNS or n_rows < 0:
        raise CatalogError(f"the header names {n_columns} columns and {n_rows} rows")
    read = _ascii_column if header["XTENSION"].strip() == "TABLE" else _binary_column
    noted = comment_infos([str(line) for line in header.get("COMMENT", [])])
    columns = tuple(_noted(read(header, n), noted) for n in range(1, n_columns + 1))
    rows = _row_type(header, columns)
    body = n_rows * rows.itemsize
    heap = start + int(header.get("THEAP", body)), start + body + int(header.get("PCOUNT", 0))
    return FitsTable(columns, rows, n_rows, start, heap, _meta(header))


def _noted(column: FitsColumn, noted: dict[str, ColumnInfo]) -> FitsColumn:
    """Add what astropy notes outside the keywords of the column."""
    more = noted.get(column.name, ColumnInfo())
    info = column.info
    description, ucd = info.description or more.description, info.ucd or more.ucd
    return replace(column, info=replace(info, description=description, ucd=ucd))


def _row_type(header: Any, columns: tuple[FitsColumn, ...]) -> np.dtype:
    width = int(header["NAXIS1"])
    names = [f"f{n}" for n in range(len(columns))]
    cells = [column.cell for column in columns]
    if header["XTENSION"].strip() == "TABLE":
        places = [int(header[f"TBCOL{n}"]) - 1 for n in range(1, len(columns) + 1)]
    else:
        places = np.cumsum([0, *(cell.itemsize for cell in cells)]).tolist()
        if places.pop() != width:
            raise CatalogError(f"the columns do not add up to the {width} bytes of a row")
    return np.dtype({"names": names, "formats": cells, "offsets": places, "itemsize": width})


def _binary_column(header: Any, n: int) -> FitsColumn:
    form = _form(header, n, r"\s*(\d*)([LXBIJKAEDCMPQ])([LXBIJKAEDCM]?)")
    repeat, code = int(form[1] or 1), form[2]
    return _column(header, n, code, (repeat, _cell(code, repeat), form[3]))


def _form(header: Any, n: int, pattern: str) -> re.Match[str]:
    form = re.match(pattern, str(header[f"TFORM{n}"]))
    if form is None:
        raise CatalogError(f"column {n}: unknown TFORM{n} {header[f'TFORM{n}']!r}")
    return form


def _cell(code: str, repeat: int) -> np.dtype:
    if code == "A":
        return np.dtype(f"S{repeat}")
    count = {"X": (repeat + 7) // 8, "C": 2 * repeat, "M": 2 * repeat}.get(code, repeat)
    if code in "PQ":
        count = 2 * min(repeat, 1)
    return np.dtype((_CODES[code], (count,)))


def _ascii_column(header: Any, n: int) -> FitsColumn:
    form = _form(header, n, r"\s*([AIFED])(\d+)")
    width = int(form[2])
    return _column(header, n, form[1].lower(), (width, np.dtype(f"S{width}"), ""))


def _column(header: Any, n: int, code: str, form: tuple[int, np.dtype, str]) -> FitsColumn:
    kind = header.get(f"{KIND}{n}")
    facts = {key: header.get(f"{word}{n}") for key, word in INFO_KEYS.items()}
    name = header.get(f"TTYPE{n}", f"column_{n}")
    # Only skyfill escapes; a backslash of another program is literal.
    read = unescape if kind else str
    words = {key: read(str(word)) for key, word in facts.items() if word not in (None, "")}
    info = ColumnInfo(**{**words, "role": _role(facts["role"])})  # type: ignore[arg-type]
    scale, zero = float(header.get(f"TSCAL{n}", 1)), float(header.get(f"TZERO{n}", 0))
    null = header.get(f"TNULL{n}")
    return FitsColumn(read(str(name)), code, *form, scale, zero, null, kind, info)


def _role(word: Any) -> Role:
    return Role(word) if word in set(Role) else Role.OTHER


def _meta(header: Any) -> dict[str, str]:
    facts = json.loads(header[META]) if META in header else {}
    meta = {str(key): str(value) for key, value in facts.items()}
    if PROVENANCE in header:
        meta[PROVENANCE_KEY] = str(header[PROVENANCE])
    return meta


def original_type(column: FitsColumn) -> pa.DataType | None:
    """Return the type of a column before it was stored."""
    if column.kind in (None, ESCAPED, AS_STORED):
        return None
    return pa.type_for_alias(column.kind)
