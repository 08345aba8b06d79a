"""Columns that hold light curves: named by the user, or found by role, UCD and name."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, astuple, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import ColumnInfo, Role
from skyfill.catalog.arrays import to_numbers
from skyfill.catalog.table import nearest
from skyfill.errors import CatalogError
from skyfill.lightcurve.collection import as_array
from skyfill.lightcurve.curve import Array, IntArray

BAND_MARK = "{band}"
_NANOSECONDS_PER_DAY = 86_400e9
# Usual names, the most certain first; compared without case, blanks and underscores.
_NAMES: dict[str, tuple[str, ...]] = {
    "id": ("id", "objectid", "objid", "oid", "sourceid", "starid", "diaobjectid", "object", "star",
           "source", "name"),
    "time": ("time", "t", "mjd", "hjd", "bjd", "jd", "hmjd", "btjd", "midpointmjdtai",
             "midpointtai", "obstime", "date"),
    "value": ("mag", "magnitude", "m", "psfmag", "flux", "psfflux", "difflux", "forcedflux",
              "value", "v", "y"),
    "error": ("err", "error", "magerr", "emag", "magerror", "sigmag", "sigmapsf", "fluxerr",
              "psffluxerr", "efluxe", "eflux", "fluxerror", "valueerror", "sigma", "e", "dy"),
    "band": ("band", "filter", "passband", "fid", "filtercode", "filtername", "color"),
}  # fmt: skip
_UCDS: dict[str, tuple[str, ...]] = {
    "id": ("meta.id",),
    "time": ("time.epoch",),
    "value": ("phot.mag", "phot.flux"),
    "error": ("stat.error;phot",),
    "band": ("instr.bandpass", "instr.filter"),
}
_NEEDED = ("id", "time", "value")

_Infos = Mapping[str, ColumnInfo]
_Found = Mapping[str, str | None]


@dataclass(frozen=True)
class CurveColumns:
    """Names of the columns of light curves; None for one that is absent or to be found.

    A column inside a nested column is written with a dot, ``lightcurve.mjd``. Where each band has
    its own columns, ``{band}`` stands for the band: ``mag_{band}``.

    Examples
    --------
    >>> CurveColumns(time="mjd").time
    'mjd'
    """

    id: str | None = None
    time: str | None = None
    value: str | None = None
    error: str | None = None
    band: str | None = None

    @property
    def template(self) -> str:
        """A name with ``{band}`` in it, or an empty string."""
        return next((name for name in astuple(self) if name and BAND_MARK in name), "")

    @property
    def by_band(self) -> bool:
        """Whether each band has its own columns."""
        return bool(self.template)


def find_columns(schema: pa.Schema, given: CurveColumns, *, needs_id: bool = True) -> CurveColumns:
    """Find the columns that were not given.

    Parameters
    ----------
    schema : pyarrow.Schema
        Of the table; the parts of nested columns are included.
    given : CurveColumns
        Names given by the user, which must exist.
    needs_id : bool
        Whether identifiers are required.

    Examples
    --------
    >>> schema = pa.schema([("ID", "string"), ("MJD", "float64"), ("mag", "float64")])
    >>> find_columns(schema, CurveColumns())
    CurveColumns(id='ID', time='MJD', value='mag', error=None, band=None)
    """
    known = leaves(schema)
    found: dict[str, str | None] = {}
    for part, name in asdict(given).items():
        if name is not None:
            _check(name, known)
        found[part] = name or _guess(part, known, found)
    if not needs_id and _have_no_names(known):
        rest = (name for name in known if name not in found.values())
        found |= {part: name or next(rest, None) for part, name in _in_order(found)}
    missing = [part for part in _NEEDED if found[part] is None and (needs_id or part != "id")]
    if missing:
        raise CatalogError(
            f"no column seems to hold the {missing[0]}; name it (--{missing[0]} COLUMN; in files "
            f"without a line of names --names NAME,...): {nearest(missing[0], known)}"
        )
    return CurveColumns(**found)


def _have_no_names(known: _Infos) -> bool:
    """Whether a text file had no line of names: its columns are then called col1, col2, ..."""
    return list(known) == [f"col{i}" for i in range(1, len(known) + 1)]


def _in_order(found: _Found) -> list[tuple[str, str | None]]:
    return [(part, found[part]) for part in ("time", "value", "error")]


def leaves(schema: pa.Schema) -> dict[str, ColumnInfo]:
    """List the columns and the parts of nested columns, with what is known about them.

    Examples
    --------
    >>> inner = pa.list_(pa.struct([("mjd", pa.float64()), ("mag", pa.float64())]))
    >>> list(leaves(pa.schema([("id", pa.int64()), ("lc", inner)])))
    ['id', 'lc.mjd', 'lc.mag']
    """
    found: dict[str, ColumnInfo] = {}
    for field in schema:
        kind = field.type.value_type if is_list(field.type) else field.type
        if pa.types.is_struct(kind):
            parts = [kind.field(i) for i in range(kind.num_fields)]
            found |= {f"{field.name}.{p.name}": ColumnInfo.from_metadata(p.metadata) for p in parts}
        else:
            found[field.name] = ColumnInfo.from_metadata(field.metadata)
    return found


def is_list(kind: pa.DataType) -> bool:
    """Check whether the cells of a column are lists."""
    tests = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def bands_of_template(template: str, names: _Infos) -> list[str]:
    """Find the bands for which a column fits a name with ``{band}`` in it.

    Examples
    --------
    >>> bands_of_template("mag_{band}", dict.fromkeys(["mag_g", "err_g", "mag_r"], ColumnInfo()))
    ['g', 'r']
    """
    before, after = map(re.escape, template.split(BAND_MARK, 1))
    hits = (re.fullmatch(f"{before}(.+){after}", name) for name in names)
    return [hit[1] for hit in hits if hit]


def _check(name: str, known: _Infos) -> None:
    if BAND_MARK in name:
        if not bands_of_template(name, known):
            raise CatalogError(f"no column fits {name!r}; {nearest(name, known)}")
    elif name not in known:
        raise CatalogError(f"no column {name!r}; {nearest(name, known)}")


def _guess(part: str, known: _Infos, found: _Found) -> str | None:
    taken = set(found.values())
    free = {name: info for name, info in known.items() if name not in taken}
    rules: tuple[Callable[..., str | None], ...] = (_by_role, _by_ucd, _by_name)
    return next(filter(None, (rule(part, free, found) for rule in rules)), None)


def _by_role(part: str, free: _Infos, found: _Found) -> str | None:
    if part == "id":
        return next((n for n, info in free.items() if info.role is Role.IDENTIFIER), None)
    if part != "error":
        return None
    own = (n for n, info in free.items() if info.role is Role.ERROR and info.of == found["value"])
    return next(own, None)


def _by_ucd(part: str, free: _Infos, found: _Found) -> str | None:
    hits = (n for n, info in free.items() if (info.ucd or "").lower().startswith(_UCDS[part]))
    return next(hits, None)


def _by_name(part: str, free: _Infos, found: _Found) -> str | None:
    plain = {_plain(name): name for name in reversed(list(free))}
    return next((plain[word] for word in _NAMES[part] if word in plain), None)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.rpartition(".")[2].lower())


def outer(name: str, names: Collection[str]) -> str:
    """Return the column of the file that holds a column or a part of a nested column."""
    return name if name in names else name.partition(".")[0]


def leaf_type(schema: pa.Schema, name: str) -> pa.DataType:
    """Return the type of a column or of a part of a nested column; a list of structs is a list."""
    if schema.get_field_index(name) >= 0:
        return schema.field(name).type
    outer, inner = name.split(".", 1)
    kind = schema.field(outer).type
    return pa.list_(kind.value_type.field(inner).type) if is_list(kind) else kind.field(inner).type


def leaf(rows: Any, name: str) -> pa.Array:
    """Return a column or a part of a nested column; a list of structs becomes a list.

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
    """Return the length of each list; 0 for null."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    return np.asarray(lengths.to_numpy(zero_copy_only=False), np.int64)


def list_cells(lists: pa.Array, name: str, lengths: IntArray) -> pa.Array:
    """Concatenate the lists of a column; they must have the given lengths."""
    found = list_lengths(lists) if is_list(lists.type) else None
    if found is None or (found != lengths).any():
        row = 0 if found is None else int(np.flatnonzero(found != lengths)[0])
        given = "no list" if found is None else f"a list of {found[row]}"
        raise CatalogError(
            f"column {name!r}, row {row + 1}: {given} next to a list of {lengths[row]} values; "
            f"times, values, errors and bands of an object must have the same length"
        )
    return lists.flatten()


def as_days(cells: pa.Array, name: str) -> Array:
    """Return times as numbers; dates become days since 1970."""
    if pa.types.is_temporal(cells.type):
        return to_numbers(cells.cast(pa.timestamp("ns")).cast(pa.int64()), name) / (
            _NANOSECONDS_PER_DAY
        )
    return to_numbers(cells, name)


def distinct(cells: pa.Array, name: str) -> list[str]:
    """List the bands in a column, whose cells may be lists."""
    words = cells.flatten() if is_list(cells.type) else cells
    refuse_nulls(words, name, "band", counted="value")
    return [str(word) for word in pc.unique(words).cast(pa.string()).to_pylist()]


def refuse_nulls(
    cells: pa.Array, name: str, what: str, *, counted: str = "row", n_before: int = 0
) -> None:
    """Raise an error that names the first null of a column, after `n_before` others."""
    if cells.null_count:
        first = n_before + int(np.argmax(cells.is_null())) + 1
        raise CatalogError(
            f"column {name!r}, {counted} {first}: no {what}; fill it in or drop the row"
        )
