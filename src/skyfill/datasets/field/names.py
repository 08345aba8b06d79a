"""Identifiers as surveys make them: from the field and tile, or from the position."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.datasets.field.bands import Array
from skyfill.datasets.field.cadence import field_number, tile_number


def macho_names(ra: Array, dec: Array, first: int) -> pa.Array:
    """Name objects ``field.tile.sequence``; the sequence counts on from `first`.

    Examples
    --------
    >>> macho_names(np.array([80.0]), np.array([-69.0]), 7).to_pylist()
    ['35.3035.7']
    """
    sequence = first + np.arange(len(ra))
    numbers = (1 + field_number(ra, dec), tile_number(ra, dec), sequence)
    return _join([_digits(number, 1) for number in numbers], ".")


def position_names(prefix: str, ra: Array, dec: Array) -> pa.Array:
    """Name southern sources by their position, ``HHMMSSss-DDMMSSs``.

    Examples
    --------
    >>> position_names("", np.array([80.5]), np.array([-69.25])).to_pylist()
    ['05220000-6915000']
    """
    hours = np.floor((ra % 360) * 24000 + 1e-6).astype(np.int64)
    degrees = np.floor(np.abs(dec) * 36000 + 1e-6).astype(np.int64)
    parts = [
        *_sexagesimal(hours, 100),
        np.full(len(ra), "-", dtype=object),
        *_sexagesimal(degrees, 10),
    ]
    return _distinct(_join([np.full(len(ra), prefix, dtype=object), *parts], ""))


def _distinct(names: pa.Array) -> pa.Array:
    """Tell sources at one place apart by a letter: the second of a name becomes ``...B``."""
    codes = names.dictionary_encode().indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    first = np.r_[True, np.diff(codes[order]) != 0][: len(codes)]
    start = np.maximum.accumulate(np.where(first, np.arange(len(codes)), 0))
    rank = np.empty(len(codes), dtype=np.int64)
    rank[order] = np.arange(len(codes)) - start
    letters = pa.array(["", *"BCDEFGHIJKLMNOPQRSTUVWXYZ"])
    return _join([names, letters.take(pa.array(rank))], "")


def _sexagesimal(total: NDArray[np.int64], fraction: int) -> list[Any]:
    whole, rest = np.divmod(total, 3600 * fraction)
    minutes, seconds = np.divmod(rest, 60 * fraction)
    width = 1 + len(str(fraction))
    return [_digits(whole, 2), _digits(minutes, 2), _digits(seconds, width)]


def _digits(numbers: NDArray[np.int64], width: int) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(pa.string()), width, "0")


def _join(parts: list[Any], separator: str) -> pa.Array:
    return pc.binary_join_element_wise(*(pa.array(part, pa.string()) for part in parts), separator)
