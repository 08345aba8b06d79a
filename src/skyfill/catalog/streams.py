"""Bytes in and out: gzip where the file is gzipped, and errors that name the file."""

import gzip
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from skyfill.errors import CatalogError

GZIP_MAGIC = b"\x1f\x8b"


def is_gzipped(path: Path) -> bool:
    """Tell whether a file starts like a gzip file."""
    with open(path, "rb") as stream:
        return stream.read(2) == GZIP_MAGIC


def open_bytes(path: Path) -> Any:
    """Open a file for reading; a gzipped one is unpacked on the way."""
    return gzip.open(path, "rb") if is_gzipped(path) else open(path, "rb")


def first_bytes(path: Path, size: int = 4096) -> bytes:
    """Give the first (unpacked) bytes of a file that can be read and is not empty."""
    if path.is_dir():
        raise CatalogError(f"{path}: is a directory; give the name of a table file")
    with reading(path, "file"), open_bytes(path) as stream:
        start: bytes = stream.read(size)
    if not start:
        raise CatalogError(f"{path}: the file is empty")
    return start


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn whatever a reader raises on bad bytes into a `CatalogError` that names the file.

    The parsers beneath raise nearly any type on damaged input, so all of them are caught; their
    warnings about such input are silenced because the values are checked here.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except CatalogError as error:
        message = str(error)
        raise CatalogError(message if str(path) in message else f"{path}: {message}") from None
    except OSError as error:
        raise CatalogError(f"{path}: {_reason(error)}") from error
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path}: not UTF-8 text; convert it, e.g. with iconv") from error
    except Exception as error:
        raise CatalogError(f"{path}: not a readable {kind}: {_first_line(error)}") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn what the system raises when it cannot write into a `CatalogError`."""
    try:
        yield
    except OSError as error:
        raise CatalogError(f"{path}: {_reason(error)}; nothing was written") from error


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno else _first_line(error)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
