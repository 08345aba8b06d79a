"""Tables from published text files: parse them and describe their columns."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from skyfill.catalog import ColumnInfo, Role, Table

# Unit and description, by column.
ColumnFacts = Mapping[str, tuple[str | None, str | None]]


def read_csv(path: Path, **types: pa.DataType) -> pa.Table:
    """Read a plain CSV file with a header, gzipped or not; lines may end in CR only."""
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
    """Build a table from columns, what is known about them, and the citation."""
    columns = dict(zip(arrow.column_names, arrow.columns, strict=True))
    return Table.from_columns(columns, info=info, meta={"name": name, "citation": citation})


def features(names: Iterable[str], facts: ColumnFacts) -> dict[str, ColumnInfo]:
    """Describe features, with the units and descriptions that are known."""
    known = ((name, *facts.get(name, (None, None))) for name in names)
    return {
        name: ColumnInfo(unit=unit, description=words, role=Role.FEATURE)
        for name, unit, words in known
    }


def errors(of: Mapping[str, str], facts: ColumnFacts) -> dict[str, ColumnInfo]:
    """Describe error columns, given the column to which each belongs."""
    return {
        name: ColumnInfo(facts[target][0], None, f"Error of {target}", Role.ERROR, target)
        for name, target in of.items()
    }


def key_columns(
    identifier: str,
    label: str | None = None,
    position: tuple[str, str] | None = None,
    *,
    unit: str = "deg",
    words: str | None = None,
) -> dict[str, ColumnInfo]:
    """Describe the columns of identifiers (in `words`), classes and positions (in `unit`)."""
    info = {identifier: ColumnInfo(None, "meta.id;meta.main", words, Role.IDENTIFIER)}
    if label is not None:
        info[label] = ColumnInfo(ucd="src.class", role=Role.LABEL)
    if position is not None:
        ra, dec = position
        info[ra] = ColumnInfo(unit, "pos.eq.ra;meta.main", "Right ascension", Role.POSITION)
        info[dec] = ColumnInfo(unit, "pos.eq.dec;meta.main", "Declination", Role.POSITION)
    return info


def recode(codes: Any, names: Mapping[int, str]) -> pa.Array:
    """Replace integers by the words that they stand for."""
    keys, words = pa.array(list(names)), pa.array(list(names.values()))
    return words.take(pc.index_in(pc.cast(codes, pa.int64()), keys))


def drop_duplicates(arrow: pa.Table) -> pa.Table:
    """Keep the first of rows that agree in every column."""
    numbered = arrow.append_column("row", pa.array(range(len(arrow))))
    first = numbered.group_by(arrow.column_names).aggregate([("row", "min")])["row_min"]
    return arrow.take(first.combine_chunks().sort())
