"""Units: numbers of a column in the unit that a calculation needs."""

from typing import Any

import numpy as np

from skyfill.catalog.table import Table
from skyfill.errors import CatalogError


def numbers_in(table: Table, name: str, unit: str) -> np.ndarray:
    """Give a column as float64 in `unit`, with NaN for null.

    Raises `CatalogError` where the column has no unit, one that astropy does not know, or one
    that does not convert.

    Examples
    --------
    >>> from skyfill.catalog import ColumnInfo
    >>> table = Table.from_columns({"dec": [90.0]}, info={"dec": ColumnInfo(unit="deg")})
    >>> numbers_in(table, "dec", "rad").round(3)
    array([1.571])
    """
    own = table.info(name).unit
    if not own:
        raise CatalogError(
            f"column {name!r} has no unit, {unit!r} is needed; declare it "
            f"(columns.{name}.unit in the schema file, or --unit {name}=UNIT)"
        )
    return table.numbers(name)[:, 0] * _factor(name, own, unit)


def in_unit(table: Table, name: str, unit: str) -> Table:
    """Convert a column of the table.

    Examples
    --------
    >>> from skyfill.catalog import ColumnInfo
    >>> table = Table.from_columns({"dec": [90.0]}, info={"dec": ColumnInfo(unit="deg")})
    >>> in_unit(table, "dec", "arcmin").column("dec").to_pylist()
    [5400.0]
    """
    return table.with_column(name, numbers_in(table, name, unit)).with_info(name, unit=unit)


def _factor(name: str, own: str, wanted: str) -> float:
    from astropy.units import UnitConversionError

    try:
        return float(_unit(name, own).to(_unit(name, wanted)))
    except (UnitConversionError, TypeError):
        raise CatalogError(
            f"column {name!r}: the unit {own!r} does not convert to {wanted!r}; correct the unit "
            f"(columns.{name}.unit in the schema file, or --unit {name}=UNIT)"
        ) from None


def _unit(name: str, text: str) -> Any:
    from astropy.units import Unit

    try:
        return Unit(text)
    except (ValueError, TypeError):
        raise CatalogError(
            f"column {name!r}: {text!r} is not a unit that astropy knows; correct it "
            f"(columns.{name}.unit in the schema file, or --unit {name}=UNIT)"
        ) from None
