"""Position errors of a table: which columns hold them, of which kind, in which unit."""

import math
from dataclasses import dataclass, field

import numpy as np

from skyfill.catalog import Table
from skyfill.errors import CatalogError
from skyfill.sky.angles import in_degrees
from skyfill.sky.ellipses import circles, ellipses
from skyfill.sky.sphere import Floats

AUTO = "auto"
ARCSEC_PER_DEG = 3600.0
# Names in lower case and the unit of numbers that have none: radius, axes and angle, or both axes.
_KNOWN = (
    (("err_ellipse_r0", "err_ellipse_r1", "err_ellipse_ang"), "arcsec", "@95"),
    (("errmaj", "errmin", "errpa"), "arcsec", ""),
    (("err_maj", "err_min", "err_ang"), "arcsec", ""),
    (("pos_err",), "arcsec", ""),
    (("poserr",), "arcsec", ""),
    (("sc_poserr",), "arcsec", ""),
    (("radec_err",), "arcsec", ""),
    (("e_pos",), "arcsec", ""),
    (("ra_error", "dec_error"), "mas", ""),
    (("e_ra_icrs", "e_de_icrs"), "mas", ""),
    (("e_raj2000", "e_dej2000"), "arcsec", ""),
    (("sigra", "sigdec"), "arcsec", ""),
)


@dataclass(frozen=True)
class PositionError:
    """How uncertain the positions of a catalogue are.

    Parameters
    ----------
    columns : tuple of str
        One with the radius; two with the errors in right ascension (along the sky) and declination;
        or three with the axes and the position angle of the first in degrees. Empty for `value`.
    value : float, optional
        One error for all rows, in arcsec; None without columns: to be estimated.
    unit : str, optional
        Overrides the unit of the columns; arcsec if there is none.
    percent : float, optional
        Share of true positions within the radius or ellipse; without it the numbers are standard
        deviations along one direction.
    medians : tuple of float
        What rows without a number get, for each column of lengths; by default the median of the
        others.

    Examples
    --------
    >>> PositionError.parse("RADEC_ERR@90")
    PositionError(columns=('RADEC_ERR',), value=None, unit=None, percent=90.0)
    >>> PositionError.parse("a:b:phi:arcmin").unit, PositionError.parse("0.3").value
    ('arcmin', 0.3)
    """

    columns: tuple[str, ...] = ()
    value: float | None = None
    unit: str | None = None
    percent: float | None = None
    medians: tuple[float, ...] = field(default=(), repr=False)

    @classmethod
    def parse(cls, text: str) -> "PositionError":
        """Read ``ARCSEC``, ``COLUMN[:UNIT]``, ``MAJOR:MINOR:ANGLE[:UNIT]``, with ``@PERCENT``."""
        words, _, percent = text.partition("@")
        share = None if not percent else _percent(percent)
        if words.strip().lower() == AUTO:
            return cls()
        try:
            return cls(value=float(words), percent=share)
        except ValueError:
            pass
        names = words.split(":")
        unit = names.pop() if len(names) in (2, 4) else None
        if len(names) not in (1, 3) or not all(names):
            raise CatalogError(
                f"{text!r} is no position error; write ARCSEC, COLUMN[:UNIT], "
                "MAJOR:MINOR:ANGLE[:UNIT] or auto, with @PERCENT for radii that hold so many"
            )
        return cls(tuple(names), unit=unit, percent=share)

    @property
    def is_estimated(self) -> bool:
        """Whether the error is to be estimated from the separations."""
        return not self.columns and self.value is None

    @property
    def sigmas(self) -> float:
        """How many standard deviations the numbers are."""
        return 1.0 if self.percent is None else math.sqrt(-2 * math.log1p(-self.percent / 100))


def _percent(text: str) -> float:
    try:
        share = float(text.rstrip("%"))
    except ValueError:
        share = math.nan
    if not 0 < share < 100:
        raise CatalogError(f"@{text}: a percentage between 0 and 100 was expected, such as @90")
    return share


def find_position_error(table: Table) -> PositionError:
    """Find the error columns by name; to be estimated where there are none.

    Examples
    --------
    >>> find_position_error(Table.from_columns({"ra": [1.0], "dec": [1.0], "pos_err": [2.0]}))
    PositionError(columns=('pos_err',), value=None, unit='arcsec', percent=None)
    """
    lower = {name.lower(): name for name in reversed(table.names)}
    for names, unit, share in _KNOWN:
        if all(name in lower for name in names):
            columns = tuple(lower[name] for name in names)
            stated = table.info(columns[0]).unit
            percent = float(share[1:]) if share else None
            return PositionError(columns, unit=stated or unit, percent=percent)
    return PositionError()


def read_position_error(table: Table, error: PositionError) -> Floats:
    """Return the covariances of all rows, shape (n, 3), in square arcsec; see `Sources`.

    Rows without a number get the median of the others; an error of 0 or below is refused.

    Examples
    --------
    >>> table = Table.from_columns({"err": [1.0, 2.0]})
    >>> read_position_error(table, PositionError(("err",), unit="arcmin"))[:, 0]
    array([ 3600., 14400.])
    """
    if error.value is not None:
        return circles(np.full(len(table), error.value / error.sigmas))
    medians = error.medians or median_errors(table, error)
    columns = zip(error.columns[:2], medians, strict=True)
    lengths = [_length(table, name, error, median) for name, median in columns]
    if len(lengths) == 1:
        return circles(lengths[0])
    angle = np.full(len(table), 90.0)
    if len(error.columns) == 3:
        angle = np.nan_to_num(table.numbers(error.columns[2])[:, 0])
    return ellipses(lengths[0], lengths[1], angle)


def median_errors(table: Table, error: PositionError) -> tuple[float, ...]:
    """Median of each column of lengths, in its own unit; CatalogError if one has no number."""
    found = []
    for name in error.columns[:2]:
        values = table.numbers(name)[:, 0]
        if np.isnan(values).all():
            raise CatalogError(
                f"column {name!r} has no position error at all; give one for all rows (--error "
                "NAME=ARCSEC) or have it estimated (--error NAME=auto)"
            )
        found.append(float(np.nanmedian(values)))
    return tuple(found)


def _length(table: Table, name: str, error: PositionError, median: float) -> Floats:
    values = table.numbers(name)[:, 0]
    unit = error.unit or table.info(name).unit or "arcsec"
    try:
        scale = in_degrees(unit) * ARCSEC_PER_DEG / error.sigmas
    except CatalogError as fault:
        raise CatalogError(f"column {name!r}: {fault}") from None
    lost = np.isnan(values)
    zero = np.flatnonzero(~lost & ~(values > 0))
    if zero.size:
        raise CatalogError(
            f"column {name!r}, row {zero[0] + 1}: a position error of {values[zero[0]]:g} "
            f"({zero.size} such rows); declare it as a sentinel (--schema), drop these rows, or "
            "give one error for all rows (--error NAME=ARCSEC)"
        )
    return np.where(lost, median, values) * scale
