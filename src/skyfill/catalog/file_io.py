"""Open files: gzip is transparent, errors name the file, output appears whole or not at all."""

import glob
import gzip
import os
import re
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from skyfill.errors import CatalogError
from skyfill.limits import FREE_BYTES, check_limit, limit

GZIP_MAGIC = b"\x1f\x8b"
NOT_UTF8 = "not UTF-8 text; convert it, as with iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW"
_CHUNK_BYTES = 1 << 24


def is_gzipped(path: Path) -> bool:
    """Check whether a file is gzipped, by its first two bytes."""
    with open(path, "rb") as stream:
        return stream.read(2) == GZIP_MAGIC


class BoundedGzip(gzip.GzipFile):
    """A gzipped file that is refused when it becomes absurdly large; see `skyfill.limits`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._packed_bytes = max(os.path.getsize(path), 1)

    def read(self, size: int | None = -1) -> bytes:
        """Read bytes."""
        if size is not None and size >= 0:
            return self._bounded(super().read(size))
        parts = []
        while part := self.read(_CHUNK_BYTES):
            parts.append(part)
        return b"".join(parts)

    def read1(self, size: int = -1) -> bytes:
        """Read what is at hand."""
        return self._bounded(super().read1(size))

    def _bounded(self, data: bytes) -> bytes:
        check_growth(self._packed_bytes, self.tell())
        return data


def check_growth(packed_bytes: int, unpacked_bytes: int) -> None:
    """Refuse a gzipped file that has become absurdly large."""
    if unpacked_bytes > FREE_BYTES:
        ratio, what = unpacked_bytes // packed_bytes, "the file grows when it is unpacked: times"
        check_limit("gzip-ratio", ratio, f"{what} {ratio}", CatalogError)


def open_bytes(path: Path) -> Any:
    """Open a file for reading; a gzipped file is decompressed on the fly, within bounds."""
    return BoundedGzip(path) if is_gzipped(path) else open(path, "rb")


def open_native(path: Path) -> pa.NativeFile:
    """Open a file for a reader of Arrow; a gzipped file is decompressed, without bounds.

    Such a reader reads ahead in threads of its own. While Python ends they cannot enter a Python
    file, and would abort the process (apache/arrow#34314).
    """
    file = pa.OSFile(os.fsencode(path))
    return pa.CompressedInputStream(file, "gzip") if is_gzipped(path) else file


def read_bytes(stream: IO[bytes], size: int) -> bytes:
    """Read bytes as far as there are any; memory is taken only for what is there."""
    parts = []
    while size > 0 and (part := stream.read(min(size, _CHUNK_BYTES))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_whole(stream: IO[bytes]) -> bytes:
    """Read a file that must be in memory as a whole."""
    most = limit("whole-bytes")
    data = read_bytes(stream, most + 1)
    what = "this format is read as a whole, and the table has more bytes"
    check_limit("whole-bytes", len(data), what, CatalogError)
    return data


def read_line(lines: IO[str]) -> str:
    """Read a line of text; CatalogError if it is too long for one."""
    most = limit("line-bytes")
    line = lines.readline(most + 1)
    check_limit("line-bytes", len(line), "a line has more bytes", CatalogError)
    return line


def first_bytes(path: Path, size: int = 4096) -> bytes:
    """Return the first (decompressed) bytes of a file; raise if it is empty or unreadable."""
    if path.is_dir():
        raise CatalogError(f"{path}: is a directory; give the name of a table file")
    if path.exists() and not path.is_file():
        raise CatalogError(
            f"{path}: is not a regular file; it can be read only once: write it to a file first"
        )
    with reading(path, "file"), open_bytes(path) as stream:
        start: bytes = stream.read(size)
    if not start:
        raise CatalogError(f"{path}: the file is empty")
    return start


@contextmanager
def naming(owner: object) -> Iterator[None]:
    """Put the name of a file, survey or column before the message of a `CatalogError`.

    Examples
    --------
    >>> with naming("stars.csv"):
    ...     raise CatalogError("no column 'J'")
    Traceback (most recent call last):
    skyfill.errors.CatalogError: stars.csv: no column 'J'
    """
    try:
        yield
    except CatalogError as error:
        message = str(error)
        named = message if message.startswith(f"{owner}:") else f"{owner}: {message}"
        raise CatalogError(named) from None


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn any error of a reader into a `CatalogError` that names the file.

    The underlying parsers raise almost any type of exception on damaged input, so all of them are
    caught. Their warnings are silenced, because the values are checked here.
    """
    try:
        with naming(path), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except CatalogError:
        raise
    except OSError as error:
        raise CatalogError(f"{path}: {_reason(error)}") from error
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path}: {NOT_UTF8}") from error
    except Exception as error:
        raise CatalogError(f"{path}: not a readable {kind}: {_first_line(error)}") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an operating system error while writing into a `CatalogError`."""
    try:
        yield
    except OSError as error:
        raise CatalogError(f"{path}: {_reason(error)}; nothing was written") from error


@contextmanager
def open_atomic(
    path: str | Path, *, overwrite: bool = True, once_complete: Callable[[], None] | None = None
) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only once it is complete.

    On an error or an interrupt the partial output is removed, and an existing file of that name
    stays as it was. What a killed process left is removed by the next that writes this file. A
    name that ends in ``.gz`` is gzipped. `once_complete` is called when the file is complete,
    before it gets its name: if it raises, nothing is written.

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
    with writing(Path(path)):
        sweep_parts(target)
        stream, beside = _create(target)
        try:
            with stream:
                if target.exists():
                    shutil.copymode(target, beside)
                with _packed(stream, target) as packed:
                    yield packed
                stream.flush()
                os.fsync(stream.fileno())
            if once_complete is not None:
                once_complete()
            os.replace(beside, target)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise


def checked_target(path: Path, overwrite: bool = True) -> Path:
    """Return the full path of an output file; raise where it could not be created."""
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


def check_writable(path: Path) -> None:
    """Raise where a file could not be written, before the work that makes it."""
    target = checked_target(path)
    with writing(path):
        sweep_parts(target)
        stream, beside = _create(target)
        stream.close()
        beside.unlink(missing_ok=True)


def _create(target: Path) -> tuple[IO[bytes], Path]:
    """Create a file next to the target that this process holds while it is open.

    It has the user's default permissions; a link is never followed, nothing is overwritten.
    """
    while True:
        path = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        stream = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb")
        if is_held_here(stream) and path.exists():
            return stream, path
        stream.close()  # swept in the instant before it was held


def sweep_parts(target: Path) -> None:
    """Remove what killed processes left of a file; what a living one writes is held by it."""
    mark = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.part")
    for path in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        if mark.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            with suppress(OSError), open(path, "rb+") as stream:
                if is_held_here(stream, elsewhere=False):
                    path.unlink()


def is_held_here(stream: IO[bytes], *, elsewhere: bool = True) -> bool:
    """Hold an open file until it is closed; False if another process holds it.

    `elsewhere` is the answer of systems and disks that cannot hold files.
    """
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows has no such locks
        return elsewhere
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return elsewhere
    return True


@contextmanager
def _packed(stream: IO[bytes], target: Path) -> Iterator[IO[bytes]]:
    if target.suffix != ".gz":
        yield stream
        return
    # No name and no time inside, so that equal tables give equal bytes.
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=stream, mtime=0) as packed:
        yield packed  # type: ignore[misc]


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else _first_line(error)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
