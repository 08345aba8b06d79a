"""Units: convert the numbers of a column to the unit that a calculation needs."""

import warnings

import numpy as np

from skyfill.catalog.table import Table
from skyfill.errors import CatalogError


def numbers_in(table: Table, name: str, unit: str) -> np.ndarray:
    """Return a column as float64 in `unit`, with NaN for null.

    Raises `CatalogError` if the column has no unit, or one that astropy does not know or cannot
    convert.

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


def unit_factor(unit: str, wanted: str, fault: str) -> float:
    """Return how many `wanted` one `unit` is; raise `CatalogError` with the text `fault` if none.

    Examples
    --------
    >>> unit_factor("h", "min", "not a unit of time")
    60.0
    """
    from astropy.units import Unit

    try:
        return float(Unit(unit).to(wanted))
    except (ValueError, TypeError):
        raise CatalogError(fault) from None


def is_flux_unit(unit: str | None) -> bool:
    """Whether a unit is one of fluxes, flux densities or luminosities.

    Examples
    --------
    >>> [is_flux_unit(unit) for unit in ("mJy", "erg / (s cm2)", "mag(AB)", "no unit", None)]
    [True, True, False, False, False]
    """
    if not unit:
        return False
    from astropy.units import Unit

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # spellings that a standard discourages
        found = Unit(unit, parse_strict="silent")
    is_logarithm = hasattr(found, "physical_unit")
    return not is_logarithm and "flux" in str(found.physical_type)


def _factor(name: str, own: str, wanted: str) -> float:
    hint = f"(columns.{name}.unit in the schema file, or --unit {name}=UNIT)"
    for unit in (own, wanted):
        fault = f"column {name!r}: {unit!r} is not a unit that astropy knows; correct it {hint}"
        unit_factor(unit, unit, fault)
    fault = f"the unit {own!r} does not convert to {wanted!r}; correct the unit"
    return unit_factor(own, wanted, f"column {name!r}: {fault} {hint}")
