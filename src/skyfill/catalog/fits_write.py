"""Write FITS: one binary table, whose header holds all that is known about the columns."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import fits_header as keys
from skyfill.catalog.column_info import ColumnInfo
from skyfill.catalog.fits_header import MOST_COLUMNS
from skyfill.catalog.fixed_width_cells import NUMBERS, escape, escaped, number_cells, text_cells
from skyfill.catalog.fixed_width_columns import (
    Extent,
    Spool,
    StoredColumn,
    encode_batch,
    null_value,
    open_spool,
)
from skyfill.catalog.format_contract import BatchWriter
from skyfill.catalog.provenance import PROVENANCE_KEY
from skyfill.catalog.table import schema_meta
from skyfill.catalog.usual_values import is_numeric
from skyfill.errors import CatalogError

_BLOCK_BYTES = 2880
_LETTERS = dict(zip(NUMBERS, "BIJKED", strict=True))


@contextmanager
def writer(stream: IO[bytes], schema: pa.Schema, path: Path) -> Iterator[BatchWriter]:
    """Write one binary table; a null is NaN, TNULLn, a NUL byte or a cell of NULs."""
    if len(schema.names) > MOST_COLUMNS:
        raise CatalogError(f"FITS holds at most {MOST_COLUMNS} columns; drop some or write Parquet")
    with open_spool(schema, path.parent, "FITS") as spool:
        yield BatchWriter(spool.write)
        _write(stream, spool)


def _write(stream: IO[bytes], spool: Spool) -> None:
    from astropy.io import fits

    stored = spool.stored_columns(needs_null_value=True, text_bytes=_text_bytes)
    rows = np.dtype([(f"f{k}", column.cell) for k, column in enumerate(stored)])
    header = fits.Header(_structure(stored, rows.itemsize, spool.n_rows))
    for n, column in enumerate(stored, start=1):
        header.update(_column_cards(column, n))
    header.update(_table_cards(spool.schema))
    stream.write(fits.PrimaryHDU().header.tostring().encode("ascii"))
    stream.write(header.tostring().encode("ascii"))
    for batch in spool.batches():
        stream.write(encode_batch(batch, stored, rows, _encode).tobytes())
    stream.write(bytes(-spool.n_rows * rows.itemsize % _BLOCK_BYTES))


def _encode(column: StoredColumn, values: pa.Array) -> np.ndarray:
    if pa.types.is_boolean(column.kind):
        return text_cells(pc.if_else(values, "T", "F"), 1)
    if pa.types.is_string(column.kind):
        words = values.cast(pa.string())
        plain = words if column.extent.is_plain else escaped(words)
        return text_cells(plain, column.text_bytes, empty=" ")
    return number_cells(values, column.kind, _null(column))


def _null(column: StoredColumn) -> Any:
    if pa.types.is_integer(column.kind):
        return null_value(column.kind, column.extent)
    return float("nan")


def _form(column: StoredColumn) -> str:
    if pa.types.is_string(column.kind):
        return f"{column.text_bytes}A"
    letter = "L" if pa.types.is_boolean(column.kind) else _LETTERS[column.item]
    return letter if column.repeat is None else f"{column.repeat}{letter}"


def _text_bytes(extent: Extent) -> int:
    return extent.width if extent.is_plain else extent.width_escaped


def _structure(stored: list[StoredColumn], row_bytes: int, n_rows: int) -> list[tuple[str, Any]]:
    return [
        ("XTENSION", "BINTABLE"),
        ("BITPIX", 8),
        ("NAXIS", 2),
        ("NAXIS1", row_bytes),
        ("NAXIS2", n_rows),
        ("PCOUNT", 0),
        ("GCOUNT", 1),
        ("TFIELDS", len(stored)),
    ]


def _column_cards(column: StoredColumn, n: int) -> dict[str, Any]:
    info = ColumnInfo.from_metadata(column.field.metadata).to_metadata()
    cards = {f"TTYPE{n}": _card_text(column.field.name), f"TFORM{n}": _form(column)}
    cards |= {f"{keys.INFO_KEYS[key]}{n}": _card_text(value) for key, value in info.items()}
    if pa.types.is_integer(column.kind) and column.extent.n_null:
        cards[f"TNULL{n}"] = _null(column)
    return cards | {f"{keys.KIND}{n}": _kind_word(column)}


def _kind_word(column: StoredColumn) -> str:
    """Name the type of the column, which only skyfill needs."""
    kind = column.field.type
    if pa.types.is_string(column.kind) and not column.extent.is_plain:
        return keys.ESCAPED
    plain = is_numeric(kind) or pa.types.is_boolean(kind)
    return str(kind) if plain else keys.AS_STORED


def _table_cards(schema: pa.Schema) -> dict[str, str]:
    facts = schema_meta(schema)
    record = facts.get(PROVENANCE_KEY, "")
    # A text that a card cannot hold stays among the other facts, where JSON escapes it.
    own_card = bool(record) and _card_text(record) == record
    if own_card:
        del facts[PROVENANCE_KEY]
    cards = {keys.META: json.dumps(facts).replace("'", "\\u0027")} if facts else {}
    return cards | ({keys.PROVENANCE: record} if own_card else {})


def _card_text(text: str) -> str:
    """Escape, including what astropy misreads: a quote before a slash, a final ampersand."""
    return re.sub(r"'(?= */)", r"\\x27", re.sub("&$", r"\\x26", escape(text)))
