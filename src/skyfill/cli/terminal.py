"""What a command prints to stderr: notes, warnings and progress; and what a program reads.

Progress is a moving bar on a terminal, and an occasional line in a log. What was assumed about the
input is printed when it is found, and is part of every output in JSON.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from skyfill.errors import shortened

if TYPE_CHECKING:
    from rich.progress import Task
    from rich.text import Text

    from skyfill.catalog import Provenance
    from skyfill.scale import Run, Source

_LEVEL, _INPUT, _TELL = "skyfill.level", "skyfill.input", "skyfill.tell"
_SILENT = "skyfill.silent"
# What may be said about the input: roles and units that were guessed, facts that the user declared
# here or in training, numbers converted to other units, and what may be wrong.
GUESSED, DECLARED, CONVERTED, WARNED = "guessed", "declared", "converted", "warned"
QUIET, NORMAL, VERBOSE = -1, 0, 1
# Control characters but for tab and line feed, marks that reorder a line, lone surrogates.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Seconds between two lines of a log.
SECONDS_PER_LINE = 30.0
# So long nothing is said of kernels being compiled, or of anything at all.
SOME_SECONDS, SILENT_SECONDS = 1.0, 2.5
# Letters of a line, to which names of files may add; room for its lists, and for one not cut.
LONGEST, ROOMS, WHOLE = 300, (200, 130, 90, 60, 40, 20, 0), 1 << 30
# What is said of the input: a line, or one that takes the room for each of its lists.
Words = str | Callable[[int], str]


def level() -> int:
    """Give how much the user wants to read: QUIET, NORMAL or VERBOSE."""
    context = click.get_current_context(silent=True)
    found: int = NORMAL if context is None else context.meta.get(_LEVEL, NORMAL)
    return found


def set_level(context: click.Context, value: int) -> None:
    """Set how much is printed, for this context and those within."""
    context.meta[_LEVEL] = value


def note(text: str) -> None:
    """Print what was done."""
    if level() > QUIET:
        echo(text, err=True)


def warn(words: Words) -> None:
    """Print what may be wrong, even where notes are silenced; lists are cut."""
    if _is_new(WARNED, words) and not _told(line := _fitting("warning: ", words)):
        echo(line, err=True)


def mention(kind: str, words: Words) -> None:
    """Print what was guessed, declared or converted; lists are cut."""
    if _is_new(kind, words) and not _told(line := _fitting(f"{kind}: ", words)):
        note(line)


def listing(start: str, names: Collection[str], end: str = "", between: str = ", ") -> Words:
    """Give words with a list that is cut to the room that it has."""
    return lambda room: f"{start}{shortened(names, room, between)}{end}"


def tell_with(context: click.Context, tell: Callable[[str], None]) -> None:
    """Hand what is said about the input to a function, in place of printing it."""
    context.meta[_TELL] = tell


def _told(line: str) -> bool:
    context = click.get_current_context(silent=True)
    tell = None if context is None else context.meta.get(_TELL)
    if tell is not None:
        tell(line)
    return tell is not None


def _fitting(start: str, words: Words) -> str:
    """Give lists as much room as a line has."""
    lines = [start + words] if isinstance(words, str) else [start + words(room) for room in ROOMS]
    return next((line for line in lines if line == within_line(line)), within_line(lines[-1]))


def within_line(text: str) -> str:
    """Leave out the middle of lines that are too long.

    Examples
    --------
    >>> len(within_line(400 * "x")), within_line("short")
    (300, 'short')
    """

    def cut(line: str) -> str:
        most = LONGEST + sum(len(word) for word in line.split() if os.sep in word)
        return line if len(line) <= most else f"{line[: most - 105]} ... {line[-100:]}"

    return "\n".join(map(cut, text.split("\n")))


def said_of_input() -> dict[str, list[str]]:
    """Give all that this run said about its input, by kind."""
    context = click.get_current_context(silent=True)
    found: dict[str, list[str]] = {kind: [] for kind in (GUESSED, DECLARED, CONVERTED, WARNED)}
    return found if context is None else context.meta.setdefault(_INPUT, found)


def _is_new(kind: str, words: Words) -> bool:
    """Keep the whole of what is said about the input; say whether it was not said before."""
    said, text = said_of_input()[kind], words(WHOLE) if callable(words) else words
    if text in said:
        return False
    said.append(text)
    return True


def write_json(facts: Mapping[str, Any]) -> None:
    """Print facts for a program, with what was said about the input."""
    content = {**facts, "input": said_of_input()}
    echo(json.dumps(content, indent=2, allow_nan=False))


def echo(text: object = "", *, err: bool = False) -> None:
    """Print text; control characters of tables and models do not reach the terminal."""
    _end_silence()
    click.echo(visible(str(text)), err=err)


@contextmanager
def never_silent(text: str) -> Iterator[threading.Timer]:
    """Print a note if nothing else is printed soon."""
    timer = threading.Timer(SILENT_SECONDS, click.echo, (visible(text),), {"err": True})
    timer.daemon = True
    click.get_current_context().meta[_SILENT] = timer
    if level() > QUIET:
        timer.start()
    try:
        yield timer
    finally:
        timer.cancel()


def _end_silence() -> None:
    context = click.get_current_context(silent=True)
    if context is not None and _SILENT in context.meta:
        context.meta[_SILENT].cancel()


def visible(text: str) -> str:
    r"""Escape characters that would steer a terminal, reorder a line or cannot be written.

    Examples
    --------
    >>> visible("two\nlines, \x1b[2J and \ud800")
    'two\nlines, \\x1b[2J and \\ud800'
    """
    return _STEERING.sub(lambda found: ascii(found[0])[1:-1], text)


def detail(text: str) -> None:
    """Print what only verbose output includes."""
    if level() >= VERBOSE:
        echo(text, err=True)


def has_bars() -> bool:
    """Check whether to show bars: stderr is a terminal, and the user wants notes."""
    return sys.stderr is not None and sys.stderr.isatty() and level() > QUIET


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Show warnings of the library as one line, without their place in the code."""

    def show(message: Warning | str, category: type[Warning], *_: Any) -> None:
        warn(str(message))

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        yield


