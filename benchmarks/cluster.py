"""The same job on one machine, on Dask and on LSDB: equal rows, and what the machinery costs.

    python benchmarks/cluster.py [--rows 5000000] [--features 16] [--folder FOLDER]

Simulated objects of two surveys of which the second covers part of the sky; filled with mean and
standard deviation. Needs about 2.5 GB of disk in FOLDER for 5,000,000 rows (default: the system's
temporary folder); everything is deleted at the end.
"""

import argparse
import os
import shutil
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from report import header, print_table
from skyfill.catalog import ColumnInfo, Role, Schema, Table, open_writer
from skyfill.model import Filling, fill_table, load_model, save_model, train
from skyfill.scale import Run, apply_model, cluster, open_source
from skyfill.scale.hats import import_lsdb, write_hats
from skyfill.scale.inputs import plan_parts
from skyfill.scale.train_dask import expect_on_dask, hold_parts
from skyfill.scale.workers import open_client

BATCH_ROWS = 1 << 16
TRAINING_ROWS = 20_000


def simulate(start, n_rows, n_features):
    """Objects of eight kinds; the second half of the features is lost together for 40 % of them."""
    rng = np.random.default_rng([7, start])
    truth = np.random.default_rng(0)
    loads = truth.normal(size=(8, 4, n_features))
    kind = rng.integers(0, 8, n_rows)
    x = np.einsum("nf,nfp->np", rng.normal(size=(n_rows, 4)), loads[kind])
    x += truth.normal(18, 2, (8, n_features))[kind] + rng.normal(0, 0.3, x.shape)
    lost = rng.random(x.shape) < 0.05
    lost[:, n_features // 2 :] |= (rng.random(n_rows) < 0.4)[:, None]
    columns = {
        "source_id": np.arange(start, start + n_rows),
        "ra": rng.uniform(67, 93, n_rows),
        "dec": rng.uniform(-74, -64, n_rows),
    }
    names = [f"f{j:02d}" for j in range(n_features)]
    columns |= {name: np.where(lost[:, j], np.nan, x[:, j]) for j, name in enumerate(names)}
    info = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in names}
    return Table.from_columns(columns, info=info), names


def make_file(path, n_rows, n_features):
    schema = simulate(0, 1, n_features)[0].arrow.schema
    with open_writer(path, schema) as writer:
        for start in range(0, n_rows, BATCH_ROWS):
            table, _ = simulate(start, min(BATCH_ROWS, n_rows - start), n_features)
            writer.write(table.arrow.combine_chunks().to_batches()[0])


class Cost(NamedTuple):
    """Seconds on the clock, and of all processors together: those of client and workers."""

    seconds: float
    cpu_seconds: float


def timed(work, client=None):
    start, used = time.perf_counter(), cpu_seconds(client)
    work()
    return Cost(time.perf_counter() - start, cpu_seconds(client) - used)


def cpu_seconds(client):
    workers = client.run(time.process_time).values() if client else ()
    return time.process_time() + sum(workers)


def on_threads(n, work):
    os.environ["SKYFILL_THREADS"] = str(n)
    try:
        return timed(work)
    finally:
        del os.environ["SKYFILL_THREADS"]


def differing_cells(left, right, names):
    """Cells that are not bit for bit equal once the rows are in the order of the identifiers."""
    bad = 0
    orders = [np.argsort(column(path, "source_id"), kind="stable") for path in (left, right)]
    for name in names:
        a, b = (column(path, name)[o] for path, o in zip((left, right), orders, strict=True))
        bad += int(np.count_nonzero(~((a == b) | (np.isnan(a) & np.isnan(b)))))
    return bad


def column(path, name):
    return np.concatenate([table.numbers(name)[:, 0] for table in open_source(path).tables([name])])


def _warm():
    """Import and compile in a worker: that is paid once, not per row."""
    import_lsdb()
    table, names = simulate(0, 600, 3)
    fill_table(train(table, names, n_components=1, n_fits=1)[0], table)


