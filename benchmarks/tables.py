"""Tables: 20 million rows of Parquet read, given roles and written back, against bare pyarrow.

    python benchmarks/tables.py [--rows 20000000] [--folder FOLDER]

Needs some 8 GB of disk in FOLDER (default: the system's temporary folder); everything is deleted
at the end. Then a million rows in every format, with STILTS where it is installed.
"""

import argparse
import multiprocessing
import resource
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from report import header, print_table
from skyfill.catalog import (
    ColumnInfo,
    Provenance,
    Table,
    open_scan,
    open_writer,
    read_table,
    with_guessed_roles,
    write_table,
)

BATCH_ROWS = 1 << 17
BANDS = "UBVRIJHK"


def make_batch(rng, start, n_rows):
    """One batch of 25 columns: identifiers, positions, magnitudes with gaps, errors, a class."""
    columns = {
        "source_id": np.arange(start, start + n_rows),
        "ra": rng.uniform(67, 93, n_rows),
        "dec": rng.uniform(-74, -64, n_rows),
    }
    for band in BANDS:
        lost = rng.random(n_rows) < 0.3
        columns[band] = pa.array(rng.normal(18, 2, n_rows).round(3), mask=lost)
        columns[f"e_{band}"] = pa.array(rng.exponential(0.05, n_rows).round(4), mask=lost)
    columns["period"] = rng.lognormal(0, 2, n_rows)
    columns["n_epochs"] = rng.integers(100, 1500, n_rows)
    columns["parallax"] = rng.normal(0, 0.1, n_rows).astype("f4")
    columns["flag"] = rng.random(n_rows) < 0.1
    columns["class"] = np.array(["RRL", "CEPH", "QSO", "LPV"])[rng.integers(0, 4, n_rows)]
    columns["field"] = rng.integers(1, 83, n_rows).astype("i2")
    return Table.from_columns(columns, info={"J": ColumnInfo(unit="mag")}).arrow.to_batches()[0]


def make_file(path, n_rows):
    rng = np.random.default_rng(1)
    with pq.ParquetWriter(path, make_batch(rng, 0, 1).schema) as writer:
        for start in range(0, n_rows, BATCH_ROWS):
            writer.write_batch(make_batch(rng, start, min(BATCH_ROWS, n_rows - start)))


def bare(source, target):
    with pq.ParquetFile(source) as file, pq.ParquetWriter(target, file.schema_arrow) as writer:
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            writer.write_batch(batch)


def ours(source, target):
    scan = open_scan(source, batch_rows=BATCH_ROWS)
    schema = with_guessed_roles(Table(scan.schema.empty_table())).arrow.schema
    with scan, open_writer(target, schema) as writer:
        for batch in scan.batches:
            writer.write(batch)


def ours_with_provenance(source, target):
    scan = open_scan(source, batch_rows=BATCH_ROWS)
    schema = with_guessed_roles(Table(scan.schema.empty_table())).arrow.schema
    provenance = Provenance("benchmarks/tables.py", inputs=[source])
    with scan, open_writer(target, schema, provenance=provenance) as writer:
        for batch in scan.batches:
            writer.write(batch)


def measure(task, source, target):
    """Seconds and peak memory in MB of a task in a process of its own."""
    results = multiprocessing.get_context("spawn").Queue()
    child = multiprocessing.get_context("spawn").Process(
        target=_child, args=(task, source, target, results)
    )
    child.start()
    found = results.get()
    child.join()
    target.unlink()
    return found


def _child(task, source, target, results):
    start = time.perf_counter()
    task(source, target)
    seconds = time.perf_counter() - start
    results.put((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))


def parquet_against_pyarrow(folder, n_rows, n_repeats):
    source, target = folder / "source.parquet", folder / "target.parquet"
    make_file(source, n_rows)
    size = source.stat().st_size / 1e9
    tasks = {"pyarrow": bare, "skyfill": ours, "skyfill with provenance": ours_with_provenance}
    measured = {name: [] for name in tasks}
    for _ in range(n_repeats):
        for name, task in tasks.items():
            measured[name].append(measure(task, source, target))
    source.unlink()
    best = {name: min(seconds for seconds, _ in found) for name, found in measured.items()}
    header(f"Parquet read and written, {n_rows} rows x 25 columns, {size:.1f} GB", ["pyarrow"])
    print_table(
        ["", "seconds (best)", "ratio", "peak memory, MB"],
        [
            [name, f"{best[name]:.1f}", f"{best[name] / best['pyarrow']:.2f}",
             f"{max(memory for _, memory in measured[name]):.0f}"]
            for name in tasks
        ],
    )  # fmt: skip


def timed(task, *arguments):
    start = time.perf_counter()
    found = task(*arguments)
    return time.perf_counter() - start, found


def formats(folder, n_rows):
    rng = np.random.default_rng(1)
    table = Table(pa.Table.from_batches([make_batch(rng, 0, n_rows)]))
    rows = []
    for extension in ("parquet", "fits", "vot", "csv"):
        path = folder / f"t.{extension}"
        write_seconds, _ = timed(write_table, table, path)
        read_seconds, found = timed(read_table, path)
        if not found.arrow.equals(table.arrow):
            raise SystemExit(f"{extension}: the table came back different")
        row = [extension, f"{write_seconds:.1f}", f"{read_seconds:.1f}", stilts_copy(path)]
        rows.append([*row, f"{path.stat().st_size / 1e6:.0f}"])
    header(f"Formats, {n_rows} rows x 25 columns, seconds", ["pyarrow", "astropy"])
    print_table(["", "write", "read", "STILTS read and write", "MB"], rows)


def stilts_copy(path):
    if shutil.which("stilts") is None or path.suffix not in (".fits", ".vot"):
        return ""
    command = ["stilts", "tcopy", f"in={path}", f"out={path.with_stem('copy')}"]
    seconds, _ = timed(subprocess.run, command)
    path.with_stem("copy").unlink()
    return f"{seconds:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        parquet_against_pyarrow(Path(folder), options.rows, options.repeats)
        formats(Path(folder), min(options.rows, 1_000_000))


if __name__ == "__main__":
    main()
