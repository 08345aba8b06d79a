"""Light curves of many objects in flat arrays, by object and band."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import ColumnInfo, Role
from skyfill.errors import CatalogError
from skyfill.lightcurve.curve import Array, EpochCounts, IntArray, Star, clean_band, find_clean

# Usual names from blue to red; also where a survey has its own B and R.
_BLUE_TO_RED = ("FUV", "NUV", "U", "u", "B", "b", "blue", "Bp", "BP", "g", "G", "V", "v", "r", "R",
                "red", "Rp", "RP", "i", "I", "z", "Z", "y", "Y", "J", "H", "K", "Ks", "W1", "I1",
                "W2", "I2", "I3", "I4", "W3", "W4")  # fmt: skip


@dataclass(frozen=True)
class About:
    """Facts that all objects of a collection share.

    Parameters
    ----------
    bands : tuple of str
        Names of the bands, in the order in which features compare them.
    id_name : str
        Name of the column of identifiers.
    id_info : ColumnInfo
        What is known about it.
    id_type : pyarrow.DataType
        Its type.
    unit : str, optional
        Of the values and their errors.
    is_flux : bool
        Whether the values are fluxes.
    has_errors : bool
        Whether errors are given.
    """

    bands: tuple[str, ...] = ("",)
    id_name: str = "id"
    id_info: ColumnInfo = ColumnInfo(ucd="meta.id;meta.main", role=Role.IDENTIFIER)
    id_type: pa.DataType = field(default_factory=pa.string)
    unit: str | None = "mag"
    is_flux: bool = False
    has_errors: bool = True


@dataclass(frozen=True)
class LightCurves:
    """Light curves of many objects.

    Parameters
    ----------
    ids : pyarrow.Array of length n
        Identifiers.
    start : int array of shape (n * bands + 1,)
        The points of band b of object i begin at ``start[i * bands + b]``.
    time, value, error : float arrays of shape (points,)
        Days, magnitudes or fluxes, standard errors; in any order within a band, NaN where missing.
    about : About
        Bands, unit and so on.

    Examples
    --------
    >>> curves = collect(["a", "b", "a"], None, np.array([[2.0, 15.0, 0.1], [1.0, 17.0, 0.1],
    ...                                                  [1.0, 16.0, 0.1]]), About())
    >>> len(curves), curves.star(0)[0].curves[0].value
    (2, array([16., 15.]))
    """

    ids: pa.Array
    start: IntArray
    time: Array
    value: Array
    error: Array
    about: About

    def __len__(self) -> int:
        return len(self.ids)

    def star(self, row: int, *, clip: float | None = None) -> tuple[Star, tuple[EpochCounts, ...]]:
        """Return the cleaned bands of an object, and the numbers of points used and dropped."""
        n = len(self.about.bands)
        edges = self.start[row * n : (row + 1) * n + 1]
        bands = [self._band(a, b, clip) for a, b in zip(edges[:-1], edges[1:], strict=True)]
        curves, counts = zip(*bands, strict=True)
        return Star(curves, self.about.is_flux), counts

    def part(self, first: int, last: int) -> "LightCurves":
        """Return the objects from `first` up to `last`, sharing the arrays."""
        n = len(self.about.bands)
        start = self.start[first * n : last * n + 1]
        points = slice(start[0], start[-1])
        arrays = (self.time[points], self.value[points], self.error[points])
        return LightCurves(self.ids[first:last], start - start[0], *arrays, self.about)

    def cleaned(self, *, clip: float | None = None) -> tuple["LightCurves", IntArray]:
        """Return the curves with usable epochs only, and the counts, shape (n, bands, 4).

        Curves that have nothing else, the usual case, are not copied.
        """
        n_all, used = len(self.start) - 1, np.diff(self.start)
        is_clean = np.zeros(n_all, bool)
        error = self.error if self.about.has_errors else np.ones(len(self.time))
        if clip is None:
            find_clean(self.start, self.time, self.value, error, is_clean)
        counts = np.zeros((n_all, len(EpochCounts._fields)), np.int64)
        counts[:, 0] = used
        if is_clean.all():
            return self, counts.reshape(len(self), -1, counts.shape[1])
        points = np.stack([self.time, self.value, error])
        found = np.split(points, self.start[1:-1], axis=1)
        for b in np.flatnonzero(~is_clean):
            curve, counts[b] = self._band(self.start[b], self.start[b + 1], clip)
            found[b] = np.stack([curve.time, curve.value, curve.error])
        arrays = np.concatenate([np.zeros((3, 0)), *found], axis=1)
        start = np.concatenate([[0], np.cumsum(counts[:, 0])])
        time, value, errors = arrays
        curves = LightCurves(self.ids, start, time, value, errors, self.about)
        return curves, counts.reshape(len(self), -1, counts.shape[1])

    def _band(self, a: int, b: int, clip: float | None) -> Any:
        error = self.error[a:b] if self.about.has_errors else None
        return clean_band(self.time[a:b], self.value[a:b], error, clip=clip)


def collect(ids: Any, bands: Any, numbers: Array, about: About) -> LightCurves:
    """Group measurements into light curves, in the order in which the objects appear.

    Parameters
    ----------
    ids : sequence of length m
        Identifier of each measurement; none may be null.
    bands : sequence of length m or None
        Band of each; measurements in bands that `about` does not list are left out. None if
        there is only one band.
    numbers : array of shape (m, 3)
        Time in days, value, error.
    about : About
        Facts that they share.
    """
    coded = as_array(ids).dictionary_encode()
    codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    place = np.zeros(len(codes), np.int64) if bands is None else band_places(bands, about.bands)
    return group_by_object(coded.dictionary, codes, place, numbers=numbers, about=about)


def group_by_object(
    ids: pa.Array, objects: IntArray, bands: IntArray, *, numbers: Array, about: About
) -> LightCurves:
    """Sort measurements by the indices of their object and band; band -1 is left out."""
    known = bands >= 0
    codes = objects[known] * len(about.bands) + bands[known]
    order = np.flatnonzero(known)[np.argsort(codes, kind="stable")]
    counts = np.bincount(codes, minlength=len(ids) * len(about.bands))
    start = np.concatenate([[0], np.cumsum(counts)])
    time, value, error = (np.ascontiguousarray(numbers[order, k]) for k in range(3))
    return LightCurves(ids, start, time, value, error, about)


def band_places(names: Any, bands: tuple[str, ...]) -> IntArray:
    """Return the index of each name among the bands, or -1.

    Examples
    --------
    >>> band_places(["R", "B", "I"], ("B", "R"))
    array([ 1,  0, -1])
    """
    found = pc.index_in(as_array(names).cast(pa.string()), pa.array(bands))
    return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), np.int64)


def order_bands(found: Iterable[str], wanted: Iterable[str] | None = None) -> tuple[str, ...]:
    """Sort bands from blue to red if all names are known, else by name.

    Parameters
    ----------
    found : iterable of str
        Bands in the data.
    wanted : iterable of str, optional
        The order to use; other bands are left out.

    Examples
    --------
    >>> order_bands(["i", "V", "B"])
    ('B', 'V', 'i')
    >>> order_bands(["i", "V", "B"], ["V", "i"])
    ('V', 'i')
    """
    names = list(dict.fromkeys(found))
    if wanted is not None:
        return _checked(tuple(wanted), names)
    if all(name in _BLUE_TO_RED for name in names):
        return tuple(sorted(names, key=_BLUE_TO_RED.index))
    return tuple(sorted(names))


def _checked(wanted: tuple[str, ...], names: list[str]) -> tuple[str, ...]:
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        raise CatalogError(
            f"no measurement in band {unknown[0] if unknown else ''!r}; the bands are "
            f"{', '.join(sorted(names))}"
        )
    if len(set(wanted)) < len(wanted):
        raise CatalogError(f"the band order {','.join(wanted)} lists a band twice")
    return wanted


def concatenate(parts: Sequence[LightCurves]) -> LightCurves:
    """Concatenate collections with the same bands."""
    first = parts[0]
    if any(part.about.bands != first.about.bands for part in parts):
        raise CatalogError("collections with different bands cannot be concatenated")
    offsets = np.cumsum([0, *(part.start[-1] for part in parts)])
    starts = [part.start[:-1] + offset for part, offset in zip(parts, offsets, strict=False)]
    ids = pa.chunked_array([part.ids for part in parts]).combine_chunks()
    start = np.append(np.concatenate(starts), offsets[-1])
    time, value, error = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("time", "value", "error")
    )
    return LightCurves(ids, start, time, value, error, first.about)


def as_array(values: Any) -> pa.Array:
    """Convert any sequence to one Arrow array."""
    array = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values)
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
