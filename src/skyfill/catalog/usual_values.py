"""Numbers that surveys use for "no value": nines, the limits of integer types, 1e20 and 1e30."""

from __future__ import annotations

import math
import re

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_NINES = re.compile(r"-?9+(\.9+|\.0)?")
_ENDS_OF_TYPES = {-(2**15), 2**15 - 1, -(2**31), 2**31 - 1, -(2**63), 2**63 - 1, 1e20, 1e30}
# All nines that a double tells apart from its neighbors, but for the small ones: 9 and 9.9 are
# measured too. So is 32767, where a detector is saturated.
_DIGITS, _LEAST = 15, 9.95
# Among whole numbers, these are counts.
_COUNTS = (99, 999)


def is_customary(value: float) -> bool:
    """Check whether a number is one that surveys use for "no value".

    Examples
    --------
    >>> is_customary(-99), is_customary(99.999), is_customary(97.3)
    (True, True, False)
    """
    nines = bool(_NINES.fullmatch(str(value)))
    return nines or abs(value) in _ENDS_OF_TYPES or value in _ENDS_OF_TYPES or math.isinf(value)


def is_numeric(kind: pa.DataType) -> bool:
    """Whether a column of a type holds numbers."""
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def find_usual(column: pa.Array | pa.ChunkedArray, *, is_whole: bool) -> NDArray[np.bool_]:
    """Mark the cells of a column that may be no value without further reason to think so.

    Parameters
    ----------
    column : pyarrow.Array or ChunkedArray
        No cell of a column that does not hold numbers is marked.
    is_whole : bool
        Whether its values are whole numbers: then 99 and 999 are not marked.

    Examples
    --------
    >>> find_usual(pa.array([9.9, 99.0, -999.0, 98.0, None]), is_whole=False).tolist()
    [False, True, True, False, False]
    """
    if not is_numeric(column.type):
        return np.zeros(len(column), bool)
    numbers = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(False)
    usual = _USUAL[~np.isin(_USUAL, _COUNTS)] if is_whole else _USUAL
    if numbers.dtype == np.float32:
        usual = usual.astype(np.float32)
    places = np.minimum(np.searchsorted(usual, numbers), len(usual) - 1)
    return np.asarray(usual[places] == numbers, dtype=bool)


def _all_usual() -> NDArray[np.float64]:
    nines = {
        float("9" * whole + "." + ("9" * rest or "0"))
        for whole in range(1, _DIGITS + 1)
        for rest in range(_DIGITS + 1 - whole)
    }
    sizes = sorted(value for value in nines if value > _LEAST)
    ends = (float(end) for end in _ENDS_OF_TYPES if end < 0 or isinstance(end, float))
    return np.array(sorted({*sizes, *(-size for size in sizes), *ends}))


_USUAL = _all_usual()
