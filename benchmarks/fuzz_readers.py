"""Feed damaged files to all readers: each must give a table or a `CatalogError`, in time.

Among them are bombs (files that ask for far more than they are: YAML aliases, gzip, entities,
columns, rows without width, heaps) and references to other files, whose content must never appear
in a table. Prints a Markdown table. Every format runs in a process of its own, so that a crash is
seen, too.
"""

import argparse
import collections
import gzip
import io
import multiprocessing
import os
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
# More memory than this, beyond what reading the original takes, is a fault.
MOST_GROWTH_MB = 1500
SECRET = "the content of a file that nobody asked for"
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


def bombs(folder: Path, rng: random.Random) -> list[tuple[str, bytes]]:
    """Make files that ask for far more than they are, or for other files; their names tell how."""
    n, deep = 10 ** rng.randint(5, 13), rng.randint(5, 9)
    secret = (folder / "secret.csv").as_uri()
    aliases = ["a0: &a0 [x, x, x]"]
    aliases += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, deep)]
    head = ["%ECSV 1.0", "---", "datatype:", "- {name: J, datatype: float64}", "meta:"]
    ecsv = "".join(f"# {line}\n" for line in [*head, *(f"  {a}" for a in aliases)]) + "J\n1\n"
    line = gzip.compress(b"a" * rng.choice([10**5, 10**7]), 9)
    rows = gzip.compress(b"a,b\n" + b"1,2\n" * rng.choice([10**4, 10**6]), 9)
    columns = ",".join(f"c{k}" for k in range(rng.choice([10**3, 10**5])))
    votable = (
        '<?xml version="1.0"?>{doctype}<VOTABLE version="1.4"><RESOURCE><TABLE>'
        '<FIELD name="J" datatype="{kind}" arraysize="{size}"/>'
        "<DATA>{data}</DATA></TABLE></RESOURCE></VOTABLE>"
    )
    fields = {"kind": "double", "size": "1", "doctype": ""}
    stream = (
        f'<BINARY2><STREAM href="{secret}" encoding="{rng.choice(["base64", "gzip"])}"/></BINARY2>'
    )
    entity = f'<!DOCTYPE VOTABLE [<!ENTITY x SYSTEM "{secret}">]>'
    laughs = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 9}">' for k in range(1, deep))
    laughs = f'<!DOCTYPE VOTABLE [<!ENTITY l0 "ha">{laughs}]>'
    cell = "<TABLEDATA><TR><TD>{}</TD></TR></TABLEDATA>"
    return [
        ("aliases.ecsv", ecsv.encode()),
        ("line.csv.gz", line),
        ("line.txt.gz", line),
        ("rows.csv.gz", rows),
        ("columns.csv", f"{columns}\n{columns}\n".encode()),
        ("columns.txt", columns.replace(",", " ").encode() + b"\n1 2\n"),
        ("width.fits", fits_bytes(NAXIS1=0, NAXIS2=n, TFORM1="'0A      '")),
        ("rows.fits", fits_bytes(NAXIS2=n)),
        ("heap.fits", fits_bytes(PCOUNT=n, TFORM1="'1PD(9)  '")),
        ("packed.fits.gz", gzip.compress(fits_bytes(NAXIS2=n, PCOUNT=n), 9)),
        ("row.fits", fits_bytes(NAXIS1=n, TFORM1=f"'{n}A'")),
        ("stream.vot", votable.format(**fields, data=stream).encode()),
        (
            "size.vot",
            votable.format(kind="double", size=n, doctype="", data=cell.format(1)).encode(),
        ),
        (
            "entity.vot",
            votable.format(kind="char", size="*", doctype=entity, data=cell.format("&x;")).encode(),
        ),
        (
            "laughs.vot",
            votable.format(
                kind="char", size="*", doctype=laughs, data=cell.format(f"&l{deep - 1};")
            ).encode(),
        ),
    ]


