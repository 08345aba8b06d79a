"""Headers of text tables, and the YAML of ECSV that astropy also puts into FITS and Parquet."""

import csv
import io
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import IO, Any, Literal

import pyarrow as pa

from skyfill.catalog.arrays import is_number
from skyfill.catalog.column_info import ColumnInfo, described
from skyfill.catalog.file_io import read_line
from skyfill.catalog.table import schema_meta, with_facts
from skyfill.errors import CatalogError, SkyfillWarning, shortened
from skyfill.limits import check_limit, limit

ECSV_MAGIC = b"# %ECSV"
_DELIMITERS = ",;\t|&"
_BEGIN = "--BEGIN-ASTROPY-SERIALIZED-COLUMNS--"
_END = "--END-ASTROPY-SERIALIZED-COLUMNS--"
_COMMENT_WIDTH = 70
_TYPES = {
    "bool": pa.bool_(),
    "string": pa.string(),
    "float16": pa.float32(),
    "float128": pa.float64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")()
       for sign in ("", "u") for bits in (8, 16, 32, 64)},
}  # fmt: skip


class HeaderWarning(SkyfillWarning):
    """A text table is read otherwise than most: names that are numbers or lost, decimal commas."""


@dataclass(frozen=True)
class TextHeader:
    """What precedes the rows of a text table.

    Parameters
    ----------
    names : tuple of str
        Of the columns.
    n_lines : int
        Lines above the first row.
    delimiter : str
        One character.
    fields : tuple of pyarrow.Field
        With types and metadata, from an ECSV header; else empty.
    meta : dict
        Facts about the table.
    is_exact : bool
        Whether skyfill wrote it: a quoted empty string is then a string, not a gap.
    decimal_point : str
        One character.
    null_words : tuple of str
        How gaps of numbers are written; empty where that was not looked for.
    unnamed : tuple of str
        Names given to columns that have none.
    """

    names: tuple[str, ...]
    n_lines: int
    delimiter: str = ","
    fields: tuple[pa.Field, ...] = ()
    meta: dict[str, str] = field(default_factory=dict)
    is_exact: bool = False
    decimal_point: str = "."
    null_words: tuple[str, ...] = ()
    unnamed: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is unusual about it."""
        comma = "numbers have decimal commas" if self.decimal_point != "." else ""
        listed = shortened(self.unnamed, 150)
        names = f"columns without a name are called {listed}" if self.unnamed else ""
        return tuple(filter(None, (comma, names)))

    @property
    def schema_metadata(self) -> dict[Any, Any] | None:
        """The facts as metadata of an Arrow schema."""
        return with_facts(pa.schema([]), self.meta)


def read_header(
    stream: IO[bytes],
    delimiter: str | None = None,
    names: Sequence[str] = (),
    no_header: bool = False,
) -> TextHeader:
    """Read comment lines and column names; rows follow at line `n_lines`.

    The separator is found where none is given. A file whose names are given has no line of names,
    and neither has one that is said to have no header.
    """
    lines = io.TextIOWrapper(stream, "utf-8-sig", newline=None)
    comments: list[str] = []
    line = read_line(lines)
    while line.startswith("#") or (line and not line.strip()):
        comments.append(line.rstrip("\n"))
        line = read_line(lines)
    if any(c.startswith(ECSV_MAGIC.decode()) for c in comments[:1]):
        return _ecsv_header(comments, line)
    return _plain_header(comments, line, delimiter, names, no_header=no_header)


def header_lines(schema: pa.Schema) -> bytes:
    """Write the ECSV header of a schema, and the line of column names."""
    from astropy.io.misc import yaml

    content = {
        "delimiter": ",",
        "datatype": [_column_entry(column) for column in schema],
        "meta": {"skyfill": schema_meta(schema)},
        "schema": "astropy-2.0",
    }
    text = yaml.dump(content, default_flow_style=None, width=2**20, sort_keys=False)
    comments = ["%ECSV 1.0", "---", *text.splitlines()]
    out = io.StringIO()
    out.writelines(f"# {comment}\n" for comment in comments)
    return out.getvalue().encode() + names_line(schema.names)


def names_line(names: Sequence[str], delimiter: str = ",") -> bytes:
    """Write the line of column names."""
    out = io.StringIO()
    rows = csv.writer(out, delimiter=delimiter, lineterminator="\n", quoting=_quoting(names))
    rows.writerow(names)
    return out.getvalue().encode()


def _ecsv_header(comments: Sequence[str], names_line: str) -> TextHeader:
    from astropy.io.misc import yaml

    text = "\n".join(comment[2:] for comment in comments[1:])
    check_yaml(text)
    content = yaml.load(text)
    _check_columns(len(content["datatype"]))
    fields = tuple(map(_field, content["datatype"]))
    delimiter = content.get("delimiter", " ")
    names = tuple(next(csv.reader([names_line], delimiter=delimiter), ()))
    if names != tuple(column.name for column in fields):
        raise CatalogError(
            f"line {len(comments) + 1}: the column names {list(names)} differ from those in the "
            f"ECSV header above; correct one of them"
        )
    ours = dict(content.get("meta") or {}).get("skyfill")
    facts = {str(key): str(value) for key, value in (ours or {}).items()}
    return TextHeader(names, len(comments) + 1, delimiter, fields, facts, ours is not None)


def _field(column: dict[str, Any]) -> pa.Field:
    kind = column["datatype"]
    if kind not in _TYPES:
        raise CatalogError(f"column {column['name']!r}: unknown datatype {kind!r} in the header")
    return described(pa.field(str(column["name"]), _TYPES[kind]), header_info(column))


def _column_entry(column: pa.Field) -> dict[str, Any]:
    info = ColumnInfo.from_metadata(column.metadata).to_metadata()
    names = {kind: name for name, kind in _TYPES.items()}
    entry = {"name": column.name, "datatype": names.get(column.type, "string")}
    entry |= {key: info.pop(key) for key in ("unit", "description") if key in info}
    return entry | ({"meta": info} if info else {})


def _plain_header(
    comments: Sequence[str],
    first: str,
    delimiter: str | None,
    given: Sequence[str],
    *,
    no_header: bool,
) -> TextHeader:
    """Take the names from the first line that is not a comment, or from the comment above."""
    n_lines = len(comments) + 1
    delimiter = delimiter or ("," if "," in first else max(_DELIMITERS, key=first.count))
    names = _cells(first, delimiter)
    if given:
        if len(given) != len(names):
            raise CatalogError(
                f"line {n_lines} has {len(names)} cells separated by {delimiter!r}, {len(given)} "
                "names are given; give one for each, or another --delimiter"
            )
        return TextHeader(tuple(given), n_lines - 1, delimiter)
    above = _cells(comments[-1].lstrip("# "), delimiter) if comments else []
    has_number = any(name.lstrip("+-").replace(".", "", 1).isdigit() for name in names)
    if len(above) == len(names) > 1 and has_number and not no_header:
        names, n_lines = above, n_lines - 1
    elif no_header or _are_values(names):
        names, n_lines = [f"col{i}" for i in range(1, len(names) + 1)], n_lines - 1
    _check_columns(len(names))
    if not names:
        raise CatalogError("no line with column names; is it a table?")
    unnamed = [f"col{i}" for i, name in enumerate(names, start=1) if not name]
    names = [name or f"col{i}" for i, name in enumerate(names, start=1)]
    return TextHeader(tuple(names), n_lines, delimiter, unnamed=tuple(unnamed))


def _check_columns(n_columns: int) -> None:
    check_limit("columns", n_columns, f"the table has {n_columns} columns", CatalogError)


def check_yaml(text: str) -> None:
    """Refuse YAML whose aliases repeat so much that it would not fit into memory."""
    import yaml  # type: ignore[import-untyped]

    if "*" not in text:
        return
    sizes: dict[int, int] = {}

    def size(node: Any) -> int:
        if id(node) not in sizes:
            sizes[id(node)] = limit("header-entries") + 1  # stays so where a node holds itself
            inner = node.value if isinstance(node.value, list) else []
            pairs = (item if isinstance(item, tuple) else (item,) for item in inner)
            sizes[id(node)] = 1 + sum(size(part) for pair in pairs for part in pair)
        return sizes[id(node)]

    root = yaml.compose(text, yaml.SafeLoader)
    what = "the header has too many entries, counting what aliases repeat"
    check_limit("header-entries", size(root) if root else 0, what, CatalogError)


def _cells(line: str, delimiter: str) -> list[str]:
    return [cell.strip() for cell in next(csv.reader([line.strip("\n")], delimiter=delimiter), [])]


def _are_values(cells: Sequence[str]) -> bool:
    """Whether a line is a row, not names: all numbers, not all whole as pandas numbers columns."""
    return bool(cells) and all(map(is_number, cells)) and any(map(_is_decimal, cells))


def _is_decimal(cell: str) -> bool:
    return "." in cell and is_number(cell)


def warn_of_numbers(path: object, names: Sequence[str]) -> None:
    """Warn where most names are numbers with a point: the line may have been a row."""
    if 2 * sum(map(_is_decimal, names)) > len(names):
        listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
        warnings.warn(
            f"{path}: the first line is taken for names of columns ({listed}); if it is a row, "
            "name the columns (--names NAME,..., or names in a file for --schema)",
            HeaderWarning,
            stacklevel=3,
        )


def _quoting(names: Sequence[str]) -> Literal[0, 1]:
    """Quote names that begin like a comment, or begin or end with a blank."""
    strange = names[0].startswith("#") or any(name != name.strip() for name in names)
    return csv.QUOTE_ALL if strange else csv.QUOTE_MINIMAL


def header_info(column: dict[str, Any]) -> ColumnInfo:
    """Read what astropy notes about one column.

    Examples
    --------
    >>> header_info({"name": "J", "unit": "mag", "meta": {"ucd": "phot.mag"}}).ucd
    'phot.mag'
    """
    facts = {**dict(column.get("meta") or {}), **column}
    words = {key: str(facts[key]) for key in ColumnInfo.__dataclass_fields__ if facts.get(key)}
    return ColumnInfo.from_metadata({key.encode(): word.encode() for key, word in words.items()})


def header_infos(lines: Iterable[str]) -> dict[str, ColumnInfo]:
    """Read what astropy notes about all columns, by name."""
    from astropy.table.meta import get_header_from_yaml

    text = list(lines)
    check_yaml("\n".join(text))
    columns = get_header_from_yaml(text)["datatype"]
    return {str(column["name"]): header_info(column) for column in columns}


def comment_infos(comments: list[str]) -> dict[str, ColumnInfo]:
    """Read what astropy notes in the COMMENT cards of a FITS table."""
    if _BEGIN not in comments or _END not in comments:
        return {}
    lines: list[str] = []
    goes_on = False
    for comment in comments[comments.index(_BEGIN) + 1 : comments.index(_END)]:
        part = comment[:_COMMENT_WIDTH]
        lines = [*lines[:-1], lines[-1] + part] if goes_on else [*lines, part]
        goes_on = len(comment) > _COMMENT_WIDTH
    return header_infos(lines)
