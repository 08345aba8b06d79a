"""Parquet files joined without being read: row groups are copied, footers are merged.

A Parquet file ends with a record (Thrift, compact protocol) that says where the pages of each
row group begin. pyarrow can write a row group into memory but not behind other ones; here its
bytes are put where they belong and the offsets in its record are moved.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

MAGIC = b"PAR1"
# Numbers of the fields in the records of the format.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _GROUP_ROWS, _GROUP_OFFSET, _ORDINAL = 1, 3, 5, 7
_CHUNK_OFFSET, _CHUNK_META = 2, 3
_PAGE_OFFSETS = (9, 10, 11)
# Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_NUMBERS = (4, 5, 6)

Record = dict[int, tuple[int, Any]]


@dataclass(frozen=True)
class RowGroup:
    """A row group as bytes: its pages, and its record with offsets from the first of them."""

    pages: memoryview
    record: bytes


def encode_group(table: pa.Table) -> RowGroup:
    """Encode a table as one row group.

    Examples
    --------
    >>> group = encode_group(pa.table({"J": [14.2, None]}))
    >>> data = join_file([group.pages], [group.record], group_head(pa.schema({"J": "float64"})))
    >>> import pyarrow.parquet as pq
    >>> pq.read_table(pa.BufferReader(data)).to_pydict()
    {'J': [14.2, None]}
    """
    data = _encoded(table)
    start = _footer_start(data)
    (group,) = _parse(bytes(data[start:-8]))[_GROUPS][1][1]
    _move(group, -len(MAGIC))
    return RowGroup(data[len(MAGIC) : start], _bytes(group))


def group_head(schema: pa.Schema) -> bytes:
    """Give the record of a file with this schema and no rows."""
    data = _encoded(schema.empty_table())
    head = _parse(bytes(data[_footer_start(data) : -8]))
    head[_GROUPS] = (_LIST, (_STRUCT, []))
    return _bytes(head)


def join_footer(head: bytes, records: Sequence[bytes], starts: Sequence[int]) -> bytes:
    """Give the end of a file whose row groups begin at these offsets."""
    whole = _parse(head)
    groups = [_parse(record) for record in records]
    for ordinal, (group, start) in enumerate(zip(groups, starts, strict=True)):
        _move(group, start)
        if _ORDINAL in group:
            # The format has 16 bits for it; beyond them it is left out, as it may be.
            group[_ORDINAL] = (group[_ORDINAL][0], ordinal)
            if ordinal >= 1 << 15:
                del group[_ORDINAL]
    rows = sum(group[_GROUP_ROWS][1] for group in groups)
    whole[_ROWS] = (whole[_ROWS][0], rows)
    whole[_GROUPS] = (_LIST, (_STRUCT, groups))
    footer = _bytes(whole)
    return footer + struct.pack("<I", len(footer)) + MAGIC


def join_file(pages: Sequence[memoryview], records: Sequence[bytes], head: bytes) -> bytes:
    """Join row groups in memory; `encode_group` and `group_head` give the parts."""
    data, starts = bytearray(MAGIC), []
    for page in pages:
        starts.append(len(data))
        data += page
    return bytes(data) + join_footer(head, records, starts)


def writer_options(schema: pa.Schema) -> dict[str, Any]:
    """Choose how pyarrow encodes: measured numbers hardly repeat, a dictionary would only cost."""
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    repeated = [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)]
    return {"use_dictionary": repeated or False}


def _encoded(table: pa.Table) -> memoryview:
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **writer_options(table.schema)) as writer:
        writer.write_table(table, row_group_size=max(len(table), 1))
    return memoryview(sink.getvalue())


def _footer_start(data: memoryview) -> int:
    return len(data) - 8 - int(struct.unpack("<I", data[-8:-4])[0])


def _move(group: Record, by: int) -> None:
    _shift(group, _GROUP_OFFSET, by)
    for chunk in group[_COLUMNS][1][1]:
        if chunk[_CHUNK_OFFSET][1]:
            _shift(chunk, _CHUNK_OFFSET, by)
        for field in _PAGE_OFFSETS:
            _shift(chunk[_CHUNK_META][1], field, by)


def _shift(record: Record, field: int, by: int) -> None:
    if field in record:
        kind, value = record[field]
        record[field] = (kind, value + by)


def _parse(data: bytes) -> Record:
    record, _ = _read_struct(data, 0)
    return record


def _read_struct(data: bytes, at: int) -> tuple[Record, int]:
    record: Record = {}
    field = 0
    while data[at]:
        kind, step = data[at] & 15, data[at] >> 4
        at += 1
        if step:
            field += step
        else:
            field, at = _read_number(data, at)
        value, at = (kind == _TRUE, at) if kind <= _FALSE else _read_value(data, at, kind)
        record[field] = (kind, value)
    return record, at + 1


def _read_value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in _NUMBERS:
        return _read_number(data, at)
    if kind == _STRUCT:
        return _read_struct(data, at)
    if kind in (_LIST, _SET):
        return _read_list(data, at)
    if kind in (_TRUE, _FALSE, _BYTE):
        return data[at : at + 1], at + 1
    if kind == _DOUBLE:
        return data[at : at + 8], at + 8
    if kind != _BINARY:
        raise ValueError(f"a Parquet footer with a field of type {kind}")
    size, at = _read_varint(data, at)
    return data[at : at + size], at + size


def _read_list(data: bytes, at: int) -> tuple[Any, int]:
    kind, size = data[at] & 15, data[at] >> 4
    at += 1
    if size == 15:
        size, at = _read_varint(data, at)
    values = []
    for _ in range(size):
        value, at = _read_value(data, at, kind)
        values.append(value)
    return (kind, values), at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] >= 128:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
    return value | data[at] << shift, at + 1


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    value, at = _read_varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _bytes(record: Record) -> bytes:
    out = bytearray()
    _write_struct(out, record)
    return bytes(out)


def _write_struct(out: bytearray, record: Record) -> None:
    last = 0
    for field, (kind, value) in sorted(record.items()):
        if field - last <= 15:
            out.append((field - last) << 4 | kind)
        else:
            out.append(kind)
            _write_number(out, field)
        last = field
        if kind > _FALSE:
            _write_value(out, kind, value)
    out.append(0)


def _write_value(out: bytearray, kind: int, value: Any) -> None:
    if kind in _NUMBERS:
        _write_number(out, value)
    elif kind == _STRUCT:
        _write_struct(out, value)
    elif kind in (_LIST, _SET):
        _write_list(out, *value)
    else:
        if kind == _BINARY:
            _write_varint(out, len(value))
        out += value


def _write_list(out: bytearray, kind: int, values: list[Any]) -> None:
    if len(values) < 15:
        out.append(len(values) << 4 | kind)
    else:
        out.append(0xF0 | kind)
        _write_varint(out, len(values))
    for value in values:
        _write_value(out, kind, value)


def _write_varint(out: bytearray, value: int) -> None:
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _write_number(out: bytearray, value: int) -> None:
    _write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)