class Study:
    """One table and one model; every job is timed and compared with the one-thread result."""

    def __init__(self, folder, n_rows, n_features):
        self.folder, self.n_rows = folder, n_rows
        self.source, self.model_path = folder / "in.parquet", folder / "model.skyfill"
        make_file(self.source, n_rows, n_features)
        table, names = simulate(n_rows, TRAINING_ROWS, n_features)
        save_model(train(table, names, n_components=8, n_fits=3)[0], self.model_path)
        self.model = load_model(self.model_path)
        self.checked = [*names, *(f"{name}_sd" for name in names)]
        self.rows, self.alone, self.facts = [], {}, []

    def note(self, what, target, cost, base=None):
        """Keep one line of the table."""
        differs = differing_cells(target, self.folder / "alone1.parquet", self.checked)
        more = (
            ["", ""] if base is None else [overhead(*pair) for pair in zip(cost, base, strict=True)]
        )
        speed = f"{self.n_rows / cost.seconds:,.0f}"
        times = [f"{cost.seconds:.1f}", more[0], f"{cost.cpu_seconds:.1f}", more[1]]
        self.rows.append([what, speed, *times, differs])
        print(*self.rows[-1], flush=True)

    def one_machine(self):
        """Stream the file in this process."""
        for n in (1, 2):
            target = self.folder / f"alone{n}.parquet"
            work = partial(apply_model, Filling(), self.model, self.source, target)
            self.alone[n] = on_threads(n, work)
            self.note(f"one machine, {n} threads", target, self.alone[n])

    def dask(self, n):
        """Fill on processes of a local cluster, and time the sums of learning."""
        start = time.perf_counter()
        with open_client("local", n_workers=n) as client:
            client.run(_warm)
            start = time.perf_counter() - start
            for what, target in (("one file", f"dask{n}.parquet"), ("a folder", f"dask{n}")):
                path = self.folder / target
                work = partial(self.fill_on, self.source, path)
                self.note(f"Dask, {n} workers, {what}", path, timed(work, client), self.alone[n])
            step = time_sums(client, self.source, self.model)
        self.facts.append(
            f"{n} workers: {start:.1f} s to start them, import and compile; {step:.2f} s for one "
            "E-step over all rows"
        )

    def fill_on(self, source, target):
        """Fill on the cluster that is open."""
        with cluster(None) as workers:
            apply_model(Filling(), self.model_path, source, target, run=Run(workers=workers))

    def ingest(self):
        """Bring the table into HATS, in some twenty partitions."""
        size = max(self.n_rows // 8, 1)
        table = Table.from_arrow(pq.read_table(self.source))
        work = partial(write_hats, table, self.folder / "hats", partition_rows=size)
        seconds = timed(work).seconds
        n = len(open_source(f"hats://{self.folder}/hats").files)
        self.facts.append(f"table to HATS with its margin: {seconds:.1f} s, {n} partitions")

    def lsdb(self, n):
        """Fill the HATS catalogue."""
        with open_client("local", n_workers=n) as client:
            client.run(_warm)
            target = f"hats://{self.folder}/lsdb{n}"
            work = partial(self.fill_on, f"hats://{self.folder}/hats", target)
            self.note(f"LSDB, {n} workers", target, timed(work, client), self.alone[n])


def overhead(value, base):
    return f"{100 * (value / base - 1):+.0f} %"


def time_sums(client, source, model):
    """Seconds of one E-step, the parts being in the memory of the workers."""
    held = hold_parts(client, plan_parts([source]), model, Schema())
    expect_on_dask(client, held, model.network.fits[0])
    return timed(lambda: expect_on_dask(client, held, model.network.fits[0])).seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=options.folder))
    title = f"A cluster: {options.rows:,} rows, {options.features} features filled (mean and sd)"
    header(title, ["dask", "distributed", "lsdb", "pyarrow"])
    try:
        study = Study(folder, options.rows, options.features)
        _warm()
        study.one_machine()
        for n in (1, 2):
            study.dask(n)
        study.ingest()
        for n in (1, 2):
            study.lsdb(n)
        more = "over one machine"
        columns = ["job", "rows / s", "seconds", more, "CPU seconds", more, "cells that differ"]
        print_table(columns, study.rows)
        print(*(f"- {fact}" for fact in study.facts), sep="\n")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