@contextmanager
def compiling(what: str, length: str, end: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Say when kernels are being compiled, before this takes long; call `end` after each of them.

    `length` is the time that this takes where none is compiled yet.
    """
    from numba.core import event

    class Watch(event.Listener):
        """Hears of kernels that are not kept from an earlier run; one lock guards all of them."""

        depth, spent, start, is_told = 0, 0.0, 0.0, False

        def on_start(self, event: object) -> None:
            self.depth += 1
            if self.depth == 1:
                self.start = time.monotonic()
            if not self.is_told and self.spent + time.monotonic() - self.start > SOME_SECONDS:
                self.is_told = True
                note(f"{what}: compiling, once, {length}")

        def on_end(self, event: object) -> None:
            self.depth -= 1
            if not self.depth:
                self.spent += time.monotonic() - self.start
                end()

    with event.install_listener("numba:compile", Watch()):
        yield


@contextmanager
def stages(what: str) -> Iterator[Callable[[str], None]]:
    """Show the current stage; a log gets it from time to time."""
    if not has_bars():
        say = now_and_then()
        yield lambda stage: say(f"{what}: {stage}")
        return
    from rich.console import Console

    _end_silence()
    with Console(stderr=True).status(what) as status:
        yield lambda stage: status.update(f"{what}: {stage}")


def now_and_then() -> Callable[[str], None]:
    """Give a function that prints a note at most every `SECONDS_PER_LINE`."""
    last = time.monotonic()

    def say(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_PER_LINE:
            last = time.monotonic()
            note(text)

    return say


def log_lines(what: str, unit: str, total: int | None = None) -> Callable[[int], None]:
    """Give a counter of finished work that prints its state from time to time."""
    start, say = time.monotonic(), now_and_then()
    done = 0

    def advance(more: int) -> None:
        nonlocal done
        done += more
        of, rate = f" of {total:,}" if total else "", done / max(time.monotonic() - start, 1e-9)
        speed = f", {rate:,.0f}/s" if rate >= 1 else ""
        say(f"{what}: {done:,}{of} {unit}{speed}")

    return advance


@contextmanager
def progress_bar(what: str, unit: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show how much is done; the function that is given takes the amount just finished."""
    if not has_bars():
        with compiling(what, "some seconds"):
            yield log_lines(what, unit, total)
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
    from rich.text import Text

    class RateColumn(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f}/s" if speed else "")

    columns = (SpinnerColumn(), what, BarColumn(), MofNCompleteColumn(), unit, RateColumn())
    times = (TimeElapsedColumn(), "left", TimeRemainingColumn())
    _end_silence()
    bar = Progress(*columns, *times, console=Console(stderr=True))
    with bar, compiling(what, "some seconds"):
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)


@contextmanager
def shown_run(
    what: str, source: Source, options: Mapping[str, Any], provenance: Provenance
) -> Iterator[Run]:
    """Open a run over the rows of a catalogue, as --scheduler and --resume say, with progress."""
    from skyfill.scale import Run, workers_for

    total = source.count_rows() if has_bars() else None
    with (
        progress_bar(what, "rows", total) as advance,
        workers_for(options["scheduler"]) as workers,
    ):
        yield Run(provenance, options["resume"], advance, workers)
