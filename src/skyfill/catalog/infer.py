"""Types of the columns of a plain CSV, from all its rows."""

from collections.abc import Callable, Iterable
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

# Spellings of "no number here"; in a text column they stay text.
NULL_WORDS = ("", "nan", "NaN", "NAN", "NA", "N/A", "n/a", "null", "NULL", "None", "--", "-nan")
_BOOLEAN_WORDS = ("True", "False", "true", "false", "TRUE", "FALSE")


def infer_types(batches: Iterable[pa.RecordBatch], n_columns: int) -> list[pa.DataType]:
    """Find for each column of text the narrowest type that holds every cell.

    Whole numbers with a leading zero or too long for 64 bits are identifiers: text. A column
    without any value is float64. Dates stay text.

    Examples
    --------
    >>> batch = pa.RecordBatch.from_pydict({"n": ["1", "nan"], "x": ["1", ".5"], "id": ["01", "2"]})
    >>> infer_types([batch], 3)
    [DataType(int64), DataType(double), DataType(string)]
    """
    fitting = [set(_FITS) for _ in range(n_columns)]
    empty = [True] * n_columns
    for batch in batches:
        for k, cells in enumerate(batch.columns):
            if fitting[k] == {"text"}:
                continue
            seen = _seen(cells)
            empty[k] = empty[k] and len(seen) == 0
            fitting[k] = {name for name in fitting[k] if _FITS[name](seen)}
    return [pa.float64() if empty[k] else _narrowest(fitting[k]) for k in range(n_columns)]


def _narrowest(fitting: set[str]) -> pa.DataType:
    return next(kind for name, kind in _TYPES.items() if name in fitting)


def _seen(cells: pa.Array) -> pa.Array:
    words = pc.utf8_trim_whitespace(cells)
    return words.filter(pc.invert(pc.is_in(words, value_set=pa.array(NULL_WORDS))))


def _castable(cells: pa.Array, *, kind: pa.DataType) -> bool:
    try:
        cells.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _is_integer(cells: pa.Array, *, kind: pa.DataType) -> bool:
    return not _some(pc.match_substring_regex(cells, "^[+-]?0[0-9]")) and _castable(
        cells, kind=kind
    )


def _some(mask: pa.Array) -> bool:
    return bool(pc.any(mask).as_py())


# From narrow to wide. A code is all digits, yet not an integer: digits that a number would lose.
_TYPES = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "unsigned": pa.uint64(),
    "code": pa.string(),
    "float": pa.float64(),
    "text": pa.string(),
}
_FITS: dict[str, Callable[[pa.Array], bool]] = {
    "boolean": lambda cells: (
        not _some(pc.invert(pc.is_in(cells, value_set=pa.array(_BOOLEAN_WORDS))))
    ),
    "integer": partial(_is_integer, kind=pa.int64()),
    "unsigned": partial(_is_integer, kind=pa.uint64()),
    "code": lambda cells: not _some(pc.invert(pc.match_substring_regex(cells, "^[+-]?[0-9]+$"))),
    "float": partial(_castable, kind=pa.float64()),
    "text": lambda cells: True,
}
