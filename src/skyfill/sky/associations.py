"""Associations of each base object with sources of any number of surveys, and their weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from skyfill.errors import CatalogError
from skyfill.sky.blends import Blends, find_blends, no_blends
from skyfill.sky.ellipses import Sources
from skyfill.sky.neighbors import Neighbors, find_neighbors
from skyfill.sky.pairs import log_pair_weight
from skyfill.sky.sphere import Floats, Rows, unit_vectors
from skyfill.threads import map_threads

Rest = Literal["sum", "best", "ignore"]
# Candidates that one thread works on at a time.
PART = 20_000
# No set of surveys is so rare that a source which they see could not be of the field.
LEAST_SHARE = 1e-3
MOST_ASSOCIATIONS = 200_000_000


@dataclass(frozen=True)
class Associations:
    """All associations within reach of each base object; the first of each object is "none".

    Attributes
    ----------
    starts : integer array of shape (n + 1,)
        Those of base object i are ``starts[i]`` to ``starts[i + 1]``.
    rows : integer array of shape (m, k)
        Row of the source in each survey; -1 where the association has none.
    log_weight : array of shape (m,)
        Log of the density of the members' positions if they are one object over their density if
        they are not; 0 for "none". Prior odds of having a counterpart are not in it.
    """

    starts: Rows
    rows: np.ndarray
    log_weight: Floats

    def __post_init__(self) -> None:
        # Kernels are compiled for one type of rows.
        object.__setattr__(self, "rows", np.asarray(self.rows, dtype=np.int32))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def n_base(self) -> int:
        """Number of base objects."""
        return len(self.starts) - 1

    @property
    def base(self) -> Rows:
        """Base object of each association."""
        return np.repeat(np.arange(self.n_base), np.diff(self.starts))

    def owners(self, associations: Rows) -> Rows:
        """Return the base objects of some of the associations."""
        return np.searchsorted(self.starts, associations, side="right") - 1

    def portions(self) -> Iterator[tuple[slice, slice, "Associations"]]:
        """Cut them into portions that stay in a core's cache: objects, associations, both."""
        for objects in _parts(np.diff(self.starts) - 1):
            inside = slice(int(self.starts[objects.start]), int(self.starts[objects.stop]))
            starts = self.starts[objects.start : objects.stop + 1] - inside.start
            part = Associations(starts, self.rows[inside], self.log_weight[inside])
            yield objects, inside, part

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of one value per association over those of each object."""
        return np.add.reduceat(values, self.starts[:-1], dtype=np.float64)

    def highest(self, values: Floats) -> Floats:
        """Highest of one value per association among those of each object."""
        return np.asarray(np.maximum.reduceat(values, self.starts[:-1]))


def associate(
    base: Sources,
    surveys: Sequence[Sources],
    density: Floats,
    radius_arcsec: Sequence[float | Floats],
    *,
    rest: Rest = "sum",
    field_sets: Floats | None = None,
    beam_arcsec: float = 0.0,
    light: Sequence[Floats | None] | None = None,
) -> Associations:
    """List every association within the radius of each base object and weigh it by position.

    The weight is the Bayes factor of Budavari & Szalay (2008), generalized to ellipses, divided by
    the number of sources that the surveys have over the whole sky at this density.

    Parameters
    ----------
    density : array of shape (k,) or (n, k)
        Sources per square arcsec of each survey, everywhere or around each base object.
    radius_arcsec : sequence of k floats or arrays of shape (n,)
        How far from the base object to look, by survey.
    rest : {"sum", "best", "ignore"}
        With two surveys or more, sources outside an association may still be one object among
        themselves. ``sum`` weighs all ways to group them, ``best`` the likeliest set alone as
        Salvato et al. (2018) do, ``ignore`` takes them for strangers.
    field_sets : array of shape (2**k,), optional
        How many field sources each set of surveys sees (bit k of the index for survey k). Without
        it every source of a survey is thought to be in all denser ones; ``best`` does not use it.
    beam_arcsec : float
        Sources nearer to one another than this are one object of the base, whose position then
        lies between them: evidence is averaged over how much light the fainter ones may have.
    light : sequence of arrays of shape (n_k, b_k) or None, optional
        Light of the sources in some bands: evidence is averaged over these; see `find_blends`.

    Examples
    --------
    >>> from skyfill.sky.ellipses import circles
    >>> x = Sources(np.array([10.0]), np.array([0.0]), circles([1.0]))
    >>> o = Sources(np.array([10.0, 10.001]), np.zeros(2), circles([0.1, 0.1]))
    >>> found = associate(x, [o], np.array([1e-3]), [5.0])
    >>> found.rows.T, found.log_weight.round(2)
    (array([[-1,  0,  1]], dtype=int32), array([ 0.  ,  5.06, -1.36]))
    """
    density = np.asarray(density, dtype=np.float64)
    if not np.all(density > 0):
        raise CatalogError("a density is 0 or negative; give the area that each survey covers")
    log_density = np.broadcast_to(np.log(density), (len(base), len(surveys)))
    by_set = _first_density(log_density)
    if rest != "best":
        by_set = _density_of_sets(log_density, field_sets if rest == "sum" else None)
    near = [
        find_neighbors((base.ra_deg, base.dec_deg), (s.ra_deg, s.dec_deg), radius)
        for s, radius in zip(surveys, radius_arcsec, strict=True)
    ]
    if len(surveys) == 1 and not beam_arcsec:
        return _list_pairs(base, surveys[0], by_set[:, 1], near[0])
    blends = find_blends(surveys, beam_arcsec, light) if beam_arcsec else no_blends()
    return _list_sets(base, surveys, by_set, near, (rest, blends))


def _first_density(log_density: Floats) -> Floats:
    """Log density of the first survey of each set, the prior of Salvato et al. (2018)."""
    n_surveys = log_density.shape[1]
    firsts = [(code & -code).bit_length() - 1 for code in range(1, 1 << n_surveys)]
    return np.concatenate([np.zeros((len(log_density), 1)), log_density[:, firsts]], axis=1)


def _density_of_sets(log_density: Floats, field_sets: Floats | None) -> Floats:
    """Log density of field sources that each set of surveys sees and the others do not.

    It is the density of the sparsest survey of the set, times the share of its sources that are
    seen by just this set.
    """
    n, n_surveys = log_density.shape
    out = np.zeros((n, 1 << n_surveys))
    for code in range(1, 1 << n_surveys):
        members = np.flatnonzero((code >> np.arange(n_surveys)) & 1)
        out[:, code] = log_density[:, members].min(axis=1)
        if field_sets is not None and n_surveys > 1:
            sparsest = members[np.argmin(np.mean(log_density[:, members], axis=0))]
            out[:, code] += np.log(_share(field_sets, code, int(sparsest)))
    return out


def _share(field_sets: Floats, code: int, k: int) -> float:
    """Share of the sources of survey k that just this set of surveys sees."""
    inside = ((np.arange(len(field_sets)) >> k) & 1).astype(bool)
    return max(float(field_sets[code] / max(field_sets[inside].sum(), 1)), LEAST_SHARE)


def _list_pairs(
    base: Sources, survey: Sources, log_density: Floats, near: Neighbors
) -> Associations:
    """List the associations with a single survey."""
    starts = near.starts + np.arange(len(near.starts))
    rows, weight = np.full((starts[-1], 1), -1, dtype=np.int32), np.zeros(starts[-1])
    frames, vectors = _frames(base), unit_vectors(survey.ra_deg, survey.dec_deg)

    def work(part: slice) -> None:
        inside = slice(near.starts[part.start], near.starts[part.stop])
        counts = np.diff(near.starts[part.start : part.stop + 1])
        owner, theirs = np.repeat(np.arange(part.start, part.stop), counts), near.rows[inside]
        at = np.arange(inside.start, inside.stop) + owner + 1
        rows[at, 0] = theirs
        facts = frames[owner], vectors[theirs], base.cov[owner], survey.cov[theirs]
        weight[at] = log_pair_weight(*facts) - log_density[owner]

    map_threads(work, _parts(np.diff(near.starts)))
    return Associations(starts, rows, weight)


def _list_sets(
    base: Sources,
    surveys: Sequence[Sources],
    log_density: Floats,
    near: Sequence[Neighbors],
    how: tuple[Rest, Blends],
) -> Associations:
    """List the associations with any number of surveys."""
    from skyfill.sky import association_kernels as kernels  # the compiler takes 100 MB

    rest, blends = kernels.REST[how[0]], tuple(how[1])
    places = _frames(base), _shapes(base), log_density
    facts = (*places, _joined(near, surveys), _stacked(surveys), blends)
    counts = np.zeros(len(base), dtype=np.int64)
    parts = _parts(np.sum([np.diff(found.starts) for found in near], axis=0))
    map_threads(lambda part: kernels.count_sets(part.start, part.stop, *facts, counts), parts)
    starts = np.concatenate([[0], np.cumsum(counts)])
    if starts[-1] > MOST_ASSOCIATIONS:
        raise CatalogError(f"{starts[-1]} associations within the radius; choose a smaller radius")
    rows = np.empty((starts[-1], len(surveys)), dtype=np.int32)
    weight = np.empty(starts[-1])

    def work(part: slice) -> None:
        kernels.list_sets(part.start, part.stop, *facts, starts, rows, weight, rest)

    map_threads(work, parts)
    return Associations(starts, rows, weight)


def _parts(n_candidates: Rows) -> list[slice]:
    """Cut the base objects into parts with about as much work each."""
    work = np.cumsum(1 + n_candidates) // PART
    cuts = np.flatnonzero(np.diff(work, prepend=0)) + 1
    edges = np.unique([0, *cuts, len(work)]).tolist()
    return [slice(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)]


def _joined(
    near: Sequence[Neighbors], surveys: Sequence[Sources]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Chain the neighbors of all surveys; say where each list and each survey begins."""
    sizes = [len(found) for found in near]
    begins = np.concatenate([[0], np.cumsum(sizes)])
    starts = np.stack([found.starts + at for found, at in zip(near, begins[:-1], strict=True)])
    offsets = np.cumsum([0, *map(len, surveys)])[:-1]
    rows = near[0].rows if len(near) == 1 else np.concatenate([found.rows for found in near])
    return starts, rows, offsets


def _stacked(surveys: Sequence[Sources]) -> tuple[Floats, Floats]:
    vectors = np.concatenate([unit_vectors(s.ra_deg, s.dec_deg) for s in surveys])
    return vectors, np.concatenate([_shapes(s) for s in surveys])


def _frames(base: Sources) -> Floats:
    """Sines and cosines of right ascension and declination."""
    ra, dec = np.radians(base.ra_deg), np.radians(base.dec_deg)
    return np.stack([np.sin(ra), np.cos(ra), np.sin(dec), np.cos(dec)], axis=1)


def _shapes(sources: Sources) -> Floats:
    """Inverse covariance, log of its determinant, and largest variance of each source."""
    east, both, north = sources.cov.T
    det = east * north - both**2
    inverse = (north / det, -both / det, east / det)
    return np.stack([*inverse, -np.log(det), sources.variance], axis=1)
