"""One NVIDIA GPU: arrays and Fourier transforms by CuPy, bodies compiled by Numba."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import cupy
import cupyx
import numpy as np
from cupyx.scipy import fft as cupy_fft
from numba import config, from_dtype
from numba import cuda as _cuda
from numba.cuda.extending import overload  # type: ignore[attr-defined]

from skyfill.atomic import Room, add_at
from skyfill.threads import free_threads, thread_pool

cuda: Any = _cuda  # has no types
# Loops may be short: no advice is needed.
setattr(config, "CUDA_LOW_OCCUPANCY_WARNINGS", 0)  # noqa: B010 - has no types
BLOCK = 64
# Blocks per multiprocessor; threads take further items in turn.
BLOCKS_EACH = 128
# Share of the free memory that a batch may plan with: transforms need room of their own.
USABLE = 0.8
SWITCH_SECONDS = 1e-4
# Bytes that travel at once, through memory that the card can read by itself.
PACKET = 1 << 26
# Bytes of Fourier transforms that share one plan.
TRANSFORMED_AT_ONCE = 1 << 32


def why_not() -> str | None:
    """Explain why the GPU of this machine cannot be used; None if it can."""
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CUDA finds no card or driver ({_first_line(error)})"
    if not count:
        return "CUDA finds no card"
    try:
        cuda.current_context()
        import_module("numba.cuda.cudaimpl")  # needed to compile; not every NumPy has what it needs
    except Exception as error:  # noqa: BLE001 - whatever keeps Numba from the card
        return f"Numba cannot use the card ({_first_line(error)})"
    return None


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error))


class CudaDevice:
    """The GPU that CUDA lists first; see `skyfill.device.Device`."""

    xp = cupy

    def __init__(self) -> None:
        self._lock = threading.RLock()
        facts = cupy.cuda.runtime.getDeviceProperties(0)
        self.name = facts["name"].decode()
        self._blocks = BLOCKS_EACH * facts["multiProcessorCount"]
        self._packets: dict[tuple[str, int], tuple[Any, Any]] = {}
        self._back = cupy.cuda.Stream(non_blocking=True)
        self._courier = ThreadPoolExecutor(1)

    @property
    def free_bytes(self) -> int:
        """Memory that is free, or that CuPy holds without using it."""
        free, _ = cupy.cuda.runtime.memGetInfo()
        return int(USABLE * (free + cupy.get_default_memory_pool().free_bytes()))

    def array(self, values: Any, dtype: Any = None) -> Any:
        """Copy an array to the card."""
        values = np.ascontiguousarray(values, dtype)
        if values.nbytes < PACKET:
            return cupy.asarray(values)
        out = cupy.empty(values.shape, values.dtype)
        source, target = values.reshape(-1).view(np.uint8), out.reshape(-1).view(np.uint8)
        for number, start in enumerate(range(0, source.size, PACKET)):
            self._send(source[start : start + PACKET], target[start : start + PACKET], number)
        return out

    def _send(self, source: Any, target: Any, number: int) -> None:
        """Fill one of two packets on all cores while the other one travels."""
        packet, has_left = self._packet("there", number)
        has_left.synchronize()
        _copy(packet[: source.size], source)
        target.set(packet[: source.size], stream=cupy.cuda.get_current_stream())
        has_left.record()

    def _packet(self, way: str, number: int) -> tuple[Any, Any]:
        """One of two packets of each way, and the event that it has arrived."""
        key = way, number % 2
        if key not in self._packets:
            self._packets[key] = cupyx.empty_pinned(PACKET, np.uint8), cupy.cuda.Event()
        return self._packets[key]

    def empty(self, shape: Any, dtype: Any = np.float64, fill: float | None = None) -> Any:
        """Make an array on the card."""
        if fill == 0:
            return cupy.zeros(shape, dtype)
        return cupy.empty(shape, dtype) if fill is None else cupy.full(shape, fill, dtype)

    def host(self, array: Any, out: Any = None) -> Any:
        """Copy an array back."""
        if out is None:
            return cupy.asnumpy(array)
        self.host_later([(array, out)])()
        return out

    def host_later(self, pairs: list[tuple[Any, Any]]) -> Callable[[], None]:
        """Copy arrays back, as (array, out), while the card goes on; returns what waits for it."""
        made = cupy.cuda.Event()
        made.record()
        return self._courier.submit(self._bring, pairs, made).result

    def _bring(self, pairs: list[tuple[Any, Any]], made: Any) -> None:
        with self._back:
            self._back.wait_event(made)
            for array, out in pairs:
                self._receive(cupy.ascontiguousarray(array), out)

    def _receive(self, array: Any, out: Any) -> None:
        """Empty one of two packets on all cores while the other one travels."""
        source, target = array.reshape(-1).view(np.uint8), out.reshape(-1).view(np.uint8)
        starts = range(0, source.size, PACKET)
        for number in range(len(starts) + 1):
            if number < len(starts):
                packet, is_here = self._packet("back", number)
                some = source[starts[number] : starts[number] + PACKET]
                some.get(out=packet[: some.size], blocking=False)
                is_here.record()
            if number > 0:
                packet, is_here = self._packet("back", number - 1)
                is_here.synchronize()
                some = target[starts[number - 1] : starts[number - 1] + PACKET]
                _copy(some, packet[: some.size])

    def run(self, body: Any, n: int, *args: Any, room: Room = 1, dtype: Any = np.float64) -> None:
        """Start a thread per item; does not wait for the end."""
        if n == 0:
            return
        blocks = min(-(-n // BLOCK), self._blocks)
        stream = cuda.external_stream(cupy.cuda.get_current_stream().ptr)
        _kernel(body, room, np.dtype(dtype))[blocks, BLOCK, stream](n, _for_numba(args))

    def fft(self, rows: Any) -> Any:
        """Fourier transforms of the rows, some thousand at a time: their plan takes room, too."""
        size = max(1, TRANSFORMED_AT_ONCE // rows[:1].nbytes)
        for start in range(0, len(rows), size):
            some = rows[start : start + size]
            plan = cupy_fft.get_fft_plan(some, axes=1)
            plan.fft(some, some, cupy.cuda.cufft.CUFFT_FORWARD)
        return rows

    def is_full(self, error: BaseException) -> bool:
        """Whether the memory of the card did not suffice; what is not in use is then given back."""
        full = isinstance(error, cupy.cuda.memory.OutOfMemoryError) or (
            "OUT_OF_MEMORY" in str(error) or "ALLOC_FAILED" in str(error)
        )
        if full:
            cupy.fft.config.get_plan_cache().clear()
            cupy.get_default_memory_pool().free_all_blocks()
        return full

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other threads of this process from the card.

        Threads that compute let this one wait for Python's lock whenever the card has finished;
        meanwhile they must give it up sooner.
        """
        with self._lock:
            before = sys.getswitchinterval()
            sys.setswitchinterval(SWITCH_SECONDS)
            try:
                yield
            finally:
                sys.setswitchinterval(before)


