"""Position errors that nobody states, estimated from the separations themselves."""

from collections.abc import Sequence

import numpy as np

from skyfill.errors import CatalogError
from skyfill.sky.ellipses import circles
from skyfill.sky.matching import match_positions
from skyfill.sky.position_errors import find_position_error, read_position_error
from skyfill.sky.sphere import Floats
from skyfill.sky.survey import Survey

# Fewer pairs that stand out from chance do not give an error.
LEAST_PAIRS = 10.0
LARGEST_EXPONENT = 35.0


def fit_error(
    separation_arcsec: Floats, known_variance: Floats | float, radius_arcsec: float
) -> float:
    """Estimate the position error of one catalogue from its separations to another.

    True pairs have Rayleigh separations, chance pairs fall evenly over the circle; the error and
    the share of true pairs are those of largest likelihood.

    Parameters
    ----------
    separation_arcsec : array of shape (k,)
        Of all pairs within the radius.
    known_variance : array of shape (k,) or float
        Variance of the other catalogue along one direction; 0 gives the error of both together.

    Returns
    -------
    float
        Standard deviation along one direction, in arcsec.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> true, chance = 0.5 * rng.rayleigh(size=2000), 5 * np.sqrt(rng.uniform(size=1000))
    >>> bool(abs(fit_error(np.append(true, chance), 0.3**2, 5.0) - 0.4) < 0.02)
    True
    """
    from scipy.optimize import minimize  # loads slowly, and most errors are stated

    separation = np.asarray(separation_arcsec, dtype=np.float64)
    known = np.broadcast_to(np.asarray(known_variance, dtype=np.float64), separation.shape)
    if len(separation) < LEAST_PAIRS:
        raise _too_few(len(separation), radius_arcsec)
    start = np.log(max(np.median(separation) / 2, radius_arcsec * 1e-3)), 0.0

    def loss(parameters: Floats) -> float:
        return _minus_log_likelihood(parameters, separation, known, radius_arcsec)

    best = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6})
    share = 1 / (1 + np.exp(-best.x[1]))
    if share * len(separation) < LEAST_PAIRS:
        raise _too_few(share * len(separation), radius_arcsec)
    return float(np.exp(best.x[0]))


def _minus_log_likelihood(
    parameters: Floats, separation: Floats, known: Floats, radius: float
) -> float:
    """Loss per pair, of the densities of the squared separation over the squared radius."""
    log_sigma, logit = np.clip(parameters, -LARGEST_EXPONENT, LARGEST_EXPONENT)
    variance = known + np.exp(2 * log_sigma)
    square = radius**2 / (2 * variance)
    true = square * np.exp(-square * (separation / radius) ** 2) / -np.expm1(-square)
    share = 1 / (1 + np.exp(-logit))
    return float(-np.mean(np.log(share * true + (1 - share) + 1e-300)))


def _too_few(n_pairs: float, radius: float) -> CatalogError:
    return CatalogError(
        f"about {n_pairs:.0f} pairs within {radius:g} arcsec stand out from chance, too few to "
        f"estimate position errors; state them (--error NAME=ARCSEC or NAME=COLUMN)"
    )


Place = tuple[Floats, Floats]


def read_errors(
    base: Survey, surveys: Sequence[Survey], left: Place, rights: Sequence[Place]
) -> list[Floats]:
    """Covariances of all catalogues; those that nobody states are estimated from separations."""
    known: list[Floats | None] = [_stated(survey) for survey in (base, *surveys)]
    for k, (survey, right) in enumerate(zip(surveys, rights, strict=True), start=1):
        if known[0] is None or known[k] is None:
            radius = radius_of(survey)
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


def radius_of(survey: Survey) -> float:
    """Radius of a survey, which some estimates cannot do without."""
    if not survey.radius_arcsec:
        raise CatalogError(
            f"{survey.name}: no radius; a shift or an error can be estimated only within one "
            f"(--radius {survey.name}=ARCSEC)"
        )
    return survey.radius_arcsec
