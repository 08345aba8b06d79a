"""One immutable table for all formats: Arrow columns with units, roles and reasons."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any

import numpy as np
import pyarrow as pa

from skyfill.catalog.arrays import normalized, plain_type, to_arrow, to_numbers
from skyfill.catalog.column_info import ColumnInfo, Reason, Role, as_role, described, gap_name, text
from skyfill.errors import CatalogError

META_PREFIX = "skyfill."
# Rows and columns of a table that a notebook shows.
_SHOWN_ROWS, _SHOWN_COLUMNS = 8, 24


@dataclass(frozen=True)
class Table:
    """Columns with unit, UCD, description and role; a null is a gap and may have a reason.

    Every method returns a new table; unchanged columns are shared, not copied.

    Parameters
    ----------
    arrow : pyarrow.Table
        The data. The metadata of each field holds the keys of `ColumnInfo`; that of the schema
        holds facts about the table under keys that start with ``skyfill.``.

    Examples
    --------
    >>> table = Table.from_columns(
    ...     {"id": ["a", "b"], "J": [14.2, float("nan")]},
    ...     info={"J": ColumnInfo(unit="mag", role=Role.FEATURE)},
    ... )
    >>> len(table), table.names, table.info("J").unit
    (2, ('id', 'J'), 'mag')
    >>> table.column("J").null_count
    1
    """

    arrow: pa.Table

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Any],
        *,
        info: Mapping[str, ColumnInfo] | None = None,
        meta: Mapping[str, str] | None = None,
    ) -> "Table":
        """Build a table from arrays of equal length; NaN in a float array becomes null."""
        arrays = {name: to_arrow(values) for name, values in columns.items()}
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            raise CatalogError(f"columns differ in length: {lengths}")
        facts = info or {}
        fields = [
            described(pa.field(name, array.type), facts.get(name, ColumnInfo()))
            for name, array in arrays.items()
        ]
        schema = pa.schema(fields)
        table = cls(pa.Table.from_arrays(list(arrays.values()), schema=schema))
        for name in facts:
            table._index(name)
        return table.with_meta(**(meta or {}))

    @classmethod
    def from_arrow(cls, arrow: pa.Table) -> "Table":
        """Build a table from any Arrow table: plain types, null for NaN, unique names."""
        refuse_repeated_names(arrow.schema.names)
        columns = [normalized(column) for column in arrow.columns]
        schema = normalized_schema(arrow.schema)
        return cls(pa.Table.from_arrays(columns, schema=schema))

    @classmethod
    def from_pandas(cls, frame: Any) -> "Table":
        """Build a table from a pandas frame, without its index."""
        return cls.from_arrow(pa.Table.from_pandas(frame, preserve_index=False))

    @classmethod
    def from_astropy(cls, table: Any) -> "Table":
        """Build a table from one of astropy: masked cells are gaps, units and texts are kept."""
        columns, info = {}, {}
        for name in table.colnames:
            column = table[name]
            values = np.asarray(getattr(column, "value", column))
            columns[name] = np.ma.MaskedArray(values, getattr(column, "mask", False))
            unit, facts = getattr(column, "unit", None), dict(column.info.meta or {})
            about = column.info.description or None
            info[name] = ColumnInfo(str(unit) if unit else None, facts.get("ucd"), about)
        return cls.from_columns(columns, info=info)

    def to_pandas(self) -> Any:
        """Return a pandas frame of Arrow columns, in which gaps are ``<NA>``; units are lost."""
        import pandas as pd

        return self.arrow.replace_schema_metadata(None).to_pandas(types_mapper=pd.ArrowDtype)

    def to_astropy(self) -> Any:
        """Return a table of astropy: gaps are masked, units, descriptions and UCDs are kept."""
        from astropy.table import MaskedColumn
        from astropy.table import Table as Astropy

        found = Astropy()
        for name in self.names:
            info, column = self.info(name), self.column(name).combine_chunks()
            lost = column.is_null().to_numpy(zero_copy_only=False)
            is_text = pa.types.is_string(column.type)
            nothing = pa.scalar("" if is_text else 0).cast(column.type)
            values = column.fill_null(nothing).to_numpy(zero_copy_only=False)
            values = values.astype(str) if is_text else values
            meta = {"ucd": info.ucd} if info.ucd else {}
            found[name] = MaskedColumn(
                values, mask=lost, unit=info.unit, description=info.description, meta=meta
            )
        return found

    def _repr_html_(self) -> str:
        return table_html(self)

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, in order."""
        return tuple(self.arrow.schema.names)

    @property
    def meta(self) -> dict[str, str]:
        """Facts about the table (citation, provenance, ...), without their prefix."""
        return schema_meta(self.arrow.schema)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return the values of a column."""
        return self.arrow.column(self._index(name))

    def info(self, name: str) -> ColumnInfo:
        """Return what is known about a column."""
        return ColumnInfo.from_metadata(self.arrow.schema.field(self._index(name)).metadata)

    def numbers(self, *names: str) -> np.ndarray:
        """Return columns as one float64 array of shape (n, k), with NaN for null.

        Examples
        --------
        >>> Table.from_columns({"J": [14.2, None], "n": [1, 2]}).numbers("J", "n")
        array([[14.2,  1. ],
               [ nan,  2. ]])
        """
        numbers = np.empty((len(self), len(names)))
        for k, name in enumerate(names):
            numbers[:, k] = to_numbers(self.column(name), name)
        return numbers

    def names_with(self, role: Role) -> tuple[str, ...]:
        """List the columns with a role."""
        return tuple(name for name in self.names if self.info(name).role is Role(role))

    def with_info(self, name: str, **changes: Any) -> "Table":
        """Change facts about a column: ``unit=``, ``ucd=``, ``description=``, ``role=``, ``of=``.

        Examples
        --------
        >>> Table.from_columns({"J": [14.2]}).with_info("J", role="feature").names_with("feature")
        ('J',)
        """
        if "role" in changes:
            changes["role"] = as_role(changes["role"])
        index = self._index(name)
        field = described(self.arrow.schema.field(index), replace(self.info(name), **changes))
        schema = self.arrow.schema.set(index, field)
        return Table(pa.Table.from_arrays(self.arrow.columns, schema=schema))

    def with_column(self, name: str, values: Any, info: ColumnInfo | None = None) -> "Table":
        """Append a column, or replace the column of that name in place.

        Without `info`, a replaced column keeps what is known about it.
        """
        array = to_arrow(values)
        if self.names and len(array) != len(self):
            raise CatalogError(
                f"column {name!r} has {len(array)} values, the table {len(self)} rows"
            )
        if name not in self.names:
            field = described(pa.field(name, array.type), info or ColumnInfo())
            return Table(self.arrow.append_column(field, array))
        field = described(pa.field(name, array.type), info or self.info(name))
        return Table(self.arrow.set_column(self._index(name), field, array))

    def with_meta(self, **facts: str) -> "Table":
        """Add facts about the table.

        Examples
        --------
        >>> Table.from_columns({"J": [14.2]}).with_meta(citation="Jones 2017").meta
        {'citation': 'Jones 2017'}
        """
        return Table(self.arrow.replace_schema_metadata(with_facts(self.arrow.schema, facts)))

    def select(self, names: Iterable[str]) -> "Table":
        """Select columns, in the given order."""
        return Table(self.arrow.select([self._index(name) for name in names]))

    def drop(self, names: Iterable[str]) -> "Table":
        """Drop columns."""
        gone = {self._index(name) for name in names}
        return Table(self.arrow.select([i for i in range(len(self.names)) if i not in gone]))

    def reasons(self, name: str) -> pa.Array:
        """Return why each row has a gap; null where it has none or the reason is unknown."""
        companion = self._companion(name)
        if companion is None:
            return pa.nulls(len(self), pa.string())
        return to_arrow(self.column(companion))

    def with_reasons(self, name: str, reasons: Any) -> "Table":
        """Store the reasons of the gaps of a column in the companion column ``<name>_gap``.

        Examples
        --------
        >>> table = Table.from_columns({"J": [14.2, None]})
        >>> table.with_reasons("J", [None, "unmatched"]).reasons("J").to_pylist()
        [None, 'unmatched']
        """
        self._index(name)
        words = to_arrow(reasons).cast(pa.string())
        unknown = set(words.unique().to_pylist()) - {None, *Reason}
        if unknown:
            raise CatalogError(
                f"column {name!r}: no reason {sorted(unknown)[0]!r}; use {', '.join(Reason)}"
            )
        companion = self._companion(name) or gap_name(name)
        if companion in self.names and self.info(companion).of != name:
            raise CatalogError(
                f"column {companion!r} has the name of the column of reasons of {name!r}; rename "
                f"it, or declare that it has the role reason, of {name}"
            )
        return self.with_column(companion, words, ColumnInfo(role=Role.REASON, of=name))

    def _companion(self, name: str) -> str | None:
        self._index(name)
        found = (other for other in self.names_with(Role.REASON) if self.info(other).of == name)
        return next(found, None)

    def _index(self, name: str) -> int:
        index = int(self.arrow.schema.get_field_index(name))
        if index < 0:
            raise CatalogError(f"no column {name!r}; {nearest(name, self.names)}")
        return index


def nearest(name: str, names: Iterable[str], what: str = "columns") -> str:
    """Suggest which of `names`, those of columns or others, the user may have meant."""
    known = list(names)
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    close = [n for n in known if n.lower() == name.lower()] or close
    if close:
        return f"did you mean {', '.join(map(repr, close))}?"
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    return f"the {what} are {shown}" if known else f"the table has no {what}"


def refuse_repeated_names(names: Iterable[str]) -> None:
    """Refuse names that occur twice, because they identify no column."""
    seen: set[str] = set()
    for position, name in enumerate(names, start=1):
        if name in seen:
            raise CatalogError(f"column {position}: the name {name!r} occurs twice; rename one")
        seen.add(name)


def normalized_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema of a table or batch after `normalized` is applied to its columns.

    The metadata of pandas are dropped: they describe columns that may no longer exist.
    """
    fields = [field.with_type(plain_type(field.type)).with_nullable(True) for field in schema]
    metadata = {key: value for key, value in (schema.metadata or {}).items() if key != b"pandas"}
    return pa.schema(fields, metadata=metadata or None)


