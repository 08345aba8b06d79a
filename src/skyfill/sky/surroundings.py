"""Base and surveys as associations need them: positions of one epoch, errors, densities, reach."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from skyfill.errors import CatalogError, SkyfillWarning
from skyfill.sky.associations import Associations, Rest, associate
from skyfill.sky.blends import read_light
from skyfill.sky.conditions import Conditions, area_of
from skyfill.sky.density import NEIGHBORS, local_density
from skyfill.sky.ellipses import Sources
from skyfill.sky.error_fit import radius_of, read_errors
from skyfill.sky.matching import nearest_arcsec
from skyfill.sky.neighbors import count_neighbors
from skyfill.sky.positions import Positions
from skyfill.sky.shifts import Offset, fit_offset, shifted
from skyfill.sky.sphere import Floats, Rows, arcsec_of_chord, unit_vectors
from skyfill.sky.survey import Survey

# Where no radius is given: so many standard deviations, beyond which 4e-6 of the pairs lie.
REACH_SIGMAS = 5.0
# A radius below this many standard deviations loses counterparts: one in ninety at 3.
LEAST_SIGMAS = 3.0
# Where even nearest neighbors are further apart, catalogues lie in different parts of the sky.
FAR_ARCSEC = 3600.0
# Objects that are enough for a check, and sources that a circle around one should then hold.
CHECKED, AREA_SOURCES = 200, 100
# Density of a survey where it has no sources.
NOTHING = 1e-12


class CounterpartWarning(SkyfillWarning):
    """Something about position errors, radii or areas that makes probabilities doubtful."""


@dataclass(frozen=True)
class Surroundings:
    """Base and surveys at one epoch, with errors, densities and reach: what associations need.

    Attributes
    ----------
    base : Sources
    surveys : tuple of Sources
    density : array of shape (n, k)
        Sources per square arcsec around each base object.
    radius_arcsec : array of shape (n, k)
    covered : boolean array of shape (n, k)
        Whether a base object lies in the footprint of a survey.
    completeness : array of shape (k,)
        As stated; NaN where it is to be estimated.
    offsets : tuple of Offset or None
        Shifts that were taken away.
    names : tuple of str
    sets : array of shape (2**k,), optional
        How many field sources each set of surveys sees.
    beam_arcsec : float
        Resolution of the base; see `associate`.
    light : tuple of arrays of shape (n_k, b_k), optional
        Light of the sources of each survey, by which the beam joins them.
    conditions : Conditions, optional
        What a part of the tables needs to know of the whole.
    """

    base: Sources
    surveys: tuple[Sources, ...]
    density: Floats
    radius_arcsec: Floats
    covered: np.ndarray
    completeness: Floats
    offsets: tuple[Offset | None, ...]
    names: tuple[str, ...]
    sets: Floats | None = None
    beam_arcsec: float = 0.0
    light: tuple[Floats, ...] | None = None
    conditions: Conditions | None = None

    def associate(self, rest: Rest) -> Associations:
        """List the associations of all base objects."""
        return associate(
            self.base,
            self.surveys,
            self.density,
            list(self.radius_arcsec.T),
            rest=rest,
            field_sets=self.sets,
            beam_arcsec=self.beam_arcsec,
            light=self.light,
        )

    def shifted(self, offset: Offset) -> "Surroundings":
        """Move the base objects elsewhere, where they have no counterparts."""
        ra, dec = shifted(self.base.ra_deg, self.base.dec_deg, offset)
        return replace(self, base=Sources(ra, dec, self.base.cov))

    def take(self, rows: Rows) -> "Surroundings":
        """Keep the given base objects, in the given order."""
        base = self.base
        return replace(
            self,
            base=Sources(base.ra_deg[rows], base.dec_deg[rows], base.cov[rows]),
            density=self.density[rows],
            radius_arcsec=self.radius_arcsec[rows],
            covered=self.covered[rows],
        )


def read_surroundings(
    base: Survey,
    surveys: Sequence[Survey],
    *,
    remove_offset: bool = False,
    epoch: float | None = None,
    conditions: Conditions | None = None,
) -> Surroundings:
    """Read positions, errors, densities and footprints of the base and the surveys.

    Parameters
    ----------
    remove_offset : bool
        Measure a systematic shift of each survey and take it away.
    epoch : float, optional
        Julian year at which positions are compared.
    conditions : Conditions, optional
        What was measured on whole tables, if these are a part of them.

    Warns
    -----
    CounterpartWarning
        Where a radius is smaller than position errors allow, a stated area contradicts what the
        sources cover, or rows have no position error.
    """
    stored = [base.positions(), *(s.positions() for s in surveys)]
    epoch = _common_epoch(stored, epoch) if conditions is None else conditions.epoch
    places = stored if epoch is None else [p.at(epoch) for p in stored]
    is_part = conditions is not None
    if not is_part:
        _refuse_empty(places, [base, *surveys])
    left = places[0].ra_deg, places[0].dec_deg
    rights = [(p.ra_deg, p.dec_deg) for p in places[1:]]
    offsets = list(conditions.offsets if conditions else ()) or [None] * len(surveys)
    if remove_offset and not is_part:
        offsets = [fit_offset(left, r, radius_of(s)) for r, s in zip(rights, surveys, strict=True)]
    rights = [shifted(*r, o) if o else r for r, o in zip(rights, offsets, strict=True)]
    if conditions is None:
        covs = read_errors(base, surveys, left, rights)
        conditions = Conditions.of(base, surveys, covs)
    else:
        covs = conditions.read_errors(base, surveys)
    there = Sources(*left, covs[0])
    others = tuple(Sources(*r, cov) for r, cov in zip(rights, covs[1:], strict=True))
    known = list(zip(surveys, conditions.densities, conditions.variances, strict=True))
    densities = [_density(s, o, there, d) for (s, d, _), o in zip(known, others, strict=True)]
    radii = [_reach(s, there, variance, base.beam_arcsec) for s, _, variance in known]
    found = Surroundings(
        there,
        others,
        np.stack(densities, axis=1),
        np.stack(radii, axis=1),
        np.stack([_covered(s, there) for s in surveys], axis=1),
        np.array([np.nan if s.completeness is None else s.completeness for s in surveys]),
        tuple(offsets),
        tuple(s.name for s in surveys),
        beam_arcsec=base.beam_arcsec,
        light=tuple(read_light(s.table, s.bands) for s in surveys) if base.beam_arcsec else None,
        conditions=conditions,
    )
    if not is_part:
        crowding = tuple(_crowding(found, k) for k in range(len(surveys)))
        moved = max(map(_largest_move, stored, places))
        whole = replace(conditions, crowding=crowding, epoch=epoch, motion_arcsec=moved)
        whole = replace(whole, offsets=tuple(offsets))
        found = replace(found, conditions=whole)
        _refuse_far(found)
        _warn_missing([base, *surveys], conditions)
    return found


def _common_epoch(places: Sequence[Positions], epoch: float | None) -> float | None:
    """Give the stated epoch, else that of the first catalogue that cannot move."""
    if epoch is not None:
        return epoch
    still = [p.single_epoch for p in places if p.motion is None]
    return next((year for year in still if year is not None), None)


def _largest_move(before: Positions, after: Positions) -> float:
    here, there = (unit_vectors(p.ra_deg, p.dec_deg) for p in (before, after))
    chord = np.nanmax(np.sqrt(np.sum((here - there) ** 2, axis=1)), initial=0.0)
    return float(arcsec_of_chord(chord))


def _refuse_empty(places: Sequence[Positions], surveys: Sequence[Survey]) -> None:
    for positions, survey in zip(places, surveys, strict=True):
        if not np.isfinite(positions.ra_deg).any():
            raise CatalogError(f"{survey.name}: no row has a position; nothing can be matched")


def _refuse_far(there: Surroundings) -> None:
    """Refuse catalogues of different parts of the sky; those with near pairs need no search."""
    few = there.take(_some(there.base))
    near = zip(few.surveys, few.radius_arcsec.T, strict=True)
    if any(count_neighbors(_place(few.base), _place(s), radius).any() for s, radius in near):
        return
    here = _place(there.base)
    apart = [np.nanmedian(nearest_arcsec(*here, *_place(survey))) for survey in there.surveys]
    if all(distance > FAR_ARCSEC for distance in apart):
        far = zip(there.names, apart, strict=True)
        words = ", ".join(f"{name}: {distance / 3600:.1f} degrees" for name, distance in far)
        raise CatalogError(
            f"the catalogues do not overlap: median distances to the nearest source are {words}; "
            "check the units of the positions (degrees, radians, hours)"
        )


def _some(base: Sources) -> Rows:
    """Choose objects with a position, evenly, for checks that do not need all."""
    placed = np.flatnonzero(np.isfinite(base.ra_deg))
    return placed[:: 1 + len(placed) // CHECKED]


def _place(sources: Sources) -> "Place":
    return sources.ra_deg, sources.dec_deg


Place = tuple[Floats, Floats]


def _density(survey: Survey, sources: Sources, base: Sources, known: float | None) -> Floats:
    """Give the density around each object: as known for all, or measured there."""
    if known is None and not np.isfinite(sources.ra_deg).any():
        return np.full(len(base), NOTHING)  # a part of the sky that the survey does not cover
    if known is None:
        return local_density(base.ra_deg, base.dec_deg, _place(sources))
    area = area_of(survey)
    if area is not None:
        _warn_area(survey.name, sources, base, known, area)
    return np.full(len(base), known)


def _warn_area(name: str, sources: Sources, base: Sources, density: float, area: float) -> None:
    """Warn where the sources are ten times as dense as the area says, or ten times sparser."""
    some = _some(base)
    radius = np.sqrt(AREA_SOURCES / (np.pi * density))
    counts = count_neighbors((base.ra_deg[some], base.dec_deg[some]), _place(sources), radius)
    # Objects with nothing around them lie outside the survey.
    ratio = float(np.median(counts[counts > 0])) / AREA_SOURCES if counts.any() else 1.0
    if not 0.1 < ratio < 10:
        _warn(
            f"{name}: an area of {area:g} square degrees gives {density * 3600**2:.3g} sources per "
            f"square degree, but around the objects there are {ratio:.2g} times as many; check "
            f"--area, or leave it out to use local densities"
        )


def _crowding(there: Surroundings, k: int) -> float:
    """Count the other base objects around one of them for each source of a survey around it."""
    few = there.take(_some(there.base))
    radius = np.sqrt((NEIGHBORS - 1) / (np.pi * few.density[:, k]))
    counts = count_neighbors(_place(few.base), _place(there.base), radius)
    return float(np.mean(counts - 1)) / (NEIGHBORS - 1) if len(counts) else 0.0


def _reach(survey: Survey, base: Sources, typical: float, beam: float) -> Floats:
    sigma = np.sqrt(base.variance + typical)
    if not survey.radius_arcsec:
        # The center of light of a blend lies at most half a beam from its brightest source.
        return REACH_SIGMAS * sigma + beam / 2
    short = int(np.count_nonzero(survey.radius_arcsec < LEAST_SIGMAS * sigma))
    if short:
        _warn(
            f"{survey.name}: the radius of {survey.radius_arcsec:g} arcsec is below 3 standard "
            f"deviations for {short} of {len(base)} objects (up to {sigma.max():.3g} arcsec each); "
            f"their counterparts may lie outside: choose a larger one or leave --radius out"
        )
    return np.full(len(base), float(survey.radius_arcsec))


def _warn_missing(surveys: Sequence[Survey], conditions: Conditions) -> None:
    """Warn of rows without a position error, which get the median."""
    for survey, error in zip(surveys, conditions.errors, strict=True):
        columns = error.columns[:2]
        lost = np.isnan(survey.table.numbers(*columns)).any(axis=1).sum() if columns else 0
        if lost:
            _warn(
                f"{survey.name}: {lost} of {len(survey.table)} rows have no position error in "
                f"{', '.join(columns)} and get the median; give one for all rows (--error "
                f"{survey.name}=ARCSEC) if that is not right"
            )


def _covered(survey: Survey, base: Sources) -> np.ndarray:
    placed = np.isfinite(base.ra_deg)
    if survey.footprint is None:
        return placed
    return np.asarray(placed & survey.footprint.covers(base.ra_deg, base.dec_deg))


def _warn(message: str) -> None:
    warnings.warn(message, CounterpartWarning, stacklevel=4)
