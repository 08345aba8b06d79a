"""What is done of a long job, kept beside its output: a line of JSON for the job, one per part."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from skyfill.errors import CatalogError

SUFFIX = ".skyfill-parts"
JOURNAL = "journal"
FORMAT = 1


def parts_folder(output: str | Path) -> Path:
    """Name the folder that holds the parts of an output.

    Examples
    --------
    >>> parts_folder("/data/filled.fits").name
    'filled.fits.skyfill-parts'
    """
    target = Path(output).resolve()
    return target.with_name(target.name + SUFFIX)


def whole_lines(journal: IO[bytes]) -> list[bytes]:
    """Read the lines of a journal that were written to their end."""
    journal.seek(0)
    return [text for text in journal if text.endswith(b"\n")]


def check_same(now: Mapping[str, Any], then: Mapping[str, Any], folder: Path) -> None:
    """Refuse parts of another job; the error says in what it differs."""
    old, new = then.get("job") or {}, now["job"]
    differs = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    if then.get("format") != FORMAT or differs:
        what = ", ".join(differs) or "format"
        raise CatalogError(
            f"{folder}: these parts belong to another run (it differs in: {what}); repeat that "
            "command, or run without --resume to start anew"
        )


def write_line(journal: IO[bytes], line: Mapping[str, Any]) -> None:
    """Add a line; when this returns it is on the disk."""
    journal.write(json.dumps(line).encode() + b"\n")
    sync(journal)


def sync(stream: IO[bytes]) -> None:
    """Wait until all that was written is on the disk."""
    stream.flush()
    os.fsync(stream.fileno())


def lock(journal: IO[bytes], output: str | Path) -> None:
    """Refuse to work twice on one output; the lock ends with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - there are none on Windows
        return
    try:
        fcntl.flock(journal, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise CatalogError(f"{output}: another run is writing it; wait until it is done") from None
