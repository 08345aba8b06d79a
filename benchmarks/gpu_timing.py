"""How long loops on a GPU take, and how far results differ: for gpu.py and gpu_mixtures.py."""

import time

import cupy
import numpy as np


def seconds(work, repeats=3):
    """Least time of some runs, after one that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        work()
        cupy.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


class Timed:
    """A device that waits for every loop, to see how long it takes."""

    def __init__(self, inner):
        self.inner, self.spent = inner, {}

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def _measure(self, name, work, *args, **how):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        found = work(*args, **how)
        cupy.cuda.Device().synchronize()
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - start
        return found

    def run(self, body, n, *args, **how):
        return self._measure(body.py_func.__name__, self.inner.run, body, n, *args, **how)

    def fft(self, rows):
        return self._measure("fft", self.inner.fft, rows)

    def array(self, *args):
        return self._measure("copies to the card", self.inner.array, *args)

    def host(self, *args):
        return self._measure("copies back", self.inner.host, *args)

    def empty(self, *args, **how):
        return self._measure("allocation, zeros", self.inner.empty, *args, **how)


def far(a, b):
    """Largest relative difference; infinite where one is a gap and the other is not."""
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf
    return float(np.nanmax(np.abs(a - b) / np.maximum(np.abs(b), 1e-12)))
