"""Positions of a table in degrees: find their columns and units."""

import re
from dataclasses import dataclass

import numpy as np

from skyfill.catalog import Role, Table
from skyfill.catalog.file_io import naming
from skyfill.errors import CatalogError
from skyfill.sky.angles import (
    from_numbers,
    from_parts,
    from_text,
    in_degrees,
    is_text,
    lettered_unit,
)
from skyfill.sky.motion import Motion, find_epoch, find_motion, move, pair_by_name, pair_by_ucd
from skyfill.sky.sphere import Floats

# Names in lower case, the most specific first.
_PAIRS = (
    ("ra", "dec"),
    ("ra", "de"),
    ("_raj2000", "_dej2000"),
    ("raj2000", "dej2000"),
    ("raj2000", "decj2000"),
    ("ra_icrs", "de_icrs"),
    ("ra_icrs", "dec_icrs"),
    ("ra_j2000", "dec_j2000"),
    ("ra_j2000", "de_j2000"),
    ("ra2000", "dec2000"),
    ("ra2000", "de2000"),
    ("ra_deg", "dec_deg"),
    ("radeg", "decdeg"),
    ("radeg", "dedeg"),
    ("ra_d", "dec_d"),
    ("rarad", "decrad"),
    ("ra_rad", "dec_rad"),
    ("alpha_j2000", "delta_j2000"),
    ("alpha", "delta"),
    ("right_ascension", "declination"),
    ("ra_mean", "dec_mean"),
    ("ramean", "decmean"),
    ("_ra", "_de"),
)
_PARTS = (
    (("rah", "ram", "ras"), ("de-", "ded", "dem", "des")),
    (("rah", "ram", "ras"), ("ded", "dem", "des")),
    (("rah", "ram", "ras"), ("decd", "decm", "decs")),
    (("ra_h", "ra_m", "ra_s"), ("dec_d", "dec_m", "dec_s")),
    (("ra_h", "ra_m", "ra_s"), ("de_d", "de_m", "de_s")),
    (("asc_d", "asc_m", "asc_s"), ("dec_d", "dec_m", "dec_s")),
)
MAIN_UCDS = (
    ("pos.eq.ra;meta.main", "pos.eq.dec;meta.main"),
    ("pos_eq_ra_main", "pos_eq_dec_main"),
)
_UCDS = (("pos.eq.ra", "pos.eq.dec"),)


