"""Cells of columns that may be nested: lists, lists of structs, structs of lists."""

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.arrays import to_numbers
from skyfill.errors import CatalogError
from skyfill.lightcurve._array import Array, IntArray
from skyfill.lightcurve.collection import as_array
from skyfill.lightcurve.columns import is_list

_NANOSECONDS_PER_DAY = 86_400e9


def outer(name: str, names: Collection[str]) -> str:
    """Name the one of a file's columns that holds a column or a part of a nested one."""
    return name if name in names else name.partition(".")[0]


def leaf_type(schema: pa.Schema, name: str) -> pa.DataType:
    """Give the type of a column or, with a dot, of a part of one; a list of structs is a list."""
    if schema.get_field_index(name) >= 0:
        return schema.field(name).type
    outer, inner = name.split(".", 1)
    kind = schema.field(outer).type
    return pa.list_(kind.value_type.field(inner).type) if is_list(kind) else kind.field(inner).type


def leaf(rows: Any, name: str) -> pa.Array:
    """Give a column or a part of a nested one; a list of structs becomes a list.

    Examples
    --------
    >>> rows = pa.table({"lc": [[{"mjd": 1.0}, {"mjd": 2.0}], []]})
    >>> leaf(rows, "lc.mjd").to_pylist()
    [[1.0, 2.0], []]
    """
    if rows.schema.get_field_index(name) >= 0:
        return as_array(rows.column(name))
    outer, inner = name.split(".", 1)
    nested = as_array(rows.column(outer))
    if not is_list(nested.type):
        return pc.struct_field(nested, inner)
    offsets = np.concatenate([[0], np.cumsum(list_lengths(nested))])
    return pa.ListArray.from_arrays(
        offsets.astype(np.int32), pc.struct_field(nested.flatten(), inner)
    )


def list_lengths(lists: pa.Array) -> IntArray:
    """Give the length of each list, 0 where there is none."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def list_cells(lists: pa.Array, name: str, lengths: IntArray) -> pa.Array:
    """Put the lists of a column one after the other; they must be as long as they should be."""
    found = list_lengths(lists) if is_list(lists.type) else None
    if found is None or (found != lengths).any():
        row = 0 if found is None else int(np.flatnonzero(found != lengths)[0])
        given = "no list" if found is None else f"a list of {found[row]}"
        raise CatalogError(
            f"column {name!r}, row {row + 1}: {given} beside a list of {lengths[row]} values; "
            f"times, values, errors and bands of an object must correspond"
        )
    return lists.flatten()


def as_days(cells: pa.Array, name: str) -> Array:
    """Give times as numbers; dates become Julian days since 1970."""
    if pa.types.is_temporal(cells.type):
        return to_numbers(cells.cast(pa.timestamp("ns")).cast(pa.int64()), name) / (
            _NANOSECONDS_PER_DAY
        )
    return to_numbers(cells, name)


def distinct(cells: pa.Array, name: str) -> list[str]:
    """List the different words of a column of bands, whose cells may be lists."""
    words = cells.flatten() if is_list(cells.type) else cells
    if words.null_count:
        row = int(np.flatnonzero(words.is_null().to_numpy(zero_copy_only=False))[0])
        raise CatalogError(f"column {name!r}, value {row + 1}: no band; fill it in or drop the row")
    return [str(word) for word in pc.unique(words).cast(pa.string()).to_pylist()]
