"""Numbers that do not fit into memory: one file per column, read in blocks of rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skyfill.catalog.file_io import writing

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Columns:
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
def spool_columns(blocks: Iterator[Array], n_columns: int, folder: Path) -> Iterator[Columns]:
    """Write blocks of rows to files in `folder`, which are gone afterwards.

    Examples
    --------
    >>> blocks = iter([np.array([[1.0, 2.0]]), np.array([[3.0, np.nan]])])
    >>> with spool_columns(blocks, 2, Path(tempfile.gettempdir())) as columns:
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
        yield Columns(files, n_rows)
