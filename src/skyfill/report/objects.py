"""The objects of a results table, as columns for the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from skyfill.catalog import Role, Table, open_scan, with_guessed_roles
from skyfill.catalog.usual_values import is_numeric
from skyfill.errors import CatalogError
from skyfill.model import Feature, Model, absent_features, cells_of
from skyfill.model.results import (
    CLASS,
    EVIDENCE,
    IN_LIST,
    NEW,
    NEXT,
    NEXT_BITS,
    NUMBERS,
    OUTLIER,
    RANK,
    class_columns,
    probability_name,
    without_before,
)
from skyfill.report.gaps import GapCounts, count_gaps, limit_values, reason_codes
from skyfill.report.page_data import pack
from skyfill.sky import PositionColumns, read_positions

MAX_OBJECTS = 10_000
# Columns of a candidate list that are shown with them.
EXTRAS = (RANK, NEW, *EVIDENCE)
# Tables with more cells are packed in single precision, to keep the page small.
MAX_EXACT = 300_000


@dataclass(frozen=True)
class Results:
    """A results table, or a random sample of it, with counts over all of its rows.

    Attributes
    ----------
    table : Table
        At most the requested number of rows, in the order of the file.
    n_rows : int
        Rows of the whole table.
    gaps : GapCounts
        Gaps of the model's features in the whole table.
    position : PositionColumns, optional
        Found by name or UCD where not given.
    """

    table: Table
    n_rows: int
    gaps: GapCounts
    position: PositionColumns | None = None


def read_results(
    path: str | Path,
    features: Sequence[Feature],
    max_objects: int = MAX_OBJECTS,
    *,
    prepare: Callable[[Table], Table] = lambda table: table,
    position: PositionColumns | None = None,
) -> Results:
    """Read a results file of any length: count all its gaps, keep a random sample of its rows.

    `prepare` is applied to every batch; `position` names columns that would not be found.
    """
    with open_scan(path) as scan:
        empty = prepare(Table(scan.schema.empty_table()))
        absent_features(features, empty.names, path)
        tables = (prepare(Table(pa.Table.from_batches([batch]))) for batch in scan.batches)
        found = gather_results(tables, features, max_objects, empty=empty)
    return replace(found, position=position)


def gather_results(
    tables: Iterable[Table], features: Sequence[Feature], max_objects: int, *, empty: Table
) -> Results:
    """Count all gaps of a stream of tables and keep a random sample of its rows, in order."""
    rng = np.random.default_rng(0)
    kept, keys = empty.arrow, np.empty(0)
    counts = [count_gaps(empty, features)]
    for table in tables:
        counts.append(count_gaps(table, features))
        kept = pa.concat_tables([kept, table.arrow])
        keys = np.concatenate([keys, rng.random(len(table))])
        # The rows with the smallest keys are a fair sample, however the stream is divided.
        rows = np.sort(np.argsort(keys, kind="stable")[:max_objects])
        kept, keys = kept.take(pa.array(rows)), keys[rows]
    gaps = reduce(GapCounts.__add__, counts)
    return Results(Table(kept.combine_chunks()), gaps.n_rows, gaps)


def export_objects(results: Results, model: Model) -> dict[str, Any]:
    """Return the objects as packed columns: names, positions, values, classes and facts."""
    table = with_guessed_roles(results.table)
    classes, cells = class_names(table), cells_of(model, results.table)[0]
    stated = np.where(cells.is_limited, np.nan, limit_values(table, model.features))
    return {
        "shown": len(table),
        "rows": results.n_rows,
        "ids": _identifiers(table),
        "position": _positions(table, results.position),
        "values": pack(cells.values, "f8" if cells.values.size <= MAX_EXACT else "f4"),
        "lower": _sparse(cells.lower),
        "upper": _sparse(cells.upper),
        "errors": _sparse(cells.errors),
        "unused": _sparse(stated),
        "reasons": pack(reason_codes(table, model.features), "u1"),
        "classes": list(classes),
        "predicted": _codes(table, CLASS, classes) if classes else None,
        "probabilities": _probabilities(table, classes),
        "label": _label(table, has_classes=bool(classes)),
        "facts": {name: pack(table.numbers(name)[:, 0], "f4") for name in _facts(table)},
        "outlier": _flags(table, OUTLIER),
        "extras": _extras(table),
        "next": _next(table),
    }


def _sparse(array: NDArray[np.float64] | None) -> dict[str, Any]:
    """Return the numbers of an array with their places: most cells have none."""
    flat = np.empty(0) if array is None else array.ravel()
    cells = np.flatnonzero(~np.isnan(flat))
    return {"cells": pack(cells, "u4"), "values": pack(flat[cells])}


def class_names(table: Table) -> tuple[str, ...]:
    """Name the classes that have probabilities next to the column of the most probable class."""
    if CLASS not in table.names:
        return ()
    columns = class_columns(table)
    return tuple(k for k, n in columns.items() if pa.types.is_floating(table.column(n).type))


def _identifiers(table: Table) -> list[str]:
    """Give every row a unique name: it is the address of the object's panel."""
    rows = [f"row {row + 1}" for row in range(len(table))]
    names = table.names_with(Role.IDENTIFIER)
    if not names:
        return rows
    words = pc.cast(table.column(names[0]), pa.string()).to_pylist()
    often = Counter(words)
    given = zip(words, rows, strict=True)
    return [(f"{w} ({row})" if often[w] > 1 else w) if w else row for w, row in given]