def _copy(target: Any, source: Any) -> None:
    """Copy bytes on all cores."""
    share = max(1, -(-source.size // free_threads()))
    parts = [slice(a, min(a + share, source.size)) for a in range(0, source.size, share)]
    list(_copiers().map(lambda part: np.copyto(target[part], source[part]), parts))


@cache
def _copiers() -> ThreadPoolExecutor:
    return thread_pool()  # kept: starting threads takes about as long as copying a packet


@overload(add_at)
def _add_at(array, index, value):  # type: ignore[no-untyped-def]
    """Add without losing what other threads add."""

    def add(array, index, value):  # type: ignore[no-untyped-def]
        cuda.atomic.add(array, index, value)

    return add


def _for_numba(value: Any) -> Any:
    """Hand arrays of CuPy, also those within tuples, to Numba."""
    if isinstance(value, tuple):
        return tuple(map(_for_numba, value))
    return cuda.as_cuda_array(value, sync=False) if isinstance(value, cupy.ndarray) else value


@cache
def _kernel(body: Any, room: Room, dtype: Any) -> Any:
    """Compile a body for the card, with its own room in each thread."""
    kind = from_dtype(dtype)
    if isinstance(room, tuple):
        return _kernel_with_squares(body, *room, kind)

    def kernel(n, args):  # type: ignore[no-untyped-def]
        line = cuda.local.array(room, kind)
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < n:
            body(i, line, *args)
            i += step

    return cuda.jit(kernel)


def _kernel_with_squares(body: Any, size: int, side: int, kind: Any) -> Any:
    # The sizes of local arrays must be constants, hence a kernel of its own.
    shape = (3, side, side)

    def kernel(n, args):  # type: ignore[no-untyped-def]
        line = cuda.local.array(size, kind)
        squares = cuda.local.array(shape, kind)
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < n:
            body(i, (line, squares), *args)
            i += step

    return cuda.jit(kernel)
