"""Workers: the calling thread, the threads of this process, or a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from skyfill.device import VARIABLE, chosen_device
from skyfill.errors import SkyfillError
from skyfill.threads import n_threads, thread_pool

LOCAL = "local"
HOST = "127.0.0.1"
SECONDS_TO_CONNECT = 20


@dataclass(frozen=True)
class Workers:
    """An executor, as seen by the driver.

    Parameters
    ----------
    submit : callable
        Takes a function and its arguments; returns a future.
    ahead : callable
        Returns the number of tasks to submit before waiting for the first.
    withdraw : callable
        Takes a future and cancels it; returns False if it has started and must be awaited.
    are_remote : bool
        Whether tasks run in other processes, to which their arguments are sent.
    """

    submit: Callable[..., Any]
    ahead: Callable[[], int]
    withdraw: Callable[[Any], bool] = lambda future: False
    are_remote: bool = False


def alone() -> Workers:
    """Run each task in the calling thread, where loops over rows may use all cores."""

    def submit(work: Callable[..., Any], *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*args))
        except Exception as error:  # noqa: BLE001 - as every executor does
            future.set_exception(error)
        return future

    return Workers(submit, lambda: 0)


@contextmanager
def threads() -> Iterator[Workers]:
    """Run one task per core of this machine, with one more waiting."""
    with thread_pool() as pool:
        yield Workers(pool.submit, n_threads, Future.cancel)


@contextmanager
def cluster(scheduler: str | None) -> Iterator[Workers]:
    """Run tasks on a Dask cluster; see `open_client`."""
    with open_client(scheduler) as client:
        from distributed.scheduler import KilledWorker

        def submit(work: Callable[..., Any], *args: Any) -> Any:
            return client.submit(work, *args, pure=False)

        def ahead() -> int:
            # A task that runs on a worker cannot be stopped, so few are sent at a time: after an
            # error there is little to wait for.
            return max(8, 2 * int(sum(client.nthreads().values())))

        try:
            yield Workers(submit, ahead, are_remote=True)
        except KilledWorker as error:
            raise SkyfillError(
                f"workers died repeatedly on the same rows ({error}); give them more memory, "
                "or make the parts smaller"
            ) from None


def workers_for(scheduler: str | None) -> Any:
    """Open the workers for --scheduler: a cluster, or the threads of this process."""
    return threads() if scheduler is None else cluster(scheduler)


@contextmanager
def open_client(scheduler: str | None = None, *, n_workers: int | None = None) -> Iterator[Any]:
    """Connect to a Dask cluster.

    Parameters
    ----------
    scheduler : str, optional
        Address of a scheduler; ``"local"`` starts processes on this machine and stops them
        afterwards. None: the client that is already open, or else as ``"local"``.
    n_workers : int, optional
        Processes of a local cluster; by default one for each core.

    Yields
    ------
    distributed.Client
    """
    client = _open_already() if scheduler is None else None
    if client is not None:
        yield client
    elif scheduler in (None, LOCAL):
        with _start(n_workers or n_threads()) as client:
            yield client
    else:
        with _connect(str(scheduler)) as client:
            yield client


def _open_already() -> Any:
    try:
        return _import_distributed().get_client()
    except ValueError:
        return None


@contextmanager
def _start(n_workers: int) -> Iterator[Any]:
    distributed = _import_distributed()
    # One thread each, for Dask and for skyfill: the processes share the cores already.
    env = {"SKYFILL_THREADS": "1", VARIABLE: chosen_device()}
    options: dict[str, Any] = {"threads_per_worker": 1, "env": env}
    # Without a host Dask would show its dashboard to the whole network.
    options |= {"host": HOST, "dashboard_address": f"{HOST}:0"}
    from skyfill.scale.quiet_close import QuietClose, quiet

    options["plugins"] = (QuietClose(),)
    with (
        ExitStack() as once_closed,
        distributed.LocalCluster(n_workers, processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        try:
            yield client
        finally:
            once_closed.enter_context(quiet())


def _connect(address: str) -> Any:
    distributed = _import_distributed()
    try:
        return distributed.Client(address, timeout=SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        raise SkyfillError(
            f"no Dask scheduler answers at {address} ({error}); start one with `dask scheduler`, "
            "or use --scheduler local"
        ) from None


def _import_distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise SkyfillError(
            "a cluster needs Dask; install it with pip install 'skyfill[dask]', or leave out "
            "--scheduler and give one file"
        ) from None
    return distributed
