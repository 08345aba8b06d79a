"""What is measured once, on whole tables or a sample, and then holds for any part of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from skyfill.errors import CatalogError
from skyfill.sky.density import density_of_area
from skyfill.sky.ellipses import Sources
from skyfill.sky.position_errors import (
    PositionError,
    find_position_error,
    median_errors,
    read_position_error,
)
from skyfill.sky.shifts import Offset
from skyfill.sky.sphere import Floats
from skyfill.sky.survey import Survey


@dataclass(frozen=True)
class Conditions:
    """Errors and densities of whole catalogues.

    Attributes
    ----------
    errors : tuple of PositionError
        Of the base and of each survey, none of them to be estimated any more.
    variances : tuple of float
        Median squared position error of each survey, in square arcsec.
    densities : tuple of float or None
        Sources per square arcsec of each survey; None where they are measured around each object.
    crowding : tuple of float
        Base objects for each source of a survey, where both lie.
    epoch : float or None
        Julian year at which positions are compared; None where they are compared as they are.
    motion_arcsec : float
        Largest distance by which an object or a source was moved to that epoch.
    offsets : tuple of Offset or None
        Shift of each survey that was taken away; empty where none was asked for.
    """

    errors: tuple[PositionError, ...]
    variances: tuple[float, ...]
    densities: tuple[float | None, ...]
    crowding: tuple[float, ...] = ()
    epoch: float | None = None
    motion_arcsec: float = 0.0
    offsets: tuple[Offset | None, ...] = ()

    @classmethod
    def of(cls, base: Survey, surveys: Sequence[Survey], covs: Sequence[Floats]) -> "Conditions":
        """Take them from whole tables and the covariances of their positions."""
        pairs = list(zip((base, *surveys), covs, strict=True))
        nowhere = np.zeros(0)
        variances = [np.median(Sources(nowhere, nowhere, cov).variance) for cov in covs[1:]]
        return cls(
            tuple(_settled(survey, cov) for survey, cov in pairs),
            tuple(float(variance) for variance in variances),
            tuple(_density(survey) for survey in surveys),
        )

    def read_errors(self, base: Survey, surveys: Sequence[Survey]) -> list[Floats]:
        """Covariances of the positions of a part of the tables."""
        pairs = zip((base, *surveys), self.errors, strict=True)
        return [read_position_error(survey.table, error) for survey, error in pairs]


def _settled(survey: Survey, cov: Floats) -> PositionError:
    """Return the error as it was read: a value for all where it was estimated."""
    error = survey.error or find_position_error(survey.table)
    if error.is_estimated:
        return PositionError(value=float(np.sqrt(cov[0, 0])))
    return replace(error, medians=median_errors(survey.table, error))


def area_of(survey: Survey) -> float | None:
    """Area that a survey covers, as stated or that of its footprint, in square degrees."""
    if survey.area_deg2 is None and survey.footprint is not None:
        return survey.footprint.area_deg2
    return survey.area_deg2


def _density(survey: Survey) -> float | None:
    area = area_of(survey)
    if area is None:
        return None
    n_sources = int(np.isfinite(survey.positions().ra_deg).sum())
    try:
        return density_of_area(n_sources, area)
    except CatalogError as fault:
        raise CatalogError(f"{survey.name}: {fault}") from None