def with_facts(schema: pa.Schema, facts: Mapping[str, str]) -> dict[Any, Any] | None:
    """Return the metadata of a schema, with facts about the table added."""
    added = {META_PREFIX + key: str(value) for key, value in facts.items()}
    return {**(schema.metadata or {}), **{k.encode(): v for k, v in added.items()}} or None


def schema_meta(schema: pa.Schema) -> dict[str, str]:
    """Read the facts about the table from the metadata of its schema."""
    facts = {text(key): text(value) for key, value in (schema.metadata or {}).items()}
    prefix = META_PREFIX
    return {k.removeprefix(prefix): v for k, v in facts.items() if k.startswith(prefix)}


def table_html(table: Table) -> str:
    """Write the first rows and columns of a table as HTML, with units and shares of gaps.

    Examples
    --------
    >>> "50 % missing" in table_html(Table.from_columns({"J": [14.2, None]}))
    True
    """
    names = table.names[:_SHOWN_COLUMNS]
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    units = "".join(f"<td><small>{_unit_and_gaps(table, name)}</small></td>" for name in names)
    first = table.select(names).arrow.slice(0, _SHOWN_ROWS).to_pylist()
    rows = "".join(
        "<tr>" + "".join(f"<td>{_cell(row[name])}</td>" for name in names) + "</tr>"
        for row in first
    )
    left = len(table.names) - len(names)
    more = f" ({left} columns not shown)" if left else ""
    return (
        f"<table><thead><tr>{head}</tr><tr>{units}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>{len(table)} rows, {len(table.names)} columns{more}</p>"
    )


def _unit_and_gaps(table: Table, name: str) -> str:
    unit = escape(table.info(name).unit or "")
    gaps = table.column(name).null_count
    share = f"{100 * gaps / len(table):.0f} % missing" if gaps else ""
    return "<br>".join(filter(None, (unit, share)))


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.6g}" if isinstance(value, float) else escape(str(value))
