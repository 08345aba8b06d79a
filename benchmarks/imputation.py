"""Filling gaps: all methods on the same hidden cells, trained on one half of real tables.

    python benchmarks/imputation.py [--tables macho,chandra] [--masks cells,blocks,faint]
        [--methods network,knn,...] [--repeats 5] [--rates 5,10,15,20] [--save FOLDER [--saved]]
        [--rows 100000]

Without tables (--tables "") only the speed is measured.

Needs the public tables in SKYFILL_DATA (or the network to fetch them). Rivals that are not
installed are skipped with a line that says how to get them.
"""

import argparse
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from report import header, print_table
from rivals import RIVALS, TITLES, AbsentError, rivals
from skyfill.evaluate import Comparison, compare_imputers, hide_blocks, hide_cells, hide_faint
from survey_tables import TABLES, macho

PAPER = {
    "the paper's network, its 14 features": ("0.396", "0.437", "0.514", "0.523"),
    "the paper's mixtures, its 14 features": ("0.624", "0.701", "0.764", "0.790"),
}
PAPER_RATES = (0.05, 0.1, 0.15, 0.2)
# Blocks and faint limits at one rate: the chance of each block, the share beyond the limit.
ONE_RATE = (0.2,)
# Methods whose speed is measured.
SPEED = ("network", "refined", "knn", "forest", "extra")


def masks(table, rates):
    """Name -> (rule, rates) for a table."""
    return {
        "cells": ("cells", rates),
        "blocks": (partial(hide_blocks, groups=table.groups), ONE_RATE),
        "faint": (partial(hide_faint, columns=table.magnitudes), ONE_RATE),
    }


def compare(key, table, name_of_mask, rule, options):
    """Run each method by itself, so that one that fails does not take the others along."""
    found = Comparison(())
    factories = rivals(name_of_mask)
    mask, rates = rule
    for name in options.methods:
        for rate in rates:
            kept = options.save and options.save / f"{key}-{name_of_mask}-{name}-{rate:g}.json"
            if kept and kept.exists():
                found += Comparison.from_json(kept.read_text())
            if options.saved or (kept and kept.exists()):
                continue
            run = partial(
                compare_imputers,
                table.X,
                {TITLES[name]: factories[name]},
                rates=[rate],
                mask=mask,
                repeats=options.repeats,
                rng=options.seed,
            )
            new = attempt(name, run)
            if kept and new.scores:
                kept.write_text(new.to_json())
            found += new
    return found


def attempt(name, run):
    """Run one method; say how long it took and what it warned of, or why there is no result."""
    start = time.perf_counter()
    try:
        with counted_warnings() as told:
            found = run()
    except AbsentError as reason:
        print(f"{TITLES[name]}: skipped ({reason})\n", flush=True)
    except Exception as error:
        print(f"{TITLES[name]}: failed ({type(error).__name__}: {error})\n", flush=True)
    else:
        seconds = f"{time.perf_counter() - start:.0f} s"
        print(f"<!-- {TITLES[name]}: {seconds}{told()} -->", flush=True)
        return found
    return Comparison(())


@contextmanager
def counted_warnings():
    """Count warnings by kind: a method that has not settled must be seen as such."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: "".join(
            f", {count} × {kind}"
            for kind, count in Counter(w.category.__name__ for w in caught).items()
        )


def report(found, table, name):
    """Print the scores, with the paper's where they can stand beside, and the ratios of times."""
    if not found.scores:
        return
    print(f"\n### {table.title}: {name} hidden\n")
    for score in ("nrmse", "crps", "coverage_50", "coverage_90"):
        print(found.table(score))
        if score == "nrmse" and name == "cells" and table.title.startswith("MACHO"):
            print_paper(found.rates)
        print(flush=True)
    print_differences(found)
    print_times(found)


