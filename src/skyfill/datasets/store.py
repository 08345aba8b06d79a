"""Files of the public tables: in a folder of the user, in the cache, or downloaded."""

import hashlib
import os
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from skyfill.errors import CatalogError

DATA_VARIABLE = "SKYFILL_DATA"


@dataclass(frozen=True)
class Entry:
    """A published file.

    Attributes
    ----------
    sha256 : str
        Its checksum.
    path : str
        Its path in the data folder and in the cache.
    address : str or None
        Where to download it; None if no address is known.
    dataset : str
        Name of the table to which it belongs.
    """

    sha256: str
    path: str
    address: str | None
    dataset: str = ""


@cache
def registry() -> dict[str, Entry]:
    """List the published files by path.

    Examples
    --------
    >>> registry()["eros1/train.csv"].sha256[:8]
    '3c78f865'
    """
    lines = (files("skyfill.datasets") / "registry.txt").read_text().splitlines()
    cells = (line.split() for line in lines if line and not line.startswith("#"))
    entries = (Entry(s, p, None if a == "-" else a, d) for s, p, d, a in cells)
    return {entry.path: entry for entry in entries}


def find_file(path: str) -> Path:
    """Return a published file: from ``SKYFILL_DATA``, from the cache, or newly downloaded.

    The checksum is verified in every case.

    Parameters
    ----------
    path : str
        A key of `registry`.

    Returns
    -------
    pathlib.Path
        Where the file is.
    """
    return find_entry(registry()[path])


def find_entry(entry: Entry) -> Path:
    """Return the verified file of an entry; raise `CatalogError` if it cannot be found."""
    for place in places(entry.path):
        if place.is_file():
            return _verified(place, entry)
    if entry.address is None:
        raise CatalogError(
            f"{entry.path}: no public address is known; put the file into a folder and set the "
            f"environment variable {DATA_VARIABLE} to that folder"
        )
    return _download(entry, entry.address)


def places(path: str) -> list[Path]:
    """List where a file may be, in the order of the search."""
    folder = os.environ.get(DATA_VARIABLE)
    own = [Path(folder) / path] if folder else []
    return [*own, cache_folder() / path]


def cache_folder() -> Path:
    """Return the folder where downloads are kept."""
    return Path(_pooch().os_cache("skyfill"))


def _verified(place: Path, entry: Entry) -> Path:
    with place.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != entry.sha256:
        raise CatalogError(
            f"{place}: the checksum is {found[:12]}..., it should be {entry.sha256[:12]}...; "
            f"the file is damaged or another version: delete it and fetch it again"
        )
    return place


def _download(entry: Entry, address: str) -> Path:
    target = cache_folder() / entry.path
    try:
        _pooch().retrieve(address, "sha256:" + entry.sha256, target.name, target.parent)
    except ValueError:
        raise CatalogError(
            f"{entry.path}: the file at {address} does not have the expected checksum; it was "
            f"not kept"
        ) from None
    except OSError as error:
        if error.filename is not None:
            raise
        raise CatalogError(_no_download(entry.path, address, error)) from None
    return target


def _no_download(path: str, address: str, error: OSError) -> str:
    return (
        f"{path}: cannot be downloaded from {address} ({type(error).__name__}); try again, or "
        f"put it into a folder and set the environment variable {DATA_VARIABLE} to that folder"
    )


def _pooch() -> Any:
    import pooch

    return pooch
