"""From a published text file to a table: parse and describe."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from skyfill.catalog import ColumnInfo, Role, Table

# column -> (unit, description)
Facts = Mapping[str, tuple[str | None, str | None]]


def read_csv(path: Path, **types: pa.DataType) -> pa.Table:
    """Read a plain CSV with a header, gzipped or not; lines may end with CR alone."""
    text = pa.input_stream(path, compression="detect").read()
    if b"\n" not in text:
        text = text.replace(b"\r", b"\n")
    parse = pv.ParseOptions(newlines_in_values=False)
    read = pv.ReadOptions(block_size=1 << 24)
    convert = pv.ConvertOptions(column_types=types, strings_can_be_null=True)
    return pv.read_csv(pa.BufferReader(text), read, parse, convert)


def make_table(
    arrow: pa.Table,
    info: Mapping[str, ColumnInfo],
    *,
    name: str,
    citation: str,
) -> Table:
    """Put columns, what is known about them and the citation together."""
    columns = dict(zip(arrow.column_names, arrow.columns, strict=True))
    return Table.from_columns(columns, info=info, meta={"name": name, "citation": citation})


def features(names: Iterable[str], facts: Facts) -> dict[str, ColumnInfo]:
    """Say that columns are features, with the units and descriptions that are known."""
    known = ((name, *facts.get(name, (None, None))) for name in names)
    return {
        name: ColumnInfo(unit=unit, description=words, role=Role.FEATURE)
        for name, unit, words in known
    }


def errors(of: Mapping[str, str], facts: Facts) -> dict[str, ColumnInfo]:
    """Say of which column each error column is the error."""
    return {
        name: ColumnInfo(facts[target][0], None, f"Error of {target}", Role.ERROR, target)
        for name, target in of.items()
    }


def position(ra: str, dec: str, unit: str = "deg") -> dict[str, ColumnInfo]:
    """Say which two columns are the position."""
    return {
        ra: ColumnInfo(unit, "pos.eq.ra;meta.main", "Right ascension", Role.POSITION),
        dec: ColumnInfo(unit, "pos.eq.dec;meta.main", "Declination", Role.POSITION),
    }


def identifier(description: str | None = None) -> ColumnInfo:
    """Say that a column identifies the object."""
    return ColumnInfo(ucd="meta.id;meta.main", description=description, role=Role.IDENTIFIER)


def label(description: str | None = None) -> ColumnInfo:
    """Say that a column is the class."""
    return ColumnInfo(ucd="src.class", description=description, role=Role.LABEL)


def recode(codes: Any, names: Mapping[int, str]) -> pa.Array:
    """Replace whole numbers by the words that they stand for."""
    keys, words = pa.array(list(names)), pa.array(list(names.values()))
    return words.take(pc.index_in(pc.cast(codes, pa.int64()), keys))


def drop_duplicates(arrow: pa.Table) -> pa.Table:
    """Keep the first of rows that are equal in every column."""
    numbered = arrow.append_column("row", pa.array(range(len(arrow))))
    first = numbered.group_by(arrow.column_names).aggregate([("row", "min")])["row_min"]
    return arrow.take(first.combine_chunks().sort())
