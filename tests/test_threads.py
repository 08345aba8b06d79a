"""One pool of threads: never more at work than cores, whatever is nested in what."""

import sys
import threading
from types import ModuleType

import numpy as np  # noqa: F401 - brings a BLAS
import pytest
import threadpoolctl

from skyfill.threads import map_rows, map_threads, one_blas_thread, thread_pool


class Watch:
    """Count how many calls are under way at a time."""

    def __init__(self, parties):
        self._lock, self._now, self.most = threading.Lock(), 0, 0
        self._barrier = threading.Barrier(parties)

    def __call__(self, item):
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self._barrier.wait(60)
        with self._lock:
            self._now -= 1
        return item


@pytest.fixture(autouse=True)
def _three_threads(monkeypatch):
    monkeypatch.setenv("SKYFILL_THREADS", "3")


def test_a_loop_uses_all_threads_that_are_allowed():
    watch = Watch(3)
    assert map_threads(watch, list(range(6))) == list(range(6))
    assert watch.most == 3


def test_a_loop_within_a_loop_runs_serially():
    names = set()

    def inner(rows):
        names.add(threading.current_thread().name)
        return rows.start

    def outer(item):
        here = threading.current_thread().name
        starts = map_rows(inner, 5 * 8192)
        return starts == [8192 * k for k in range(5)] and names >= {here}

    assert all(map_threads(outer, list(range(3))))
    with thread_pool() as pool:
        assert all(pool.map(outer, range(20)))
    assert len(names) <= 6


def test_the_thread_of_the_caller_is_no_worker_afterwards():
    map_threads(lambda item: item, list(range(3)))
    watch = Watch(2)
    assert map_threads(watch, [0, 1]) == [0, 1]


def test_blas_has_one_thread_and_afterwards_those_of_before(monkeypatch):
    def counts():
        return [library["num_threads"] for library in threadpoolctl.threadpool_info()]

    with threadpoolctl.threadpool_limits(limits=2):
        before = counts()
        assert max(before) == 2
        for name in ("looked for", "known", "a further module"):
            if name == "a further module":
                monkeypatch.setitem(sys.modules, "skyfill.further", ModuleType("further"))
            with one_blas_thread(), one_blas_thread():
                assert set(counts()) == {1}, name
            assert counts() == before
