"""Blends: sources that the base, with its beam, sees as one object at their center of light."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from skyfill.catalog import Table
from skyfill.sky.ellipses import Sources
from skyfill.sky.neighbors import find_neighbors
from skyfill.sky.sphere import ARCSEC, Floats, Rows, unit_vectors

# Share of a neighbor whose brightness is not known: up to five magnitudes fainter, all as likely.
LIGHT = 1 / (1 + 10 ** (0.4 * (np.arange(5) + 0.5)))
# Share of the blends in which a source counts as the counterpart although it is not the brightest.
NOT_BRIGHTEST = 1e-4


class Blends(NamedTuple):
    """How far the base may see each source from its place, if it is the brightest of a blend.

    Those of source i are ``starts[i]`` to ``starts[i + 1]``; a source by itself has none.
    """

    starts: Rows
    offsets: Floats  # east and north in arcsec
    log_weight: Floats


class _Pairs(NamedTuple):
    """Sources within the beam of each other, in the order of the first."""

    owner: Rows
    other: Rows


def no_blends() -> Blends:
    """Give no source a neighbor."""
    return Blends(np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0))


def find_blends(
    surveys: Sequence[Sources], beam_arcsec: float, light: Sequence[Floats | None] | None = None
) -> Blends:
    """Say where the base would see the sources of all surveys, one survey after the other.

    Parameters
    ----------
    beam_arcsec : float
        Sources of a survey within this distance are one object of the base.
    light : sequence of arrays of shape (n_k, b_k) or None, optional
        Light of the sources in some bands, each of which may be that of the base: there a blend
        lies at its center of light, and its counterpart is the brightest source. Without it a
        neighbor may have any light up to that of the source.

    Examples
    --------
    >>> from skyfill.sky.ellipses import circles
    >>> two = Sources(np.array([10.0, 10.0]), np.array([0.0, 1 / 3600]), circles([0.1, 0.1]))
    >>> found = find_blends([two], 2.0, [np.array([[3.0], [1.0]])])
    >>> found.offsets.round(6).tolist(), np.exp(found.log_weight).round(6).tolist()
    ([[0.0, 0.25], [0.0, 0.0]], [1.0, 0.0001])
    """
    known = [None] * len(surveys) if light is None else light
    parts = [_of_survey(s, beam_arcsec, own) for s, own in zip(surveys, known, strict=True)]
    counts = np.concatenate([np.zeros(1, np.int64), *(part[0] for part in parts)])
    offsets, weights = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    return Blends(np.cumsum(counts), offsets, weights)


def add_light(sources: Sources, beam_arcsec: float, light: Floats) -> Floats:
    """Light of each source together with all others within the beam, as the base sees it.

    Parameters
    ----------
    light : array of shape (n, b)
        NaN where a source was not seen; so is the sum where none of them was.

    Examples
    --------
    >>> from skyfill.sky.ellipses import circles
    >>> two = Sources(np.array([10.0, 10.0]), np.array([0.0, 1 / 3600]), circles([0.1, 0.1]))
    >>> add_light(two, 2.0, np.array([[3.0, np.nan], [1.0, np.nan]])).tolist()
    [[4.0, nan], [4.0, nan]]
    """
    pairs, seen = _find_pairs(sources, beam_arcsec), np.nan_to_num(light)
    total = seen + _sum_of_others(pairs, seen)
    return np.where(total > 0, total, np.nan)


def read_light(table: Table, bands: Sequence[str]) -> Floats:
    """Read magnitudes and fluxes as light; columns that are neither are left out."""
    used = [name for name in bands if table.info(name).is_brightness]
    values = table.numbers(*used) if used else np.empty((len(table), 0))
    is_magnitude = np.array([table.info(name).is_magnitude for name in used], dtype=bool)
    return to_light(values, is_magnitude)


def to_light(values: Floats, is_magnitude: np.ndarray) -> Floats:
    """Turn columns of magnitudes into light, and leave those of fluxes."""
    return np.where(is_magnitude, 10 ** (-0.4 * np.where(is_magnitude, values, 0.0)), values)


def from_light(light: Floats, is_magnitude: np.ndarray) -> Floats:
    """Undo `to_light`."""
    return np.where(is_magnitude, -2.5 * np.log10(np.where(is_magnitude, light, 1.0)), light)


def _find_pairs(sources: Sources, beam_arcsec: float) -> _Pairs:
    place = sources.ra_deg, sources.dec_deg
    near = find_neighbors(place, place, beam_arcsec)
    owner = np.repeat(np.arange(len(sources)), np.diff(near.starts))
    others = near.rows != owner
    return _Pairs(owner[others], near.rows[others].astype(np.int64))


def _sum_of_others(pairs: _Pairs, values: Floats) -> Floats:
    """Sum columns of the neighbors of each source."""
    sums = [np.bincount(pairs.owner, v[pairs.other], minlength=len(values)) for v in values.T]
    return np.stack(sums, axis=1) if sums else np.zeros(values.shape)


def _of_survey(
    sources: Sources, beam_arcsec: float, light: Floats | None
) -> tuple[Rows, Floats, Floats]:
    """Count the offsets of each source; give them and their log weights."""
    pairs = _find_pairs(sources, beam_arcsec)
    apart = _offsets(sources, pairs)
    n_neighbors = np.bincount(pairs.owner, minlength=len(sources))
    if light is not None and light.shape[1]:
        return _by_light(pairs, apart, np.nan_to_num(light), n_neighbors > 0)
    counts = n_neighbors * len(LIGHT)
    offsets = (apart[:, None, :] * LIGHT[:, None]).reshape(-1, 2)
    return counts, offsets, np.repeat(-np.log(np.maximum(counts, 1)), counts)


def _by_light(
    pairs: _Pairs, apart: Floats, light: Floats, crowded: np.ndarray
) -> tuple[Rows, Floats, Floats]:
    """One offset for each band, that to the center of light."""
    total = np.maximum(light + _sum_of_others(pairs, light), np.finfo(float).tiny)
    brightest = np.zeros(light.shape)
    np.maximum.at(brightest, pairs.owner, light[pairs.other])
    weight = np.where(light >= brightest, 1.0, NOT_BRIGHTEST) / light.shape[1]
    pulls = [
        [
            np.bincount(pairs.owner, band[pairs.other] * side, minlength=len(light))
            for band in light.T
        ]
        for side in apart.T
    ]
    offsets = np.where(light >= brightest, np.array(pulls).transpose(0, 2, 1) / total, 0.0)
    counts = np.where(crowded, light.shape[1], 0)
    return (
        counts,
        offsets[:, crowded].transpose(1, 2, 0).reshape(-1, 2),
        np.log(weight[crowded]).ravel(),
    )


def _offsets(sources: Sources, pairs: _Pairs) -> Floats:
    """How far the second of each pair lies east and north of the first, in arcsec."""
    ra, dec = np.radians(sources.ra_deg[pairs.owner]), np.radians(sources.dec_deg[pairs.owner])
    x, y, z = unit_vectors(sources.ra_deg, sources.dec_deg)[pairs.other].T
    east = y * np.cos(ra) - x * np.sin(ra)
    north = z * np.cos(dec) - (x * np.cos(ra) + y * np.sin(ra)) * np.sin(dec)
    return np.stack([east, north], axis=1) / ARCSEC
