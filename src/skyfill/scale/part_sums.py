"""Which files in the folder of a job are its own, and whether finished parts are undamaged."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

SUMS = "sums"
# Ending of a part that is being written.
UNFINISHED = ".new"
# What a job writes into its folder besides parts, and what a killed one leaves.
_OWN = re.compile(r"joined|\.job\.json\..*\.part|\.skyfill-.*")
_OWN_PARTS = re.compile(
    rf"part-\d+\.parquet|\..*\{UNFINISHED}|\d+-\d+\.safetensors|\..*\.safetensors\..*\.part"
)
_FOLDERS = ("parts", "done")
# Removed after everything else, so that a kill in between does not look like a run that never was.
_LAST = (SUMS, "job.json", "lock")


def record_sum(folder: Path, name: str, file: Path) -> None:
    """Append the checksum of a part to the journal; `file` holds what it contains."""
    content = os.path.relpath(file, folder / "parts") if _is_elsewhere(file, name) else name
    with open(folder / SUMS, "ab") as stream:
        stream.write(f"{json.dumps([name, content, _sum(file)])}\n".encode())
        stream.flush()
        os.fsync(stream.fileno())


def _is_elsewhere(file: Path, name: str) -> bool:
    """Whether the content of a part is not in the file that gets its name."""
    return not file.name.endswith(UNFINISHED) and file.name != Path(name).name


def _sum(file: Path) -> str | None:
    """Return the checksum of a file; None for one that is not there, as of an empty partition."""
    if not file.exists():
        return None
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _recorded(folder: Path) -> dict[str, tuple[str, str | None]]:
    """Read the journal: content and checksum of each part. Torn or damaged lines say nothing."""
    found = {}
    with suppress(FileNotFoundError):
        for line in (folder / SUMS).read_bytes().splitlines():
            with suppress(ValueError, TypeError, RecursionError):
                name, content, digest = json.loads(line)
                if isinstance(name, str) and isinstance(content, str):
                    found[name] = (content, digest)
    return found


def remove_damaged(folder: Path) -> None:
    """Remove parts that are not what was recorded, or not recorded: they are made again."""
    parts, known = folder / "parts", _recorded(folder)
    for name, (content, digest) in known.items():
        if (parts / name).exists() and _sum(parts / content) != digest:
            (parts / name).unlink()
    for path in (*parts.glob("part-*.parquet"), *parts.glob("*/done/*_done")):
        if str(path.relative_to(parts)) not in known:
            path.unlink()
    for path in parts.rglob(f".*{UNFINISHED}"):
        path.unlink()


def foreign_files(folder: Path) -> Iterator[Path]:
    """Find files among the parts that the job has not written; partitions are trees of folders."""
    known = _recorded(folder)
    for top in _FOLDERS:
        for path in (folder / top).glob("*"):
            if not (path.is_dir() or path.name in known or _OWN_PARTS.fullmatch(path.name)):
                yield path


def remove_own(folder: Path, keep: tuple[str, ...] = ()) -> None:
    """Remove what the job has written, and the folder if nothing else is in it."""
    foreign = set(foreign_files(folder))
    for top in folder.iterdir():
        if top.name in (*keep, *_LAST):
            continue
        if top.name in _FOLDERS:
            for path in top.iterdir():
                if path not in foreign:
                    _remove(path)
            with suppress(OSError):
                top.rmdir()
        elif _OWN.fullmatch(top.name):
            _remove(top)
    for name in _LAST:
        if name not in keep:
            (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
