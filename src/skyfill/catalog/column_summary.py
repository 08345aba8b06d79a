"""Summaries of columns, built batch by batch: counts, extreme values, words."""

import heapq
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog.arrays import NUMBER_PATTERN
from skyfill.catalog.usual_values import find_usual, is_numeric

# Distinct values kept at each end of a column: enough to see which ones are isolated.
_ENDS = 12
_MOST_WORDS = 1000
NULL_TEXTS = {"", "-", "--", "---", "...", "?", "nan", "null", "none", "n/a", "na", "unknown"}
_NINES = re.compile(r"[+-]?9+(\.9*0*)?")


@dataclass(frozen=True)
class ColumnSummary:
    """Summary of the values of a column; summaries of parts add up to that of the whole.

    Parameters
    ----------
    n_rows, n_null : int
        Rows, and rows without a value.
    lowest, highest : dict
        The smallest and largest distinct numbers with their counts.
    words : Counter
        Distinct texts with their counts: a thousand, and all that mean "no value".
    has_more_words : bool
        Whether there are more.
    n_numbers : int
        Texts that are numbers.
    most : int
        How often any number occurs that is not one that surveys use for "no value": at most so
        often, if the summary is a sum.
    is_whole : bool
        Whether all these are whole numbers.
    """

    n_rows: int = 0
    n_null: int = 0
    lowest: dict[float, int] = field(default_factory=dict)
    highest: dict[float, int] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)
    has_more_words: bool = False
    n_numbers: int = 0
    most: int = field(default=0, compare=False)
    is_whole: bool = True

    def __add__(self, other: "ColumnSummary") -> "ColumnSummary":
        words = self.words + other.words
        kept = _most_common(words)
        return ColumnSummary(
            self.n_rows + other.n_rows,
            self.n_null + other.n_null,
            _ends_of(self.lowest, other.lowest, heapq.nsmallest),
            _ends_of(self.highest, other.highest, heapq.nlargest),
            kept,
            self.has_more_words or other.has_more_words or len(kept) < len(words),
            self.n_numbers + other.n_numbers,
            self.most + other.most,
            self.is_whole and other.is_whole,
        )


def summarize_column(column: pa.Array) -> ColumnSummary:
    """Summarize one batch of a column.

    Examples
    --------
    >>> found = summarize_column(pa.array([1.5, 99.99, 99.99, None]))
    >>> found.n_null, found.highest[99.99]
    (1, 2)
    """
    seen = column.drop_null()
    counts = {"n_rows": len(column), "n_null": column.null_count}
    kind = column.type
    if is_numeric(kind):
        values, times = np.unique(seen.to_numpy(zero_copy_only=False), return_counts=True)
        low, high = ({_number(v): int(n) for v, n in zip(values[end], times[end], strict=True)}
                     for end in (slice(_ENDS), slice(-_ENDS, None)))  # fmt: skip
        plain = ~find_usual(pa.array(values), is_whole=False)
        most, is_whole = times[plain].max(initial=0), (values == np.floor(values))[plain].all()
        known = ColumnSummary(**counts, most=int(most), is_whole=bool(is_whole))
        return replace(known, lowest=low, highest=high)
    if pa.types.is_string(kind):
        return ColumnSummary(**counts) + _text_summary(seen)
    return ColumnSummary(**counts)


def _number(value: np.generic) -> float:
    """Return the shortest equal number, such as 99.999 from float32."""
    return int(value) if value.dtype.kind in "iu" else float(str(value))


def _text_summary(seen: pa.Array) -> ColumnSummary:
    counted = pc.value_counts(seen)
    words, counts = counted.field("values"), counted.field("counts")
    numbers = counts.filter(pc.match_substring_regex(words, NUMBER_PATTERN))
    found = Counter(dict(zip(words.to_pylist(), counts.to_pylist(), strict=True)))
    return ColumnSummary(words=found, n_numbers=pc.sum(numbers).as_py() or 0)


def reads_as_null(word: str) -> bool:
    """Check whether a text means "no value": a dash, a word such as N/A, or nines.

    Examples
    --------
    >>> reads_as_null("N/A"), reads_as_null("-99"), reads_as_null("Cepheid")
    (True, True, False)
    """
    return word.strip().lower() in NULL_TEXTS or bool(_NINES.fullmatch(word.strip()))


def _most_common(words: Counter[str]) -> Counter[str]:
    if len(words) <= _MOST_WORDS:
        return words
    kept = dict(words.most_common(_MOST_WORDS))
    return Counter(kept | {word: n for word, n in words.items() if reads_as_null(word)})


def _ends_of(
    one: dict[float, int], two: dict[float, int], pick: Callable[..., list[float]]
) -> dict[float, int]:
    picked = sorted(pick(_ENDS, one.keys() | two.keys()))
    return {value: one.get(value, 0) + two.get(value, 0) for value in picked}
