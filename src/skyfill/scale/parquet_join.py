"""Parquet files joined without being read: row groups are copied, footers are merged.

A Parquet file ends with a footer (Thrift, compact protocol) that states where the pages of each
row group begin. Here the bytes of row groups are copied one after another, and the offsets in the
footer are shifted.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

MAGIC = b"PAR1"
COPY_BYTES = 1 << 20
# Numbers of the fields in the records of the format.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _GROUP_ROWS, _GROUP_OFFSET, _ORDINAL = 1, 3, 5, 7
_CHUNK_OFFSET, _CHUNK_META = 2, 3
_PAGE_OFFSETS = (9, 10, 11)
# Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_NUMBERS = (4, 5, 6)

Record = dict[int, tuple[int, Any]]


def write_groups(tables: Iterable[pa.Table], schema: pa.Schema, path: Path) -> None:
    """Write tables as the row groups of a file, each encoded independently."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema, **writer_options(schema)) as writer:
        for table in tables:
            if len(table):
                writer.write_table(table, row_group_size=len(table))


def writer_options(schema: pa.Schema) -> dict[str, Any]:
    """Choose the encoding: measured values rarely repeat, so a dictionary only costs time."""
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_integer)
    repeated = [field.name for field in schema if any(is_kind(field.type) for is_kind in kinds)]
    return {"use_dictionary": repeated or False}


class JoinedFile:
    """A file to which the row groups of other files, from `write_groups`, are appended.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow.parquet as pq
    >>> folder, table = Path(tempfile.mkdtemp()), pa.table({"J": [14.2, None]})
    >>> write_groups([table], table.schema, folder / "part")
    >>> joined = JoinedFile(folder / "whole")
    >>> joined.add(folder / "part"), joined.add(folder / "part")
    (2, 2)
    >>> joined.close(table.schema)
    >>> pq.read_table(folder / "whole").to_pydict()
    {'J': [14.2, None, 14.2, None]}
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(MAGIC)
        self._groups: list[Record] = []

    def add(self, part: Path) -> int:
        """Append the row groups of a file; return its number of rows."""
        with open(part, "rb") as source:
            end, footer = _footer(source)
            groups = footer[_GROUPS][1][1]
            for group in groups:
                _move(group, self.path.stat().st_size - len(MAGIC))
            source.seek(len(MAGIC))
            with open(self.path, "ab") as sink:
                _copy(source, sink, end - len(MAGIC))
        self._groups += groups
        return sum(group[_GROUP_ROWS][1] for group in groups)

    def close(self, schema: pa.Schema) -> None:
        """Write the footer; when this returns, the whole file is on the disk."""
        whole = _empty_footer(schema)
        for ordinal, group in enumerate(self._groups):
            if _ORDINAL in group:
                # An optional field of 16 bits; larger numbers are left out.
                group[_ORDINAL] = (group[_ORDINAL][0], ordinal)
                if ordinal >= 1 << 15:
                    del group[_ORDINAL]
        rows = sum(group[_GROUP_ROWS][1] for group in self._groups)
        whole[_ROWS] = (whole[_ROWS][0], rows)
        whole[_GROUPS] = (_LIST, (_STRUCT, self._groups))
        footer = _bytes(whole)
        with open(self.path, "ab") as stream:
            stream.write(footer + struct.pack("<I", len(footer)) + MAGIC)
            stream.flush()
            os.fsync(stream.fileno())


def _footer(source: IO[bytes]) -> tuple[int, Record]:
    """Return the position of the footer of a file, and its fields."""
    end = max(source.seek(0, os.SEEK_END) - 8, 0)
    source.seek(end)
    size, magic = source.read(4), source.read(4)
    start = end - int.from_bytes(size, "little")
    if magic != MAGIC or start < len(MAGIC):
        raise ValueError("not a Parquet file that was written to its end")
    source.seek(start)
    return start, _parse(source.read(end - start))


def _empty_footer(schema: pa.Schema) -> Record:
    """Return the footer of a file with this schema and no rows."""
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    with pq.ParquetWriter(sink, schema, **writer_options(schema)):
        pass
    return _footer(sink)[1]


def _copy(source: IO[bytes], sink: IO[bytes], size: int) -> None:
    while size:
        data = source.read(min(size, COPY_BYTES))
        sink.write(data)
        size -= len(data)


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
