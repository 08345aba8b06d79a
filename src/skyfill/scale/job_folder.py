"""The finished parts of a long job, in a folder next to its output.

`OUT.skyfill-parts` contains `job.json` (what the result depends on, and its provenance), `lock`
(one run at a time), `parts`, the folder of finished parts, and `sums`, their checksums. They
survive a kill, and the same command with --resume uses them. Without `parts`, the output was in
place when the run was killed. Files of others in this folder are never removed.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from skyfill import __version__
from skyfill.catalog.file_io import is_held_here, open_atomic, writing
from skyfill.catalog.provenance import PROVENANCE_KEY
from skyfill.catalog.table import normalized_schema, with_facts
from skyfill.errors import CatalogError
from skyfill.scale.part_sums import (
    SUMS,
    foreign_files,
    record_sum,
    remove_damaged,
    remove_own,
)

SUFFIX = ".skyfill-parts"
# The layout of the folder; other layouts are refused.
LAYOUT = 3
_JOB = "job.json"


@dataclass(frozen=True)
class Done:
    """What a job has processed: its rows, and other counts."""

    rows: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class JobFolder:
    """The folder of a job that this process has locked; see `open_job`.

    Attributes
    ----------
    path : Path
    provenance : any
        That of the first run, as decoded JSON.
    done : Done or None
        The totals, if all parts were finished when an earlier run was killed.
    """

    path: Path
    provenance: Any = None
    done: Done | None = None

    @property
    def parts(self) -> Path:
        """The folder of the finished parts."""
        return self.path / "parts"

    @property
    def is_published(self) -> bool:
        """Whether the output was already in place when an earlier run was killed."""
        return self.done is not None and not self.parts.exists()

    def describe(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the output: normalized, with the provenance."""
        schema = normalized_schema(schema)
        if self.provenance is None:
            return schema
        return schema.with_metadata(with_facts(schema, {PROVENANCE_KEY: self.provenance}))

    def record(self, name: str, file: Path) -> None:
        """Keep the checksum of a part; called before it gets its name."""
        record_sum(self.path, name, file)

    def check_own(self) -> None:
        """Refuse files of others among the parts, which become the output."""
        for path in foreign_files(self.path):
            raise CatalogError(
                f"{path}: is no part of the result; move it to another folder, then continue with "
                "--resume"
            )

    def finish(self, done: Done) -> None:
        """Record that all parts are finished; only the output remains to be put in place."""
        _write_json(self.path / _JOB, _read_json(self.path / _JOB) | {"done": vars(done)})


def folder_of(output: str | Path) -> Path:
    """Return the folder for the parts of an output.

    Examples
    --------
    >>> folder_of("/data/filled.fits").name
    'filled.fits.skyfill-parts'
    """
    target = Path(output).resolve()
    return target.with_name(target.name + SUFFIX)


@contextmanager
def open_job(
    output: str | Path,
    facts: Mapping[str, Any],
    *,
    provenance: Any = None,
    resume: bool = False,
    keep: bool = False,
) -> Iterator[JobFolder]:
    """Lock the folder of a job until the output is in place, which must happen in the context.

    Parameters
    ----------
    output : path
    facts : mapping
        Everything the result depends on, as JSON; parts of another job are refused.
    provenance : any
        As JSON; a resumed run keeps that of the first run.
    resume : bool
        Use the parts that are already there; otherwise they are deleted.
    keep : bool
        Keep finished parts after an error even if `resume` is not set. They are always kept after
        an interrupt or a kill.
    """
    folder = folder_of(output)
    if not folder.parent.is_dir():
        parent = Path(output).parent
        raise CatalogError(f"{output}: there is no directory {parent}; create it first")
    with _locked(folder, output):
        job: Any = {"layout": LAYOUT, "facts": dict(facts) | {"made_with": versions()}}
        job = _begin(folder, json.loads(json.dumps(job | {"provenance": provenance})), resume)
        done = job.get("done")
        own = JobFolder(folder, job["provenance"], Done(**done) if done else None)
        try:
            if own.is_published and not Path(output).exists():
                raise CatalogError(
                    f"{output}: was finished and is gone; run without --resume to make it again"
                )
            yield own
        except Exception:
            if not (resume or keep) or not any((folder / "parts").glob("*")):
                remove_own(folder)
            raise
        if (folder / "parts").exists():
            # In one step, so that a kill during the removal does not look like unfinished work.
            (folder / "parts").rename(folder / "done")
        remove_own(folder)


@contextmanager
def _locked(folder: Path, output: str | Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made; a second run on the same output is refused."""
    while True:
        with writing(folder):
            try:
                folder.mkdir(exist_ok=True)
            except FileExistsError:
                if folder.is_file() or folder.is_symlink():
                    raise
                continue  # it was there, and a run that has just ended has removed it
            try:
                lock = open(folder / "lock", "ab")  # noqa: SIM115 - closed below
            except FileNotFoundError:
                continue
        with lock:
            _lock(lock, output)
            if _is_there(lock, folder / "lock"):
                yield
                return


def _is_there(stream: IO[bytes], path: Path) -> bool:
    """Whether a path still leads to an open file."""
    try:
        return os.path.samestat(os.fstat(stream.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _begin(folder: Path, job: dict[str, Any], resume: bool) -> dict[str, Any]:
    """Continue the job that is there, or start a new one; remove everything else that is ours."""
    then = _read_json(folder / _JOB) if resume and (folder / _JOB).exists() else None
    if then is not None:
        _check_same(job, then, folder)
        remove_own(folder, keep=("lock", _JOB, SUMS, "parts"))
        remove_damaged(folder)
    else:
        remove_own(folder, keep=("lock",))
    if then is None or "done" not in then:
        (folder / "parts").mkdir(exist_ok=True)
    if then is None:
        try:
            _write_json(folder / _JOB, job)
        except BaseException:
            remove_own(folder)
            raise
    return then or job


def _check_same(now: Mapping[str, Any], then: Mapping[str, Any], folder: Path) -> None:
    """Refuse parts of another job, and name what differs."""
    old, new = then.get("facts") or {}, now["facts"]
    differs = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    if then.get("layout") != LAYOUT or differs:
        what = ", ".join(differs) or "layout"
        raise CatalogError(
            f"{folder}: these parts belong to another run (it differs in: {what}); repeat that "
            "command, or run without --resume to start again"
        )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        if not isinstance(found, dict) or not isinstance(found.get("done") or {}, dict):
            raise ValueError("it is no object")
    except (ValueError, RecursionError) as error:
        raise CatalogError(
            f"{path}: the record of the run is damaged ({error}); run without --resume to start "
            "again"
        ) from None
    return found


def _write_json(path: Path, job: Mapping[str, Any]) -> None:
    with open_atomic(path) as stream:
        stream.write(json.dumps(job).encode())


def _lock(stream: IO[bytes], output: str | Path) -> None:
    """Refuse a second run on the same output; the lock ends with the process."""
    if not is_held_here(stream):
        raise CatalogError(f"{output}: another run is writing it; wait until it is done")


def versions() -> str:
    """Describe the software that the bytes of a result depend on."""
    return f"skyfill {__version__}, pyarrow {pa.__version__}, {platform.machine()}"


def identify(files: Iterable[str | Path]) -> list[list[Any]]:
    """Identify files without reading them: by name, size and modification time."""
    stats = {str(Path(file).resolve()): Path(file).stat() for file in files}
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()]
