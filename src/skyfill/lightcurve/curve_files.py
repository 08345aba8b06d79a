"""Light curves from files in pieces of bounded size, each with whole objects."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from skyfill.catalog import open_scan, read_batches, read_table
from skyfill.catalog.file_io import naming
from skyfill.errors import CatalogError
from skyfill.lightcurve.collection import About, LightCurves, concatenate
from skyfill.lightcurve.curve import IntArray
from skyfill.lightcurve.curve_columns import distinct, leaf, outer
from skyfill.lightcurve.layout import Layout, Request, find_layout, to_curves

# Measurements that are read at once, about 5 MB.
BATCH_ROWS = 1 << 17
# Objects that are read at once where a row or a file is an object.
BATCH_OBJECTS = 256
# Up to so many measurements a file whose objects are scattered is sorted in memory, about 1 GB.
MOST_ROWS_IN_MEMORY = 20_000_000


@dataclass(frozen=True)
class Opened:
    """Light curves that are ready to be read.

    Parameters
    ----------
    layout : Layout
        CurveColumns, bands and so on.
    n_objects : int or None
        How many there are, where that is known before reading.
    parts : iterator of LightCurves
        To be read once; every object is whole in one of them.
    """

    layout: Layout
    n_objects: int | None
    parts: Iterator[LightCurves]


def open_light_curves(path: str | Path, request: Request | None = None) -> Opened:
    r"""Open a file, or a folder with a file per object, to read its light curves in pieces.

    A file with a row per measurement is looked through once before, for its bands and to see
    whether the measurements of each object stand together. If they do (a file sorted by object),
    memory is bounded; if they do not, the file is sorted in memory.

    Parameters
    ----------
    path : str or path
        Any format that `read_table` reads. In a folder each file is an object, named like the file.
    request : Request, optional
        Names of columns and order of bands where they cannot be guessed.

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
    with naming(path):
        return (_open_lists if layout.has_lists else _open_long)(path, layout, request)


def _open_lists(path: Path, layout: Layout, request: Request) -> Opened:
    if not layout.about.bands:
        layout = layout.with_bands(_all_bands(path, layout), request.bands)
    counted = read_batches(path, columns=[str(layout.columns.id)])
    n_objects = sum(batch.num_rows for batch in counted)
    return Opened(layout, n_objects, _read_lists(path, layout))


def _read_lists(path: Path, layout: Layout) -> Iterator[LightCurves]:
    columns = layout.needed
    for batch in read_batches(path, columns=columns, batch_rows=BATCH_OBJECTS):
        with naming(path):
            curves = to_curves(batch, layout)
        yield curves


def _all_bands(path: Path, layout: Layout) -> set[str]:
    name = str(layout.columns.band)
    batches = read_batches(path, columns=[outer(name, layout.names)])
    return {band for batch in batches for band in distinct(leaf(batch, name), name)}


def _open_long(path: Path, layout: Layout, request: Request) -> Opened:
    found = look_through(path, layout)
    if not layout.about.bands:
        layout = layout.with_bands(found.bands, request.bands)
    if found.is_grouped:
        return Opened(layout, found.n_objects, _read_grouped(path, layout))
    if found.n_rows > MOST_ROWS_IN_MEMORY:
        raise CatalogError(
            f"the {found.n_rows} measurements are not sorted by {layout.columns.id!r}, and too "
            f"many to be sorted in memory; sort the file by it first"
        )
    return Opened(layout, found.n_objects, _read_scattered(path, layout))


def _read_grouped(path: Path, layout: Layout) -> Iterator[LightCurves]:
    """Read batch by batch; the last object of a batch waits for the next."""
    rest: pa.Table | None = None
    for batch in read_batches(path, columns=layout.needed, batch_rows=BATCH_ROWS):
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
        curves = to_curves(read_table(path, columns=layout.needed).arrow, layout)
    for start in range(0, len(curves), BATCH_OBJECTS):
        yield curves.part(start, start + BATCH_OBJECTS)


def _open_folder(folder: Path, request: Request) -> Opened:
    if request.columns.id is not None:
        raise CatalogError(f"{folder}: in a folder each file is an object; leave out the id column")
    files = sorted(f for f in folder.iterdir() if f.is_file() and not f.name.startswith("."))
    if not files:
        raise CatalogError(f"{folder}: there is no file in it")
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
    """Name the object of a file: the file's name without its extension.

    Examples
    --------
    >>> object_name(Path("1.3442.172.csv.gz"))
    '1.3442.172'
    """
    return Path(file.name.removesuffix(".gz")).stem


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
