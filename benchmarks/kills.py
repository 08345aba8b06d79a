"""Kill every long command at random moments: outputs are old or complete, the next run is as ever.

Each command runs in a process forked from this one (so that imports cost nothing) and is ended by
SIGKILL, SIGTERM or SIGINT at random points of its run time. Then the same command is run again,
with --resume where it has it. Checked: the output is the old one or the new one, byte for byte; the
next run gives the bytes of an undisturbed run; it leaves no other file behind; no process crashed
or printed a traceback. Prints a Markdown table.
"""

import argparse
import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

SIGNALS = {"SIGKILL": -9, "SIGTERM": 143, "SIGINT": 130}
QUICK = "--components 2 --fits 1"
# Name: command, its output, whether it can be resumed.
JOBS = {
    "match": ("match stars.parquet nir.parquet -o out.parquet", "out.parquet", False),
    "features": ("features curves.parquet --set mean,sigma -o out.fits", "out.fits", True),
    "train": (f"train stars.parquet --features V,I,K {QUICK} -o out.skyfill", "out.skyfill", False),
    "train --out-of-core": (
        f"train stars.parquet --features V,I,K {QUICK} --out-of-core -o out.skyfill",
        "out.skyfill",
        True,
    ),
    "impute": ("impute m.skyfill stars.parquet --draws 2 -o out.parquet", "out.parquet", True),
    "impute to FITS": ("impute m.skyfill stars.parquet -o out.fits", "out.fits", True),
    "impute a folder": ("impute m.skyfill many -o out", "out", True),
    "classify": ("classify c.skyfill stars.parquet -o out.parquet", "out.parquet", True),
    "candidates": ("candidates classes.parquet --class a -o out.vot", "out.vot", False),
    "next": ("next c.skyfill few.parquet -o out.csv", "out.csv", False),
    "publish": ("publish classes.parquet -o out.fits", "out.fits", False),
    "report": ("report c.skyfill classes.parquet -o out.html", "out.html", False),
}


def prepare(folder, n_rows):
    import numpy as np

    from skyfill.catalog import ColumnInfo, Role, Table, write_table

    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, n_rows)
    X = rng.normal(size=(n_rows, 3)) + 2 * kind[:, None]
    X[rng.random(X.shape) < 0.2] = np.nan
    info = {name: ColumnInfo("mag", role=Role.FEATURE) for name in "VIK"}
    places = {"ra": rng.uniform(80, 81, n_rows), "dec": rng.uniform(-70, -69, n_rows)}
    columns = {
        "id": [f"s{i}" for i in range(n_rows)],
        **places,
        **dict(zip("VIK", X.T, strict=True)),
    }
    table = Table.from_columns(columns, info=info)
    write_table(table, folder / "stars.parquet")
    write_table(Table(table.arrow.slice(0, 300)), folder / "few.parquet")
    labelled = Table(table.arrow.slice(0, 600)).with_column(
        "kind", np.array(["a", "b"])[kind[:600]]
    )
    write_table(labelled, folder / "labelled.parquet")
    moved = {name: values + 1e-5 for name, values in places.items()}
    write_table(Table.from_columns({**moved, "J": rng.normal(size=n_rows)}), folder / "nir.parquet")
    (folder / "many").mkdir()
    for k in range(4):
        write_table(Table(table.arrow.slice(k * 2000, 2000)), folder / "many" / f"{k}.parquet")
    epochs, stars = 30, n_rows // 20
    curves = {"id": np.repeat(np.arange(stars), epochs), "mjd": np.tile(np.arange(30.0), stars)}
    curves["mag"] = rng.normal(15, 1, stars * epochs)
    write_table(Table.from_columns(curves), folder / "curves.parquet")


def make_inputs(folder):
    small = f"{QUICK} --method forest --trees 5"
    for words in (
        f"train labelled.parquet --features V,I,K {QUICK} -o m.skyfill",
        f"train labelled.parquet --label kind --features V,I,K {small} -o c.skyfill",
        "classify c.skyfill stars.parquet -o classes.parquet",
    ):
        code, said, _ = run(words.split(), folder)
        if code:
            sys.exit(f"{words}: exit code {code}\n{said}")


def run(words, folder, number=None, after=0.0):
    """Run a command in a forked process, signal it after a time; give exit code, text, seconds."""
    said = folder / "said"
    said.touch()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        _be_a_command(words, folder, said)
    if number is not None:
        time.sleep(after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, number)
    _, status = os.waitpid(child, 0)
    text = said.read_text(errors="replace")
    said.unlink()
    return os.waitstatus_to_exitcode(status), text, time.monotonic() - start


