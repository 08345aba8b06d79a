"""Where heavy loops run: on the cores of this machine, or on its GPU.

What runs on a GPU is a *body*: a compiled function of the number of an item, of room to work in,
and of arrays. The same source is compiled for the GPU, where each item has a thread, and for the
processor. A body must not allocate memory, and no two items may write to the same place, except by
`skyfill.atomic.add_at`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np

from skyfill.atomic import Room
from skyfill.errors import DeviceError

CHOICES = ("cpu", "gpu", "auto")
# A device that runs the bodies of the GPU one by one in this process: for tests without a card.
EMULATED = "emulated"
# Name of the variable that chooses the device of processes started elsewhere, such as Dask workers.
VARIABLE = "SKYFILL_DEVICE"
T = TypeVar("T")


class Device(Protocol):
    """Arrays, and loops over bodies, on a GPU or an imitation of one."""

    @property
    def name(self) -> str:
        """What to call it in messages."""

    @property
    def xp(self) -> Any:
        """Return the module of its arrays, which has the functions of NumPy."""

    @property
    def free_bytes(self) -> int:
        """Memory that arrays may still take."""

    def array(self, values: Any, dtype: Any = None) -> Any:
        """Copy an array to the device."""

    def empty(self, shape: Any, dtype: Any = np.float64, fill: float | None = None) -> Any:
        """Make an array on the device."""

    def host(self, array: Any, out: Any = None) -> Any:
        """Copy an array back, to `out` if given; waits until all that was asked for is done."""

    def host_later(self, pairs: list[tuple[Any, Any]]) -> Callable[[], None]:
        """Copy arrays back to others, as (array, out), while loops go on; call it to wait.

        The arrays must not be changed meanwhile.
        """

    def run(self, body: Any, n: int, *args: Any, room: Room = 1, dtype: Any = np.float64) -> None:
        """Call ``body(i, room, *args)`` for i below n; `room` is an array of that many numbers.

        Or it is two arrays: one of so many numbers, and three squares of so many columns.
        """

    def fft(self, rows: Any) -> Any:
        """Fourier transforms of the rows of a complex array, which may be overwritten."""

    def is_full(self, error: BaseException) -> bool:
        """Whether an error means that the memory of the device did not suffice."""

    def alone(self) -> Any:
        """Context in which no other thread of this process uses the device."""


_chosen = "auto"


def use_device(name: str = "auto") -> None:
    """Choose where heavy loops run from now on, in this process.

    Parameters
    ----------
    name : {"auto", "cpu", "gpu"}
        ``auto``, the default, is the GPU if there is one and the work is large enough. For Dask
        workers and other processes, set the environment variable ``SKYFILL_DEVICE``.

    Examples
    --------
    >>> import skyfill
    >>> skyfill.use_device("cpu")
    >>> skyfill.use_device("auto")
    """
    global _chosen  # noqa: PLW0603 - as a user expects of such a setting
    _check(name)
    if name in ("gpu", EMULATED):
        _open(name)
    _chosen = name


def chosen_device() -> str:
    """Return the last choice of `use_device`."""
    return _chosen


@contextmanager
def using(name: str) -> Iterator[None]:
    """Use a device within a ``with`` block."""
    before = _chosen
    use_device(name)
    try:
        yield
    finally:
        use_device(before)


def gpu_for(n_items: int, worth: int) -> Device | None:
    """Return the device for a loop over `n_items`, or None for the cores of this machine.

    With ``auto``, fewer than `worth` items stay here: starting a GPU takes seconds.
    """
    name = os.environ.get(VARIABLE, "auto") if _chosen == "auto" else _chosen
    _check(name)
    if name == "cpu" or n_items == 0:
        return None
    if name != "auto":
        return _open(name)
    return _open("gpu") if n_items >= worth and _why_not() is None else None


def in_batches(device: Device, n: int, size: int, work: Callable[[slice], T]) -> list[T]:
    """Work on slices of at most `size` of n items; halve them where the memory does not suffice."""
    found: list[T] = []
    start = 0
    while start < n:
        rows = slice(start, min(start + size, n))
        try:
            found.append(work(rows))
        except Exception as error:
            if not device.is_full(error):
                raise
            if size == 1:
                raise DeviceError(
                    f"{device.name}: not enough memory for one item; use --device cpu"
                ) from None
            size = -(-size // 2)
            continue
        start = rows.stop
    return found


class Outbox:
    """Brings results of one batch back while the next one is under way."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._wait: Callable[[], None] = lambda: None

    def send(self, pairs: list[tuple[Any, Any]]) -> None:
        """Wait for what was sent before, then send (array, out); not more may be under way."""
        self.close()
        self._wait = self._device.host_later(pairs)

    def close(self) -> None:
        """Wait until everything has arrived."""
        wait, self._wait = self._wait, lambda: None
        wait()


def _check(name: str) -> None:
    if name not in (*CHOICES, EMULATED):
        raise DeviceError(f"no device is called {name!r}; choose one of {', '.join(CHOICES)}")


def _open(name: str) -> Device:
    if name == EMULATED:
        return _emulated()
    reason = _why_not()
    if reason is not None:
        raise DeviceError(f"no GPU can be used: {reason}; use --device cpu to go on without")
    return _gpu()


@lru_cache(maxsize=1)
def _why_not() -> str | None:
    """Explain why there is no usable GPU; None if there is one."""
    try:
        from skyfill import cuda
    except ImportError as error:
        return f"{error.name or error} is not installed (pip install 'skyfill[gpu]')"
    return cuda.why_not()


@lru_cache(maxsize=1)
def _gpu() -> Device:
    from skyfill.cuda import CudaDevice

    return CudaDevice()


@lru_cache(maxsize=1)
def _emulated() -> Device:
    from skyfill.emulated import EmulatedDevice

    return EmulatedDevice()
