"""Values that someone may have filled gaps with before: found and reported, never changed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from skyfill.catalog.sentinels import Suspect
from skyfill.catalog.table import Table

# A filler is in more than this share of the rows, and so many times as often as any other value, of
# which there are at least so many.
SHARE, TIMES, OTHERS = 0.05, 10, 20
FILLED = "no other value is frequent: were gaps filled with it?"
ONE_VALUE = "the only value"


def find_filler(table: Table, name: str) -> Suspect | None:
    """Find the value that someone may have filled gaps of a column with, such as its mean.

    It is in many rows while no other value is, and lies between others; or it is the only value.
    The ends of a column, such as 0 and 1, are left out, and so are columns of whole numbers.

    Examples
    --------
    >>> J = np.where(np.arange(100) % 5, np.linspace(14, 16, 100), 15.21)
    >>> find_filler(Table.from_columns({"J": J}), "J").value
    15.21
    """
    column = table.column(name)
    if not pa.types.is_floating(column.type):
        return None
    values = table.numbers(name)[:, 0]
    found, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    if found.size < OTHERS:
        is_one = found.size == 1 and int(counts[0]) >= OTHERS
        return Suspect(float(found[0]), int(counts[0]), ONE_VALUE) if is_one else None
    most = int(counts.argmax())
    count, others = int(counts[most]), np.delete(counts, most)
    is_much = count > max(SHARE * counts.sum(), TIMES * others.max())
    if not is_much or most in (0, found.size - 1):
        return None
    return Suspect(float(found[most]), count, FILLED)
