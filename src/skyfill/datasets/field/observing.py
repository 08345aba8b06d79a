"""Surveys of the field: depth, errors, footprint, beam and astrometry, and their catalogues."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skyfill.datasets.field.colors import BANDS, Array
from skyfill.datasets.field.placement import Sky, add_light, crowding, shift_positions
from skyfill.datasets.field.polygons import Polygons, box, square
from skyfill.datasets.field.population import CLASSES, RowArrays

SEEN, UNDETECTED, UNCOVERED, REJECTED = range(4)
# Five sigma at the limit.
_ERROR_AT_LIMIT = 2.5 / np.log(10) / 5
# Amplitude per band relative to V, by class: a survey sees a variable at one moment.
_PULSATION = (1.30, 1.30, 1.00, 0.80, 0.65, 0.42, 0.34, 0.32, 0.30, 0.28, 0.28, 0.28)
BAND_AMPLITUDE = {
    "NV": (0.0,) * 12,
    "QSO": (1.20, 1.10, 1.00, 0.92, 0.85, 0.70, 0.62, 0.56, 0.50, 0.45, 0.42, 0.40),
    "BE": (0.80, 0.95, 1.00, 1.05, 1.10, 1.20, 1.25, 1.30, 1.30, 1.30, 1.30, 1.30),
    "CEPH": _PULSATION,
    "RRL": _PULSATION,
    "EB": (1.0,) * 12,
    "LPV": (1.10, 1.10, 1.00, 0.80, 0.50, 0.35, 0.30, 0.25, 0.25, 0.25, 0.22, 0.20),
}
# Standard deviation of a light curve per unit of its full amplitude.
_RMS = {"NV": 0.0, "QSO": 0.0, "BE": 0.3, "CEPH": 0.33, "RRL": 0.33, "EB": 0.18, "LPV": 0.33}


@dataclass(frozen=True)
class SurveyModel:
    """What a survey can detect.

    Attributes
    ----------
    name : str
        As in its file names.
    bands : tuple of str
        Some of `BANDS`.
    limits, saturation : tuples of float
        Faintest (five sigma, uncrowded) and brightest magnitudes, per band.
    footprints : tuple of Polygons
        Area covered, per band.
    floor : float
        Error of a bright star (mag).
    beam_arcsec, scatter_arcsec : float
        Neighbors closer than the beam are not resolved; error of a position.
    offset_arcsec : pair of floats
        Systematic shift of its positions, east and north.
    """

    name: str
    bands: tuple[str, ...]
    limits: tuple[float, ...]
    saturation: tuple[float, ...]
    footprints: tuple[Polygons, ...]
    floor: float
    beam_arcsec: float
    scatter_arcsec: float
    offset_arcsec: tuple[float, float]

    @property
    def footprint(self) -> Polygons:
        """Area covered in at least one band."""
        polygons = (p for footprint in self.footprints for p in footprint.polygons)
        return Polygons(tuple(dict.fromkeys(polygons)))


@dataclass(frozen=True)
class Observation(RowArrays):
    """The entries of the catalogue of a survey.

    Attributes
    ----------
    source : int array of shape (m,)
        The object of each entry.
    is_neighbor : boolean array of shape (m,)
        Whether the entry is a neighbor of the object, which this survey resolves.
    ra, dec : arrays of shape (m,)
        Measured positions (degrees).
    magnitudes, errors, limits : arrays of shape (k, m)
        One row per band; NaN where nothing was measured; the local limit.
    gaps : int array of shape (k, m)
        `SEEN`, `UNDETECTED`, `UNCOVERED` or `REJECTED` (saturated).
    """

    source: NDArray[np.intp]
    is_neighbor: NDArray[np.bool_]
    ra: Array
    dec: Array
    magnitudes: Array
    errors: Array
    limits: Array
    gaps: NDArray[np.int8]

    def of_objects(self, kept: NDArray[np.intp], n: int) -> "Observation":
        """Keep the entries of some of n objects, which are renumbered in their order."""
        new = np.full(n, -1)
        new[kept] = np.arange(len(kept))
        entries = self.take(np.flatnonzero(new[self.source] >= 0))
        return replace(entries, source=new[entries.source])


def _pointings(centers: tuple[tuple[float, float], ...]) -> Polygons:
    return Polygons(tuple(tuple(square(center, 1.2, 0.0)) for center in centers))


_UBVI_CENTERS = tuple(
    (ra, dec) for dec in (-70.6, -69.3, -68.0) for ra in (72.5, 76.0, 79.5, 83.0, 86.5)
)
_BLUE_CENTERS = _UBVI_CENTERS[1:14:2] + _UBVI_CENTERS[6:9:2] + _UBVI_CENTERS[2:3]
_SHORT = Polygons((tuple(square((80.5, -69.0), 6.5, 22.0)),))
_LONG = Polygons((tuple(square((80.6, -68.89), 6.5, 22.0)),))
_SCANS = Polygons((box(68.0, 76.0, -73.5, -65.0), box(76.1, 92.0, -73.5, -65.0)))

SAGE = SurveyModel(
    name="sage",
    bands=BANDS[8:],
    limits=(18.4, 17.9, 14.4, 13.3),
    saturation=(6.0, 5.5, 3.0, 3.0),
    footprints=(_SHORT, _LONG, _SHORT, _LONG),
    floor=0.02,
    beam_arcsec=1.7,
    scatter_arcsec=0.25,
    offset_arcsec=(0.10, -0.15),
)
TWO_MASS = SurveyModel(
    name="two_mass",
    bands=BANDS[5:8],
    limits=(17.05, 16.6, 16.05),
    saturation=(4.0, 4.0, 4.0),
    footprints=(_SCANS,) * 3,
    floor=0.022,
    beam_arcsec=2.2,
    scatter_arcsec=0.12,
    offset_arcsec=(0.0, 0.0),
)
UBVI = SurveyModel(
    name="ubvi",
    bands=(*BANDS[:3], BANDS[4]),
    limits=(21.4, 24.2, 23.4, 21.5),
    saturation=(11.0, 12.0, 12.0, 13.2),
    footprints=(
        _pointings(_BLUE_CENTERS),
        _pointings(_UBVI_CENTERS),
        _pointings(_UBVI_CENTERS),
        _pointings(_UBVI_CENTERS[1:3] + _UBVI_CENTERS[4:10] + _UBVI_CENTERS[11:]),
    ),
    floor=0.012,
    beam_arcsec=0.9,
    scatter_arcsec=0.15,
    offset_arcsec=(-0.20, 0.25),
)
SURVEYS = {survey.name: survey for survey in (SAGE, TWO_MASS, UBVI)}


def observe(survey: SurveyModel, sky: Sky, rng: Generator) -> Observation:
    """Make the catalogue that a survey would publish of this sky, sorted by right ascension.

    An entry has at least one measured band; bands fainter than the local limit are gaps.
    """
    (source, is_neighbor), (ra, dec), true = _separate(survey, sky, rng)
    limits = _local_limits(survey, ra, dec, rng)
    magnitudes = measure(true, limits, survey.floor, kicks=rng.standard_normal(true.shape))
    gaps = _gaps(survey, magnitudes, limits, (ra, dec))
    error = photometric_error(magnitudes, limits, survey.floor)
    error *= 10 ** rng.normal(0.0, 0.04, error.shape)
    seen = gaps == SEEN
    scatter = rng.normal(0.0, survey.scatter_arcsec, (2, len(ra)))
    ra, dec = shift_positions(ra, dec, scatter + np.array(survey.offset_arcsec)[:, None])
    magnitudes, error = (np.where(seen, values, np.nan) for values in (magnitudes, error))
    entries = Observation(source, is_neighbor, ra, dec, magnitudes, error, limits, gaps)
    rows = np.flatnonzero(seen.any(axis=0))
    return entries.take(rows[np.argsort(ra[rows], kind="stable")])


def photometric_error(magnitudes: Array, limits: Array, floor: float) -> Array:
    """Return the error (mag) of a measurement: a floor, plus a fifth of the flux at the limit."""
    excess = np.minimum(magnitudes - limits, 2.0)
    return np.asarray(np.hypot(floor, _ERROR_AT_LIMIT * 10 ** (0.4 * excess)))


def measure(true: Array, limits: Array, floor: float, *, kicks: Array) -> Array:
    """Add noise to fluxes (not to magnitudes, which are meaningless below the noise).

    Parameters
    ----------
    true, limits, kicks : arrays that broadcast together
        True magnitudes, five-sigma limits, and errors in standard deviations.
    floor : float
        Error of a bright star (mag).

    Returns
    -------
    array
        Measured magnitudes; a negative flux becomes 7.5 mag fainter than the limit.

    Examples
    --------
    A star at the limit with an error of -1 sigma loses a fifth of its flux.

    >>> star = np.array([20.0])
    >>> measure(star, star, 0.0, kicks=-np.ones(1)).round(3)
    array([20.242])
    """
    light = 10 ** (0.4 * (limits - true))
    light += kicks * np.hypot(0.2, floor / 1.0857 * light)
    return np.asarray(limits - 2.5 * np.log10(np.maximum(light, 1e-3)))


def _separate(
    survey: SurveyModel, sky: Sky, rng: Generator
) -> tuple[tuple[NDArray[np.intp], NDArray[np.bool_]], tuple[Array, Array], Array]:
    """Blend neighbors within the beam with their hosts; keep the others as sources."""
    bands = [BANDS.index(band) for band in survey.bands]
    now = sky.magnitudes[bands] + _moment(sky, bands, rng)
    near = np.hypot(*sky.shift) < survey.beam_arcsec
    blended, lone = sky.host[near], sky.host[~near]
    ra, dec = _centroids(sky, near, now[0])
    now[:, blended] = add_light(now[:, blended], sky.neighbors[bands][:, near])
    far = shift_positions(sky.ra[lone], sky.dec[lone], sky.shift[:, ~near])
    source = np.concatenate([np.arange(len(ra)), lone])
    place = np.concatenate([ra, far[0]]), np.concatenate([dec, far[1]])
    true = np.concatenate([now, sky.neighbors[bands][:, ~near]], axis=1)
    return (source, np.arange(len(source)) >= len(ra)), place, true


def _centroids(sky: Sky, near: NDArray[np.bool_], magnitude: Array) -> tuple[Array, Array]:
    """Move blended sources toward their neighbor by its share of the flux."""
    host = sky.host[near]
    neighbor = sky.neighbors[BANDS.index("V"), near]
    share = 1 / (1 + 10 ** (0.4 * (neighbor - magnitude[host])))
    ra, dec = sky.ra.copy(), sky.dec.copy()
    ra[host], dec[host] = shift_positions(ra[host], dec[host], sky.shift[:, near] * share)
    return ra, dec


def _moment(sky: Sky, bands: list[int], rng: Generator) -> Array:
    """Draw the deviation of each object from its mean at the time of the survey, shape (k, n)."""
    kind = sky.population.kind
    ratio = np.array([BAND_AMPLITUDE[name] for name in CLASSES])[:, bands]
    moment = rng.uniform(-np.sqrt(3), np.sqrt(3), len(kind)) * light_curve_rms(sky)
    return np.asarray(ratio[kind].T * moment)


def light_curve_rms(sky: Sky) -> Array:
    """Return the standard deviation in time of the V magnitude of each object."""
    share = np.array([_RMS[name] for name in CLASSES])[sky.population.kind]
    periodic = share * np.nan_to_num(sky.population.amplitude)
    return np.asarray(np.hypot(periodic, np.nan_to_num(sky.population.sigma)))


def _local_limits(survey: SurveyModel, ra: Array, dec: Array, rng: Generator) -> Array:
    nominal = np.array(survey.limits)[:, None]
    crowded = 0.15 * survey.beam_arcsec * crowding(ra, dec)
    return nominal - crowded + rng.normal(0.0, 0.12, (len(survey.bands), len(ra)))


def _gaps(
    survey: SurveyModel, magnitudes: Array, limits: Array, place: tuple[Array, Array]
) -> NDArray[np.int8]:
    gaps = np.where(magnitudes > limits, UNDETECTED, SEEN).astype(np.int8)
    gaps[magnitudes < np.array(survey.saturation)[:, None]] = REJECTED
    covered = {footprint: footprint.contains(*place) for footprint in set(survey.footprints)}
    for row, footprint in zip(gaps, survey.footprints, strict=True):
        row[~covered[footprint]] = UNCOVERED
    return gaps
