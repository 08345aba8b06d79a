"""Proper motion: move positions from one epoch to another."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from skyfill.catalog import Table
from skyfill.catalog.units import unit_factor
from skyfill.sky.sphere import Floats

_PAIRS = (
    ("pmra", "pmdec"),
    ("pmra", "pmde"),
    ("pm_ra", "pm_dec"),
    ("pm_ra_cosdec", "pm_dec"),
    ("pmracosdec", "pmdec"),
)
_UCDS = ("pos.pm;pos.eq.ra", "pos.pm;pos.eq.dec")
_EPOCHS = ("ref_epoch", "refepoch")


@dataclass(frozen=True)
class Motion:
    """Proper motions in mas per year; the one in right ascension includes cos(dec).

    Examples
    --------
    >>> Motion(np.array([3.0]), np.array([4.0])).total
    array([5.])
    """

    ra_cosdec: Floats
    dec: Floats

    @property
    def total(self) -> Floats:
        """Total proper motion; NaN where either component is unknown."""
        return np.hypot(self.ra_cosdec, self.dec)


def find_motion(table: Table) -> Motion | None:
    """Find proper motions by UCD or by name; None if the table has none.

    Examples
    --------
    >>> table = Table.from_columns({"pmra": [1.0], "pmdec": [2.0]})
    >>> find_motion(table)
    Motion(ra_cosdec=array([1.]), dec=array([2.]))
    """
    names = motion_columns(table)
    if names is None:
        return None
    return Motion(*(table.numbers(name)[:, 0] * _mas_per_year(table, name) for name in names))


def motion_columns(table: Table) -> tuple[str, str] | None:
    """Name the columns of proper motions, if there are any."""
    return pair_by_ucd(table, table.names, (_UCDS,)) or pair_by_name(table.names, _PAIRS)


def pair_by_ucd(
    table: Table, names: Sequence[str], pairs: Iterable[tuple[str, str]]
) -> tuple[str, str] | None:
    """Find the first columns that have a pair of UCDs, whatever their case and blanks."""
    ucds = {_plain(table.info(name).ucd or ""): name for name in reversed(names)}
    return next(((ucds[a], ucds[b]) for a, b in pairs if a in ucds and b in ucds), None)


def pair_by_name(names: Sequence[str], pairs: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
    """Find the first columns that have a pair of names, whatever their case."""
    lower = {name.lower(): name for name in reversed(names)}
    return next(((lower[a], lower[b]) for a, b in pairs if a in lower and b in lower), None)


def _plain(ucd: str) -> str:
    return ucd.lower().replace(" ", "")


def _mas_per_year(table: Table, name: str) -> float:
    unit = table.info(name).unit
    if unit is None or unit in ("mas/yr", "mas / yr", "mas.yr**-1"):
        return 1.0
    fault = f"column {name!r}: {unit!r} is not a unit of proper motion; use mas/yr"
    return unit_factor(unit, "mas / yr", fault)


def find_epoch(table: Table, year: float | None = None) -> Floats | None:
    """Return the epoch of each row: the given year, the column ``ref_epoch``, or None.

    Examples
    --------
    >>> find_epoch(Table.from_columns({"ref_epoch": [2016.0, 2016.0]}))
    array([2016., 2016.])
    """
    if year is not None:
        return np.full(len(table), float(year))
    name = next((name for name in table.names if name.lower() in _EPOCHS), None)
    return None if name is None else table.numbers(name)[:, 0]


def move(
    ra_deg: Floats, dec_deg: Floats, motion: Motion, *, epoch: Floats, year: float
) -> tuple[Floats, Floats, Motion]:
    """Move positions to another epoch; rows without a motion or an epoch stay where they are.

    Radial velocities are assumed to be 0.

    Returns
    -------
    ra_deg, dec_deg : arrays of shape (n,)
    motion : Motion
        At the new position, where the directions of north and east may differ.

    Examples
    --------
    >>> still = Motion(np.array([np.nan]), np.array([1.0]))
    >>> move(np.array([1.0]), np.array([2.0]), still, epoch=np.array([2016.0]), year=2000.0)[:2]
    (array([1.]), array([2.]))
    """
    known = np.isfinite(ra_deg + dec_deg + motion.total + epoch) & (motion.total > 0)
    rows = np.flatnonzero(known & (epoch != year))
    if not rows.size:
        return ra_deg, dec_deg, motion
    state = np.stack([ra_deg, dec_deg, motion.ra_cosdec, motion.dec])
    state[:, rows] = _moved(state[:, rows], epoch[rows], year)
    return state[0], state[1], Motion(state[2], state[3])


def _moved(state: Floats, epoch: Floats, year: float) -> Floats:
    """Move an array of four rows: ra and dec (degrees), and their motions (mas per year)."""
    from astropy import units as u
    from astropy.coordinates import SkyCoord
    from astropy.time import Time

    # The path on the sky does not depend on the distance, but ERFA needs one: any at which the
    # star is slow compared with light.
    parsecs = np.minimum(1000 / np.hypot(state[2], state[3]), 1e6)
    pace = u.mas / u.yr
    there = SkyCoord(
        state[0] * u.deg,
        state[1] * u.deg,
        distance=parsecs * u.pc,
        pm_ra_cosdec=state[2] * pace,
        pm_dec=state[3] * pace,
        obstime=Time(epoch, format="jyear", scale="tdb"),
    ).apply_space_motion(new_obstime=Time(year, format="jyear", scale="tdb"))
    motions = there.pm_ra_cosdec.to_value(pace), there.pm_dec.to_value(pace)
    return np.stack([there.ra.deg, there.dec.deg, *motions])
