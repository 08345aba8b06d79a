"""What a command reads and what it writes: no file may be both, and this is checked first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from skyfill.cli.options import HATS
from skyfill.errors import CatalogError

# Parameters that name what is written; all other paths are read.
_OUTPUTS = ("output", "missing", "figure", "all_file", "folder")
# Parameters whose words may name a file, alone or as NAME=FILE.
_WORDS = ("footprint", "schema", "scheduler")
_CONFIG = "skyfill.config"
# Work that goes on beside an output, in OUTPUT.<...>-parts, is removed at the end.
_WORK_FOLDER = "-parts"


def remember_config(context: click.Context, path: Path) -> None:
    """Keep the path of ``--config``, which is no parameter of the command."""
    context.meta[_CONFIG] = path


def check_paths(context: click.Context) -> None:
    """Refuse a command that would write what it reads, or where nothing can be written."""
    config = context.meta.get(_CONFIG)
    reads = [*_reads(context.params), *([config] if config else [])]
    writes = [path for name in _OUTPUTS for path in paths_of(context.params.get(name))]
    check_outputs(writes, reads, in_folders=_writes_folder(context))


def check_outputs(writes: list[Path], reads: list[Path], *, in_folders: bool = False) -> None:
    """Refuse to write over or into an input, two outputs to one file, or where no file can be.

    Parameters
    ----------
    writes, reads : list of Path
        Everything that a command writes, and everything that it reads: files and folders.
    in_folders : bool
        Whether an output may be a folder, which is checked where it is written.

    Examples
    --------
    >>> check_outputs([Path("b.fits")], [Path("a.fits")])
    >>> check_outputs([Path(".")], [Path("a.fits")])
    Traceback (most recent call last):
    skyfill.errors.CatalogError: .: is a directory; give a file name
    """
    for place, path in enumerate(writes):
        if not in_folders:
            _check_target(path)
        for other in reads:
            _check_apart(path, other)
        if any(_is_same(path, other, any_case=True) for other in writes[:place]):
            raise CatalogError(f"{path}: is to be written twice; give each output its own file")


def paths_of(value: Any) -> Iterator[Path]:
    """Return the paths in the value of a parameter: files, folders and HATS catalogues."""
    for each in value if isinstance(value, tuple) else (value,):
        if isinstance(each, Path):
            yield each
        elif isinstance(each, str) and each.startswith(HATS):
            yield Path(each.removeprefix(HATS))


def _reads(params: Mapping[str, Any]) -> Iterator[Path]:
    for name, value in params.items():
        if name not in _OUTPUTS:
            yield from paths_of(value)
        if name in _WORDS:
            words = value if isinstance(value, tuple) else (value,)
            named = (Path(word.split("=", 1)[-1]) for word in words if isinstance(word, str))
            yield from (path for path in named if path.is_file())


def _writes_folder(context: click.Context) -> bool:
    """Whether the output is a folder: of simulated files, or of work done in parts."""
    params = context.params
    if context.info_name == "train":
        return False
    is_hats = str(params.get("output")).startswith(HATS)
    catalog = params.get("catalog")
    in_parts = params.get("scheduler") or (catalog and Path(catalog).is_dir())
    return bool(is_hats or in_parts or context.info_name in ("demo", "simulate"))


def _check_target(path: Path) -> None:
    if str(path) == "-":
        raise CatalogError("-: outputs are files, not standard output; give a file name")
    # Imported here: `skyfill --help` needs no tables.
    from skyfill.catalog.file_io import check_writable

    check_writable(path)


def _check_apart(path: Path, read: Path) -> None:
    """Refuse an output that is an input, lies inside one, or holds one."""
    if _is_same(path, read):
        raise CatalogError(f"{path}: is an input as well; write to another file")
    target, source = path.resolve(), read.resolve()
    if source in target.parents and source.is_dir():
        raise CatalogError(f"{path}: lies inside the input {read}; write to another folder")
    if any(_is_same(path, above) for above in source.parents):
        raise CatalogError(f"{path}: the input {read} lies inside it; write to another folder")
    if any(_is_work_folder(above, target) for above in source.parents):
        raise CatalogError(
            f"{read}: lies in the folder for unfinished work on {path}, which is removed; move it "
            "to another folder"
        )


def _is_work_folder(folder: Path, target: Path) -> bool:
    name = folder.name
    is_beside = folder.parent == target.parent and name.startswith(f"{target.name}.")
    return is_beside and name.endswith(_WORK_FOLDER)


def _is_same(one: Path, other: Path, *, any_case: bool = False) -> bool:
    """Whether two paths are one file, through links too.

    Names of files that do not exist yet are compared without case on request: on some disks A.fits
    is a.fits.
    """
    if one.exists() and other.exists():
        return one.samefile(other)
    names = (str(one.resolve()), str(other.resolve()))
    return names[0] == names[1] or (any_case and names[0].casefold() == names[1].casefold())
