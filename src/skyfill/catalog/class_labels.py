"""Labels of a column of classes as people write them: which are none, and which look alike."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog.table import Table

# What people write where an object has no class, in any case and with blanks around it.
UNLABELLED = frozenset(
    ("?", "??", "-", "--", "...", "none", "null", "nan", "n/a", "unid", "unidentified", "unk",
     "unknown", "unclass", "unclassified", "unassoc", "unassociated", "unlabelled", "unlabeled")
)  # fmt: skip


def label_texts(values: Iterable[Any], unlabelled: Collection[str] = ()) -> NDArray[Any]:
    """Return labels as text without blanks around it, for any type of column.

    None where a label is None, NaN or blank, or a word that means no class; see
    `Schema.unlabelled`.

    Examples
    --------
    >>> label_texts(["RRL ", None, 3, "Unid"]).tolist()
    ['RRL', None, '3', 'Unid']
    >>> label_texts(["RRL ", None, 3, "Unid"], UNLABELLED).tolist()
    ['RRL', None, '3', None]
    """
    texts = [None if is_gap(value) else str(value).strip() for value in values]
    kept = [None if not text or text.casefold() in unlabelled else text for text in texts]
    return np.array(kept, dtype=object)


def is_gap(value: Any) -> bool:
    """Whether a label is missing: None, NaN or an empty text."""
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def class_texts(table: Table, label: str, unlabelled: Collection[str] = UNLABELLED) -> NDArray[Any]:
    """Return the class of each row as text, None for those without one.

    Examples
    --------
    >>> class_texts(Table.from_columns({"kind": ["RRL ", "unid", None]}), "kind").tolist()
    ['RRL', None, None]
    """
    # Each distinct value is read once: there are few classes, and many rows.
    column = table.column(label)
    distinct = column.unique()
    place = pc.index_in(column, value_set=distinct)
    return np.asarray(label_texts(distinct.to_pylist(), unlabelled)[np.asarray(place)])


def look_alike(names: Iterable[str]) -> list[list[str]]:
    """Group classes whose names differ only in blanks, case or a colon at the end.

    Examples
    --------
    >>> look_alike(["RRL", "rrl", "QSO", "QSO:", "Be star", "SN"])
    [['QSO', 'QSO:'], ['RRL', 'rrl']]
    """
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(re.sub(r"\s", "", name).casefold().rstrip(":"), []).append(name)
    return [group for group in groups.values() if len(group) > 1]
