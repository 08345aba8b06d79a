"""Files to files with and without a GPU: times of impute and classify, and where they go.

    python benchmarks/gpu_files.py [--rows 2e7] [--cpu-rows 4e6] [--trees 100] [--folder DIR]

Times are those of `apply_model` in one process, after a start on a few rows. Shares are of the sum
over all threads: reading (with conversion), computing (waiting for the GPU included), writing.
"""

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from report import header, print_table
from scale import NAMES, WRITE_ROWS, simulate, write_models
from skyfill.device import using
from skyfill.model import Filling, Scoring
from skyfill.scale import apply_model, inputs, scoring
from skyfill.threads import map_threads, n_threads


class Clock:
    """Seconds of all threads in one part of the work."""

    def __init__(self):
        self.spent, self._lock = {}, threading.Lock()

    def add(self, name, since):
        with self._lock:
            self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - since

    def wrap(self, name, work):
        def timed(*args, **how):
            start = time.perf_counter()
            try:
                return work(*args, **how)
            finally:
                self.add(name, start)

        return timed

    def wrap_steps(self, name, make):
        def timed(*args, **how):
            steps = iter(make(*args, **how))
            while True:
                start = time.perf_counter()
                step = next(steps, None)
                self.add(name, start)
                if step is None:
                    return
                yield step

        return timed


def write_survey(path, n):
    """Write a survey as scale.py does, on all cores."""
    starts = list(range(0, n, WRITE_ROWS))
    writer = None
    for first in range(0, len(starts), n_threads()):
        some = starts[first : first + n_threads()]
        tables = map_threads(lambda start: simulate(min(WRITE_ROWS, n - start), start)[0], some)
        for start, X in zip(some, tables, strict=True):
            columns = {"id": np.arange(start, start + len(X))}
            columns |= {k: pa.array(x, from_pandas=True) for k, x in zip(NAMES, X.T, strict=True)}
            table = pa.table(columns)
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
    writer.close()


def measure(work, model, survey, out, device):
    clock = Clock()
    plain = scoring.ModelTask.__call__, scoring.write_groups, inputs.read_in_batches
    scoring.ModelTask.__call__ = clock.wrap("computing", plain[0])
    scoring.write_groups = clock.wrap("writing", plain[1])
    inputs.read_in_batches = clock.wrap_steps("reading", plain[2])
    try:
        with using(device):
            start = time.perf_counter()
            done = apply_model(work, model, survey, out)
            seconds = time.perf_counter() - start
    finally:
        scoring.ModelTask.__call__, scoring.write_groups, inputs.read_in_batches = plain
    spent = clock.spent
    spent["writing"] -= spent["computing"]  # what is written is computed meanwhile
    shares = [f"{100 * spent[k] / sum(spent.values()):.0f} %"
              for k in ("reading", "computing", "writing")]  # fmt: skip
    return done.rows, seconds, shares


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--cpu-rows", type=float, default=4e6)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    asked.training, asked.components, asked.fits = 6000, 8, 3
    header("Files to files with a GPU", ["numpy", "numba", "pyarrow"])
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder, rows = Path(name), []
        write_models(folder, [asked.trees], asked)
        model = folder / f"{asked.trees}.skyfill"
        sizes = {"gpu": int(asked.rows), "cpu": int(asked.cpu_rows)}
        for n in {60_000, *sizes.values()}:
            write_survey(folder / f"{n}.parquet", n)
        jobs = {"impute": Filling(), "classify": Scoring(n_draws=0),
                "classify, 8 draws for gap_share": Scoring()}  # fmt: skip
        for job, work in jobs.items():
            for device, n in sizes.items():
                out = folder / "out.parquet"
                measure(work, model, folder / "60000.parquet", out, device)
                _, seconds, shares = measure(work, model, folder / f"{n}.parquet", out, device)
                rows.append([job, device, f"{n:,}", f"{seconds:.1f}", f"{n / seconds:,.0f}",
                             *shares])  # fmt: skip
                print(rows[-1], flush=True)
        columns = ["job", "device", "rows", "seconds", "rows per second"]
        print_table([*columns, "reading", "computing", "writing"], rows)


if __name__ == "__main__":
    main()
