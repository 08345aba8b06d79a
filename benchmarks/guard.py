"""What the checks of the input cost: `impute` of a large file, and the sample that is looked at.

    python benchmarks/guard.py [--rows 2e7] [--folder DIR]

Twelve columns, 15 % of the cells lost, 8 components in 8 fits.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from report import header, print_table
from skyfill.catalog import Schema, Table, write_table
from skyfill.cli.checks import check_source
from skyfill.model import Filling, train
from skyfill.scale import apply_model, open_source

P = 12


def make_table(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, P)) @ rng.normal(size=(P, P)) + 18
    X[rng.random(X.shape) < 0.15] = np.nan
    return Table.from_columns({f"m{j}": X[:, j] for j in range(P)})


def seconds(work, *args):
    start = time.perf_counter()
    work(*args)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    header("Checks of the input", ["numpy", "pyarrow"])
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        path, table = Path(name) / "in.parquet", make_table(int(asked.rows))
        write_table(table, path)
        model, _ = train(Table(table.arrow.slice(0, 3000)), table.names, n_components=8, n_fits=8)
        del table
        source = open_source(path)
        check_source(model, source, Schema())  # compiles
        checks = seconds(check_source, model, source, Schema())
        whole = seconds(apply_model, Filling(), model, path, Path(name) / "out.parquet")
    row = [f"{int(asked.rows):,}", f"{checks:.2f}", f"{whole:.1f}", f"{100 * checks / whole:.2f} %"]
    print_table(["rows", "checks (s)", "impute without them (s)", "share"], [row])


if __name__ == "__main__":
    main()
