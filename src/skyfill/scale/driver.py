"""The one way through a long job: tasks go to workers, each finished part is a file.

Whoever calls says what the tasks are, who does them, and what becomes of the finished parts; here
it is decided what is still to do, in which order results are taken, and what an error leaves.
"""

from __future__ import annotations

import os
import secrets
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol

from skyfill.catalog import Provenance
from skyfill.catalog.file_io import writing
from skyfill.scale.job_folder import UNFINISHED, Done, JobFolder, open_job
from skyfill.scale.workers import Workers, alone, threads


@dataclass(frozen=True)
class Task:
    """A part that is to be made.

    Parameters
    ----------
    name : str
        Name of its file, unique within the job.
    make : callable
        Takes a path and writes the part there. Workers may be other processes: what it holds must
        be possible to send.
    """

    name: str
    make: Callable[[Path], None]


class Output(Protocol):
    """What becomes of finished parts."""

    def check(self) -> None:
        """Fail before any work where the output could not be put in place."""

    def add(self, part: Path) -> Mapping[str, int]:
        """Take the next part, in the order of the tasks; give its `rows` and what else counts."""

    def publish(self, folder: JobFolder) -> None:
        """Put the output in place, whole; to be repeated where it was interrupted."""


@dataclass(frozen=True)
class Run:
    """The circumstances of a run.

    Parameters
    ----------
    provenance : Provenance, optional
        Written into the output.
    resume : bool
        Go on where a run that was killed or interrupted stopped; the result is the same.
    progress : callable
        Called with the number of rows of each part that is done.
    workers : Workers, optional
        Who does the work; the threads of this process where not given.
    part_rows : int
        Rows of a task on a cluster, about. A worker holds one batch of them at a time; a billion
        rows make four thousand tasks.
    """

    provenance: Provenance | None = None
    resume: bool = False
    progress: Callable[[int], object] = lambda rows: None
    workers: Workers | None = None
    part_rows: int = 1 << 18

    def open_workers(self) -> AbstractContextManager[Workers]:
        """Give the workers; threads end when they are no longer needed."""
        return threads() if self.workers is None else nullcontext(self.workers)


def run_job(
    run: Run,
    workers: Workers,
    facts: Mapping[str, Any],
    output: str | Path,
    prepare: Callable[[JobFolder], tuple[Output, Iterable[Task]]],
    *,
    keep: bool = True,
) -> Done:
    """Make the parts of a job that are not there yet, then put its output in place.

    Parameters
    ----------
    run : Run
    workers : Workers
        What `run.open_workers` gives.
    facts : mapping
        Whatever the result depends on, as JSON: parts of another job are never taken for it.
    output : path
    prepare : callable
        Takes the folder of the job; gives the output and the tasks, which may be lazy.
    keep : bool
        Leave finished parts after an error, also where the run is not one to be resumed.
    """
    made = run.provenance.to_json() if run.provenance else None
    how: dict[str, Any] = {"provenance": made, "resume": run.resume, "keep": keep}
    with writing(Path(output)), open_job(output, facts, **how) as folder:
        if folder.is_published and folder.done is not None:
            return folder.done
        target, tasks = prepare(folder)
        target.check()
        counts: Counter[str] = Counter()
        with closing(run_tasks(tasks, folder.parts, workers)) as parts:
            for part in parts:
                found = target.add(part)
                counts.update(found)
                run.progress(found["rows"])
        done = Done(counts.pop("rows", 0), counts)
        folder.finish(done)
        target.publish(folder)
        return done


def run_tasks(tasks: Iterable[Task], folder: Path, workers: Workers) -> Generator[Path]:
    """Make the parts that are not in a folder; give all of them in the order of the tasks.

    After an error, what has not begun is withdrawn and what runs is waited for: when this
    returns nothing is being written any more.
    """
    waiting: deque[tuple[Path, Any]] = deque()
    try:
        for task, is_alone in _with_neighbors(tasks):
            who = alone() if is_alone and not workers.are_remote else workers
            waiting.append((folder / task.name, _begin(task, folder, who)))
            while len(waiting) > who.ahead():
                yield _finish(*waiting[0])
                waiting.popleft()
        while waiting:
            yield _finish(*waiting[0])
            waiting.popleft()
    finally:
        for path, future in waiting:
            if future is not None and not workers.withdraw(future):
                with suppress(Exception):
                    _finish(path, future)


def _with_neighbors(tasks: Iterable[Task]) -> Iterator[tuple[Task, bool]]:
    """Tell of each task whether it is the only one: then it may have all cores for itself."""
    rest = iter(tasks)
    first = list(islice(rest, 2))
    return ((task, len(first) == 1) for task in chain(first, rest))


def _begin(task: Task, folder: Path, workers: Workers) -> Any:
    path = folder / task.name
    return None if path.exists() else workers.submit(_make, task, path)


def _make(task: Task, path: Path) -> Path:
    """Write a part under a name of its own: two workers may have been given the same one."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        task.make(unfinished)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return unfinished


def _finish(path: Path, future: Any) -> Path:
    """Give a part its name when it is on the disk; only this process does so."""
    if future is not None:
        unfinished = future.result()
        with open(unfinished, "r+b") as stream:
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    return path
