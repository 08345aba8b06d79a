"""Tables of other packages: as a `Table`, and results in the kind that was given."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.filled_names import known_by_name
from skyfill.catalog.table import Table
from skyfill.errors import CatalogError


def kind_of(given: Any) -> str:
    """Say of which package a table is; CatalogError where it is none that is known.

    Examples
    --------
    >>> kind_of(pa.table({"J": [14.2]}))
    'pyarrow'
    """
    if isinstance(given, Table):
        return "skyfill"
    if isinstance(given, pa.Table):
        return "pyarrow"
    for package, name in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("astropy", "Table")):
        module = sys.modules.get("astropy.table" if package == "astropy" else package)
        if module is not None and isinstance(given, getattr(module, name)):
            return package
    kind = type(given)
    raise CatalogError(
        f"a {kind.__module__.partition('.')[0]} {kind.__name__} is no table; give a path, a frame "
        "of pandas or polars, or a table of pyarrow, astropy or skyfill"
    )


def as_table(given: Any) -> Table:
    """Take a table of pandas, polars, pyarrow, astropy or skyfill for what a file would hold.

    Text that is blank is a gap, and cells of mixed types are text. The index of a frame is no
    column. Columns of astropy that are no plain arrays, as times and positions, are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> as_table(pd.DataFrame({"V": [14.2, "?"], "type": ["RRL", " "]})).arrow.to_pydict()
    {'V': ['14.2', '?'], 'type': ['RRL', None]}
    """
    kind = kind_of(given)
    if kind == "skyfill":
        return known_by_name(given)
    if kind == "astropy":
        # Times and positions have no type of cells.
        kinds = {n: given[n].dtype.kind for n in given.colnames if hasattr(given[n], "dtype")}
        table = Table.from_astropy(given[[n for n, each in kinds.items() if each != "O"]])
        for name in (n for n, each in kinds.items() if each == "O"):
            table = table.with_column(name, _from_cells(given[name].tolist()))
        table = table.select(kinds)
    elif kind == "pandas":
        columns = [_from_series(given.iloc[:, j]) for j in range(given.shape[1])]
        names = [str(name) for name in given.columns]
        table = Table.from_arrow(pa.Table.from_arrays(columns, names=names))
    else:
        table = Table.from_arrow(given.to_arrow() if kind == "polars" else given)
    for name in table.names:
        column = table.column(name)
        if pa.types.is_string(column.type):
            is_blank = pc.equal(pc.utf8_trim_whitespace(column), "")
            if pc.any(is_blank).as_py():
                none = pa.scalar(None, pa.string())
                table = table.with_column(name, pc.if_else(is_blank, none, column))
    return known_by_name(table)


def _from_series(column: Any) -> pa.Array:
    """Convert a column of pandas; bytes and cells of mixed types become text."""
    if hasattr(column, "sparse"):
        column = column.sparse.to_dense()
    try:
        array = pa.array(column, from_pandas=True)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if not (pa.types.is_binary(array.type) or isinstance(array, pa.ExtensionArray)):
            return array
    except (pa.ArrowException, OverflowError, TypeError):
        pass
    return _from_cells(column.astype(object).where(column.notna(), None).tolist())


def _from_cells(cells: list[Any]) -> pa.Array:
    """Convert cells of any type, None where there is none; those of mixed types become text."""
    try:
        array = pa.array(cells)
        if not pa.types.is_binary(array.type):
            return array
    except (pa.ArrowException, OverflowError, TypeError):
        pass
    return pa.array([None if cell is None else _text(cell) for cell in cells], pa.string())


def _text(cell: Any) -> str:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else str(cell)


def as_given(result: Table, table: Table, given: Any) -> Any:
    """Return a result in the kind of table that was given; columns that are the same stay as such.

    Parameters
    ----------
    result : Table
        Columns of `table`, some of them changed, and others.
    table : Table
        `given`, as `as_table` has it.
    given : any table
        Its index, units, masks, types and descriptions of columns are kept.
    """
    kind, has_rows = kind_of(given), len(result) == len(table)
    same = {n for n in table.names if has_rows and n in result.names
            and result.column(n).equals(table.column(n))}  # fmt: skip
    if kind == "skyfill":
        return result
    if kind == "astropy":
        return _as_astropy(result, same, given)
    if kind == "pandas":
        return _as_pandas(result, same, given)
    if kind == "polars":
        import polars as pl

        new = {name: pl.Series(name, result.column(name)) for name in result.names}
        return pl.DataFrame([given[n] if n in same else new[n] for n in result.names])
    columns = [given.column(n) if n in same else result.column(n) for n in result.names]
    fields = [
        field.with_type(column.type)
        for field, column in zip(result.arrow.schema, columns, strict=True)
    ]
    schema = pa.schema(fields, metadata=result.arrow.schema.metadata)
    return pa.Table.from_arrays(columns, schema=schema)


def _as_pandas(result: Table, same: set[str], frame: Any) -> Any:
    import pandas as pd

    labels = {str(label): j for j, label in enumerate(frame.columns)}
    index = frame.index if len(frame) == len(result) else pd.RangeIndex(len(result))
    columns = {}
    for name in result.names:
        column = result.column(name)
        if name in same:
            columns[name] = frame.iloc[:, labels[name]]
        elif column.null_count and pa.types.is_integer(column.type):
            columns[name] = pd.Series(column.to_pylist(), index, "Int64")
        elif column.null_count and pa.types.is_boolean(column.type):
            columns[name] = pd.Series(column.to_pylist(), index, "boolean")
        else:
            columns[name] = column.to_pandas().set_axis(index)
    found = pd.DataFrame(columns, index=index)
    found.columns = pd.Index([frame.columns[labels[n]] if n in labels else n for n in columns])
    found.attrs = dict(frame.attrs)
    return found


def _as_astropy(result: Table, same: set[str], given: Any) -> Any:
    new = result.drop(same).to_astropy()
    columns = {}
    for name in result.names:
        if name in same:
            columns[name] = given[name]
        else:
            columns[name] = new[name] if new[name].mask.any() else new[name].filled()
    if len(given) == len(result):
        columns |= {name: given[name] for name in given.colnames if name not in columns}
    return type(given)(columns, meta=given.meta)
