"""How long classifiers take to train: skyfill against boosters, all in one process.

    python benchmarks/training.py [--tables macho20,chandra,eros] [--repeats 1]
        [--methods skyfill,skyquick,skythorough,boosting,lightgbm,xgboost,catboost]

Each method is fitted to the whole table, with its gaps, on all cores. Processor seconds count the
work of all threads: they can be compared on a machine that has other work to do, seconds on the
clock cannot. The smallest of the repeats counts. Rivals as in classification.py; those that are not
installed are skipped.
"""

import argparse
import time
import warnings

import numpy as np

from class_rivals import METHODS, TITLES
from class_tables import TABLES
from report import header, print_table
from rivals import AbsentError

ROWS_TO_COMPILE = 300


def seconds(name, X, y):
    """Seconds on the clock and of all processors."""
    start = time.perf_counter(), time.process_time()
    METHODS[name]().fit(X, y)
    return time.perf_counter() - start[0], time.process_time() - start[1]


def timed(name, X, y, repeats):
    """The best of some fits, after one to a few rows that compiles what is to be compiled."""
    some = np.random.default_rng(0).permutation(len(X))[:ROWS_TO_COMPILE]
    seconds(name, X[some], y[some])
    return np.min([seconds(name, X, y) for _ in range(repeats)], axis=0)


def rows_of(key, options):
    table = TABLES[key](0)
    y, found = table.y.astype(str), {}
    for name in options.methods:
        try:
            found[name] = timed(name, table.X, y, options.repeats)
        except AbsentError as reason:
            print(f"{TITLES[name]}: skipped ({reason})\n")
    base = found.get("catboost", (np.nan, np.nan))[1]
    for name, (clock, work) in found.items():
        cells = [f"{clock:.1f}", f"{work:.1f}", f"{work / base:.2f}"]
        yield [f"{table.title} ({len(y)} × {table.X.shape[1]})", TITLES[name], *cells]


def words(text):
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tables", type=words, default=["macho20", "chandra", "eros"])
    parser.add_argument(
        "--methods",
        type=words,
        default=[
            "skyfill",
            "skyquick",
            "skythorough",
            "boosting",
            "lightgbm",
            "xgboost",
            "catboost",
        ],  # fmt: skip
    )
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    header("Training", ["scikit-learn", "lightgbm", "xgboost", "catboost"])
    rows = [row for key in options.tables for row in rows_of(key, options)]
    print_table(["table", "classifier", "clock s", "processor s", "of CatBoost's"], rows)


if __name__ == "__main__":
    main()
