"""The simulated catalogues as tables with units, UCDs, descriptions, roles and reasons."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.random import Generator
from numpy.typing import NDArray

from skyfill.catalog import ColumnInfo, Reason, Role, Table
from skyfill.datasets.field.cadence import field_number, tile_number
from skyfill.datasets.field.colors import BANDS, Array
from skyfill.datasets.field.observing import UNDETECTED, Observation, SurveyModel
from skyfill.datasets.field.placement import Sky, add_light, shift_positions
from skyfill.datasets.field.population import CLASSES
from skyfill.datasets.field.recording import COLORS, Measurements

CITATION = (
    "Simulated by skyfill after the surveys of Pichara & Protopapas (2013), ApJ 777, 83; "
    "no telescope was involved"
)
_UCDS = ("U", "B", "V", "R", "I", "IR.J", "IR.H", "IR.K") + ("IR.3-4um",) + ("IR.4-8um",) * 3
_WORDS = pa.array([None, Reason.UNDETECTED, Reason.UNCOVERED, Reason.REJECTED], pa.string())
_IDENTIFIER = ColumnInfo(ucd="meta.id;meta.main", role=Role.IDENTIFIER)
_POSITION = {
    "ra": ColumnInfo("deg", "pos.eq.ra;meta.main", "Right ascension, ICRS", Role.POSITION),
    "dec": ColumnInfo("deg", "pos.eq.dec;meta.main", "Declination, ICRS", Role.POSITION),
}
_TRUTH = {
    "teff": ("K", "Effective temperature"),
    "redshift": (None, "Redshift"),
    "period": ("d", "Period"),
    "amplitude": ("mag", "Full amplitude in V of the periodic part or of the largest outburst"),
    "tau": ("d", "Time scale of the damped random walk"),
    "sigma": ("mag", "Standard deviation of the damped random walk"),
}
# Position error and calibration error of the base catalogue.
_MACHO_SCATTER_ARCSEC, _MACHO_ERROR = 0.3, 0.015


def survey_table(survey: SurveyModel, seen: Observation) -> Table:
    """Make the catalogue of a survey; each band has errors, limits and reasons of gaps."""
    columns: dict[str, Any] = {"id": _survey_names(survey, seen), "ra": seen.ra, "dec": seen.dec}
    info = {"id": _IDENTIFIER, **_POSITION}
    for k, band in enumerate(survey.bands):
        columns |= {band: seen.magnitudes[k], f"e_{band}": seen.errors[k]}
        limits = np.where(seen.gaps[k] == UNDETECTED, seen.limits[k], np.nan)
        columns |= {f"{band}_limit": limits}
        info |= _band_info(band)
    table = Table.from_columns(columns, info=info, meta=_meta(survey.name))
    for k, band in enumerate(survey.bands):
        table = table.with_reasons(band, _WORDS.take(pa.array(seen.gaps[k])))
    return table


def _survey_names(survey: SurveyModel, seen: Observation) -> Any:
    if survey.name == "ubvi":
        return 1 + np.arange(len(seen.ra))
    prefix = {"sage": "SAGE J", "two_mass": ""}[survey.name]
    return position_names(prefix, seen.ra, seen.dec)


def _band_info(band: str) -> dict[str, ColumnInfo]:
    ucd = f"em.{'opt.' if len(band) == 1 and band in 'UBVRI' else ''}{_UCDS[BANDS.index(band)]}"
    return {
        band: ColumnInfo("mag", f"phot.mag;{ucd}", f"Magnitude in {band}", Role.FEATURE),
        f"e_{band}": ColumnInfo(
            "mag", f"stat.error;phot.mag;{ucd}", f"Error of {band}", Role.ERROR, band
        ),
        f"{band}_limit": ColumnInfo(
            "mag", None, f"Faintest {band} that is seen here", Role.LIMIT, band
        ),
    }


def macho_table(sky: Sky, names: pa.Array, rng: Generator) -> Table:
    """Make the base catalogue: mean V and R of every object, neighbors included."""
    columns: dict[str, Any] = {"id": names}
    shift = rng.normal(0.0, _MACHO_SCATTER_ARCSEC, (2, len(sky.ra)))
    columns["ra"], columns["dec"] = shift_positions(sky.ra, sky.dec, shift)
    info = {"id": _IDENTIFIER, **_POSITION}
    for band in ("V", "R"):
        mean = _blended(sky, BANDS.index(band))
        error = np.hypot(_MACHO_ERROR, 0.01 * 10 ** (0.4 * (mean - 20.0)))
        columns |= {band: mean + error * rng.normal(size=len(mean)), f"e_{band}": error}
        info |= {name: facts for name, facts in _band_info(band).items() if name in columns}
    return Table.from_columns(columns, info=info, meta=_meta("macho"))


def _blended(sky: Sky, band: int) -> Array:
    mean: Array = sky.magnitudes[band].copy()
    mean[sky.host] = add_light(mean[sky.host], sky.neighbors[band])
    return mean


def truth_table(sky: Sky, names: pa.Array, entries: dict[str, tuple[Table, Observation]]) -> Table:
    """Make the table of the truth, in which no column is a feature."""
    n = len(sky.ra)
    kind = pa.array(CLASSES).take(pa.array(sky.population.kind))
    columns: dict[str, Any] = {"id": names, "class": kind, "ra": sky.ra, "dec": sky.dec}
    info = {"id": _IDENTIFIER, "class": ColumnInfo(ucd="src.class", role=Role.LABEL)} | _POSITION
    columns |= {name: getattr(sky.population, name) for name in _TRUTH}
    info |= {name: ColumnInfo(unit, None, words) for name, (unit, words) in _TRUTH.items()}
    columns |= {"mode": sky.population.mode, "reddening": sky.reddening}
    info["reddening"] = ColumnInfo("mag", "phot.color.excess", "E(B-V)")
    columns["blended"] = np.isin(np.arange(n), sky.host)
    for name, (table, seen) in entries.items():
        columns[f"id_{name}"] = _counterparts(table, seen, n)
    for row, band in zip(sky.magnitudes, BANDS, strict=True):
        columns[f"true_{band}"] = row
        info[f"true_{band}"] = ColumnInfo("mag", None, f"Mean {band}, neighbors left out")
    return Table.from_columns(columns, info=info, meta=_meta("truth"))


def _counterparts(table: Table, seen: Observation, n: int) -> pa.Array:
    entry = counterpart_rows(seen, n)
    return table.column("id").combine_chunks().take(pa.array(entry, mask=entry < 0))


def counterpart_rows(seen: Observation, n: int) -> NDArray[np.int64]:
    """Return the row of each of n objects in the catalogue of a survey, or -1."""
    entry = np.full(n, -1)
    own = np.flatnonzero(~seen.is_neighbor)
    entry[seen.source[own]] = own
    return entry


def light_curve_table(curves: Measurements, names: pa.Array) -> Table:
    """Make the long table of all measurements."""
    columns = {
        "id": names.take(pa.array(curves.source)),
        "band": pa.array(COLORS).take(pa.array(curves.color)),
        "time": curves.times,
        "mag": curves.magnitudes,
        "err": curves.errors,
    }
    info = {
        "id": _IDENTIFIER,
        "band": ColumnInfo(ucd="instr.bandpass", description="MACHO-like blue or red"),
        "time": ColumnInfo("d", "time.epoch", "Modified Julian date"),
        "mag": ColumnInfo("mag", "phot.mag", "Magnitude, not corrected for neighbors"),
        "err": ColumnInfo("mag", "stat.error;phot.mag", "Error", Role.ERROR, "mag"),
    }
    return Table.from_columns(columns, info=info, meta=_meta("light_curves"))


def candidate_table(sky: Sky, names: pa.Array, rng: Generator) -> Table:
    """Make a list of quasar candidates as an earlier search would publish it.

    It finds four in five quasars, mistakes some variable stars and a few others for quasars, and
    marks mostly correct ones as strong.
    """
    chance = {"NV": 0.0004, "QSO": 0.80, "BE": 0.15, "CEPH": 0.0, "RRL": 0.01, "EB": 0.02}
    strong = {"QSO": 0.75}
    kind = sky.population.kind
    taken = rng.random(len(kind)) < np.array([chance.get(c, 0.005) for c in CLASSES])[kind]
    rows = np.flatnonzero(taken)
    sure = np.array([strong.get(name, 0.06) for name in CLASSES])[kind[rows]]
    ra, dec = shift_positions(sky.ra[rows], sky.dec[rows], rng.normal(0.0, 0.3, (2, len(rows))))
    columns = {
        "id": names.take(pa.array(rows)),
        "ra": ra.round(5),
        "dec": dec.round(5),
        "strong": rng.random(len(rows)) < sure,
    }
    return Table.from_columns(
        columns, info={"id": _IDENTIFIER, **_POSITION}, meta=_meta("candidates")
    )


def _meta(name: str) -> dict[str, str]:
    return {"name": name, "citation": CITATION}


def macho_names(ra: Array, dec: Array, first: int) -> pa.Array:
    """Name objects ``field.tile.sequence``; the sequence starts at `first`.

    Examples
    --------
    >>> macho_names(np.array([80.0]), np.array([-69.0]), 7).to_pylist()
    ['35.3035.7']
    """
    sequence = first + np.arange(len(ra))
    numbers = (1 + field_number(ra, dec), tile_number(ra, dec), sequence)
    return _join([_digits(number, 1) for number in numbers], ".")


def position_names(prefix: str, ra: Array, dec: Array) -> pa.Array:
    """Name southern sources by their position, ``HHMMSSss-DDMMSSs``.

    Examples
    --------
    >>> position_names("", np.array([80.5]), np.array([-69.25])).to_pylist()
    ['05220000-6915000']
    """
    hours = np.floor((ra % 360) * 24000 + 1e-6).astype(np.int64)
    degrees = np.floor(np.abs(dec) * 36000 + 1e-6).astype(np.int64)
    parts = [
        *_sexagesimal(hours, 100),
        np.full(len(ra), "-", dtype=object),
        *_sexagesimal(degrees, 10),
    ]
    return _distinct(_join([np.full(len(ra), prefix, dtype=object), *parts], ""))


def _distinct(names: pa.Array) -> pa.Array:
    """Distinguish sources at one position by a letter: the second becomes ``...B``."""
    codes = names.dictionary_encode().indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    first = np.r_[True, np.diff(codes[order]) != 0][: len(codes)]
    start = np.maximum.accumulate(np.where(first, np.arange(len(codes)), 0))
    rank = np.empty(len(codes), dtype=np.int64)
    rank[order] = np.arange(len(codes)) - start
    letters = pa.array(["", *"BCDEFGHIJKLMNOPQRSTUVWXYZ"])
    return _join([names, letters.take(pa.array(rank))], "")


def _sexagesimal(total: NDArray[np.int64], fraction: int) -> list[Any]:
    whole, rest = np.divmod(total, 3600 * fraction)
    minutes, seconds = np.divmod(rest, 60 * fraction)
    width = 1 + len(str(fraction))
    return [_digits(whole, 2), _digits(minutes, 2), _digits(seconds, width)]


def _digits(numbers: NDArray[np.int64], width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _join(parts: list[Any], separator: str) -> pa.Array:
    return pc.binary_join_element_wise(*(pa.array(part, pa.string()) for part in parts), separator)
