"""Fields in which the nearest source is often the wrong one: X-ray sources, and a crowded field."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng
from scipy.spatial import cKDTree

from skyfill.catalog import ColumnInfo, Role, Table
from skyfill.datasets.field.colors import (
    BANDS,
    EXTINCTION,
    Array,
    minus_v,
    quasar_colors,
    star_colors,
)
from skyfill.datasets.field.observing import measure, photometric_error
from skyfill.datasets.field.placement import add_light
from skyfill.datasets.field.population import draw_luminosity
from skyfill.errors import DataError

CENTER = (150.0, 2.0)
# Sources per square degree: X-ray sources, stars and galaxies down to the optical limit.
XRAY_DENSITY, STAR_DENSITY, GALAXY_DENSITY = 500, 6_000, 60_000
CROWDED_DENSITY = 350_000
# Shares of X-ray sources that are active galaxies, stars and normal galaxies, and the mean and
# scatter of their log ratio of X-ray to optical flux.
KINDS = ("AGN", "STAR", "GALAXY")
SHARES, LOG_RATIOS = (0.82, 0.10, 0.08), ((0.0, 0.45), (-2.6, 0.6), (-0.9, 0.4))
OPTICAL, INFRARED = ("B", "V", "R", "I"), ("K", "m36", "m45")
LIMITS = {"optical": (25.2, 24.8, 24.5, 23.8), "infrared": (20.6, 19.6, 19.2)}
SCATTER_ARCSEC = {"optical": 0.15, "infrared": 0.4}
BEAM_ARCSEC = {"optical": 0.8, "infrared": 2.0}
# Band in which a survey finds its sources: a blend lies at its center of light in this band and is
# the source that is brightest in it.
DETECTED_IN = {"optical": "R", "infrared": "K", "crowded": "V"}
FLOOR = 0.02
CITATION = "Simulated by skyfill; no telescope was involved"


@dataclass(frozen=True)
class CounterpartField:
    """Catalogues of one patch of sky, and who is who.

    Attributes
    ----------
    base : Table
        Objects whose counterparts are wanted, with position errors.
    surveys : dict of str to Table
        Catalogues in which to look for them.
    truth : Table
        For each row of the base its kind, and its row in each survey (-1: not there).
    area_deg2 : float
    """

    base: Table
    surveys: dict[str, Table]
    truth: Table
    area_deg2: float


def simulate_xray_field(n_sources: int = 1000, *, seed: int = 0) -> CounterpartField:
    """Simulate X-ray sources with errors of 1 to 15 arcsec over a deep optical and infrared field.

    Most X-ray sources are active galaxies: blue or reddened in the optical, red in the infrared,
    and the fainter the weaker in X-rays. Around each there are up to dozens of other sources.

    Examples
    --------
    >>> field = simulate_xray_field(100, seed=1)
    >>> len(field.base), sorted(field.surveys)
    (100, ['infrared', 'optical'])
    """
    _check(n_sources, seed)
    rng = default_rng([seed, 1])
    area = n_sources / XRAY_DENSITY
    kind = rng.choice(len(KINDS), n_sources, p=SHARES)
    log_flux = -15.2 + rng.exponential(0.45, n_sources)
    emitters = _emitters(kind, log_flux, rng)
    others = _field_sources(area, rng)
    place = _places(n_sources + others.shape[1], area, rng)
    sky = np.concatenate([emitters, others], axis=1)
    sigma = 10 ** np.clip(rng.uniform(0, 1.25, n_sources) - 0.15 * (log_flux + 15.2), 0, 1.176)
    seen = {name: _observe(sky, place, name, rng) for name in ("optical", "infrared")}
    shift = rng.normal(0, 1, (2, n_sources)) * sigma
    base = {
        "id": np.arange(1, n_sources + 1),
        **_position(place[:, :n_sources], shift),
        "pos_err": sigma,
        "log_flux": log_flux + rng.normal(0, 0.05, n_sources),
        "hardness": np.array([-0.2, -0.6, -0.4])[kind] + rng.normal(0, 0.2, n_sources),
    }
    truth: dict[str, Any] = {"id": base["id"], "kind": np.array(KINDS)[kind]}
    truth |= {f"row_{name}": _find_rows(source, n_sources) for name, (_, source) in seen.items()}
    surveys = {name: table for name, (table, _) in seen.items()}
    return CounterpartField(_table(base), surveys, Table.from_columns(truth), area)


def simulate_crowded_field(n_stars: int = 20_000, *, seed: int = 0) -> CounterpartField:
    """Simulate a crowded field twice: with a beam that blends neighbors, and sharply.

    The base sees stars brighter than V = 21 with a beam of 2 arcsec: a blend lies between its
    stars, and its counterpart is the brightest of them.

    Examples
    --------
    >>> field = simulate_crowded_field(2000, seed=1)
    >>> len(field.base) < len(field.surveys["sharp"])
    True
    """
    _check(n_stars, seed)
    rng = default_rng([seed, 2])
    area = n_stars / CROWDED_DENSITY
    sky, place = _stars(n_stars, rng, (16.0, 23.5)), _places(n_stars, area, rng)
    blends, host, where = _blend(sky, place, 2.0, DETECTED_IN["crowded"])
    bright = np.flatnonzero(blends[BANDS.index("V")] < 21.0)
    sigma = 0.15 + 0.35 * 10 ** (0.2 * (blends[BANDS.index("V"), bright] - 21.0))
    shift = rng.normal(0, 1, (2, len(bright))) * sigma
    bands = [BANDS.index(band) for band in ("V", "R")]
    measured = blends[bands][:, bright] + rng.normal(0, 0.05, (2, len(bright)))
    base: dict[str, Any] = {"id": np.arange(1, len(bright) + 1)}
    base |= {**_position(where[:, bright], shift), "pos_err": sigma}
    base |= {"V": measured[0], "R": measured[1]}
    limits = np.array([24.0, 23.8, 23.5])[:, None]
    names, used = ("V", "I", "K"), [BANDS.index(band) for band in ("V", "I", "K")]
    values = measure(sky[used], limits, FLOOR, kicks=rng.standard_normal((3, n_stars)))
    sharp: dict[str, Any] = {"id": np.arange(1, n_stars + 1)}
    sharp |= _position(place, rng.normal(0, 0.05, (2, n_stars))) | {
        "pos_err": np.full(n_stars, 0.05)
    }
    sharp |= dict(zip(names, np.where(values < limits, values, np.nan), strict=True))
    truth = {"id": base["id"], "kind": ["STAR"] * len(bright), "row_sharp": host[bright]}
    return CounterpartField(_table(base), {"sharp": _table(sharp)}, Table.from_columns(truth), area)


def _check(n: int, seed: int) -> None:
    if n < 1 or seed < 0:
        raise DataError(f"{n} sources with seed {seed}; at least one and no negative seed")


def _emitters(kind: np.ndarray, log_flux: Array, rng: Generator) -> Array:
    """Magnitudes of X-ray sources: R follows from the ratio of X-ray to optical flux."""
    n = len(kind)
    mean, scatter = np.array(LOG_RATIOS)[kind].T
    log_ratio = mean + scatter * rng.standard_normal(n)
    red = 2.5 * (log_ratio - log_flux - 5.67)
    dust = np.where(rng.random(n) < 0.4, rng.exponential(0.35, n), 0.0)
    agn = quasar_colors(rng.uniform(0.1, 2.8, n)) + rng.normal(0, 0.12, (12, n))
    agn += EXTINCTION[:, None] * dust
    star = star_colors(10 ** rng.normal(3.65, 0.08, n)) + rng.normal(0, 0.04, (12, n))
    colors = np.where(kind == 0, agn, np.where(kind == 1, star, _galaxy_colors(n, rng)))
    at_r = BANDS.index("R")
    return np.asarray(colors - np.where(kind == 0, colors[at_r] - 2.4 * dust, colors[at_r]) + red)


def _galaxy_colors(n: int, rng: Generator) -> Array:
    """Magnitudes minus V of galaxies: a blue and a red sequence."""
    blue = np.array([-0.1, 0.55, 0.45, 0.9, 2.4, 0.85, 0.35, 0.35, 0.05, 0.3, 0.6])
    red = np.array([0.3, 1.1, 0.8, 1.6, 3.5, 1.0, 0.4, 0.3, 0.0, 0.1, 0.2])
    share = np.where(rng.random(n) < 0.65, 0.0, 1.0) + rng.normal(0, 0.15, n)
    mean = blue[:, None] + (red - blue)[:, None] * share
    return minus_v(mean + rng.normal(0, 0.18, (11, n)))


def _stars(n: int, rng: Generator, span: tuple[float, float]) -> Array:
    magnitude = draw_luminosity(n, rng, slope=0.25, span=span)
    colors = star_colors(10 ** rng.normal(3.68, 0.10, n)) + rng.normal(0, 0.04, (12, n))
    return np.asarray(magnitude + colors)


def _field_sources(area: float, rng: Generator) -> Array:
    n_galaxies = rng.poisson(GALAXY_DENSITY * area)
    red = draw_luminosity(n_galaxies, rng, slope=0.33, span=(17.0, 24.8))
    galaxies = _galaxy_colors(n_galaxies, rng)
    galaxies += red - galaxies[BANDS.index("R")]
    stars = _stars(rng.poisson(STAR_DENSITY * area), rng, (14.0, 24.8))
    return np.concatenate([galaxies, stars], axis=1)


def _places(n: int, area_deg2: float, rng: Generator) -> Array:
    """Offsets from the center in arcsec, over a square."""
    side = np.sqrt(area_deg2) * 3600
    return np.asarray(rng.uniform(-side / 2, side / 2, (2, n)))


def _position(place: Array, shift: Array) -> dict[str, Array]:
    east, north = (place + shift) / 3600
    dec = CENTER[1] + north
    return {"ra": CENTER[0] + east / np.cos(np.deg2rad(dec)), "dec": dec}


def _observe(sky: Array, place: Array, name: str, rng: Generator) -> tuple[Table, np.ndarray]:
    """Catalogue of one survey and the source behind each of its rows; blends are merged."""
    bands = OPTICAL if name == "optical" else INFRARED
    merged, host, where = _blend(sky, place, BEAM_ARCSEC[name], DETECTED_IN[name])
    limits = np.array(LIMITS[name])[:, None]
    true = merged[[BANDS.index(band) for band in bands]]
    values = measure(true, limits, FLOOR, kicks=rng.standard_normal(true.shape))
    seen = values < limits
    kept = np.flatnonzero(seen.sum(axis=0) >= 2)
    kept = kept[rng.permutation(len(kept))]
    scatter = rng.normal(0, SCATTER_ARCSEC[name], (2, len(kept)))
    columns: dict[str, Any] = {"id": np.arange(1, len(kept) + 1)}
    columns |= _position(where[:, kept], scatter)
    columns["pos_err"] = np.full(len(kept), SCATTER_ARCSEC[name])
    for k, band in enumerate(bands):
        columns[band] = np.where(seen[k, kept], values[k, kept], np.nan)
        error = photometric_error(values[k, kept], limits[k], FLOOR)
        columns[f"e_{band}"] = np.where(seen[k, kept], error, np.nan)
    return _table(columns), host[kept]


def _blend(sky: Array, place: Array, beam: float, band: str) -> tuple[Array, np.ndarray, Array]:
    """Merge each source with brighter neighbors within the beam: magnitudes, hosts, places.

    Both who is brighter and where the light of a blend has its center go by the same band.
    """
    pairs = cKDTree(place.T).query_pairs(beam, output_type="ndarray")
    at = BANDS.index(band)
    light = sky[at]
    pairs = np.where((light[pairs[:, 0]] > light[pairs[:, 1]])[:, None], pairs[:, ::-1], pairs)
    pairs = pairs[np.argsort(light[pairs[:, 0]], kind="stable")]
    host = np.arange(len(light))
    for bright, faint in pairs:
        if host[bright] == bright and host[faint] == faint:
            host[faint] = bright
    merged, where = sky.copy(), place.copy()
    for faint in np.flatnonzero(host != np.arange(len(light))):
        bright = host[faint]
        share = 1 / (1 + 10 ** (0.4 * (sky[at, faint] - merged[at, bright])))
        where[:, bright] += share * (place[:, faint] - where[:, bright])
        merged[:, bright] = add_light(merged[:, bright], sky[:, faint])
    hosts = np.flatnonzero(host == np.arange(len(light)))
    return merged[:, hosts], hosts, where[:, hosts]


def _find_rows(source: np.ndarray, n: int) -> np.ndarray:
    """Row of the catalogue behind which each of the first n sources stands; -1 for none."""
    rows = np.full(n, -1)
    known = np.flatnonzero(source < n)
    rows[source[known]] = known
    return rows


def _table(columns: dict[str, Any]) -> Table:
    info = {
        "id": ColumnInfo(ucd="meta.id;meta.main", role=Role.IDENTIFIER),
        "ra": ColumnInfo("deg", "pos.eq.ra;meta.main", role=Role.POSITION),
        "dec": ColumnInfo("deg", "pos.eq.dec;meta.main", role=Role.POSITION),
        "pos_err": ColumnInfo("arcsec", "stat.error;pos", "Position error", Role.ERROR),
    }
    for name in columns:
        if name in BANDS:
            info[name] = ColumnInfo("mag", "phot.mag", f"Magnitude in {name}", Role.FEATURE)
            info[f"e_{name}"] = ColumnInfo("mag", "stat.error", role=Role.ERROR, of=name)
    info = {name: each for name, each in info.items() if name in columns}
    return Table.from_columns(columns, info=info, meta={"citation": CITATION})
