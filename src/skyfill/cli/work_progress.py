"""Work whose cost is guessed: what to expect of it, how much is done, and the time left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from skyfill.cli.terminal import has_bars, note, now_and_then
from skyfill.threads import n_threads


@contextmanager
def work_bar(what: str, seconds: float, words: str) -> Iterator[Callable[[float], None]]:
    """State what some work is expected to cost, then show how much is done and the time left.

    Parameters
    ----------
    what : str
    seconds : float
        Expected, of one core.
    words : str
        The work.

    Yields
    ------
    callable
        Takes the expected seconds of what is done; from any thread.
    """
    cores = n_threads()
    note(f"{what}: {words}; about {duration(seconds / cores)} expected on {cores} cores")
    progress, lock = WorkProgress(seconds), threading.Lock()
    say = now_and_then()
    with _percent_bar(what) as show:

        def advance(more: float) -> None:
            with lock:
                progress.add(more)
                show(progress.share)
                left = duration(progress.left(time.monotonic() - start))
                say(f"{what}: {progress.share:.0%} done, about {left} left")

        start = time.monotonic()
        yield advance


class WorkProgress:
    """How much of some work is done, where what it costs was only guessed.

    Examples
    --------
    >>> work = WorkProgress(100.0)
    >>> work.add(25.0)
    >>> work.share, work.left(60.0)
    (0.25, 180.0)
    """

    def __init__(self, expected: float) -> None:
        self.expected, self.done = max(expected, 1e-9), 0.0

    def add(self, more: float) -> None:
        """Count work; there is always a little left, whatever was expected."""
        self.done += more
        self.expected = max(self.expected, 1.02 * self.done)

    @property
    def share(self) -> float:
        """Share of the work that is done."""
        return self.done / self.expected

    def left(self, elapsed: float) -> float:
        """Estimate the seconds left, at the pace so far."""
        return elapsed * (1 - self.share) / self.share if self.done else float("inf")


def duration(seconds: float) -> str:
    """Put a time into words.

    Examples
    --------
    >>> duration(0.2), duration(42.0), duration(200.0), duration(9000.0)
    ('1 s', '42 s', '3 min', '2.5 h')
    """
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@contextmanager
def _percent_bar(what: str) -> Iterator[Callable[[float], None]]:
    """Show a bar of shares on a terminal; nothing in a log."""
    if not has_bars():
        yield lambda share: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (SpinnerColumn(), what, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    times = ("left", TimeRemainingColumn(elapsed_when_finished=True))
    with Progress(*columns, *times, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)
