"""Light curves from tables: one row per measurement, or one row per object with lists.

Nested columns (a list of structs, a struct of lists) and separate columns for each band also work.
"""

from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from skyfill.catalog import ColumnInfo, Table
from skyfill.catalog.arrays import plain_type, to_numbers
from skyfill.catalog.schema import Layout as TextLayout
from skyfill.catalog.units import unit_factor
from skyfill.lightcurve.collection import (
    About,
    LightCurves,
    as_array,
    band_places,
    group_by_object,
    order_bands,
)
from skyfill.lightcurve.curve import Array, IntArray
from skyfill.lightcurve.curve_columns import (
    BAND_MARK,
    CurveColumns,
    as_days,
    bands_of_template,
    distinct,
    find_columns,
    is_list,
    leaf,
    leaf_type,
    leaves,
    list_cells,
    list_lengths,
    outer,
    refuse_nulls,
)

_DAYS = {"mjd", "jd", "hjd", "bjd", "day", "days"}


@dataclass(frozen=True)
class Request:
    """What the user states about the light curves; the rest is found.

    Parameters
    ----------
    columns : CurveColumns
        Names of columns.
    bands : tuple of str, optional
        Order of the bands; other bands are left out.
    is_flux : bool, optional
        Whether the values are fluxes; by default their UCD or name decides.
    text : skyfill.catalog.schema.Layout
        Separator and names of columns of plain text files.
    """

    columns: CurveColumns = CurveColumns()
    bands: tuple[str, ...] | None = None
    is_flux: bool | None = None
    text: TextLayout = TextLayout()


@dataclass(frozen=True)
class Layout:
    """How to read light curves from record batches of one schema.

    Parameters
    ----------
    columns : CurveColumns
        Found and checked.
    has_lists : bool
        Whether each row is an object and its cells are lists.
    to_days : float
        Factor from the unit of time to days.
    names : tuple of str
        All columns of the file.
    about : About
        Where a column names the bands, they are empty until the data have been read.
    text : skyfill.catalog.schema.Layout
        As in the request.
    """

    columns: CurveColumns
    has_lists: bool
    to_days: float
    names: tuple[str, ...]
    about: About
    text: TextLayout = TextLayout()

    def with_bands(self, found: Iterable[str], wanted: tuple[str, ...] | None) -> "Layout":
        """Set the bands found in the data, in order."""
        return replace(self, about=replace(self.about, bands=order_bands(found, wanted)))

    @property
    def needed(self) -> list[str]:
        """Columns of the file from which the light curves are read."""
        bands = self.about.bands if self.columns.by_band else ("",)
        named = (name for band in bands for name in astuple(self.of_band(band)) if name)
        return list(dict.fromkeys(outer(name, self.names) for name in named))

    def of_band(self, band: str) -> CurveColumns:
        """Return the columns of one band."""
        named = asdict(self.columns).items()
        return CurveColumns(
            **{part: name and name.replace(BAND_MARK, band) for part, name in named}
        )


def find_layout(schema: pa.Schema, request: Request, *, needs_id: bool = True) -> Layout:
    """Find how a table holds light curves.

    Examples
    --------
    >>> schema = pa.schema([("id", "string"), ("mjd", "float64"), ("flux", "float64")])
    >>> layout = find_layout(schema, Request())
    >>> layout.has_lists, layout.about.is_flux, layout.about.bands, layout.about.has_errors
    (False, True, ('',), False)
    """
    columns = find_columns(schema, request.columns, needs_id=needs_id)
    known = leaves(schema)
    bands: tuple[str, ...] = ("",) if columns.band is None else ()
    if columns.by_band:
        bands = order_bands(bands_of_template(columns.template, known), request.bands)
        columns = replace(columns, band=None)
    layout = Layout(columns, False, 1.0, tuple(schema.names), About(bands=bands))
    one = layout.of_band(bands[0] if bands else "")
    value, time = str(one.value), str(one.time)
    return replace(
        layout,
        has_lists=is_list(leaf_type(schema, value)),
        to_days=_to_days(time, known[time]),
        text=request.text,
        about=replace(_about(schema, columns, value, is_flux=request.is_flux), bands=bands),
    )


