"""Work whose cost is guessed: how much is done, and the time left once that can be known."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from skyfill.cli.terminal import compiling, has_bars, note, now_and_then

# No time is told before this share of the work is done with kernels that are compiled.
LEAST_SHARE = 0.05


@contextmanager
def work_bar(what: str, seconds: float, words: str) -> Iterator[Callable[[float], None]]:
    """State some work, then show how much is done and, as soon as it is known, the time left.

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
    note(f"{what}: {words}")
    progress, lock = WorkProgress(seconds), threading.Lock()
    say, start = now_and_then(), time.monotonic()
    with _percent_bar(what) as show:

        def advance(more: float) -> None:
            with lock:
                progress.add(more)
                left = progress.left(time.monotonic() - start)
                words = "" if left is None else f"about {duration(left)} left"
                show(progress.share, words)
                say(", ".join(filter(None, (f"{what}: {progress.share:.0%} done", words))))

        def restart() -> None:
            nonlocal start
            with lock:
                progress.restart()
                start = time.monotonic()

        with compiling(what, "about 30 s", restart):
            yield advance


class WorkProgress:
    """How much of some work is done, where what it costs was only guessed.

    Examples
    --------
    >>> work = WorkProgress(100.0)
    >>> work.add(25.0)
    >>> work.share, work.left(60.0)
    (0.25, 180.0)
    >>> work.restart()
    >>> work.add(4.0)
    >>> work.left(20.0) is None
    True
    """

    def __init__(self, expected: float) -> None:
        self.expected, self.done, self._before = max(expected, 1e-9), 0.0, 0.0

    def add(self, more: float) -> None:
        """Count work; there is always a little left, whatever was expected."""
        self.done += more
        self.expected = max(self.expected, 1.02 * self.done)

    def restart(self) -> None:
        """Measure the pace from now on."""
        self._before = self.done

    @property
    def share(self) -> float:
        """Share of the work that is done."""
        return self.done / self.expected

    def left(self, elapsed: float) -> float | None:
        """Estimate the seconds left, at the pace since the last start; None as yet unknown."""
        new = self.done - self._before
        if new < LEAST_SHARE * self.expected:
            return None
        return elapsed * (self.expected - self.done) / new


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
def _percent_bar(what: str) -> Iterator[Callable[[float, str], None]]:
    """Show a bar of shares on a terminal; nothing in a log."""
    if not has_bars():
        yield lambda share, words: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (SpinnerColumn(), what, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    left = TextColumn("{task.fields[left]}")
    with Progress(*columns, left, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=1.0, left="")
        yield lambda share, words: bar.update(task, completed=share, left=words)