def _be_a_command(words, folder, said):
    from skyfill.cli import main

    code = 1
    try:
        os.chdir(folder)
        sink = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(sink, stream)
        try:
            main(words, prog_name="skyfill")
        except SystemExit as error:
            code = error.code or 0
        # What the interpreter does at its end: threads that are at work are waited for.
        threading._shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:
        code = 130  # before or after the command itself
    finally:
        os._exit(code)


def state(folder):
    """All files by name, with their bytes."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def output_of(files, name):
    """The files of an output: itself, what is in it, and a ReadMe."""
    readme = f"{Path(name).stem}_ReadMe.txt"
    return {k: v for k, v in files.items() if k in (name, readme) or k.startswith(f"{name}/")}


def attack(job, folder, seconds, number, rng):
    """Kill a command once, check, run it again, check; give what went wrong."""
    words, name, can_resume = JOBS[job]
    before, whole = WHOLE[job]
    old = {} if name == "out" else {name: b"an older output"}
    for each, data in old.items():
        (folder / each).write_bytes(data)
    code, said, _ = run(words.split(), folder, getattr(signal, number), rng.uniform(0, seconds))
    files = state(folder)
    found = output_of(files, name)
    faults = []
    if code not in (0, SIGNALS[number], -getattr(signal, number)):
        faults.append(f"exit code {code}: {said[-300:]}")
    if "Traceback" in said or "Fatal" in said:
        faults.append(f"traceback: {said[-300:]}")
    # Between two renames of publish a table may be there without its ReadMe.
    is_part = job == "publish" and found == {name: whole[name]}
    if found not in (old, whole) and not is_part:
        faults.append(f"an output that is neither old nor complete: {sorted(found)}")
    again = words.split() + (["--resume"] if can_resume else [])
    code, said, _ = run(again, folder)
    # A folder that is complete is not written again.
    if code and not (code == 2 and name == "out" and found == whole):
        faults.append(f"next run: exit code {code}: {said[-300:]}")
    files = state(folder)
    if output_of(files, name) != whole:
        faults.append("the next run gives another output")
    left = set(files) - set(before) - set(whole)
    if left:
        faults.append(f"left behind: {sorted(left)[:3]}")
    clean(folder, before)
    return faults


def clean(folder, before):
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            with contextlib.suppress(OSError):
                path.rmdir()
        elif str(path.relative_to(folder)) not in before:
            path.unlink()


WHOLE = {}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--jobs", nargs="*", default=list(JOBS), choices=list(JOBS))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="skyfill-kills-"))
    prepare(folder, options.rows)
    import_everything()
    make_inputs(folder)
    rng = random.Random(options.seed)
    print("| job | seconds | kills | faults |\n|---|---|---|---|", flush=True)
    total = 0
    for job in options.jobs:
        words, name, _ = JOBS[job]
        before = state(folder)
        warm_up(words.split(), folder)
        clean(folder, before)
        code, said, seconds = run(words.split(), folder)
        if code:
            sys.exit(f"{words}: exit code {code}\n{said}")
        WHOLE[job] = before, output_of(state(folder), name)
        clean(folder, before)
        faults = []
        for number in SIGNALS:
            for _ in range(options.points):
                found = attack(job, folder, seconds, number, rng)
                faults += found
                for fault in found:
                    print(f"{job}, {number}: {fault}", file=sys.stderr, flush=True)
        total += len(faults)
        kills = len(SIGNALS) * options.points
        print(f"| {job} | {seconds:.2f} | {kills} | {len(faults)} |", flush=True)
    shutil.rmtree(folder)
    sys.exit(bool(total))


def warm_up(words, folder):
    """Run a command here, so that forked processes have its compiled code."""
    from click.testing import CliRunner

    from skyfill.cli import main as command

    with contextlib.chdir(folder):
        CliRunner().invoke(command, words)


def import_everything():
    """Import what commands import, so that forked processes need not."""
    from importlib import import_module

    from skyfill.cli.main import COMMANDS

    for name in COMMANDS:
        import_module(f"skyfill.cli.{name}")
    rooms = "catalog sky lightcurve network impute classify model evaluate report scale"
    for name in rooms.split():
        import_module(f"skyfill.{name}")


if __name__ == "__main__":
    os.environ |= {"SOURCE_DATE_EPOCH": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    main()
