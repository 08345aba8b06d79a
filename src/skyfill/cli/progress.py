"""Progress on stderr: a moving bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skyfill.cli.notes import has_bars, note

if TYPE_CHECKING:
    from rich.progress import Task
    from rich.text import Text

# So often a log gets a line.
SECONDS_PER_LINE = 30.0


def spinner(what: str) -> AbstractContextManager[Any]:
    """Show that something goes on whose end is not known."""
    if not has_bars():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(what)


@contextmanager
def stages(what: str) -> Iterator[Callable[[str], None]]:
    """Show what goes on in words that change; a log gets them now and then."""
    if not has_bars():
        yield _stage_lines(what)
        return
    from rich.console import Console

    with Console(stderr=True).status(what) as status:
        yield lambda stage: status.update(f"{what}: {stage}")


def _stage_lines(what: str) -> Callable[[str], None]:
    last = time.monotonic()

    def tell(stage: str) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_PER_LINE:
            last = time.monotonic()
            note(f"{what}: {stage}")

    return tell


def log_lines(what: str, unit: str, total: int | None = None) -> Callable[[int], None]:
    """Give what must be told of work that is done; it says so now and then."""
    start = last = time.monotonic()
    done = 0

    def tell(more: int) -> None:
        nonlocal done, last
        done, now = done + more, time.monotonic()
        if now - last >= SECONDS_PER_LINE:
            last = now
            of, rate = f" of {total:,}" if total else "", done / max(now - start, 1e-9)
            speed = f", {rate:,.0f}/s" if rate >= 1 else ""
            note(f"{what}: {done:,}{of} {unit}{speed}")

    return tell


@contextmanager
def row_progress(catalog: str | Path, what: str) -> Iterator[Callable[[int], None]]:
    """Show a bar where stderr is a terminal; what is given must be told of rows that are done."""
    if not has_bars():
        yield log_lines(what, "rows")
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        SpinnerColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from skyfill.scale.counting import count_rows

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            return _rate(task)

    columns = (SpinnerColumn(), what, BarColumn(), MofNCompleteColumn(), "rows", RateColumn())
    times = (TimeElapsedColumn(), "left", TimeRemainingColumn())
    with Progress(*columns, *times, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=count_rows(catalog))
        yield lambda rows: bar.advance(task, rows)


def _rate(task: Task) -> Text:
    from rich.text import Text

    speed = task.finished_speed or task.speed
    return Text(f"{speed:,.0f}/s" if speed else "")
