"""Files of one object each: in a folder and the folders within, or in a zip or tar archive."""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any

from skyfill.catalog.file_io import open_bytes, read_whole
from skyfill.errors import CatalogError
from skyfill.limits import FREE_BYTES, check_limit

_ZIP = (".zip",)
_TAR = (".tar", ".tar.gz", ".tgz")
Member = tuple[str, Callable[[], Any]]


def has_object_files(path: Path) -> bool:
    """Whether a path is a folder or an archive, by its name.

    Examples
    --------
    >>> has_object_files(Path("asas.tar.gz")), has_object_files(Path("asas.csv.gz"))
    (True, False)
    """
    return path.is_dir() or path.name.lower().endswith((*_ZIP, *_TAR))


def object_name(file: str | Path) -> str:
    """Name the object of a file after the file, without the extension.

    Examples
    --------
    >>> object_name("lmc/1.3442.172.csv.gz")
    '1.3442.172'
    """
    return Path(Path(file).name.removesuffix(".gz")).stem


def list_objects(path: Path) -> list[str]:
    """List the files, in the order in which they are read; CatalogError if two have one name."""
    in_folder = map(str, _files_within(path)) if path.is_dir() else None
    names = list(in_folder or (name for name, _ in _members(path)))
    if not names:
        raise CatalogError(f"{path}: holds no file")
    counts = Counter(map(object_name, names))
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None:
        both = [name for name in names if object_name(name) == twice]
        raise CatalogError(f"{path}: {both[0]} and {both[1]} are files of one object, {twice!r}")
    return names


def files_in_batches(path: Path, size: int) -> Generator[list[Path]]:
    """Yield files of a folder or archive; those of an archive are removed with the next."""
    if path.is_dir():
        files = _files_within(path)
        for start in range(0, len(files), size):
            yield files[start : start + size]
        return
    members = _members(path)
    while True:
        with tempfile.TemporaryDirectory(prefix="skyfill-") as folder:
            batch = []
            for name, opened in members:
                batch.append(_unpack(opened(), Path(folder) / PurePosixPath(name).name))
                if len(batch) == size:
                    break
            if not batch:
                return
            yield batch


def _files_within(folder: Path) -> list[Path]:
    found = (f for f in folder.rglob("*") if f.is_file())
    return sorted(f for f in found if not _is_hidden(f.relative_to(folder).as_posix()))


def _is_hidden(name: str) -> bool:
    """Whether a file is none of the user's, such as those that macOS puts into archives."""
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)


def _unpack(stream: IO[bytes], target: Path) -> Path:
    with stream, open(target, "wb") as sink:
        sink.write(read_whole(stream))
    return target


def _members(path: Path) -> Iterator[Member]:
    """Yield names of the files of an archive, in its order, and functions that open them."""
    try:
        yield from (_of_zip if path.name.lower().endswith(_ZIP) else _of_tar)(path)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error) as error:
        raise CatalogError(f"{path}: not a readable archive: {error}") from None


def _of_zip(path: Path) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and not _is_hidden(member.filename):
                if member.file_size > FREE_BYTES:
                    ratio = member.file_size // max(member.compress_size, 1)
                    what = f"{path}: {member.filename} grows when it is unpacked by a factor of"
                    check_limit("gzip-ratio", ratio, f"{what} {ratio}", CatalogError)
                yield member.filename, partial(archive.open, member)


def _of_tar(path: Path) -> Iterator[Member]:
    with open_bytes(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
        for member in archive:
            if member.isfile() and not _is_hidden(member.name):
                yield member.name, partial(archive.extractfile, member)
