"""Files that are read in part: they are closed, and the process ends well."""

import gzip
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from skyfill.catalog import Table, open_scan, write_table

FORMATS = ("parquet", "fits", "vot", "ecsv", "csv", "ecsv.gz", "txt")
# A thread of Arrow ends the block that it has begun, however busy the machine is.
SECONDS_TO_CLOSE = 60
FIRST_BATCH = """
import sys
from skyfill.catalog import open_scan

scan = open_scan(sys.argv[1])
next(scan.batches)
"""


def is_open(path):
    """Whether this process has a file open."""
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        pytest.skip("the system does not list open files")
    links = [os.readlink(link) for link in folder.iterdir() if link.is_symlink()]
    return str(path.resolve()) in links


def comes_to_be_closed(path):
    end = time.monotonic() + SECONDS_TO_CLOSE
    while is_open(path) and time.monotonic() < end:
        time.sleep(0.01)
    return not is_open(path)


@pytest.fixture(params=FORMATS)
def path(request, tmp_path):
    path = tmp_path / f"stars.{request.param}"
    if request.param == "txt":
        path.write_text("J K\n" + "14.2 13.1\n" * 1000)
    else:
        write_table(Table.from_columns({"J": [14.2] * 1000, "K": [13.1] * 1000}), path)
    return path


def test_a_scan_of_which_nothing_is_read_holds_no_file(path):
    scan = open_scan(path, batch_rows=10)
    assert scan.schema.names == ["J", "K"]
    assert comes_to_be_closed(path)


def test_a_scan_that_is_left_early_is_closed(path):
    with open_scan(path, batch_rows=10) as scan:
        assert next(scan.batches).num_rows == 10
    assert list(scan.batches) == []
    assert comes_to_be_closed(path)


def read_and_fail(path):
    with open_scan(path, batch_rows=10) as scan:
        for batch in scan.batches:
            batch.column("no such column")


def test_a_scan_that_failed_in_the_middle_is_closed(path):
    with pytest.raises(KeyError) as caught:
        read_and_fail(path)
    assert caught.tb is not None  # its frames are alive
    assert comes_to_be_closed(path)


@pytest.mark.parametrize("name", ["stars.ecsv", "stars.ecsv.gz"])
def test_a_process_that_stops_after_the_first_batch_ends_well(tmp_path, name):
    """Arrow is then still reading ahead, in a thread that must not enter Python any more."""
    path = tmp_path / name
    pack = gzip.compress if name.endswith(".gz") else bytes
    head = pack(b"# %ECSV 1.0\n# ---\n# datatype:\n# - {name: J, datatype: float64}\nJ\n")
    rows = pack("".join(f"{hash((k, 0)) / 2**63:.9f}\n" for k in range(1 << 17)).encode())
    path.write_bytes(head + rows * 100)
    for _ in range(3):
        run = [sys.executable, "-c", FIRST_BATCH, path]
        done = subprocess.run(run, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
