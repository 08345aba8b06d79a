"""Angles as catalogues write them: decimal in several units, or sexagesimal."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.arrays import to_numbers
from skyfill.catalog.units import unit_factor
from skyfill.errors import CatalogError
from skyfill.sky.sphere import Floats

# Spellings that astropy does not know or takes for a time.
_SPELLINGS = {
    1.0: ("deg", "degree", "degrees", "d:m:s", "dms"),
    15.0: ("h", "hr", "hour", "hours", "hourangle", "h:m:s", "hms"),
    180 / np.pi: ("rad", "radian", "radians"),
}
_DEGREES = {word: degrees for degrees, words in _SPELLINGS.items() for word in words}

_SEXAGESIMAL = (
    r"^\s*(?P<sign>[+-]?)\s*(?P<whole>\d{1,3})\s*[:hHdD°\s]\s*"
    r"(?P<minutes>\d{1,2}(?:\.\d*)?)\s*[:mM'′\s]?\s*"
    r"(?P<seconds>(?:\d{1,2}(?:\.\d*)?)?)\s*(?:[sS\"″]|'')?\s*$"
)


def in_degrees(unit: str) -> float:
    """Return a unit of angle in degrees.

    Examples
    --------
    >>> in_degrees("hourangle"), in_degrees("arcmin") * 60
    (15.0, 1.0)
    """
    known = _DEGREES.get(unit.strip().strip("\"'").lower())
    if known is not None:
        return known
    return unit_factor(
        unit, "deg", f"{unit!r} is not a unit of angle; use deg, rad, hourangle or another angle"
    )


def is_text(column: pa.ChunkedArray) -> bool:
    """Check whether a column holds text other than plain numbers."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    try:
        _blank_to_null(column).cast(pa.float64())
    except pa.ArrowInvalid:
        return True
    return False


def from_text(column: pa.ChunkedArray, name: str) -> Floats:
    """Read sexagesimal text; the result is in hours or degrees, like the text.

    Colons, blanks, or the letters h, d, m, s separate the parts; seconds may be absent. Blank and
    null cells become NaN. The sign of ``-00`` is kept.

    Examples
    --------
    >>> from_text(pa.chunked_array([["05:30:00", "-00 30 36", None]]), "dec")
    array([ 5.5 , -0.51,   nan])
    """
    cells = _blank_to_null(column)
    parts = pc.extract_regex(cells, pattern=_SEXAGESIMAL)
    _check_read(cells, parts, name)
    whole, minutes, seconds = (_numbers(parts, key) for key in ("whole", "minutes", "seconds"))
    negative = np.asarray(pc.equal(pc.struct_field(parts, "sign"), "-").fill_null(False))
    _check_sixtieths([minutes, seconds], name)
    total = whole + minutes / 60 + seconds / 3600
    return np.asarray(np.where(negative, -total, total))


def from_parts(columns: Sequence[pa.ChunkedArray], names: Sequence[str]) -> Floats:
    """Add up hours or degrees, minutes and seconds from separate columns.

    A column of signs may come first. A minus sign on any part applies to the whole angle: -0.0
    degrees, the text ``-00``, or -13 minutes where the degrees are 0.

    Examples
    --------
    >>> parts = [pa.chunked_array([[-0.0]]), pa.chunked_array([[30]]), pa.chunked_array([[36]])]
    >>> from_parts(parts, ["dec_d", "dec_m", "dec_s"])
    array([-0.51])
    """
    negative = np.any([_is_negative(column) for column in columns], axis=0)
    if len(columns) == 4:
        columns, names = columns[1:], names[1:]
    parts = [np.abs(from_numbers(c, name)) for c, name in zip(columns, names, strict=True)]
    for values, name in zip(parts[1:], names[1:], strict=True):
        _check_sixtieths([values], name)
    total = np.sum([values / 60**power for power, values in enumerate(parts)], axis=0)
    return np.asarray(np.where(negative, -total, total))


def lettered_unit(column: pa.ChunkedArray) -> str | None:
    """Return the unit that letters in the text imply: 5h40m is in hours, 85d12m in degrees.

    Examples
    --------
    >>> lettered_unit(pa.chunked_array([["05h40m51s"]]))
    'hourangle'
    """
    for pattern, unit in (("[hH]", "hourangle"), ("[dD°]", "deg")):
        if pc.any(pc.match_substring_regex(column, pattern)).as_py():
            return unit
    return None


def _blank_to_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    cells = pc.replace_substring(pc.utf8_trim_whitespace(column), "\N{MINUS SIGN}", "-")
    return pc.if_else(pc.equal(cells, ""), pa.scalar(None, cells.type), cells)


def _numbers(parts: pa.ChunkedArray, key: str) -> Floats:
    """Read one part of the pattern; a missing part is 0, a missing cell is NaN."""
    cells = pc.struct_field(parts, key)
    return _to_numpy(pc.if_else(pc.equal(cells, ""), "0", cells).cast(pa.float64()))


def from_numbers(column: pa.ChunkedArray, name: str) -> Floats:
    """Read plain numbers, also from text; blank and null cells become NaN.

    Examples
    --------
    >>> from_numbers(pa.chunked_array([["82.5", " "]]), "ra")
    array([82.5,  nan])
    """
    return to_numbers(_blank_to_null(column) if pa.types.is_string(column.type) else column, name)


def _to_numpy(column: pa.ChunkedArray) -> Floats:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _is_negative(column: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_string(column.type):
        return np.asarray(pc.starts_with(_blank_to_null(column), "-").fill_null(False))
    return np.signbit(_to_numpy(column.cast(pa.float64(), safe=False)))


def _check_read(cells: pa.ChunkedArray, parts: pa.ChunkedArray, name: str) -> None:
    unread = np.asarray(pc.and_(pc.is_valid(cells), pc.is_null(parts)))
    if unread.any():
        row = int(np.argmax(unread))
        raise CatalogError(
            f"column {name!r}, row {row + 1}: {cells[row].as_py()!r} is not an angle like "
            f"05:40:51.4; correct it or leave it empty"
        )


def _check_sixtieths(parts: Sequence[Floats], name: str) -> None:
    for values in parts:
        beyond = np.flatnonzero(values > 60)
        if beyond.size:
            raise CatalogError(
                f"column {name!r}, row {beyond[0] + 1}: {values[beyond[0]]:g} minutes or seconds "
                f"of an angle; expected at most 60"
            )
