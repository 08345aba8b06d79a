"""What the columns of a table say of its features: values, errors, limits and depths.

A column of role `limit` or `error` belongs to a feature, and so does its column of reasons. Which
side a limit is on, how deep a survey reaches and how sharp its edge is are learned once, from the
training table, and kept in the model: any batch of a new table then gives the same cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog import ColumnInfo, Reason, Role, Table, filled_names, with_guessed_roles
from skyfill.catalog.column_info import FLUXES, MAGNITUDES
from skyfill.catalog.limit_rules import flag_column
from skyfill.catalog.units import is_flux_unit, numbers_in
from skyfill.errors import CatalogError
from skyfill.impute._inputs import count_known
from skyfill.model.declared import cleaned
from skyfill.model.measured import reason_columns
from skyfill.model.pipeline import CellCounts, Detection, Feature, Model
from skyfill.network import Cells

Array = NDArray[np.float64]
Companions = dict[tuple[Role, str], str]

CHOICES = {"limits": ("auto", "off"), "errors": ("auto", "on", "off")}
# Limits that must be stated for their median to be the depth of a survey; otherwise the depth is
# this quantile of what it saw, counted towards the faint side.
LEAST_LIMITS, DEPTH_QUANTILE = 10, 0.98
# Errors count where their square is a larger share of the variance of some feature.
NOTABLE_ERRORS = 0.01
# The width of limits is the median error of this share of the values, the faintest.
FAINTEST = 0.1


def features_of(model: Model, table: Table) -> tuple[Array, Array, list[str]]:
    """Numbers of the model's features in its units; factors to the table's; features not there."""
    return _features(model, cleaned(model, table))


def _features(model: Model, table: Table) -> tuple[Array, Array, list[str]]:
    columns, factors, absent = [], [], []
    for feature in model.features:
        if feature.name not in table.names:
            absent.append(feature.name)
            columns.append(np.full(len(table), np.nan))
            factors.append(1.0)
            continue
        factor = _factor(feature, table, feature.name)
        columns.append(table.numbers(feature.name)[:, 0] * factor)
        factors.append(factor)
    return np.stack(columns, axis=1), np.array(factors), absent


def cells_of(model: Model, table: Table) -> tuple[Cells, Array, list[str]]:
    """Return what `features_of` gives, with limits and errors as the model uses them.

    Examples
    --------
    >>> from skyfill.network import MixtureNetwork
    >>> model = Model((Feature("J", "mag"),), MixtureNetwork(("J",), (), ()), {},
    ...               detections=(Detection("lower", depth=17.0),))
    >>> table = Table.from_columns({"J": [14.2, None]}).with_reasons("J", [None, "unmatched"])
    >>> cells_of(model, table)[0].lower.tolist()
    [[nan], [17.0]]
    """
    table = cleaned(model, table)
    values, factors, absent = _features(model, table)
    return _cells(model.features, model.detections, table, values), factors, absent


def learn_detections(
    table: Table, features: Sequence[Feature], *, limits: str = "auto", errors: str = "auto"
) -> tuple[Detection, ...]:
    """Learn how features are detected: sides of limits, depths and widths.

    Parameters
    ----------
    table : Table
        The training table, in the units of `features`.
    features : sequence of Feature
    limits : {"auto", "off"}
        Use limits where the table states any, or never.
    errors : {"auto", "on", "off"}
        Use errors if their median square exceeds 1 % of the variance of some feature. "on" also
        makes limits soft: a value may lie beyond its limit by the error of the faintest values.

    Returns
    -------
    tuple of Detection
        One for each feature; empty where the table has values and gaps alone.
    """
    for name, value in (("limits", limits), ("errors", errors)):
        if value not in CHOICES[name]:
            known = ", ".join(CHOICES[name])
            raise CatalogError(f"{name} must be one of {known}, not {value!r}")
    values = table.numbers(*(feature.name for feature in features))
    companions = find_companions(table)
    with_errors = errors != "off" and _use_errors(table, features, values, companions, errors)
    found = [
        _learn_one(table, feature, column, companions)
        for feature, column in zip(features, values.T, strict=True)
    ]
    if not with_errors:
        found = [replace(each, errors=False) for each in found]
    if errors != "on":  # a limit is hard unless it is declared to be one of values with errors
        found = [replace(each, width=0.0) for each in found]
    cells = _cells(features, found, table, values)
    if limits == "off" or not cells.is_limited.any():
        found = [replace(each, side=None, depth=None, width=0.0) for each in found]
        cells = _cells(features, found, table, values)
    if cells.is_plain:
        return ()
    counts = count_cells(cells)
    return tuple(replace(a, counts=b) for a, b in zip(found, counts, strict=True))


def count_cells(cells: Cells) -> tuple[CellCounts, ...]:
    """Count what is known of the cells of each column."""
    return tuple(CellCounts(*each) for each in count_known(cells).T.tolist())


def summarize_cells(model: Model) -> dict[str, Any] | None:
    """Say what was known of the cells of the training table; None where nothing but values was.

    Examples
    --------
    >>> from skyfill.network import MixtureNetwork
    >>> counts = CellCounts(seen=90, noisy=80, limited=7, unknown=3)
    >>> model = Model((Feature("J"),), MixtureNetwork(("J",), (), ()), {},
    ...               detections=(Detection("lower", 17.0, counts=counts),))
    >>> summarize_cells(model)
    {'errors': 'off', 'seen': 90, 'with_errors': 80, 'limited': 7, 'unknown': 3}
    """
    if not model.detections:
        return None
    totals = np.sum([each.counts for each in model.detections], axis=0).tolist()
    used = any(each.errors for each in model.detections)
    names = ("seen", "with_errors", "limited", "unknown")
    return {"errors": "on" if used else "off", **dict(zip(names, totals, strict=True))}


def find_companions(table: Table) -> Companions:
    """Find the limits, errors and reasons of columns by their roles.

    What a model wrote beside filled values is no error of a measurement.
    """
    found: Companions = {}
    for name in table.names:
        info = table.info(name)
        if info.of in table.names and not filled_names.is_filled_part(table, name):
            found.setdefault((info.role, str(info.of)), name)
    return found


def columns_for(table: Table, names: Sequence[str]) -> list[str]:
    """Name features and the columns that say more of them, by role or by name."""
    known = with_guessed_roles(table)
    more = {*names, *(flag_column(table, name) for name in names), *reason_columns(table, names)}
    return [n for n in known.names if n in more or known.info(n).of in names]


def _factor(feature: Feature, table: Table, name: str) -> float:
    """Return how many of the model's units one unit of a column is."""
    own = table.info(name).unit or table.info(feature.name).unit
    if not own or not feature.unit or own == feature.unit:
        return 1.0
    one = Table.from_columns({name: [1.0]}, info={name: ColumnInfo(unit=own)})
    return float(numbers_in(one, name, feature.unit)[0])


