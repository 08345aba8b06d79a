"""A sample of HATS catalogues: some partitions of the base and the sources of surveys there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from skyfill.catalog import Table
from skyfill.scale.hats_around import Tiles, separations, tiles_of
from skyfill.scale.hats_counterparts import HatsSurvey
from skyfill.sky import Survey
from skyfill.sky.conditions import area_of

# What is learned needs no more: shares are then known to 0.2 %.
MOST_OBJECTS, MOST_SOURCES = 50_000, 5_000_000


def read_sample(
    base: HatsSurvey,
    surveys: Sequence[HatsSurvey],
    stated: Sequence[Survey],
    *,
    most_objects: int = MOST_OBJECTS,
    most_sources: int = MOST_SOURCES,
) -> list[Survey]:
    """Read partitions of the base, drawn at random up to a size, and the sources near them.

    Parameters
    ----------
    base, surveys : HatsSurvey
    stated : sequence of Survey
        What is stated of the base and of each survey, without rows. An area is scaled, so that the
        sample has the density of the whole.

    Returns
    -------
    list of Survey
        The base and the surveys, all of them if the catalogues are small.
    """
    tiles = [tiles_of(each.folder) for each in (base, *surveys)]
    rows = [_count_rows(each) for each in tiles]
    near = [_overlaps(tiles[0], other) for other in tiles[1:]]
    chosen = _choose(rows, near, most_objects, most_sources)
    picked = [chosen, *(np.flatnonzero(each[chosen].any(axis=0)) for each in near)]
    out = []
    for each, tile, n, use, fact in zip((base, *surveys), tiles, rows, picked, stated, strict=True):
        table = _read(tile, use, list(each.columns))
        share = len(table) / max(int(n.sum()), 1)
        whole = area_of(fact)
        area = None if whole is None else whole * share
        placed = each.with_rows(table)
        out.append(replace(fact, table=table, position=placed.position, area_deg2=area))
    return out


def _count_rows(tiles: Tiles) -> Any:
    return np.array([pq.read_metadata(file).num_rows for file in tiles.files])


def _overlaps(base: Tiles, other: Tiles) -> Any:
    """Say which partitions of two catalogues may have sources near one another."""
    apart = np.stack([separations(other.centers, center) for center in base.centers])
    return apart <= base.reach[:, None] + other.reach


def _choose(rows: Sequence[Any], near: Sequence[Any], most: int, most_sources: int) -> Any:
    order = np.random.default_rng(0).permutation(len(rows[0]))
    n_kept = len(order)
    while n_kept > 1:
        some = order[:n_kept]
        sources = sum(
            int(n[each[some].any(axis=0)].sum()) for n, each in zip(rows[1:], near, strict=True)
        )
        if rows[0][some].sum() <= most and sources <= most_sources:
            break
        n_kept = (n_kept + 1) // 2
    return np.sort(order[:n_kept])


def _read(tiles: Tiles, chosen: Any, columns: list[str]) -> Table:
    schema = pa.schema([tiles.schema.field(name) for name in columns])
    parts = [
        pq.read_table(tiles.files[k], columns=columns, partitioning=None)
        .replace_schema_metadata()
        .cast(schema)
        for k in chosen
    ]
    return Table(pa.concat_tables([schema.empty_table(), *parts]))
