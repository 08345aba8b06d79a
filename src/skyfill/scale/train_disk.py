"""Learning from a file larger than memory: its numbers are on disk, and EM reads them in blocks.

Here and on a cluster, the sums of each EM step can be kept as files. A resumed run takes the same
steps from the same start, and steps whose sums are there need no pass over the rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from skyfill.catalog import Schema, Table, open_scan
from skyfill.catalog.file_io import writing
from skyfill.device import gpu_for
from skyfill.model import Model, Refined, before_filling, features_of, refine, train
from skyfill.model.training import check_range
from skyfill.network.cells import Cells
from skyfill.network.mixture.maps import MAPS, Maps, kinds_of
from skyfill.network.mixture.mixture import (
    ROWS_AT_ONCE,
    Mixture,
    expect_mixture,
    split,
)
from skyfill.network.mixture.on_device import EM_WORTH_A_GPU, expect_on_device, load_scores
from skyfill.network.moments import Moments
from skyfill.scale.em_steps import Steps
from skyfill.scale.train_limits import train_with_limits
from skyfill.threads import map_threads, one_blas_thread

Array = NDArray[np.float64]
# Rows of the sample for plan, calibration and starts; margins and parameters come from all rows.
SAMPLE_ROWS = 50_000
# A multiple of the rows that a kernel takes at once, so that sums are bit for bit those of a table.
BLOCK_ROWS = 64 * ROWS_AT_ONCE
GPU_BLOCK_ROWS = 1 << 20


def train_file(
    catalog: str | Path,
    names: Sequence[str],
    *,
    rules: Schema | None = None,
    folder: str | Path | None = None,
    sample_rows: int = SAMPLE_ROWS,
    steps: Steps | None = None,
    **options: Any,
) -> Refined:
    """Learn a model from a file of any size; only one column or block of rows is in memory.

    The components, the shrinkage, the calibration and the starts of EM are learned from a random
    sample of the rows, the margins and all parameters from all of them. A table of at most
    `sample_rows` rows gives what `train` gives. Where columns state limits or errors the margins,
    depths and widths come from the sample too, and every step of EM reads the file again.

    Parameters
    ----------
    catalog : path
        Any format that `read_table` reads.
    names : sequence of str
        The features.
    rules : Schema, optional
        Roles, units and sentinels to apply first.
    folder : path, optional
        Where the numbers are kept during EM, 8 bytes per cell; by default the system's folder for
        temporary files.
    sample_rows : int
    steps : Steps, optional
        For progress, and to keep the sums of finished steps.
    options
        Those of `train`: `provenance`, `force`, and the options of `learn_mixture`.

    Examples
    --------
    >>> from skyfill.catalog import write_table
    >>> rng = np.random.default_rng(0)
    >>> J = rng.normal(15, 1, 3000)
    >>> table = Table.from_columns({"J": J, "K": J - 0.5 + rng.normal(0, 0.1, 3000)})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(table, Path(folder) / "stars.parquet")
    ...     found = train_file(Path(folder) / "stars.parquet", ["J", "K"], sample_rows=500,
    ...                        n_components=1, n_fits=1)
    >>> found.n_rows, found.model.names, found.converged
    (3000, ('J', 'K'), True)
    """
    steps, place = steps or Steps(), Path(folder or tempfile.gettempdir())
    rules = rules or Schema()
    with one_blas_thread():
        told: dict[str, Any] = {"report": steps.report, "watch": steps.watch}
        found = train_with_limits(catalog, names, rules, rows=sample_rows, **told, **options)
    if found is not None:
        return found
    schema, blocks = _numbers(catalog, list(names), rules)
    counted = _counted(blocks, lambda rows: steps.report(f"{rows:,} rows read"))
    with write_columns(counted, len(names), place) as columns, one_blas_thread():
        sample = _sample(columns, schema, sample_rows, options.get("rng", 0))
        model, learned = train(sample, names, rules=rules, **options)
        steps.report(f"a start learned from {len(sample):,} rows")
        if len(sample) == columns.n_rows:
            return Refined(model, learned.plan, len(sample), learned.n_iter, learned.converged)
        columns.replace(lambda X: features_of(model, _table(X, schema))[0], block_rows=BLOCK_ROWS)
        model = with_margins(model, columns, learned.plan.maps)
        steps.report("margins estimated from all rows")
        how: dict[str, Any] = {k: options[k] for k in ("tol", "max_iter") if k in options}
        how |= {"n_rows": columns.n_rows, "watch": steps.watch}
        return refine(model, partial(expect_columns, columns), learned.plan, **how)


def _numbers(
    catalog: str | Path, names: list[str], rules: Schema
) -> tuple[pa.Schema, Iterator[Array]]:
    """Return the schema of the features, and their numbers block by block."""
    scan = open_scan(catalog, batch_rows=BLOCK_ROWS)
    empty = before_filling(rules.apply(Table(scan.schema.empty_table()))).select(names)

    def blocks() -> Iterator[Array]:
        with scan:
            for batch in scan.batches:
                table = rules.apply(Table(pa.Table.from_batches([batch])))
                yield before_filling(table, names).numbers(*names)

    return empty.arrow.schema, blocks()


def _counted(blocks: Iterator[Array], report: Callable[[int], None]) -> Iterator[Array]:
    """Yield blocks, and report the number of rows so far."""
    n_rows = 0
    for block in blocks:
        yield block
        n_rows += len(block)
        report(n_rows)


def _sample(columns: ColumnFiles, schema: pa.Schema, rows: int, seed: Any) -> Table:
    """Take random rows in the order of the file, with the metadata of their columns."""
    places = np.arange(columns.n_rows)
    if columns.n_rows > rows:
        rng = np.random.default_rng(seed if isinstance(seed, int) else None)
        places = np.sort(rng.choice(columns.n_rows, rows, replace=False))
    return _table(columns.take(places), schema)


def _table(X: Array, schema: pa.Schema) -> Table:
    """Return numbers as a table, in the types of the file where these are real numbers."""
    fields = [f if pa.types.is_floating(f.type) else f.with_type(pa.float64()) for f in schema]
    arrays = [pa.array(x, f.type, from_pandas=True) for x, f in zip(X.T, fields, strict=True)]
    return Table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))


def with_margins(model: Model, columns: ColumnFiles, kind: Maps) -> Model:
    """Estimate the margins from all rows, one column at a time; replace the numbers by scores."""
    margins, ends = [], []
    for j, one in enumerate(kinds_of(kind, len(columns.files))):
        column = columns.column(j)
        seen = np.asarray(column[~np.isnan(column)])
        check_range(model.names[j], seen)
        margins.append(MAPS[one](seen))
        ends.append((float(seen.min()), float(seen.max())))
    support = model.network.support
    if support is not None:
        support = support.on(margins, model.network.margins)._replace(ends=np.array(ends).T)
    network = replace(model.network, margins=tuple(margins), support=support)
    columns.replace(replace(network, fits=()).scores, block_rows=BLOCK_ROWS)
    return replace(model, network=network)


def expect_columns(
    columns: ColumnFiles, mixture: Mixture, *, block_rows: int = BLOCK_ROWS
) -> Moments:
    """Sum the expected moments of all rows, in their order: the E-step, with a block in memory."""
    device = gpu_for(columns.n_rows, EM_WORTH_A_GPU)
    size = block_rows if device is None else max(block_rows, GPU_BLOCK_ROWS)
    blocks = (
        columns.rows(start, min(start + size, columns.n_rows))
        for start in range(0, columns.n_rows, size)
    )
    if device is not None:
        there = (load_scores(device, Cells(rows)) for rows in blocks)
        return reduce(add, (expect_on_device(device, rows, mixture) for rows in there))
    return reduce(add, (moments for rows in blocks for moments in _expect(rows, mixture)))


def _expect(rows: Array, mixture: Mixture) -> list[Moments]:
    parts = split(rows)
    return map_threads(lambda i: expect_mixture(parts[i], mixture), list(range(len(parts))))


@dataclass(frozen=True)
class ColumnFiles:
    """A table of numbers on disk; NaN is a gap.

    Parameters
    ----------
    files : tuple of paths
        One per column, float64 numbers one after the other.
    n_rows : int
    """

    files: tuple[Path, ...]
    n_rows: int

    def column(self, j: int) -> Array:
        """Map one column into memory, for reading."""
        return self._mapped(j, "r")

    def rows(self, start: int, stop: int) -> Array:
        """Read consecutive rows, shape (rows, columns)."""
        columns = range(len(self.files))
        return np.stack([self.column(j)[start:stop] for j in columns], axis=1)

    def take(self, places: NDArray[np.int64]) -> Array:
        """Read single rows; sorted places are read fastest."""
        columns = range(len(self.files))
        return np.stack([self.column(j)[places] for j in columns], axis=1)

    def replace(self, change: Callable[[Array], Array], *, block_rows: int) -> None:
        """Replace every block of rows by what `change` makes of it."""
        for start in range(0, self.n_rows, block_rows):
            stop = min(start + block_rows, self.n_rows)
            changed = change(self.rows(start, stop))
            for j in range(len(self.files)):
                self._mapped(j, "r+")[start:stop] = changed[:, j]

    def _mapped(self, j: int, mode: str) -> Array:
        if not self.n_rows:
            return np.zeros(0)
        return np.memmap(self.files[j], np.float64, mode, shape=(self.n_rows,))  # type: ignore[call-overload, no-any-return]


@contextmanager
def write_columns(blocks: Iterator[Array], n_columns: int, folder: Path) -> Iterator[ColumnFiles]:
    """Write blocks of rows to files in `folder`, which are gone afterwards.

    Examples
    --------
    >>> blocks = iter([np.array([[1.0, 2.0]]), np.array([[3.0, np.nan]])])
    >>> with write_columns(blocks, 2, Path(tempfile.gettempdir())) as columns:
    ...     columns.n_rows, columns.rows(0, 2)
    (2, array([[ 1.,  2.],
           [ 3., nan]]))
    """
    with tempfile.TemporaryDirectory(prefix=".skyfill-", dir=folder) as name:
        files = tuple(Path(name) / f"{j}" for j in range(n_columns))
        n_rows = 0
        with ExitStack() as stack:
            streams = [stack.enter_context(open(file, "wb")) for file in files]
            for block in blocks:
                n_rows += len(block)
                with writing(folder):
                    for stream, column in zip(streams, block.T, strict=True):
                        stream.write(np.ascontiguousarray(column, np.float64).data)
        yield ColumnFiles(files, n_rows)
