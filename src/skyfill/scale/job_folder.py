"""The finished parts of a long job, in a folder next to its output.

`OUT.skyfill-parts` contains `job.json` (what the result depends on, and its provenance), `lock`
(one run at a time) and `parts`, the folder of finished parts. They survive a kill, and the same
command with --resume uses them. Without `parts`, the output was in place when the run was killed.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from skyfill import __version__
from skyfill.catalog.file_io import open_atomic, writing
from skyfill.catalog.provenance import PROVENANCE_KEY
from skyfill.catalog.table import normalized_schema, with_facts
from skyfill.errors import CatalogError

SUFFIX = ".skyfill-parts"
# Ending of a part that is being written.
UNFINISHED = ".new"
# The layout of the folder; other layouts are refused.
LAYOUT = 2
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
    with writing(folder):
        folder.mkdir(exist_ok=True)
    with open(folder / "lock", "ab") as lock:
        _lock(lock, output)
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
                shutil.rmtree(folder)
            raise
        if (folder / "parts").exists():
            # In one step, so that a kill during the removal does not look like unfinished work.
            (folder / "parts").rename(folder / "done")
        shutil.rmtree(folder)


def _begin(folder: Path, job: dict[str, Any], resume: bool) -> dict[str, Any]:
    """Continue the job that is there, or start a new one; remove everything else."""
    then = _read_json(folder / _JOB) if resume and (folder / _JOB).exists() else None
    if then is not None:
        _check_same(job, then, folder)
    for path in folder.iterdir():
        if path.name not in ("lock", *((_JOB, "parts") if then else ())):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for path in (folder / "parts").rglob(f"*{UNFINISHED}"):
        path.unlink()
    if then is None or "done" not in then:
        (folder / "parts").mkdir(exist_ok=True)
    if then is None:
        try:
            _write_json(folder / _JOB, job)
        except BaseException:
            shutil.rmtree(folder)
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
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _write_json(path: Path, job: Mapping[str, Any]) -> None:
    with open_atomic(path) as stream:
        stream.write(json.dumps(job).encode())


def _lock(stream: IO[bytes], output: str | Path) -> None:
    """Refuse a second run on the same output; the lock ends with the process."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows has no such locks
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise CatalogError(f"{output}: another run is writing it; wait until it is done") from None


def versions() -> str:
    """Describe the software that the bytes of a result depend on."""
    return f"skyfill {__version__}, pyarrow {pa.__version__}, {platform.machine()}"


def identify(files: Iterable[str | Path]) -> list[list[Any]]:
    """Identify files without reading them: by name, size and modification time."""
    stats = {str(Path(file).resolve()): Path(file).stat() for file in files}
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()]
