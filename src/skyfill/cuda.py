"""One NVIDIA GPU: arrays and Fourier transforms by CuPy, bodies compiled by Numba."""

import threading
from functools import cache
from typing import Any

import cupy
import numpy as np
from cupyx.scipy import fft as cupy_fft
from numba import cuda as _cuda
from numba import float64

cuda: Any = _cuda  # has no types

BLOCK = 128
# Blocks per multiprocessor; threads take further items in turn.
BLOCKS_EACH = 64
# Share of the free memory that a batch may plan with: transforms need room of their own.
USABLE = 0.8


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
    except Exception as error:  # noqa: BLE001 - whatever keeps Numba from the card
        return f"Numba cannot use the card ({_first_line(error)})"
    return None


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error))


class CudaDevice:
    """The GPU that CUDA lists first; see `skyfill.device.Device`."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        facts = cupy.cuda.runtime.getDeviceProperties(0)
        self.name = facts["name"].decode()
        self._blocks = BLOCKS_EACH * facts["multiProcessorCount"]

    @property
    def free_bytes(self) -> int:
        """Memory that is free, or that CuPy holds without using it."""
        free, _ = cupy.cuda.runtime.memGetInfo()
        return int(USABLE * (free + cupy.get_default_memory_pool().free_bytes()))

    def array(self, values: Any, dtype: Any = None) -> Any:
        """Copy an array to the card."""
        return cupy.asarray(np.ascontiguousarray(values, dtype))

    def empty(self, shape: Any, dtype: Any = np.float64, fill: float | None = None) -> Any:
        """Make an array on the card."""
        return cupy.empty(shape, dtype) if fill is None else cupy.full(shape, fill, dtype)

    def host(self, array: Any) -> Any:
        """Copy an array back."""
        return cupy.asnumpy(array)

    def run(self, body: Any, n: int, *args: Any, room: int = 1) -> None:
        """Start a thread per item; does not wait for the end."""
        if n == 0:
            return
        blocks = min(-(-n // BLOCK), self._blocks)
        stream = cuda.external_stream(cupy.cuda.get_current_stream().ptr)
        arrays = tuple(cuda.as_cuda_array(a, sync=False) if isinstance(a, cupy.ndarray) else a
                       for a in args)  # fmt: skip
        _kernel(body, room)[blocks, BLOCK, stream](n, arrays)

    def fft(self, rows: Any) -> Any:
        """Fourier transforms of the rows."""
        return cupy_fft.fft(rows, axis=1, overwrite_x=True)

    def is_full(self, error: BaseException) -> bool:
        """Whether the memory of the card did not suffice; what is not in use is then given back."""
        full = isinstance(error, cupy.cuda.memory.OutOfMemoryError) or (
            "OUT_OF_MEMORY" in str(error) or "ALLOC_FAILED" in str(error)
        )
        if full:
            cupy.fft.config.get_plan_cache().clear()
            cupy.get_default_memory_pool().free_all_blocks()
        return full

    def alone(self) -> Any:
        """Keep other threads of this process from the card."""
        return self._lock


@cache
def _kernel(body: Any, size: int) -> Any:
    """Compile a body for the card, with its own room in each thread."""

    def kernel(n, args):  # type: ignore[no-untyped-def]
        room = cuda.local.array(size, float64)
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < n:
            body(i, room, *args)
            i += step

    return cuda.jit(kernel)
