"""Light curves from files, in parts of bounded size that hold complete objects."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
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
from skyfill.lightcurve.object_files import (
    files_in_batches,
    has_object_files,
    list_objects,
    object_name,
)

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
    r"""Open a file, or a folder or archive with a file per object, to read its curves in parts.

    A file with one row per measurement is first scanned for its bands, and to see whether the
    measurements of each object are adjacent. If so (a file sorted by object), memory is bounded;
    if not, the file is sorted in memory.

    Parameters
    ----------
    path : str or path
        Any format that `read_table` reads. In a folder or archive (zip, tar, tar.gz) each file is
        an object of that name; where files have no line of names, the columns are taken to be
        time, value and error.
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
    if has_object_files(path):
        return _open_files(path, request)
    layout = find_layout(open_scan(path, rules=Schema((), request.text)).schema, request)
    layout = find_layout(open_scan(path, rules=_text_rules(layout)).schema, request)
    with naming(path):
        return (_open_lists if layout.has_lists else _open_long)(path, layout, request)


def _text_rules(layout: Layout) -> Schema:
    """State how a plain text file is written, and that names of objects stay as they are."""
    used = [f"{layout.columns.id}=identifier"] if layout.columns.id else []
    return Schema.from_options(roles=used) + Schema((), layout.text)


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
    columns, rules = [outer(name, layout.names)], _text_rules(layout)
    batches = read_batches(path, columns=columns, rules=rules)
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
        rules = Schema((), layout.text)
        table = read_table(path, columns=layout.needed, schema=rules, identifiers=used)
        curves = to_curves(table.arrow, layout)
    for start in range(0, len(curves), BATCH_OBJECTS):
        yield curves.part(start, start + BATCH_OBJECTS)


def _open_files(path: Path, request: Request) -> Opened:
    """Open a folder or an archive of files, one for each object."""
    if request.columns.id is not None:
        raise CatalogError(f"{path}: each file in it is an object; leave out the id column")
    names = list_objects(path)
    with closing(files_in_batches(path, 1)) as batches:
        (first,) = next(batches)
        with _as_member(path, first):
            schema = open_scan(first, rules=Schema((), request.text)).schema
    layout = find_layout(schema, request, needs_id=False)
    about = replace(layout.about, id_name="id", id_info=About().id_info)
    layout = replace(layout, columns=replace(layout.columns, id=None), about=about)
    if not layout.about.bands:
        files = (file for batch in files_in_batches(path, BATCH_OBJECTS) for file in batch)
        bands = {band for file in files for band in _all_bands(file, layout)}
        layout = layout.with_bands(bands, request.bands)
    return Opened(layout, len(names), _read_files(path, layout))


def _read_files(path: Path, layout: Layout) -> Iterator[LightCurves]:
    rules = _text_rules(layout)
    for files in files_in_batches(path, BATCH_OBJECTS):
        parts = []
        for file in files:
            with _as_member(path, file):
                rows = read_table(file, columns=layout.needed, schema=rules).arrow
                with naming(file):
                    parts.append(_one_object(rows, layout, object_name(file)))
        yield concatenate(parts)


@contextmanager
def _as_member(path: Path, file: Path) -> Iterator[None]:
    """Name a file of an archive by archive and file, not by where it was unpacked."""
    try:
        yield
    except CatalogError as error:
        if path.is_dir():
            raise
        raise CatalogError(str(error).replace(str(file), f"{path}, {file.name}")) from None


def _one_object(rows: pa.Table, layout: Layout, name: str) -> LightCurves:
    if not len(rows):
        empty = np.zeros(0)
        start = np.zeros(len(layout.about.bands) + 1, np.int64)
        return LightCurves(pa.array([name]), start, empty, empty, empty, layout.about)
    return to_curves(rows, layout, pa.array([name] * len(rows)))


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
    with closing(read_batches(path, columns=columns, rules=_text_rules(layout))) as batches:
        for batch in batches:
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
