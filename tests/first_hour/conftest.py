"""The three lines, and `impute`, on each of the eight tables: once for all tests and workers."""

import fcntl
import json
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.first_hour.make_tables import TABLES, FirstTable, make_table

# What a process that forgot to close something says.
LEAKS = ("Traceback", "Exception ignored", "Warning:", "resource_tracker", "leaked")
# A command starts, computes and is gone within this time, or something waits for a terminal.
PATIENCE_S = 600


@dataclass(frozen=True)
class FirstHour:
    """A table, and what four commands made of it.

    Parameters
    ----------
    table : FirstTable
    folder : Path
        Where the commands ran; it has the name of the table.
    """

    table: FirstTable
    folder: Path

    @property
    def model(self) -> Path:
        return self.folder / "m.skyfill"

    @property
    def classified(self) -> Path:
        return self.folder / "out.csv"

    @property
    def filled(self) -> Path:
        return self.folder / "filled.csv"

    @property
    def page(self) -> Path:
        return self.folder / "page.html"

    def said(self, command: str) -> str:
        """Return what a command printed to stderr."""
        return (self.folder / f"{command}.err").read_text()

    @property
    def stated(self) -> dict:
        """What `train` states of the model."""
        return json.loads((self.folder / "train.out").read_text())


def shell(folder: Path, *words: object) -> None:
    """Run a command as a batch job does: without a terminal, its input closed.

    Nothing it leaves behind is overlooked: processes, temporary files, what Python says of files
    that nobody closed.
    """
    command, spare = str(words[0]), folder / "tmp"
    spare.mkdir(exist_ok=True)
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("TERM", "COLUMNS")},
        "PYTHONDEVMODE": "1",
        "TMPDIR": str(spare),
    }
    skyfill = Path(sys.executable).with_name("skyfill")
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", str(skyfill)]
    with (
        open(folder / f"{command}.out", "wb") as out,
        open(folder / f"{command}.err", "wb") as errors,
        subprocess.Popen(
            [*closed, *map(str, words)],
            cwd=folder,
            env=environment,
            stdout=out,
            stderr=errors,
            start_new_session=True,
        ) as process,
    ):
        code = process.wait(PATIENCE_S)
    said = (folder / f"{command}.err").read_text()
    assert code == 0, said
    assert not [word for word in LEAKS if word in said], said
    assert not list(spare.iterdir())
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


@pytest.fixture(scope="session")
def first_hour(tmp_path_factory):
    """Return a function that runs all four commands on a table, unless another worker has."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    @cache
    def run(name: str) -> FirstHour:
        folder = shared / "first_hour" / name
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / "table.pickle"
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not kept.exists():
                table = make_table(name, folder)
                label = ("--label", table.label)
                shell(folder, "train", table.train.name, *label, "-o", "m.skyfill", "--json")
                shell(folder, "classify", "m.skyfill", table.fresh.name, "-o", "out.csv")
                shell(folder, "impute", "m.skyfill", table.fresh.name, "-o", "filled.csv")
                shell(folder, "report", "m.skyfill", "out.csv", "-o", "page.html")
                kept.write_bytes(pickle.dumps(table))
        return FirstHour(pickle.loads(kept.read_bytes()), folder)

    return run


@pytest.fixture(scope="session", params=TABLES)
def hour(first_hour, request):
    """Each of the eight tables in turn, with what the commands made of it."""
    return first_hour(request.param)