def beside(table: Table, feature: Feature, companion: str | None) -> Array:
    """Return the numbers of a column beside a feature, NaN where it says nothing."""
    if companion is None:
        return np.full(len(table), np.nan)
    numbers = table.numbers(companion)[:, 0] * _factor(feature, table, companion)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _errors_of(table: Table, feature: Feature, companions: Companions) -> Array:
    errors = beside(table, feature, companions.get((Role.ERROR, feature.name)))
    return np.where(errors > 0, errors, np.nan)


def _cells(
    features: Sequence[Feature], detections: Sequence[Detection], table: Table, values: Array
) -> Cells:
    if not detections:
        return Cells(values)
    companions = find_companions(table)
    lower, upper, errors = (np.full(values.shape, np.nan) for _ in range(3))
    for j, (feature, detection) in enumerate(zip(features, detections, strict=True)):
        if feature.name not in table.names:
            continue
        if detection.side is not None:
            side = lower if detection.side == "lower" else upper
            side[:, j] = _limits(table, feature, detection, companions)
            errors[~np.isnan(side[:, j]), j] = detection.width or np.nan
        if detection.errors:
            seen = ~np.isnan(values[:, j])
            errors[seen, j] = _errors_of(table, feature, companions)[seen]
    return Cells(values, lower, upper, errors)