def _positions(table: Table, columns: PositionColumns | None) -> dict[str, Any] | None:
    try:
        places = read_positions(table, columns)
    except CatalogError:
        if columns is not None:
            raise
        return None
    return {"ra": pack(places.ra_deg, "f8"), "dec": pack(places.dec_deg, "f8")}


def _probabilities(table: Table, classes: Sequence[str]) -> dict[str, Any] | None:
    if not classes:
        return None
    return pack(table.numbers(*map(probability_name, classes)), "f4")


def _codes(table: Table, name: str, words: Sequence[str]) -> dict[str, Any]:
    """Index of each row's class among the classes; 255 where it is none of them."""
    at = pc.index_in(pc.cast(table.column(name), pa.string()), pa.array(words, pa.string()))
    return pack(pc.fill_null(at, 255).to_numpy(), "u1")


def _label(table: Table, *, has_classes: bool) -> dict[str, Any] | None:
    """Return the original label of the table, as opposed to the predicted class."""
    names = [
        name
        for name in table.names_with(Role.LABEL)
        if not (has_classes and name == CLASS) and pa.types.is_string(table.column(name).type)
    ]
    if not names:
        return None
    words = table.column(names[0]).to_pylist()
    known = sorted({word for word in words if word})[:254]
    codes = [known.index(word) if word in known else 255 for word in words]
    title = f"{without_before(names[0])} (label)"
    return {"name": title, "words": known, "codes": pack(codes, "u1")}


def _facts(table: Table) -> list[str]:
    return [name for name in NUMBERS if name in table.names]


def _flags(table: Table, name: str) -> dict[str, Any] | None:
    if name not in table.names:
        return None
    return pack(pc.fill_null(pc.cast(table.column(name), pa.uint8()), 0).to_numpy(), "u1")


def _extras(table: Table) -> list[dict[str, Any]]:
    names = [name for name in table.names if name in EXTRAS or _is_list(table, name)]
    return [_extra(name, table.column(name)) for name in names]


def _is_list(table: Table, name: str) -> bool:
    return name.startswith(IN_LIST) and bool(pa.types.is_boolean(table.column(name).type))


def _extra(name: str, column: pa.ChunkedArray) -> dict[str, Any]:
    is_number = is_numeric(column.type)
    if pa.types.is_boolean(column.type):
        values = pc.if_else(column, "yes", "no").to_pylist()
    else:
        values = column.to_pylist() if is_number else pc.cast(column, pa.string()).to_pylist()
    return {"name": name.replace("_", " "), "number": is_number, "values": values}


def _next(table: Table) -> list[str | None] | None:
    """Return the most informative next measurement of each object, where the table has it."""
    if NEXT not in table.names:
        return None
    names = table.column(NEXT).to_pylist()
    gains = table.column(NEXT_BITS).to_pylist() if NEXT_BITS in table.names else [None] * len(names)
    return [_advice(name, gain) for name, gain in zip(names, gains, strict=True)]


def _advice(name: str | None, gain: float | None) -> str | None:
    if not name:
        return None
    gained = "" if gain is None else f", {gain:.2f} bits on average"
    return f"Measuring {name} is expected to reduce the uncertainty of its class most{gained}."