def _about(schema: pa.Schema, columns: CurveColumns, value: str, *, is_flux: bool | None) -> About:
    known = leaves(schema)
    info, name = known[value], columns.id
    if is_flux is None:
        is_flux = "flux" in value.lower() or (info.ucd or "").startswith("phot.flux")
    about = About(
        unit=info.unit or (None if is_flux else "mag"),
        is_flux=is_flux,
        has_errors=columns.error is not None,
    )
    if name is None:
        return about
    return replace(
        about, id_name=name, id_info=known[name], id_type=plain_type(leaf_type(schema, name))
    )


def _to_days(name: str, info: ColumnInfo) -> float:
    if not info.unit or info.unit == "d" or info.unit.lower() in _DAYS:
        return 1.0
    fault = f"column {name!r}: the unit {info.unit!r} is not one of time; correct it in the file"
    return unit_factor(info.unit, "d", fault)


def from_table(table: Table, request: Request | None = None) -> LightCurves:
    """Read the light curves of a table in memory; its rows may be in any order.

    Parameters
    ----------
    table : Table
        One row per measurement, or one row per object with lists in its cells.
    request : Request, optional
        Names of columns and order of bands that cannot be guessed.

    Examples
    --------
    >>> table = Table.from_columns({"id": [7, 7], "mjd": [2.0, 1.0], "mag": [15.0, 16.0]})
    >>> curves = from_table(table)
    >>> curves.star(0)[0].curves[0].value
    array([16., 15.])
    """
    request = request or Request()
    layout = find_layout(table.arrow.schema, request)
    if not layout.about.bands:
        name = str(layout.columns.band)
        layout = layout.with_bands(distinct(leaf(table.arrow, name), name), request.bands)
    return to_curves(table.arrow, layout)


def to_curves(rows: Any, layout: Layout, ids: Any = None) -> LightCurves:
    """Read the light curves of a record batch or Arrow table; `ids` replaces its identifiers."""
    names = as_array(ids) if ids is not None else leaf(rows, str(layout.columns.id))
    refuse_nulls(names, str(layout.columns.id), "identifier")
    named = layout.about.bands if layout.columns.by_band else ("",)
    parts = [_measurements(rows, layout, k, name) for k, name in enumerate(named)]
    objects, places, numbers = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not layout.has_lists:
        coded = names.dictionary_encode()
        names = coded.dictionary
        objects = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)[objects]
    return group_by_object(names, objects, places, numbers=numbers, about=layout.about)


def _measurements(
    rows: Any, layout: Layout, place: int, band: str
) -> tuple[IntArray, IntArray, Array]:
    """Return for each measurement its row, its band, and time in days, value and error."""
    columns = layout.of_band(band)
    time, value = str(columns.time), str(columns.value)
    lengths = list_lengths(leaf(rows, value)) if layout.has_lists else None

    def read(name: str) -> pa.Array:
        cells = leaf(rows, name)
        return cells if lengths is None else list_cells(cells, name, lengths)

    cells = read(value)
    numbers = np.full((len(cells), 3), np.nan)
    numbers[:, 0] = as_days(read(time), time) * layout.to_days
    numbers[:, 1] = to_numbers(cells, value)
    if columns.error:
        numbers[:, 2] = to_numbers(read(columns.error), columns.error)
    objects = np.arange(rows.num_rows)
    objects = objects if lengths is None else np.repeat(objects, lengths)
    if not columns.band:
        return objects, np.full(len(objects), place), numbers
    words = read(columns.band)
    refuse_nulls(words, columns.band, "band", counted="value")
    return objects, band_places(words, layout.about.bands), numbers
