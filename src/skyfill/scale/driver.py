"""The driver of all long jobs: tasks go to workers, and each finished part is a file.

The caller provides the tasks, the workers and the output. The driver decides which parts are still
missing, collects the results in order, and stops all work before it reports an error.
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
from skyfill.scale.job_folder import Done, JobFolder, open_job
from skyfill.scale.part_sums import UNFINISHED
from skyfill.scale.workers import Workers, alone, threads


@dataclass(frozen=True)
class Task:
    """A part to be made.

    Parameters
    ----------
    name : str
        Name of its file, unique within the job.
    make : callable
        Takes a path and writes the part there. It must be picklable if the workers are processes.
    content : Path, optional
        The file that holds the rows, if the part only marks that they are there.
    """

    name: str
    make: Callable[[Path], None]
    content: Path | None = None


# Takes the name of a finished part and the file that holds what it contains.
Record = Callable[[str, Path], None]


class Output(Protocol):
    """Where finished parts go."""

    def check(self) -> None:
        """Raise an error, before any work is done, if the output cannot be written."""

    def add(self, part: Path) -> Mapping[str, int]:
        """Add the next part, in the order of the tasks; return its `rows` and other counts."""

    def publish(self, folder: JobFolder) -> None:
        """Put the complete output in place; called again if a previous call was interrupted."""


@dataclass(frozen=True)
class Run:
    """The circumstances of a run.

    Parameters
    ----------
    provenance : Provenance, optional
        Written into the output.
    resume : bool
        Continue where an interrupted run stopped; the result is the same.
    progress : callable
        Called with the number of rows of each finished part.
    workers : Workers, optional
        Where the work is done; by default in the threads of this process.
    part_rows : int
        Approximate number of rows of a task on a cluster. A worker holds one batch of them at a
        time; a billion rows make four thousand tasks.
    """

    provenance: Provenance | None = None
    resume: bool = False
    progress: Callable[[int], object] = lambda rows: None
    workers: Workers | None = None
    part_rows: int = 1 << 18

    def open_workers(self) -> AbstractContextManager[Workers]:
        """Open the workers; threads that were started here end with the context."""
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
    """Make the missing parts of a job, then put its output in place.

    Parameters
    ----------
    run : Run
    workers : Workers
        From `run.open_workers`.
    facts : mapping
        Everything the result depends on, as JSON: parts of another job are never used.
    output : path
    prepare : callable
        Takes the folder of the job; returns the output and the tasks, which may be lazy.
    keep : bool
        Keep finished parts after an error even if `run.resume` is not set.
    """
    made = run.provenance.to_json() if run.provenance else None
    how: dict[str, Any] = {"provenance": made, "resume": run.resume, "keep": keep}
    with writing(Path(output)), open_job(output, facts, **how) as folder:
        if folder.is_published and folder.done is not None:
            return folder.done
        target, tasks = prepare(folder)
        target.check()
        counts: Counter[str] = Counter()
        with closing(run_tasks(tasks, folder.parts, workers, folder.record)) as parts:
            for part in parts:
                found = target.add(part)
                counts.update(found)
                run.progress(found["rows"])
        done = Done(counts.pop("rows", 0), counts)
        folder.check_own()
        folder.finish(done)
        target.publish(folder)
        return done


def run_tasks(
    tasks: Iterable[Task],
    folder: Path,
    workers: Workers,
    record: Record = lambda name, file: None,
) -> Generator[Path]:
    """Make the parts that a folder lacks, and yield all parts in the order of the tasks.

    `record` is called for each new part before it gets its name.

    After an error, tasks that have not started are withdrawn and the others are awaited, so that
    nothing is being written any more when this returns.
    """
    waiting: deque[tuple[Task, Any]] = deque()

    def finish(task: Task, future: Any) -> Path:
        path = folder / task.name
        if future is not None:
            unfinished = future.result()
            with open(unfinished, "r+b") as stream:
                os.fsync(stream.fileno())
            record(task.name, task.content or unfinished)
            # No other process gives a part its name.
            os.replace(unfinished, path)
        return path

    try:
        for task, is_alone in _with_neighbors(tasks):
            who = alone() if is_alone and not workers.are_remote else workers
            waiting.append((task, _begin(task, folder, who)))
            while len(waiting) > who.ahead():
                yield finish(*waiting[0])
                waiting.popleft()
        while waiting:
            yield finish(*waiting[0])
            waiting.popleft()
    finally:
        for task, future in waiting:
            if future is not None and not workers.withdraw(future):
                with suppress(Exception):
                    finish(task, future)


def _with_neighbors(tasks: Iterable[Task]) -> Iterator[tuple[Task, bool]]:
    """Pair each task with whether it is the only one, which may then use all cores."""
    rest = iter(tasks)
    first = list(islice(rest, 2))
    return ((task, len(first) == 1) for task in chain(first, rest))


def _begin(task: Task, folder: Path, workers: Workers) -> Any:
    path = folder / task.name
    return None if path.exists() else workers.submit(_make, task, path)


def _make(task: Task, path: Path) -> Path:
    """Write a part under a unique name: two workers may be given the same task."""
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        task.make(unfinished)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    return unfinished
