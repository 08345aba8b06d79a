"""Sources away from the objects of the base: the field that counterparts stand out from."""

import numpy as np
from numpy.typing import NDArray

from skyfill.sky.matching import match_positions
from skyfill.sky.neighbors import find_neighbors
from skyfill.sky.sphere import Floats, Rows
from skyfill.sky.surroundings import Surroundings

# Sources of two surveys further apart than so many standard deviations are never one.
MOST_SIGMAS = 6.0
ROUNDS = 100
# Where fewer sources are left away from all objects, those near them are used as well.
LEAST_SOURCES = 500


def group_elsewhere(there: Surroundings) -> Rows:
    """Group the sources of all surveys that lie beyond the reach of every base object.

    Each source of a survey joins the nearest one of an earlier survey, one to one, if that is
    likelier the same than another by chance.

    Returns
    -------
    integer array of shape (f, k)
        Rows of the surveys; -1 where a group has no source of a survey.
    """
    groups = np.empty((0, len(there.surveys)), dtype=np.int64)
    for k in range(len(there.surveys)):
        rows = _away(there, k)
        alone = np.full((len(rows), len(there.surveys)), -1)
        alone[:, k] = rows
        for j in range(k):
            owners = np.flatnonzero((groups[:, j] >= 0) & (groups[:, k] < 0))
            free = np.flatnonzero(alone[:, k] >= 0)
            left, right = _pairs(there, (j, groups[owners, j]), (k, alone[free, k]))
            groups[owners[left], k] = alone[free[right], k]
            alone[free[right], k] = -1
        groups = np.concatenate([groups, alone[alone[:, k] >= 0]])
    return groups


def _away(there: Surroundings, k: int) -> Rows:
    base, survey = there.base, there.surveys[k]
    places = (base.ra_deg, base.dec_deg), (survey.ra_deg, survey.dec_deg)
    near = find_neighbors(*places, there.radius_arcsec[:, k]).rows
    away = np.isfinite(survey.ra_deg)
    away[near] = False
    if away.sum() < LEAST_SOURCES:
        away = np.isfinite(survey.ra_deg)
    return np.flatnonzero(away)


def _pairs(there: Surroundings, one: tuple[int, Rows], two: tuple[int, Rows]) -> tuple[Rows, Rows]:
    (a, rows), (b, others) = one, two
    left, right = there.surveys[a], there.surveys[b]
    sigma = np.sqrt(np.median(left.variance) + np.median(right.variance))
    found = match_positions(
        left.ra_deg[rows],
        left.dec_deg[rows],
        right.ra_deg[others],
        right.dec_deg[others],
        float(MOST_SIGMAS * sigma),
    )
    density = float(np.median(there.density[:, [a, b]], axis=0).max())
    n_sources = min(len(rows), len(others))
    same = likely_same(found.separation_arcsec / sigma, density * sigma**2, n_sources)
    return found.left[same], found.right[same]


def likely_same(apart: Floats, density: float, n_sources: int) -> NDArray[np.bool_]:
    """Tell which pairs of nearest sources of two surveys are likelier one source than two.

    Parameters
    ----------
    apart : array
        Separations in standard deviations.
    density : float
        Sources of the denser survey per square standard deviation.
    n_sources : int
        Sources of the sparser survey, with or without a pair; EM finds which share has one.

    Examples
    --------
    >>> likely_same(np.array([0.5, 1.0, 1.5, 5.0]), 1e-4, 4)
    array([ True,  True,  True, False])
    """
    ratio, share = np.exp(-(apart**2) / 2) / (2 * np.pi * density), 0.5
    for _ in range(ROUNDS):
        share = float(np.sum(share * ratio / (1 - share + share * ratio)) / max(n_sources, 1))
    return np.asarray(share * ratio > 1 - share)


def count_groups(groups: Rows) -> Floats:
    """Count the groups that each set of surveys sees, by its bits.

    Examples
    --------
    >>> count_groups(np.array([[0, 3], [1, -1], [2, -1]]))
    array([0., 2., 0., 1.])
    """
    n_surveys = groups.shape[1]
    codes = (groups >= 0) @ (1 << np.arange(n_surveys))
    return np.bincount(codes, minlength=1 << n_surveys).astype(np.float64)
