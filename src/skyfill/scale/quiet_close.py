"""Silence Dask's log while a local cluster closes."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from distributed import WorkerPlugin


class QuietClose(WorkerPlugin):  # type: ignore[misc]
    """Keeps a worker that closes from logging that it is interrupted, such as in a heartbeat."""

    def teardown(self, worker: Any) -> None:
        """Begin to close; called before connections are."""
        _silence()


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Dask from logging in this process."""
    undo = _silence()
    try:
        yield
    finally:
        undo()


def _silence() -> Callable[[], None]:
    handlers = list(logging.getLogger("distributed").handlers)
    for handler in handlers:
        handler.addFilter(_is_critical)

    def undo() -> None:
        for handler in handlers:
            handler.removeFilter(_is_critical)

    return undo


def _is_critical(record: logging.LogRecord) -> bool:
    return record.levelno >= logging.CRITICAL
