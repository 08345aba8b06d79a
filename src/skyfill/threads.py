"""Rows in fixed chunks over all cores: the number of threads never changes a result."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

# A chunk of 25 columns fills about 1.6 MB: it stays in a core's cache from kernel to kernel.
CHUNK_ROWS = 8192
_THREAD = threading.local()


def n_threads() -> int:
    """Count the cores this process may use; ``SKYFILL_THREADS`` overrides."""
    asked = os.environ.get("SKYFILL_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def chunks(n_rows: int) -> Iterator[slice]:
    """Divide rows into slices that depend only on their number."""
    return (slice(a, min(a + CHUNK_ROWS, n_rows)) for a in range(0, n_rows, CHUNK_ROWS))


def thread_pool(workers: int | None = None) -> ThreadPoolExecutor:
    """Open a pool of threads, one per core by default, inside which loops over rows run serially.

    So there are never more busy threads than cores, however such loops are nested.
    """
    return ThreadPoolExecutor(workers or n_threads(), initializer=_mark_as_worker)


def free_threads() -> int:
    """Count the threads that a loop may use here: one within a pool, else all that are allowed."""
    return 1 if getattr(_THREAD, "is_worker", False) else n_threads()


def _mark_as_worker() -> None:
    _THREAD.is_worker = True


def map_rows(work: Callable[[slice], T], n_rows: int) -> list[T]:
    """Call `work` for each chunk of rows on all cores; results in row order.

    The kernels release the GIL, so threads are enough; unlike a parallel region inside the
    kernel they compile fast, survive forks and may run inside Dask workers.
    """
    return map_threads(work, list(chunks(n_rows)))


def map_threads(work: Callable[..., T], items: list[slice] | list[int]) -> list[T]:
    """Call `work` for each item on all cores; results in the order of the items."""
    workers = min(free_threads(), len(items))
    if workers <= 1:
        return [work(item) for item in items]
    with thread_pool(workers) as pool:
        return list(pool.map(work, items))


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS and OpenMP to one thread: the matrices are small and the sums stay the same."""
    with _libraries(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """Look for libraries with threads of their own; again only after further modules were loaded.

    A look takes about 10 ms, as long as a fit to a few rows.
    """
    return ThreadpoolController()
