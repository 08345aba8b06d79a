"""Feed damaged files to all readers: each must give a table or a `CatalogError`, in time.

Prints a Markdown table. Every format runs in a process of its own, so that a crash is seen, too.
"""

import argparse
import collections
import gzip
import multiprocessing
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import traceback
from pathlib import Path

import numpy as np
from astropy.table import MaskedColumn
from astropy.table import Table as AstropyTable

from skyfill.catalog import ColumnInfo, Provenance, Role, Table, read_table, write_table
from skyfill.errors import CatalogError

SECONDS_PER_INPUT = 10
MEMORY_BYTES = 6 << 30
TOKENS = [
    *(mark.encode() for mark in "\"'\n\r<>&,#=0T"),
    *(
        b"999999999999",
        b"-1",
        b"\xff" * 8,
        b"\0" * 8,
        b"nan",
        b"1e999",
        b"&#0;",
        b"]]>",
        b"\x1f\x8b",
    ),
]


def our_table() -> Table:
    info = {"J": ColumnInfo("mag", "phot.mag", "J magnitude", Role.FEATURE)}
    columns = {
        "id": ["a", "", None, "é"],
        "n": [1, None, 3, -4],
        "flag": [True, None, False, True],
        "J": [14.2, None, 1e300, 3.0],
    }
    table = Table.from_columns(columns, info=info, meta={"citation": "Jones 2017"})
    return table.with_reasons("J", [None, "undetected", None, None])


def their_table() -> AstropyTable:
    table = AstropyTable(masked=True)
    table["id"] = MaskedColumn(["a1", "", "c3"], mask=[0, 1, 0])
    table["n"] = MaskedColumn([7, 0, -3], mask=[0, 1, 0])
    table["J"] = MaskedColumn([14.25, np.nan, 15.5], unit="mag", description="J magnitude")
    table["v"] = np.arange(6.0).reshape(3, 2)
    return table


def write_originals(folder: Path) -> list[Path]:
    """Write files of every format, by skyfill, by astropy and by STILTS."""
    paths = [folder / f"ours.{e}" for e in ("parquet", "fits", "vot", "ecsv", "csv")]
    for path in paths:
        write_table(our_table(), path, provenance=Provenance("fuzz", seed=1))
    theirs = their_table()
    for name, how in {
        "astropy.fits": {},
        "astropy.parquet": {},
        "tabledata.vot": {"format": "votable", "tabledata_format": "tabledata"},
        "binary2.vot": {"format": "votable", "tabledata_format": "binary2"},
        "astropy.ecsv": {},
    }.items():
        theirs.write(folder / name, **how)
        paths.append(folder / name)
    texts = {"plain.csv": "id,J,x\n007,14.2,a\n008,,b\n", "blanks.txt": " id J\n 1 14.2\n 2 15.1\n"}
    for name, text in texts.items():
        (folder / name).write_text(text)
        paths.append(folder / name)
    if shutil.which("stilts"):
        for form in ("fits-basic", "votable-binary"):
            path = folder / f"stilts.{'fits' if form.startswith('fits') else 'vot'}"
            copy = ["stilts", "tcopy", f"in={folder / 'ours.fits'}", f"out={path}", f"ofmt={form}"]
            subprocess.run(copy, check=True)
            paths.append(path)
    return paths


def damage(data: bytes, rng: random.Random) -> bytes:
    """Flip bits, cut, repeat, move and overwrite, one to five times."""
    for _ in range(rng.randint(1, 5)):
        place, width = rng.randrange(len(data) + 1), rng.choice([1, 1, 2, 8, 80, 400])
        part = data[place : place + width]
        change = rng.choice(["flip", "cut", "repeat", "token", "digits", "end", "move"])
        if change == "flip" and part:
            part = bytes([part[0] ^ (1 << rng.randrange(8))]) + part[1:]
        elif change == "cut":
            part = b""
        elif change == "repeat":
            part = part * rng.randint(2, 4)
        elif change == "token":
            part = rng.choice(TOKENS) + part[1:]
        elif change == "digits":
            part = bytes(rng.choice(b"0123456789") if 48 <= c <= 57 else c for c in part)
        elif change == "move":
            start = rng.randrange(len(data) + 1)
            part = data[start : start + width]
        end = b"" if change == "end" and rng.random() < 0.3 else data[place + width :]
        data = data[:place] + part + end
    return data


def try_one(path: Path) -> str:
    signal.alarm(SECONDS_PER_INPUT)
    try:
        table = read_table(path)
        table.arrow.validate(full=True)
    except CatalogError:
        return "error"
    finally:
        signal.alarm(0)
    return "table"


def run(original: Path, n_inputs: int, seed: int, results: "multiprocessing.Queue") -> None:
    def too_slow(*_: object) -> None:
        raise BaseException("too slow")  # noqa: TRY002 - no reader may catch it

    signal.signal(signal.SIGALRM, too_slow)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    counts: collections.Counter[str] = collections.Counter()
    data, rng = original.read_bytes(), random.Random(seed)
    path = original.with_name(f"damaged-{original.name}")
    for i in range(n_inputs):
        changed = damage(data, rng)
        path.write_bytes(gzip.compress(changed, 1) if i % 20 == 0 else changed)
        try:
            counts[try_one(path)] += 1
        except BaseException:  # the fault that is looked for
            counts["fault"] += 1
            traceback.print_exc()
            shutil.copy(path, Path(tempfile.gettempdir()) / f"fault-{i}-{original.name}")
    results.put(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=21_000, help="of all formats together")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| file | inputs | tables | CatalogError | faults | seconds |\n|---|---|---|---|---|---|")
    total: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        originals = write_originals(Path(folder))
        n_each = -(-options.inputs // len(originals))
        for original in originals:
            results: multiprocessing.Queue = multiprocessing.Queue()
            start = time.perf_counter()
            child = multiprocessing.Process(
                target=run, args=(original, n_each, options.seed, results)
            )
            child.start()
            child.join()
            counts = results.get() if child.exitcode == 0 else {"crash": 1}
            total.update(counts)
            seconds = time.perf_counter() - start
            faults = f"exit code {child.exitcode}" if child.exitcode else counts["fault"]
            row = [original.name, n_each, counts.get("table", 0), counts.get("error", 0), faults]
            print("|", " | ".join(map(str, row)), f"| {seconds:.0f} |", flush=True)
    print(f"\n{total['table'] + total['error']} inputs without a fault, {total['fault']} faults")
    if total["fault"] or total["crash"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