def print_differences(found):
    """How much each method is worse than the first, paired over the repeats."""
    first, *others = found.methods
    rows = []
    for method in others:
        cells = []
        for score in ("nrmse", "crps"):
            for rate in found.rates:
                pairs = zip(found.runs(method, rate), found.runs(first, rate), strict=False)
                gaps = [getattr(theirs, score) - getattr(ours, score) for theirs, ours in pairs]
                cells.append(difference(gaps))
        rows.append([method, *cells])
    heads = [f"{score} {100 * rate:g} %" for score in ("NRMSE", "CRPS") for rate in found.rates]
    print_table([f"worse than {first} by", *heads], rows)


def difference(gaps):
    if not gaps:
        return "–"
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps)) if len(gaps) > 1 else np.nan
    return f"{np.mean(gaps):+.3f} ± {error:.3f}"


def print_paper(rates):
    if rates == PAPER_RATES:
        for title, values in PAPER.items():
            print("| " + " | ".join([title, *values]) + " |")


def print_times(found):
    """Ratios to the first method, mean over all runs."""
    rows, first = [], None
    for method in found.methods:
        runs = [run for run in found.scores if run.method == method]
        fit, fill = (
            np.mean([getattr(r, k) for r in runs]) for k in ("fit_seconds", "fill_seconds")
        )
        first = first or (fit, fill)
        rows.append([method, f"{fit / first[0]:.2g}", f"{fill / first[1]:.2g}"])
    print_table(["time as a ratio to the first", "fit", "fill"], rows)


def speed(options):
    """Fill many new MACHO-like rows (drawn with replacement, 20 % hidden) with trained methods."""
    rng = np.random.default_rng(0)
    X = macho().X
    train = hide_cells(X[rng.permutation(len(X))[: len(X) // 2]], 0.2, rng).X
    new = hide_cells(X[rng.integers(len(X), size=options.rows)], 0.2, rng).X
    rows = []
    for name in [name for name in options.methods if name in SPEED]:
        try:
            imputer = RIVALS[name]()
        except AbsentError as reason:
            print(f"{TITLES[name]}: skipped ({reason})\n")
            continue
        imputer.fit(train).transform(new[:100])  # compiles, where there is something to compile
        start = time.perf_counter()
        imputer.fit(train)
        fitted = time.perf_counter()
        imputer.transform(new)
        rows.append((TITLES[name], fitted - start, time.perf_counter() - fitted))
    print_speed(rows, options.rows)


def print_speed(rows, n):
    if not rows:
        return
    print(f"### Fitting {3030} MACHO rows and filling {n} new ones\n")
    _, fit, fill = rows[0]
    cells = [
        [title, f"{a / fit:.2g}", f"{b / fill:.2g}", f"{1e6 * b / n:.3g}"] for title, a, b in rows
    ]
    print_table(["method", "fit, ratio", "fill, ratio", "fill, µs per row"], cells)


def words(text):
    return [word for word in text.split(",") if word]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tables", type=words, default=list(TABLES))
    parser.add_argument("--masks", type=words, default=["cells", "blocks"])
    parser.add_argument("--methods", type=words, default=list(RIVALS))
    parser.add_argument("--rates", type=words, default=["5", "10", "15", "20"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="folder that keeps finished runs")
    parser.add_argument("--saved", action="store_true", help="report what is kept, run nothing")
    parser.add_argument("--rows", type=int, default=100_000, help="rows to fill; 0 for none")
    options = parser.parse_args()
    if options.save:
        options.save.mkdir(parents=True, exist_ok=True)
    header("Imputation", ["scikit-learn", "MissForest", "miceforest", "lightgbm"])
    for key in options.tables:
        table = TABLES[key]()
        rules = masks(table, tuple(float(rate) / 100 for rate in options.rates))
        for name in options.masks:
            found = compare(key, table, name, rules[name], options)
            report(found, table, name)
    if options.rows:
        speed(options)


if __name__ == "__main__":
    main()