def _limits(table: Table, feature: Feature, detection: Detection, companions: Companions) -> Array:
    """Return the limits of missing values: as stated, or the depth of the survey."""
    stated = beside(table, feature, companions.get((Role.LIMIT, feature.name)))
    reasons = table.reasons(feature.name)
    is_lost = np.isnan(table.numbers(feature.name)[:, 0])
    is_beyond = np.zeros(len(table), bool)
    for reason in (Reason.UNDETECTED, Reason.UNMATCHED):
        is_beyond |= pc.fill_null(pc.equal(reasons, str(reason)), False).to_numpy(
            zero_copy_only=False
        )
    without_reason = pc.is_null(reasons).to_numpy(zero_copy_only=False)
    depth = np.nan if detection.depth is None else detection.depth
    limits = np.where(is_beyond & np.isnan(stated), depth, stated)
    return np.where(is_lost & (is_beyond | without_reason), limits, np.nan)


def _learn_one(table: Table, feature: Feature, values: Array, companions: Companions) -> Detection:
    """Learn side, depth and width of one feature, as far as its columns say."""
    stated = beside(table, feature, companions.get((Role.LIMIT, feature.name)))
    errors = _errors_of(table, feature, companions)
    has_errors = bool((errors[~np.isnan(values)] > 0).any())
    stated = stated[~np.isnan(stated)]
    if not (len(stated) or _is_brightness(feature)):
        return Detection(errors=has_errors)
    side = "lower" if is_magnitude(feature) else "upper"
    faintness = values if side == "lower" else -values
    width = _width(faintness, errors) if has_errors else 0.0
    return Detection(side, _depth(stated, values, side), width, has_errors)


def is_magnitude(feature: Feature) -> bool:
    """Whether it grows as a source gets fainter; the UCD says so, or the unit where there is none.

    An amplitude or a color is in magnitudes too, and its UCD is another.

    Examples
    --------
    >>> is_magnitude(Feature("V", "mag")), is_magnitude(Feature("V_I", "mag", "phot.color"))
    (True, False)
    """
    return ColumnInfo(feature.unit, feature.ucd).is_magnitude


def find_fluxes(features: Sequence[Feature]) -> list[bool | None]:
    """Tell which features are fluxes, by UCD or, without one, unit; None where nothing says so.

    Magnitudes are none.

    Examples
    --------
    >>> find_fluxes([Feature("S", "mJy"), Feature("R", "mJy", "stat.error"), Feature("V", "mag")])
    [True, None, False]
    """
    found: list[bool | None] = []
    for each in features:
        is_flux = (each.ucd or "").lower().startswith(FLUXES)
        is_flux = is_flux or (not each.ucd and is_flux_unit(each.unit))
        found.append(False if is_magnitude(each) else is_flux or None)
    return found


def _is_brightness(feature: Feature) -> bool:
    """Whether a source that a survey does not detect must lie beyond its depth.

    Only the UCD can tell: of a period or a color that was not measured nothing is known.
    """
    return (feature.ucd or "").lower().startswith((MAGNITUDES, *FLUXES))


def _depth(stated: Array, values: Array, side: str) -> float | None:
    """Return the limit of rows that state none."""
    if len(stated) >= LEAST_LIMITS:
        return float(np.median(stated))
    level = DEPTH_QUANTILE if side == "lower" else 1.0 - DEPTH_QUANTILE
    seen = values[~np.isnan(values)]
    return float(np.quantile(seen, level)) if len(seen) else None


def _width(faintness: Array, errors: Array) -> float:
    """Return the median error of the faintest values that have one."""
    known = ~np.isnan(faintness) & ~np.isnan(errors)
    order = np.argsort(faintness[known], kind="stable")
    n_faint = max(round(FAINTEST * len(order)), 1)
    return float(np.median(errors[known][order[-n_faint:]]))


def _use_errors(
    table: Table, features: Sequence[Feature], values: Array, companions: Companions, wish: str
) -> bool:
    """Say whether errors make a notable share of the variance; complain if there are none."""
    shares = []
    for feature, column in zip(features, values.T, strict=True):
        errors = _errors_of(table, feature, companions)
        known = ~np.isnan(errors) & ~np.isnan(column)
        variance = float(np.var(column[known])) if known.any() else 0.0
        if variance > 0:
            shares.append(float(np.median(errors[known] ** 2)) / variance)
    if wish == "on" and not shares:
        raise CatalogError(
            "errors are on, but no feature has any; give a column the role error, of=FEATURE "
            "(columns.COLUMN.role in the schema file)"
        )
    return wish == "on" or max(shares, default=0.0) > NOTABLE_ERRORS
