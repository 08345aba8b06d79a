"""An imitation of a GPU: the same bodies, called one after the other, on arrays of NumPy."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from skyfill.atomic import Room


class EmulatedDevice:
    """Runs what a GPU would run, slowly; see `skyfill.device.Device`."""

    name = "emulated GPU"
    free_bytes = 1 << 28
    xp = np

    def array(self, values: Any, dtype: Any = None) -> Any:
        """Copy an array."""
        return np.array(values, dtype, order="C")

    def empty(self, shape: Any, dtype: Any = np.float64, fill: float | None = None) -> Any:
        """Make an array; without a value, of numbers that show if they are used."""
        if fill is None:
            fill = np.nan if np.issubdtype(dtype, np.inexact) else np.iinfo(dtype).max
        return np.full(shape, fill, dtype)

    def host(self, array: Any, out: Any = None) -> Any:
        """Return the array, or copy it to `out`."""
        if out is None:
            return array
        out[...] = array
        return out

    def host_later(self, pairs: list[tuple[Any, Any]]) -> Callable[[], None]:
        """Copy arrays when asked for: what changes them before then shows."""

        def copy() -> None:
            for array, out in pairs:
                out[...] = array

        return copy

    def run(self, body: Any, n: int, *args: Any, room: Room = 1, dtype: Any = np.float64) -> None:
        """Call the body for each item; what it calls is compiled."""
        size, side = room if isinstance(room, tuple) else (room, 0)
        place: Any = np.empty(size, dtype)
        if side:
            place = (place, np.empty((3, side, side), dtype))
        with np.errstate(all="ignore"):
            for i in range(n):
                body.py_func(i, place, *args)

    def fft(self, rows: Any) -> Any:
        """Fourier transforms of the rows."""
        from scipy.fft import fft

        return fft(rows, axis=1, overwrite_x=True)

    def is_full(self, error: BaseException) -> bool:
        """Whether memory did not suffice."""
        return isinstance(error, MemoryError)

    def alone(self) -> Any:
        """Do nothing: nothing is shared."""
        return nullcontext()
