"""Light curves from files, in parts of bounded size that hold complete objects."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import Schema, open_scan, read_batches, read_table
from skyfill.catalog.file_io import naming
from skyfill.errors import CatalogError
from skyfill.lightcurve.collection import About, LightCurves, concatenate
from skyfill.lightcurve.curve import IntArray
from skyfill.lightcurve.curve_columns import distinct, leaf, outer, refuse_nulls
from skyfill.lightcurve.layout import Layout, Request, find_layout, to_curves

# Measurements read at once, about 5 MB.
BATCH_ROWS = 1 << 17
# Objects read at once where each row or each file is an object.
BATCH_OBJECTS = 256
# A file whose objects are scattered is sorted in memory up to this size, about 1 GB.
MOST_ROWS_IN_MEMORY = 20_000_000


@dataclass(frozen=True)
class Opened:
    """Light curves ready to be read.

    Parameters
    ----------
    layout : Layout
        CurveColumns, bands and so on.
    n_objects : int or None
        How many there are, if known before reading.
    parts : iterator of LightCurves
        To be read once; each object is complete in one of them.
    """

    layout: Layout
    n_objects: int | None
    parts: Iterator[LightCurves]


def open_light_curves(path: str | Path, request: Request | None = None) -> Opened:
    r"""Open a file, or a folder with one file per object, to read its light curves in parts.

    A file with one row per measurement is first scanned for its bands, and to see whether the
    measurements of each object are adjacent. If so (a file sorted by object), memory is bounded;
    if not, the file is sorted in memory.

    Parameters
    ----------
    path : str or path
        Any format that `read_table` reads. In a folder each file is an object of that name.
    request : Request, optional
        Names of columns and order of bands that cannot be guessed.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "stars.csv"
    >>> _ = path.write_text("id,mjd,mag\na,1,15\na,2,16\nb,1,17\n")
    >>> opened = open_light_curves(path)
    >>> opened.n_objects, [part.ids.to_pylist() for part in opened.parts]
    (2, [['a'], ['b']])
    """
    path, request = Path(path), request or Request()
    if path.is_dir():
        return _open_folder(path, request)
    layout = find_layout(open_scan(path).schema, request)
    layout = find_layout(open_scan(path, rules=_text_rules(layout)).schema, request)
    with naming(path):
        return (_open_lists if layout.has_lists else _open_long)(path, layout, request)


def _text_rules(layout: Layout) -> Schema:
    """State that the names of objects in a plain text file stay as they are written."""
    used = [f"{layout.columns.id}=identifier"] if layout.columns.id else []
    return Schema.from_options(roles=used)


def _open_lists(path: Path, layout: Layout, request: Request) -> Opened:
    if not layout.about.bands:
        layout = layout.with_bands(_all_bands(path, layout), request.bands)
    counted = read_batches(path, columns=[str(layout.columns.id)], rules=_text_rules(layout))
    n_objects = sum(batch.num_rows for batch in counted)
    return Opened(layout, n_objects, _read_lists(path, layout))


def _read_lists(path: Path, layout: Layout) -> Iterator[LightCurves]:
    how: dict[str, Any] = {"columns": layout.needed, "rules": _text_rules(layout)}
    for batch in read_batches(path, batch_rows=BATCH_OBJECTS, **how):
        with naming(path):
            curves = to_curves(batch, layout)
        yield curves


def _all_bands(path: Path, layout: Layout) -> set[str]:
    name = str(layout.columns.band)
    batches = read_batches(path, columns=[outer(name, layout.names)])
    return {band for batch in batches for band in distinct(leaf(batch, name), name)}


def _open_long(path: Path, layout: Layout, request: Request) -> Opened:
    found = _look_through(path, layout)
    if not layout.about.bands:
        layout = layout.with_bands(found.bands, request.bands)
    if found.is_grouped:
        return Opened(layout, found.n_objects, _read_grouped(path, layout))
    if found.n_rows > MOST_ROWS_IN_MEMORY:
        raise CatalogError(
            f"the {found.n_rows} measurements are not sorted by {layout.columns.id!r} and are "
            f"too many to sort in memory; sort the file by this column first"
        )
    return Opened(layout, found.n_objects, _read_scattered(path, layout))


def _read_grouped(path: Path, layout: Layout) -> Iterator[LightCurves]:
    """Read batch by batch; the last object of each batch waits for the next."""
    rest: pa.Table | None = None
    how: dict[str, Any] = {"columns": layout.needed, "rules": _text_rules(layout)}
    for batch in read_batches(path, batch_rows=BATCH_ROWS, **how):
        rows = pa.Table.from_batches([batch])
        rows = rows if rest is None else pa.concat_tables([rest, rows])
        cut = int(run_starts(leaf(rows, str(layout.columns.id)))[-1]) if len(rows) else 0
        if cut:
            with naming(path):
                curves = to_curves(rows.slice(0, cut), layout)
            yield curves
        rest = rows.slice(cut)
    if rest is not None and len(rest):
        with naming(path):
            curves = to_curves(rest, layout)
        yield curves


def _read_scattered(path: Path, layout: Layout) -> Iterator[LightCurves]:
    with naming(path):
        used = [layout.columns.id] if layout.columns.id else []
        table = read_table(path, columns=layout.needed, identifiers=used)
        curves = to_curves(table.arrow, layout)
    for start in range(0, len(curves), BATCH_OBJECTS):
        yield curves.part(start, start + BATCH_OBJECTS)


def _open_folder(folder: Path, request: Request) -> Opened:
    if request.columns.id is not None:
        raise CatalogError(f"{folder}: in a folder each file is an object; leave out the id column")
    files = sorted(f for f in folder.iterdir() if f.is_file() and not f.name.startswith("."))
    if not files:
        raise CatalogError(f"{folder}: the folder holds no file")
    layout = find_layout(open_scan(files[0]).schema, request, needs_id=False)
    about = replace(layout.about, id_name="id", id_info=About().id_info)
    layout = replace(layout, columns=replace(layout.columns, id=None), about=about)
    if not layout.about.bands:
        bands = {band for file in files for band in _all_bands(file, layout)}
        layout = layout.with_bands(bands, request.bands)
    return Opened(layout, len(files), _read_folder(files, layout))


def _read_folder(files: list[Path], layout: Layout) -> Iterator[LightCurves]:
    columns = layout.needed
    for start in range(0, len(files), BATCH_OBJECTS):
        parts = []
        for file in files[start : start + BATCH_OBJECTS]:
            rows = read_table(file, columns=columns).arrow
            with naming(file):
                parts.append(_one_object(rows, layout, object_name(file)))
        yield concatenate(parts)


def _one_object(rows: pa.Table, layout: Layout, name: str) -> LightCurves:
    if not len(rows):
        empty = np.zeros(0)
        start = np.zeros(len(layout.about.bands) + 1, np.int64)
        return LightCurves(pa.array([name]), start, empty, empty, empty, layout.about)
    return to_curves(rows, layout, pa.array([name] * len(rows)))


def object_name(file: Path) -> str:
    """Name the object of a file after the file, without the extension.

    Examples
    --------
    >>> object_name(Path("1.3442.172.csv.gz"))
    '1.3442.172'
    """
    return Path(file.name.removesuffix(".gz")).stem


class _Contents(NamedTuple):
    """Counts of a file with one row per measurement, and whether each object's rows are adjacent.

    `bands` is empty if no column names them.
    """

    n_rows: int
    n_objects: int
    bands: tuple[str, ...]
    is_grouped: bool


def _look_through(path: Path, layout: Layout) -> _Contents:
    """Read identifiers and bands.

    Identifiers in ascending order, the usual case, take no memory; otherwise they are kept to the
    end, to see whether one comes back.
    """
    found = _contents(path, layout, keep=False) or _contents(path, layout, keep=True)
    assert found is not None
    return found


def _contents(path: Path, layout: Layout, *, keep: bool) -> _Contents | None:
    """Return None if identifiers do not ascend and are not kept."""
    name, band = str(layout.columns.id), layout.columns.band
    bands: dict[str, None] = {}
    kept: list[pa.Array] = []
    n_rows, n_runs, last = 0, 0, None
    columns = [name, *([band] if band else [])]
    for batch in read_batches(path, columns=columns, rules=_text_rules(layout)):
        ids = leaf(batch, name)
        refuse_nulls(ids, name, "identifier", n_before=n_rows)
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
    return _Contents(n_rows, n_objects, tuple(bands), n_objects == n_runs)


def run_starts(ids: pa.Array) -> IntArray:
    """Return the rows at which the identifier changes, including the first row.

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
