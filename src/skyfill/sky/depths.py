"""How deep a survey reaches where it has no counterpart of an object: its limits there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow.compute as pc

from skyfill.catalog import Reason, Role, Table, with_guessed_roles
from skyfill.catalog.limit_rules import limit_column, with_stated_limits
from skyfill.errors import CatalogError
from skyfill.sky.sphere import Floats, build_tree, search, unit_vectors
from skyfill.sky.survey import Survey

# The edge is this quantile of the brightness of so many sources nearby, counted to the faint side;
# it is measured around every fourth of them, and an object takes that of the nearest such place.
QUANTILE, NEIGHBORS = 0.98, 100
STEP = NEIGHBORS // 4
Places = tuple[Floats, Floats]


def find_brightness(table: Table) -> tuple[str, ...]:
    """Name the columns of magnitudes and fluxes, as their units and UCDs say.

    Examples
    --------
    >>> table = Table.from_columns({"J": [14.2], "e_J": [0.1], "period": [3.0]})
    >>> find_brightness(table.with_info("J", unit="mag").with_info("e_J", unit="mag"))
    ('J',)
    """
    features = with_guessed_roles(table).names_with(Role.FEATURE)
    return tuple(name for name in features if table.info(name).is_brightness)


def faint_edge(values: Floats, survey: Places, places: Places, *, is_magnitude: bool) -> Floats:
    """Measure the faint edge of a survey around each position.

    Parameters
    ----------
    values : array of shape (n,)
        Magnitudes or fluxes of the survey's sources, NaN where not seen.
    survey : two arrays of shape (n,)
        Their right ascensions and declinations in degrees.
    places : two arrays of shape (m,)
        The positions.
    is_magnitude : bool
        Whether large values are faint.

    Returns
    -------
    array of shape (m,)
        NaN where a position is.

    Examples
    --------
    >>> ra, mag = np.arange(0.0, 1.0, 0.001), np.linspace(10, 20, 1000)
    >>> north = np.where(ra < 0.5, 0.0, 60.0)
    >>> at = np.array([0.1, 0.9]), np.array([0.0, 60.0])
    >>> bright, faint = faint_edge(mag, (ra, north), at, is_magnitude=True)
    >>> bool(bright < 13 < 18 < faint)
    True
    """
    seen = np.isfinite(values) & np.isfinite(survey[0]) & np.isfinite(survey[1])
    if not seen.any():
        raise CatalogError("has no value at all, and so no faint edge")
    vectors, faintness = unit_vectors(survey[0][seen], survey[1][seen]), values[seen]
    tree, count = build_tree(vectors, balanced=True), min(NEIGHBORS, int(seen.sum()))
    level = QUANTILE if is_magnitude else 1 - QUANTILE

    def edges(part: Floats) -> tuple[Floats]:
        near = tree.query(part, k=np.arange(1, count + 1))[1]
        return (np.quantile(faintness[near], level, axis=1),)

    anchors = vectors[::STEP]
    found, placed = search(edges, anchors)[0], np.isfinite(places[0]) & np.isfinite(places[1])
    depths = np.full(len(places[0]), np.nan)
    if placed.any():
        asked = unit_vectors(places[0][placed], places[1][placed])
        nearest = build_tree(anchors, balanced=True)
        depths[placed] = found[search(lambda part: nearest.query(part)[1:], asked)[0]]
    return depths


def with_depths(joined: Table, survey: Survey, places: Places | None) -> Table:
    """Write limits for objects that a survey covers and does not see, where none is stated.

    Parameters
    ----------
    joined : Table
        Base and survey, with the reasons of gaps.
    survey : Survey
        Its `depths` say which columns get limits.
    places : two arrays, one element per row, optional
        Positions of the rows in degrees, for depths that are measured.
    """
    for name, depth in survey.depths.items():
        column = f"{name}_{survey.name}"
        lost = pc.equal(joined.reasons(column), str(Reason.UNMATCHED))
        is_lost = np.asarray(pc.fill_null(lost, False).to_numpy(zero_copy_only=False))
        limits = np.full(len(joined), np.nan)
        limits[is_lost] = _measured(survey, name, places, is_lost) if depth is None else depth
        joined = with_stated_limits(joined, column, limits)
    return joined


def _measured(survey: Survey, name: str, places: Places | None, rows: np.ndarray) -> Floats:
    if places is None:
        raise CatalogError(
            f"{survey.name}: the depth of {name!r} cannot be measured without positions; state it, "
            f"as in --depth {survey.name}={name}:20.5"
        )
    there, info = survey.positions(), survey.table.info(name)
    at = places[0][rows], places[1][rows]
    values = survey.table.numbers(name)[:, 0]
    try:
        return faint_edge(values, (there.ra_deg, there.dec_deg), at, is_magnitude=info.is_magnitude)
    except CatalogError as fault:
        raise CatalogError(f"{survey.name}: column {name!r} {fault}") from None


def check_depths(table: Table, depths: Mapping[str, float | None], survey: str) -> None:
    """Refuse depths of columns that do not exist or that are no magnitudes or fluxes."""
    for name in depths:
        table.column(name)  # raises where there is none
        if not (table.info(name).unit or table.info(name).ucd):
            raise CatalogError(
                f"{survey}: column {name!r} has neither unit nor UCD, so its faint side is not "
                f'known; declare it (columns.{name}.unit = "mag" in the file of --schema '
                f"{survey}=FILE)"
            )


def new_limits(survey: Survey) -> list[str]:
    """Name the columns of limits that a joined table gets in addition to those of the survey."""
    named = ((name, limit_column(survey.table, name)) for name in survey.depths)
    return [f"{name}_{survey.name}_limit" for name, own in named if own not in survey.table.names]