# Of a survey, not errors or proper motions.
_PREFIXED = re.compile(
    r"(?!(?:pm|e|err|error|sig|sigma)_)(?P<prefix>\w*?_)(?P<axis>ra|dec?)"
    r"(?P<suffix>(?:[_.]?(?:j?2000|icrs|deg|rad))?)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class PositionColumns:
    """Names of the columns that hold right ascension and declination.

    Parameters
    ----------
    ra, dec : tuples of str
        One column each, or three with hours (degrees), minutes and seconds; `dec` may have a
        column of signs before them.
    unit : str, optional
        Unit of both, instead of the units of the columns; with ``hourangle``, declination is in
        degrees.

    Examples
    --------
    >>> PositionColumns.parse("rarad:decrad:rad")
    PositionColumns(ra=('rarad',), dec=('decrad',), unit='rad')
    """

    ra: tuple[str, ...]
    dec: tuple[str, ...]
    unit: str | None = None

    @classmethod
    def parse(cls, text: str) -> "PositionColumns":
        """Read ``RA:DEC``, ``RA:DEC:UNIT`` or, in parts, ``H+M+S:D+M+S``."""
        ra, _, rest = text.partition(":")
        dec, _, unit = rest.partition(":")
        if not ra or not dec:
            raise CatalogError(f"{text!r} does not name two columns; write RA:DEC or RA:DEC:UNIT")
        return cls(tuple(ra.split("+")), tuple(dec.split("+")), unit or None)


@dataclass(frozen=True)
class Positions:
    """Positions of all rows of a table, in degrees; NaN where a row has none.

    Attributes
    ----------
    ra_deg, dec_deg : arrays of shape (n,)
    motion : Motion or None
        Proper motions, if the table has them.
    epoch : array of shape (n,) or None
        Julian year of each position, if known.
    """

    ra_deg: Floats
    dec_deg: Floats
    motion: Motion | None = None
    epoch: Floats | None = None

    def __len__(self) -> int:
        return len(self.ra_deg)

    @property
    def single_epoch(self) -> float | None:
        """Epoch that all rows share, or None."""
        if self.epoch is None:
            return None
        years = np.unique(self.epoch[np.isfinite(self.epoch)])
        return float(years[0]) if years.size == 1 else None

    def at(self, year: float) -> "Positions":
        """Move rows with a proper motion and a known epoch; leave the others where they are."""
        if self.motion is None or self.epoch is None:
            return self
        there = move(self.ra_deg, self.dec_deg, self.motion, epoch=self.epoch, year=year)
        return Positions(*there, epoch=np.full(len(self), float(year)))


def find_position_columns(table: Table) -> PositionColumns:
    """Find the position columns by the UCD of the main ones, by name, by UCD, then by role.

    Columns of role `position` take precedence. The main ones are those of the objects themselves;
    a matched table may hold others, of surveys that miss some of them.

    Examples
    --------
    >>> find_position_columns(Table.from_columns({"RAJ2000": [1.0], "DEJ2000": [2.0]})).dec
    ('DEJ2000',)
    """
    chosen = table.names_with(Role.POSITION)
    for names in (chosen, table.names):
        pair = pair_by_ucd(table, names, MAIN_UCDS) or pair_by_name(names, _PAIRS)
        if pair:
            return PositionColumns(pair[:1], pair[1:])
        if found := _in_parts(names):
            return found
        if pair := pair_by_ucd(table, names, _UCDS):
            return PositionColumns(pair[:1], pair[1:])
        if found := _behind_prefix(names):
            return found
    if len(chosen) == 2 and not any(_is_other_frame(table, name) for name in chosen):
        return PositionColumns(chosen[:1], chosen[1:])
    raise CatalogError(
        "no position columns: none has the UCD pos.eq.ra or a name such as ra and dec, raj2000 "
        "and dej2000, rarad and decrad; name them as RA:DEC:UNIT (--position); the columns are "
        + ", ".join(table.names)
    )


def _is_other_frame(table: Table, name: str) -> bool:
    ucd = table.info(name).ucd or ""
    return ucd.startswith(("pos.gal", "pos.ecl")) or name.lower().startswith(("gl", "gal", "e"))


def _behind_prefix(names: tuple[str, ...]) -> PositionColumns | None:
    """Find a pair such as gaia_ra and gaia_dec; CatalogError where there are several."""
    found = [match for match in map(_PREFIXED.fullmatch, names) if match]
    parts = {(m["prefix"], m["suffix"].lower(), m["axis"][:1].lower()): m.string for m in found}
    pairs = [
        (name, parts[prefix, suffix, "d"])
        for (prefix, suffix, axis), name in parts.items()
        if axis == "r" and (prefix, suffix, "d") in parts
    ]
    if len(pairs) > 1:
        listed = ", ".join(f"{ra}:{dec}" for ra, dec in pairs)
        raise CatalogError(f"several positions: {listed}; choose one (--position)")
    return PositionColumns(pairs[0][:1], pairs[0][1:]) if pairs else None


def _in_parts(names: tuple[str, ...]) -> PositionColumns | None:
    lower = {name.lower(): name for name in reversed(names)}
    for ra, dec in _PARTS:
        if all(part in lower for part in (*ra, *dec)):
            return PositionColumns(tuple(lower[p] for p in ra), tuple(lower[p] for p in dec))
    return None


def read_positions(
    table: Table,
    columns: PositionColumns | None = None,
    *,
    epoch: float | None = None,
) -> Positions:
    """Return the positions of a table in degrees, with proper motions if it has them.

    Units come from `columns`, else from the columns themselves. Numbers without a unit are in
    degrees (radians if the name ends in ``rad``). Text and parts in separate columns are
    sexagesimal, with right ascension in hours.

    Parameters
    ----------
    columns : PositionColumns, optional
        By default from `find_position_columns`.
    epoch : float, optional
        Julian year of all positions, instead of the column ``ref_epoch``.

    Examples
    --------
    >>> table = Table.from_columns({"ra": ["05:30:00"], "dec": ["-00:30:00"]})
    >>> positions = read_positions(table)
    >>> positions.ra_deg, positions.dec_deg
    (array([82.5]), array([-0.5]))
    """
    where = columns or find_position_columns(table)
    ra = _angles(table, where.ra, where.unit, is_ra=True)
    dec = _angles(table, where.dec, where.unit, is_ra=False)
    lost = np.isnan(ra) | np.isnan(dec)
    ra, dec = np.where(lost, np.nan, ra), np.where(lost, np.nan, dec)
    return Positions(ra, dec, find_motion(table), find_epoch(table, epoch))


def _angles(table: Table, names: tuple[str, ...], unit: str | None, *, is_ra: bool) -> Floats:
    cells = [table.column(name) for name in names]
    stated = unit or table.info(names[-3 if len(names) > 1 else 0]).unit
    if len(names) == 1 and not is_text(cells[0]):
        stated = stated or ("rad" if names[0].lower().endswith("rad") else "deg")
        values = from_numbers(cells[0], names[0])
    else:
        letters = lettered_unit(cells[0]) if len(names) == 1 else None
        stated = letters or stated or ("hourangle" if is_ra else "deg")
        values = from_parts(cells, names) if len(names) > 1 else from_text(cells[0], names[0])
    with naming(f"column {names[0]!r}"):
        scale = in_degrees(stated)
    if scale == 15 and not is_ra:  # declinations are never in hours
        stated, scale = "deg", 1.0
    _check_range(values, scale, name=names[0], unit=stated, is_ra=is_ra)
    return values * scale


def _check_range(values: Floats, scale: float, *, name: str, unit: str, is_ra: bool) -> None:
    most = 360.0 if is_ra else 90.0
    with np.errstate(invalid="ignore"):
        beyond = np.flatnonzero(~(np.abs(values * scale) <= most * (1 + 1e-12)) & ~np.isnan(values))
    if not beyond.size:
        return
    seen = values[np.isfinite(values)]
    first = f"column {name!r}, row {beyond[0] + 1}: {values[beyond[0]]:g} {unit} is beyond"
    what = f"{first} {most:g} degrees ({beyond.size} such rows)"
    if scale > 1 and np.all(np.abs(seen) <= most):
        raise CatalogError(
            f"{what}; it looks like degrees although the unit is {unit}: correct the unit"
        )
    raise CatalogError(f"{what}; declare it as a sentinel of the column, or correct the unit")
