"""A local cluster starts, works and ends without a word."""

import subprocess
import sys

INTERRUPTED = """
import asyncio
import threading
import time

from skyfill.scale.workers import open_client


def take_long_to_end():
    threading.Thread(target=time.sleep, args=(600,)).start()


if __name__ == "__main__":
    heart_beats = threading.Event()

    async def answer_late(**heartbeat):
        heart_beats.set()
        await asyncio.sleep(600)

    with open_client("local", n_workers=1) as client:
        client.run(take_long_to_end)
        client.cluster.scheduler.handlers["heartbeat_worker"] = answer_late
        heart_beats.wait()
"""


def test_a_cluster_closes_in_silence_in_the_middle_of_a_heartbeat_and_when_workers_are_slow():
    run = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_dask_works_as_before_once_a_local_cluster_has_closed():
    """Without it, LSDB would look for the cluster that is gone."""
    import dask

    from skyfill.scale.workers import open_client

    before = dask.config.get("scheduler", None)
    with open_client("local", n_workers=1):
        assert dask.config.get("scheduler") == "dask.distributed"
    assert dask.config.get("scheduler", None) == before
