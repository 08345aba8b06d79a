"""What is finished of a long job, in a folder beside its output: one run at a time, one job.

`OUT.skyfill-parts` holds `job.json` (what the result depends on, and where it comes from), `lock`,
and `parts`, a folder of finished parts. A kill leaves them, and the same command with --resume
takes them up again. A job whose folder has no `parts` left was published before it was killed.
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
    """What is finished: rows, and whatever else was counted."""

    rows: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class JobFolder:
    """The folder of a job that this process owns; `open_job` makes it.

    Attributes
    ----------
    path : Path
    provenance : any
        That of the run that began the work, as JSON has it.
    done : Done or None
        What the finished job holds, if it was finished when its run was killed.
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
        """Whether the output was in place already when the run was killed."""
        return self.done is not None and not self.parts.exists()

    def describe(self, schema: pa.Schema) -> pa.Schema:
        """Give the schema of the output: normalized, with the provenance."""
        schema = normalized_schema(schema)
        if self.provenance is None:
            return schema
        return schema.with_metadata(with_facts(schema, {PROVENANCE_KEY: self.provenance}))

    def finish(self, done: Done) -> None:
        """Note that all parts are there; what is left is to put the output in place."""
        _write_json(self.path / _JOB, _read_json(self.path / _JOB) | {"done": vars(done)})


def folder_of(output: str | Path) -> Path:
    """Name the folder that holds the parts of an output.

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
    """Own the folder of a job until its output is in place, which is to happen inside.

    Parameters
    ----------
    output : path
    facts : mapping
        Whatever the result depends on, as JSON; parts of another job are refused.
    provenance : any
        Kept for the output, so that a run that is taken up again writes the same one.
    resume : bool
        Go on with the parts that are there; otherwise they are removed.
    keep : bool
        Whether finished parts stay after an error also where `resume` is not set. An interrupt
        or a kill always leaves what is finished.
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
            # In one step: a kill while files are being removed must not look like work left.
            (folder / "parts").rename(folder / "done")
        shutil.rmtree(folder)


def _begin(folder: Path, job: dict[str, Any], resume: bool) -> dict[str, Any]:
    """Take up the job that is there, or begin one; whatever is not of it goes."""
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
    """Refuse parts of another job; the error says in what it differs."""
    old, new = then.get("facts") or {}, now["facts"]
    differs = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
    if then.get("layout") != LAYOUT or differs:
        what = ", ".join(differs) or "layout"
        raise CatalogError(
            f"{folder}: these parts belong to another run (it differs in: {what}); repeat that "
            "command, or run without --resume to start anew"
        )


def _read_json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _write_json(path: Path, job: Mapping[str, Any]) -> None:
    with open_atomic(path) as stream:
        stream.write(json.dumps(job).encode())


def _lock(stream: IO[bytes], output: str | Path) -> None:
    """Refuse to work twice on one output; the lock ends with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - there are none on Windows
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise CatalogError(f"{output}: another run is writing it; wait until it is done") from None


def versions() -> str:
    """Name what the bytes of a result depend on, apart from its inputs."""
    return f"skyfill {__version__}, pyarrow {pa.__version__}, {platform.machine()}"


def identify(files: Iterable[str | Path]) -> list[list[Any]]:
    """Say which files a job reads, without reading them: name, size and time of each."""
    stats = {str(Path(file).resolve()): Path(file).stat() for file in files}
    return [[name, stat.st_size, stat.st_mtime_ns] for name, stat in stats.items()]
