"""Compute a table with one row of features per object from light curves."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import ColumnInfo, Reason, Role, Table
from skyfill.catalog.column_info import gap_name
from skyfill.device import Device, gpu_for
from skyfill.lightcurve import on_device
from skyfill.lightcurve.collection import About, LightCurves, concatenate
from skyfill.lightcurve.curve import Array, EpochCounts, IntArray
from skyfill.lightcurve.registry import CurveFeature, FeatureSet, Of, choose_features
from skyfill.threads import map_threads

# Too few points, a single band, no variation: measured, but without the feature.
UNCOMPUTABLE = Reason.REJECTED
_STARS_AT_ONCE = 16
TABLE_ROWS = 4096
# Stars that take longer here than it takes to start a GPU.
WORTH_A_GPU = 10_000
_COUNTS = {
    "used": ("n_points", "Number of epochs used"),
    "bad": ("n_bad", "Number of epochs dropped: not finite, or error not positive"),
    "duplicated": ("n_duplicated", "Number of epochs dropped: another has the same time"),
    "clipped": ("n_clipped", "Number of epochs dropped: absurd outliers"),
}


def extract_features(
    curves: LightCurves,
    features: str | Iterable[str] | FeatureSet = "macho14",
    *,
    clip: float | None = None,
) -> Table:
    """Compute features of every object on all cores.

    Parameters
    ----------
    curves : LightCurves
        From `collect`, `from_table`, or a part from `open_light_curves`.
    features : str, iterable of str or FeatureSet
        ``macho14``, ``all``, names of features, or the result of `choose_features`.
    clip : float, optional
        Drop values farther than this many robust standard deviations from the median of the band.

    Returns
    -------
    Table
        Identifier; features with unit and description, each with the reasons of its gaps; numbers
        of epochs used and dropped. Rows in the order of `curves`.

    Examples
    --------
    >>> from skyfill.lightcurve import About, collect
    >>> numbers = np.array([[1.0, 15.0, 0.1], [2.0, 15.5, 0.1], [3.0, 15.1, 0.0]])
    >>> table = extract_features(collect(["a", "a", "a"], None, numbers, About()), "mean, period")
    >>> table.column("mean").to_pylist(), table.info("mean").unit
    ([15.25], 'mag')
    >>> table.column("period").to_pylist(), table.reasons("period").to_pylist()
    ([None], ['rejected'])
    >>> table.column("n_points").to_pylist(), table.column("n_bad").to_pylist()
    ([2], [1])
    """
    chosen = features if isinstance(features, FeatureSet) else choose_features(features)
    return _extract(curves, chosen, clip, gpu_for(len(curves), WORTH_A_GPU))


def _extract(
    curves: LightCurves, chosen: FeatureSet, clip: float | None, device: Device | None
) -> Table:
    columns = list(_plan(chosen, curves.about))
    there = [name in on_device.NAMES for _, (name, _) in _keys(columns)] if device else []
    if device is None or not any(there):
        numbers, counts = _compute_all(curves, columns, clip)
        return _feature_table(curves, columns, numbers, counts)
    cleaned, counts = curves.cleaned(clip=clip)
    numbers = np.empty((len(curves), len(columns)))
    here = [k for k, away in enumerate(there) if not away]
    if here:
        numbers[:, here] = _compute_all(cleaned, [columns[k] for k in here], None)[0]
    keys = {k: key for k, key in _keys(columns) if there[k]}
    found = on_device.compute_features(device, cleaned, keys.values())
    for k, key in keys.items():
        numbers[:, k] = found[key]
    return _feature_table(curves, columns, numbers, counts)


def _keys(columns: list[Any]) -> list[tuple[int, tuple[str, int]]]:
    """Return the number, the feature and the band of each column."""
    return [(k, (feature.name, band)) for k, (_, feature, band) in enumerate(columns)]


def _compute_all(
    curves: LightCurves, columns: list[Any], clip: float | None
) -> tuple[Array, IntArray]:
    """Compute columns star by star on all cores, and count epochs."""
    chunks = [
        slice(a, min(a + _STARS_AT_ONCE, len(curves)))
        for a in range(0, len(curves), _STARS_AT_ONCE)
    ]
    parts = map_threads(lambda rows: _compute(curves, rows, columns, clip), chunks)
    numbers = np.concatenate([np.empty((0, len(columns))), *(part[0] for part in parts)])
    counts = np.array([count for part in parts for count in part[1]], np.int64)
    return numbers, counts.reshape(len(curves), len(curves.about.bands), len(_COUNTS))


def empty_table(about: About, features: FeatureSet) -> Table:
    """Return the table of features without rows, with the columns of `stream_features`."""
    nothing = np.zeros(0)
    start = np.zeros(1, np.int64)
    ids = pa.array([], about.id_type)
    return extract_features(LightCurves(ids, start, nothing, nothing, nothing, about), features)


def _plan(chosen: FeatureSet, about: About) -> Iterator[tuple[str, CurveFeature, int]]:
    """List the columns to compute: name, feature and index of the band."""
    for feature in chosen.features:
        if feature.of is Of.STAR or not chosen.every_band or len(about.bands) == 1:
            yield feature.name, feature, 0
            continue
        for index, band in enumerate(about.bands):
            yield f"{feature.name}_{band}", feature, index


def _feature_table(
    curves: LightCurves, columns: list[Any], numbers: Array, counts: IntArray
) -> Table:
    """Describe the columns, and state why features are missing."""
    about = curves.about
    values: dict[str, Any] = {about.id_name: curves.ids}
    info = {about.id_name: replace(about.id_info, role=Role.IDENTIFIER)}
    for k, (name, feature, band) in enumerate(columns):
        is_gap = pa.array(~np.isfinite(numbers[:, k]))
        values[name] = pc.if_else(is_gap, None, pa.array(numbers[:, k]))
        info[name] = _info(feature, about, band)
        values[gap_name(name)] = pc.if_else(is_gap, pa.scalar(str(UNCOMPUTABLE)), None)
        info[gap_name(name)] = ColumnInfo(role=Role.REASON, of=name)
    found, facts = _count_columns(about, counts)
    return Table.from_columns(values | found, info=info | facts)


def _compute(
    curves: LightCurves, rows: slice, columns: list[Any], clip: float | None
) -> tuple[Array, list[tuple[EpochCounts, ...]]]:
    numbers = np.empty((rows.stop - rows.start, len(columns)))
    counts = []
    # An undefined feature may divide by zero; it comes out as NaN.
    with np.errstate(all="ignore"):
        for i, row in enumerate(range(rows.start, rows.stop)):
            star, count = curves.star(row, clip=clip)
            numbers[i] = [feature.compute(star, band) for _, feature, band in columns]
            counts.append(count)
    return numbers, counts


def _info(feature: CurveFeature, about: About, band: int) -> ColumnInfo:
    unit, ucd, words = feature.unit, feature.ucd, feature.description
    if unit and "{value}" in unit:
        unit = unit.format(value=about.unit) if about.unit else None
    if about.is_flux:
        ucd = ucd.replace("phot.mag", "phot.flux")
    if feature.of is not Of.STAR and about.bands != ("",):
        words = f"{words}; band {about.bands[band]}"
    return ColumnInfo(unit, ucd, words, Role.FEATURE)


def _count_columns(about: About, counts: IntArray) -> tuple[dict[str, Any], dict[str, ColumnInfo]]:
    table = counts.astype(np.int32)
    values, info = {}, {}
    for index, band in enumerate(about.bands):
        for k, (name, words) in enumerate(_COUNTS.values()):
            column = name if len(about.bands) == 1 else f"{name}_{band}"
            values[column] = table[:, index, k]
            info[column] = ColumnInfo(ucd="meta.number", description=words)
    return values, info


def stream_features(
    parts: Iterable[LightCurves],
    features: FeatureSet,
    *,
    clip: float | None = None,
    advance: Callable[[int], object] = lambda n: None,
    n_objects: int = 0,
) -> Iterator[Table]:
    """Compute features part by part; yield tables of some thousand rows.

    Parameters
    ----------
    parts : iterable of LightCurves
        From `open_light_curves`.
    features : FeatureSet
        From `choose_features`.
    clip : float, optional
        As in `extract_features`.
    advance : callable
        Called with the number of objects after each part.
    n_objects : int
        Number of all objects, if known: it decides whether a GPU is worth starting.
    """
    device = gpu_for(n_objects, WORTH_A_GPU)
    if device is not None:
        parts = map(concatenate, _gathered(parts, on_device.STARS_AT_ONCE))

    def tables() -> Iterator[pa.Table]:
        for part in parts:
            found = _extract(part, features, clip, device).arrow
            advance(len(part))
            yield found

    for waiting in _gathered(tables(), TABLE_ROWS):
        yield Table(pa.concat_tables(waiting))


def _gathered(parts: Iterable[Any], least: int) -> Iterator[list[Any]]:
    """Gather parts until they have so many rows."""
    waiting: list[Any] = []
    for part in parts:
        waiting.append(part)
        if sum(map(len, waiting)) >= least:
            yield waiting
            waiting = []
    if waiting:
        yield waiting
