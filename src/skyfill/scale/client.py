"""Connections to a Dask cluster: one that runs already, or processes of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from skyfill.errors import SkyfillError
from skyfill.threads import n_threads

LOCAL = "local"
SECONDS_TO_CONNECT = 20


@contextmanager
def open_client(scheduler: str | None = None, *, n_workers: int | None = None) -> Iterator[Any]:
    """Connect to a Dask cluster.

    Parameters
    ----------
    scheduler : str, optional
        Address of a scheduler; ``"local"`` starts processes on this machine and ends them
        afterwards. None: the client that is already open, otherwise as ``"local"``.
    n_workers : int, optional
        Processes of a local cluster; one for each core where not given.

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


def client_for(scheduler: str | None) -> Any:
    """Connect as `open_client`; None leaves LSDB to an open client or to this process."""
    return nullcontext() if scheduler is None else open_client(scheduler)


def _open_already() -> Any:
    try:
        return _import_distributed().get_client()
    except ValueError:
        return None


@contextmanager
def _start(n_workers: int) -> Iterator[Any]:
    distributed = _import_distributed()
    # One thread each, for Dask and for skyfill: the processes share the cores already.
    options = {"threads_per_worker": 1, "env": {"SKYFILL_THREADS": "1"}, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(n_workers, processes=True, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


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
