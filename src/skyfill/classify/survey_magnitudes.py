"""Magnitudes of base and surveys as photometry needs them: values, limits and depths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog import Role, Table
from skyfill.classify.photometric_ratio import Magnitudes, Rows, no_cells, side_of
from skyfill.network import Cells
from skyfill.sky import Surroundings, Survey, faint_edge
from skyfill.sky.blends import add_light, from_light, to_light
from skyfill.sky.ellipses import Sources

MAS_PER_DEG = 3_600_000


def read_magnitudes(
    base: Survey, surveys: Sequence[Survey], bands: Sequence[Sequence[str]], there: Surroundings
) -> Magnitudes:
    """Read the bands of the base and of each survey, with their limits.

    An object that a survey covers and does not see is fainter than the survey's depths. Sources
    within the beam of the base have their light together, as it sees them.
    """
    cells = [read_cells(s.table, b) for s, b in zip((base, *surveys), bands, strict=True)]
    for k, survey in enumerate(surveys if there.beam_arcsec else ()):
        cells[k + 1] = _blended(cells[k + 1], survey.table, bands[k + 1], there, k)
    depths = [_depths(s, bands[k + 1], there, k) for k, s in enumerate(surveys)]
    return Magnitudes(cells[0], tuple(cells[1:]), position_parts(there.base), tuple(depths))


def read_cells(table: Table, bands: Sequence[str]) -> Cells:
    """Read columns with their limits, which columns of the role `limit` state.

    Examples
    --------
    >>> from skyfill.catalog import ColumnInfo
    >>> info = {"K": ColumnInfo("mag"), "K_limit": ColumnInfo("mag", role=Role.LIMIT, of="K")}
    >>> table = Table.from_columns({"K": [14.0, None], "K_limit": [None, 16.2]}, info=info)
    >>> read_cells(table, ["K"]).lower.tolist()
    [[nan], [16.2]]
    """
    if not bands:
        return no_cells(len(table), 0)
    values = table.numbers(*bands)
    lower, upper = np.full(values.shape, np.nan), np.full(values.shape, np.nan)
    limits = {table.info(n).of: n for n in table.names if table.info(n).role is Role.LIMIT}
    for j, name in enumerate(bands):
        if name in limits:
            side = lower if table.info(name).is_magnitude else upper
            stated = table.numbers(limits[name])[:, 0]
            side[:, j] = np.where(np.isnan(values[:, j]), stated, np.nan)
    return Cells(values, lower, upper)


def _blended(
    cells: Cells, table: Table, bands: Sequence[str], there: Surroundings, k: int
) -> Cells:
    if not bands:
        return cells
    infos = [table.info(name) for name in bands]
    is_magnitude = np.array([info.is_magnitude for info in infos], dtype=bool)
    light = add_light(there.surveys[k], there.beam_arcsec, to_light(cells.values, is_magnitude))
    used = np.array([info.is_brightness for info in infos], dtype=bool)
    values = np.where(used, from_light(light, is_magnitude), cells.values)
    limits = (side_of(cells, name) for name in ("lower", "upper"))
    return Cells(values, *(np.where(np.isfinite(values), np.nan, limit) for limit in limits))


def position_parts(base: Sources) -> Rows:
    """Give objects numbers by position: the same object is in the same part of any table.

    Examples
    --------
    >>> from skyfill.sky import circles
    >>> both = Sources(np.array([10.0, 20.0]), np.array([0.5, 0.0]), circles([1.0, 1.0]))
    >>> position_parts(both)
    array([37800000, 72000000])
    """
    mas = np.floor(np.nan_to_num(np.stack([base.ra_deg, base.dec_deg])) * MAS_PER_DEG)
    return np.asarray(mas.sum(axis=0).astype(np.int64))


def _depths(survey: Survey, bands: Sequence[str], there: Surroundings, k: int) -> Cells:
    """Limits at each base object, where the survey covers it and a depth is stated or measured."""
    n = len(there.base)
    if not any(name in survey.depths for name in bands):
        return no_cells(n, len(bands))
    lower, upper = (np.full((n, len(bands)), np.nan) for _ in range(2))
    for j, name in enumerate(bands):
        if name in survey.depths:
            side = lower if survey.table.info(name).is_magnitude else upper
            side[there.covered[:, k], j] = _depth(survey, name, there)[there.covered[:, k]]
    return Cells(np.full(lower.shape, np.nan), lower, upper)


def _depth(survey: Survey, name: str, there: Surroundings) -> NDArray[np.float64]:
    depth = survey.depths[name]
    if depth is not None:
        return np.full(len(there.base), depth)
    places, values = survey.positions(), survey.table.numbers(name)[:, 0]
    return faint_edge(
        values,
        (places.ra_deg, places.dec_deg),
        (there.base.ra_deg, there.base.dec_deg),
        is_magnitude=survey.table.info(name).is_magnitude,
    )
