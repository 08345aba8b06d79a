"""Files that appear whole or not at all: write beside, then rename."""

import gzip
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from skyfill.catalog.streams import writing
from skyfill.errors import CatalogError


@contextmanager
def open_atomic(path: str | Path, *, overwrite: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its name only when everything was written.

    On any error, and on an interrupt, the bytes written so far are removed and a file that was
    there before stays as it was. A name that ends in ``.gz`` is gzipped.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "notes.txt"
    >>> with open_atomic(target) as stream:
    ...     _ = stream.write(b"whole")
    ...     target.exists()
    False
    >>> target.read_bytes()
    b'whole'
    """
    target = checked_target(Path(path), overwrite)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    with writing(Path(path)):
        try:
            with _create(beside) as stream:
                if target.exists():
                    shutil.copymode(target, beside)
                with _packed(stream, target) as packed:
                    yield packed
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


def checked_target(path: Path, overwrite: bool = True) -> Path:
    """Give the full name of a result; fail where it could not be put in place."""
    target = path.resolve()
    if target.is_dir():
        raise CatalogError(f"{path}: is a directory; give a file name")
    if target.exists() and not target.is_file():
        raise CatalogError(f"{path}: is not a regular file; give a file name")
    if target.exists() and not overwrite:
        raise CatalogError(f"{path}: exists; choose another name or allow overwriting")
    if not target.parent.is_dir():
        raise CatalogError(f"{path}: there is no directory {path.parent}; create it first")
    return target


def _create(path: Path) -> IO[bytes]:
    """Create with the user's usual permissions; never through a link or over another file."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb")


@contextmanager
def _packed(stream: IO[bytes], target: Path) -> Iterator[IO[bytes]]:
    if target.suffix != ".gz":
        yield stream
        return
    # No name and no time inside, so that equal tables give equal bytes.
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0) as packed:
        yield packed  # type: ignore[misc]
