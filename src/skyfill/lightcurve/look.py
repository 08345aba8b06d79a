"""A first look through a long file: its bands, its objects, and whether these stand together."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import read_batches
from skyfill.errors import CatalogError
from skyfill.lightcurve._array import IntArray
from skyfill.lightcurve.layout import Layout
from skyfill.lightcurve.nested import distinct, leaf


@dataclass(frozen=True)
class Look:
    """What a file with a row per measurement holds.

    Parameters
    ----------
    n_rows, n_objects : int
        Measurements and objects.
    bands : tuple of str
        All bands, unordered; empty where no column names them.
    is_grouped : bool
        Whether the measurements of each object stand together.
    """

    n_rows: int
    n_objects: int
    bands: tuple[str, ...]
    is_grouped: bool


def look_through(path: Path, layout: Layout) -> Look:
    """Read identifiers and bands.

    Identifiers in ascending order, the usual case, need no memory; others are kept until the end
    to see whether one comes back.
    """
    return _look(path, layout, keep=False) or _look(path, layout, keep=True)  # type: ignore[return-value]


def _look(path: Path, layout: Layout, *, keep: bool) -> Look | None:
    name, band = str(layout.columns.id), layout.columns.band
    bands: dict[str, None] = {}
    kept: list[pa.Array] = []
    n_rows, n_runs, last = 0, 0, None
    for batch in read_batches(path, columns=[name, *([band] if band else [])]):
        ids = leaf(batch, name)
        _refuse_null(ids, name, n_rows)
        if band:
            bands |= dict.fromkeys(distinct(leaf(batch, band), band))
        runs = ids.take(pa.array(run_starts(ids)))
        runs = runs[1:] if last is not None and runs[0].equals(last) else runs
        if not keep and not _ascends(runs, last):
            return None
        kept += [runs] if keep else []
        n_rows, n_runs = n_rows + len(ids), n_runs + len(runs)
        last = ids[-1]
    n_objects = len(pc.unique(pa.chunked_array(kept))) if kept else n_runs
    return Look(n_rows, n_objects, tuple(bands), n_objects == n_runs)


def run_starts(ids: pa.Array) -> IntArray:
    """Give the rows at which another identifier begins, the first row included.

    Examples
    --------
    >>> run_starts(pa.array(["a", "a", "b", "a"]))
    array([0, 2, 3])
    """
    changes = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.flatnonzero(changes) + 1])


def _ascends(runs: pa.Array, last: pa.Scalar | None) -> bool:
    if len(runs) and last is not None and not pc.greater(runs[0], last).as_py():
        return False
    return len(runs) < 2 or bool(pc.all(pc.greater(runs[1:], runs[:-1])).as_py())


def _refuse_null(ids: pa.Array, name: str, before: int) -> None:
    if ids.null_count:
        row = before + int(np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))[0]) + 1
        raise CatalogError(f"column {name!r}, row {row}: no identifier; fill it in or drop the row")