def fits_bytes(**cards: object) -> bytes:
    """A small FITS table some of whose cards say something else."""
    from astropy.io import fits

    columns = [fits.Column("J", "D", array=np.array([14.2, 15.1]))]
    hdus = fits.HDUList([fits.PrimaryHDU(), fits.BinTableHDU.from_columns(columns)])
    stream = io.BytesIO()
    hdus.writeto(stream)
    data = stream.getvalue()
    for key, value in cards.items():
        at = data.find(f"{key:8}=".encode(), 2880)
        card = f"{key:8}= {value!s:>20}"[:80].ljust(80).encode()
        data = data[:at] + card + data[at + 80 :]
    return data


def run_bombs(folder: Path, n_inputs: int, seed: int, results: "multiprocessing.Queue") -> None:
    """Read bombs, some of them damaged as well."""
    _guard()
    counts: collections.Counter[str] = collections.Counter()
    rng = random.Random(seed)
    (folder / "secret.csv").write_text(f"J\n{SECRET}\n")
    done = 0
    while done < n_inputs:
        for name, data in bombs(folder, rng):
            path = folder / name
            path.write_bytes(damage(data, rng) if rng.random() < 0.5 else data)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            counts[outcome(path, f"{done}-{name}")] += 1
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            if grown > MOST_GROWTH_MB:
                counts["fault"] += 1
                print(f"{name}: memory grew by {grown:.0f} MB", flush=True)
            done += 1
    results.put(counts)


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


def outcome(path: Path, name: str) -> str:
    """Read a file: "table", "error" or "fault", whose file is kept."""
    try:
        return try_one(path)
    except BaseException:  # the fault that is looked for
        traceback.print_exc()
        shutil.copy(path, Path(tempfile.gettempdir()) / f"fault-{name}")
        return "fault"


def try_one(path: Path) -> str:
    # Seconds of the processor: other programs must not make a reader look slow.
    signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_INPUT)
    try:
        table = read_table(path)
        table.arrow.validate(full=True)
        if SECRET in str(table.arrow.slice(0, 5).to_pydict()):
            raise BaseException("another file was let in")  # noqa: TRY002 - a fault, not an error
    except CatalogError:
        return "error"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "table"


def _guard() -> None:
    """Limit the time of each input, and memory; lower limits, so that bombs may be small."""
    os.environ["SKYFILL_LIMITS"] = "columns=5000,line-bytes=1000000,whole-bytes=20000000"

    def too_slow(*_: object) -> None:
        raise BaseException("too slow")  # noqa: TRY002 - no reader may catch it

    signal.signal(signal.SIGPROF, too_slow)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(original: Path, n_inputs: int, seed: int, results: "multiprocessing.Queue") -> None:
    _guard()
    counts: collections.Counter[str] = collections.Counter()
    data, rng = original.read_bytes(), random.Random(seed)
    path = original.with_name(f"damaged-{original.name}")
    for i in range(n_inputs):
        changed = damage(data, rng)
        path.write_bytes(gzip.compress(changed, 1) if i % 20 == 0 else changed)
        counts[outcome(path, f"{i}-{original.name}")] += 1
    results.put(counts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=21_000, help="of all formats together")
    parser.add_argument("--bombs", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("| file | inputs | tables | CatalogError | faults | seconds |\n|---|---|---|---|---|---|")
    total: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        originals = write_originals(Path(folder))
        n_each = -(-options.inputs // len(originals))
        work = [(original.name, run, original, n_each) for original in originals]
        work.append(("bombs and references", run_bombs, Path(folder), options.bombs))
        for name, target, original, n_inputs in work:
            results: multiprocessing.Queue = multiprocessing.Queue()
            start = time.perf_counter()
            child = multiprocessing.Process(
                target=target, args=(original, n_inputs, options.seed, results)
            )
            child.start()
            child.join()
            counts = results.get() if child.exitcode == 0 else collections.Counter(crash=1)
            total.update(counts)
            seconds = time.perf_counter() - start
            faults = f"exit code {child.exitcode}" if child.exitcode else counts["fault"]
            row = [name, n_inputs, counts.get("table", 0), counts.get("error", 0), faults]
            print("|", " | ".join(map(str, row)), f"| {seconds:.0f} |", flush=True)
    print(f"\n{total['table'] + total['error']} inputs without a fault, {total['fault']} faults")
    if total["fault"] or total["crash"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
