"""Run skyfill many times, four at a time: every run ends with 0, and none prints a traceback.

    python benchmarks/many_runs.py [--runs 2000] [--at-once 4] [--fork] [--light]

The runs are `inspect`, `train` on 200 rows and `classify`, of CSV, Parquet and FITS in turn. With
--fork each run is a process forked from this one, so that imports cost nothing; it ends as any
Python process does. With --light, `train` and `classify` run once for each format, and all other
runs are `inspect`. Prints a Markdown table; exit code 1 if any run failed.
"""

import argparse
import gc
import os
import shutil
import statistics
import sys
import tempfile
from importlib import import_module
from itertools import product
from pathlib import Path

from report import header, print_table

N_ROWS = 200
FORMATS = ("csv", "parquet", "fits")
SMALL = "--label kind --features V,I,K --components 2 --fits 1 --method forest --trees 5"
COMMANDS = {
    "inspect": "inspect stars.{format}",
    "train": f"train stars.{{format}} {SMALL} -o {{k}}.skyfill",
    "classify": "classify stars.skyfill new.{format} -o {k}.{format}",
}
# What a process says when it is not skyfill that ends it.
CRASHES = ("Traceback", "terminate called", "Fatal Python error")
IMPORTED = (
    "astropy.io.fits",
    "astropy.table",
    "pyarrow.csv",
    "pyarrow.parquet",
    "skyfill.catalog.csv_table",
    "skyfill.catalog.fits",
    "skyfill.catalog.parquet",
    "skyfill.model",
    "skyfill.scale",
    "sklearn.ensemble",
    *(f"skyfill.cli.{name}" for name in COMMANDS),
)


def prepare():
    """Write the tables to the current folder."""
    import numpy as np

    from skyfill.catalog import ColumnInfo, Role, Table, write_table

    rng = np.random.default_rng(0)
    info = {name: ColumnInfo("mag", role=Role.FEATURE) for name in "VIK"}
    for name in ("stars", "new"):
        kind = rng.integers(0, 2, N_ROWS)
        X = rng.normal(15, 1, (N_ROWS, 3)) + 2 * kind[:, None]
        X[rng.random(X.shape) < 0.2] = np.nan
        columns = {
            "id": [f"{name}{i}" for i in range(N_ROWS)],
            **dict(zip("VIK", X.T, strict=True)),
        }
        table = Table.from_columns(columns, info=info)
        table = table.with_column("kind", np.array(["a", "b"])[kind])
        for kind_of_file in FORMATS:
            write_table(table, f"{name}.{kind_of_file}")


def begin(task, folder, said, *, fork):
    """Start a task in a process whose output goes to a file; return its number."""
    child = os.fork()
    if child:
        return child
    os.chdir(folder)
    sink = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(sink, stream)
    if callable(task):
        task()
        sys.exit(0)
    if not fork:
        program = "from skyfill.cli import main; main(prog_name='skyfill')"
        os.execv(sys.executable, [sys.executable, "-c", program, *task])
    from skyfill.cli import main

    # Ends this process: nothing between here and the end of the script catches SystemExit.
    return main(task, prog_name="skyfill")


def fails(status, said):
    """Whether a process ended otherwise than with 0, and whether it said that it crashed."""
    text = Path(said).read_text(errors="replace")
    code, crashed = os.waitstatus_to_exitcode(status), any(word in text for word in CRASHES)
    if code or crashed:
        print(f"{said}: exit code {code}\n{text}", file=sys.stderr)
    return bool(code), crashed


def run_all(jobs, folder, *, at_once, fork):
    """Run the jobs; return for each its seconds of CPU and what failed."""
    waiting, running, found = list(enumerate(jobs)), {}, [None] * len(jobs)
    while waiting or running:
        while waiting and len(running) < at_once:
            k, (command, kind_of_file) = waiting.pop(0)
            words = COMMANDS[command].format(format=kind_of_file, k=k).split()
            child = begin(words, folder, folder / f"{k}.said", fork=fork)
            running[child] = k
        child, status, used = os.wait4(-1, 0)
        k = running.pop(child)
        found[k] = (used.ru_utime + used.ru_stime, *fails(status, folder / f"{k}.said"))
        for path in folder.glob(f"{k}.*"):
            path.unlink()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--fork", action="store_true")
    parser.add_argument("--light", action="store_true")
    given = parser.parse_args()
    if given.fork:
        for name in IMPORTED:
            import_module(name)
        gc.freeze()  # else every child would collect what was imported here when it ends
    folder = Path(tempfile.mkdtemp())
    model = f"train stars.parquet {SMALL} -o stars.skyfill".split()
    for task in (prepare, model):
        child = begin(task, folder, folder / "said", fork=given.fork)
        if any(fails(os.waitpid(child, 0)[1], folder / "said")):
            sys.exit("the tables could not be made")
    every = list(product(COMMANDS, FORMATS))
    again = list(product(["inspect"], FORMATS)) if given.light else every
    jobs = [every[k] if k < len(every) else again[k % len(again)] for k in range(given.runs)]
    found = run_all(jobs, folder, at_once=given.at_once, fork=given.fork)
    shutil.rmtree(folder)
    rows = []
    for job in every[: given.runs]:
        own = [each for each, of in zip(found, jobs, strict=True) if of == job]
        seconds, codes, crashes = zip(*own, strict=True)
        middle = f"{statistics.median(seconds):.2f}"
        rows.append((*job, len(own), sum(codes), sum(crashes), middle))
    header("Many runs", ["pyarrow"])
    how = "forked" if given.fork else "new"
    print(f"{given.runs} runs, {how} processes, {given.at_once} at once, {N_ROWS} rows\n")
    columns = ("command", "format", "runs", "exit code not 0", "crashes", "median CPU seconds")
    print_table(columns, rows)
    sys.exit(any(code or crash for _, code, crash in found))


if __name__ == "__main__":
    main()
