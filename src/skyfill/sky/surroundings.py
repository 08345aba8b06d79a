"""Base and surveys as associations need them: positions of one epoch, errors, densities, reach."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from skyfill.errors import CatalogError
from skyfill.sky.associations import Associations, Rest, associate
from skyfill.sky.density import density_of_area, local_density
from skyfill.sky.ellipses import Sources, circles
from skyfill.sky.error_fit import fit_error
from skyfill.sky.matching import match_positions, nearest_arcsec
from skyfill.sky.neighbors import count_neighbors
from skyfill.sky.position_errors import find_position_error, read_position_error
from skyfill.sky.positions import Positions
from skyfill.sky.shifts import Offset, fit_offset, shifted
from skyfill.sky.sphere import Floats, Rows
from skyfill.sky.survey import Survey

# Where no radius is given: so many standard deviations, beyond which 4e-6 of the pairs lie.
REACH_SIGMAS = 5.0
# A radius below this many standard deviations loses counterparts: one in ninety at 3.
LEAST_SIGMAS = 3.0
# Where even nearest neighbors are further apart, catalogues lie in different parts of the sky.
FAR_ARCSEC = 3600.0
# Objects that are enough for a check, and sources that a circle around one should then hold.
CHECKED, AREA_SOURCES = 200, 100


class CounterpartWarning(UserWarning):
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
) -> Surroundings:
    """Read positions, errors, densities and footprints of the base and the surveys.

    Parameters
    ----------
    remove_offset : bool
        Measure a systematic shift of each survey and take it away.
    epoch : float, optional
        Julian year at which positions are compared.

    Warns
    -----
    CounterpartWarning
        Where a radius is smaller than position errors allow, or a stated area contradicts what
        the sources cover.
    """
    places = _at_one_epoch([base.positions(), *(s.positions() for s in surveys)], epoch)
    _refuse_empty(places, [base, *surveys])
    left = places[0].ra_deg, places[0].dec_deg
    offsets: list[Offset | None] = [None] * len(surveys)
    rights = [(p.ra_deg, p.dec_deg) for p in places[1:]]
    if remove_offset:
        offsets = [fit_offset(left, r, _radius(s)) for r, s in zip(rights, surveys, strict=True)]
        rights = [shifted(*r, o) for r, o in zip(rights, offsets, strict=True) if o is not None]
    covs = _errors(base, surveys, left, rights)
    there = Sources(*left, covs[0])
    others = tuple(Sources(*r, cov) for r, cov in zip(rights, covs[1:], strict=True))
    both = list(zip(surveys, others, strict=True))
    found = Surroundings(
        there,
        others,
        np.stack([_density(s, o, there) for s, o in both], axis=1),
        np.stack([_reach(s, o, there, base.beam_arcsec) for s, o in both], axis=1),
        np.stack([_covered(s, there) for s in surveys], axis=1),
        np.array([np.nan if s.completeness is None else s.completeness for s in surveys]),
        tuple(offsets),
        tuple(s.name for s in surveys),
        beam_arcsec=base.beam_arcsec,
    )
    _refuse_far(found)
    return found


def _radius(survey: Survey) -> float:
    if not survey.radius_arcsec:
        raise CatalogError(
            f"{survey.name}: no radius; a shift or an error can be estimated only within one "
            f"(--radius {survey.name}=ARCSEC)"
        )
    return survey.radius_arcsec


def _at_one_epoch(places: Sequence[Positions], epoch: float | None) -> list[Positions]:
    """Bring all catalogues to the stated epoch, else to that of the first that cannot move."""
    if epoch is None:
        still = [p.single_epoch for p in places if p.motion is None]
        epoch = next((year for year in still if year is not None), None)
    return [p if epoch is None else p.at(epoch) for p in places]


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


def _errors(
    base: Survey, surveys: Sequence[Survey], left: Place, rights: Sequence[Place]
) -> list[Floats]:
    """Covariances of all catalogues; those that nobody states are estimated from separations."""
    known: list[Floats | None] = [_stated(survey) for survey in (base, *surveys)]
    for k, (survey, right) in enumerate(zip(surveys, rights, strict=True), start=1):
        if known[0] is None or known[k] is None:
            radius = _radius(survey)
            pairs = match_positions(*left, *right, radius, keep="all")
            variance = sum(
                cov[rows, 0] if cov is not None else 0.0
                for cov, rows in ((known[0], pairs.left), (known[k], pairs.right))
            )
            try:
                sigma = fit_error(pairs.separation_arcsec, np.asarray(variance), radius)
            except CatalogError as fault:
                raise CatalogError(f"{survey.name}: {fault}") from None
            # With neither known only their sum matters: half of the variance each.
            share = sigma / np.sqrt(2) if known[0] is None and known[k] is None else sigma
            known[0] = _or_circles(known[0], share, len(left[0]))
            known[k] = _or_circles(known[k], share, len(right[0]))
    return [cov for cov in known if cov is not None]


def _stated(survey: Survey) -> Floats | None:
    error = survey.error or find_position_error(survey.table)
    if error.is_estimated:
        return None
    try:
        return read_position_error(survey.table, error)
    except CatalogError as fault:
        raise CatalogError(f"{survey.name}: {fault}") from None


def _or_circles(cov: Floats | None, sigma: float, n: int) -> Floats:
    return circles(np.full(n, sigma)) if cov is None else cov


def _density(survey: Survey, sources: Sources, base: Sources) -> Floats:
    n = int(np.isfinite(sources.ra_deg).sum())
    area = survey.area_deg2
    if area is None and survey.footprint is not None:
        area = survey.footprint.area_deg2
    if area is None:
        place = sources.ra_deg, sources.dec_deg
        return local_density(base.ra_deg, base.dec_deg, place)
    try:
        density = density_of_area(n, area)
    except CatalogError as fault:
        raise CatalogError(f"{survey.name}: {fault}") from None
    _warn_area(survey.name, sources, base, density, area)
    return np.full(len(base), density)


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


def _reach(survey: Survey, sources: Sources, base: Sources, beam: float) -> Floats:
    typical = float(np.median(sources.variance))
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


def _covered(survey: Survey, base: Sources) -> np.ndarray:
    placed = np.isfinite(base.ra_deg)
    if survey.footprint is None:
        return placed
    return np.asarray(placed & survey.footprint.covers(base.ra_deg, base.dec_deg))


def _warn(message: str) -> None:
    warnings.warn(message, CounterpartWarning, stacklevel=4)
