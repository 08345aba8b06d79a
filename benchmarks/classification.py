"""Classifying incomplete objects: all methods in the same folds, paired standard errors.

    python benchmarks/classification.py [--tables macho20,chandra] [--methods skyfill,xgboost]
        [--repeats 3] [--save FOLDER [--saved]] [--rows 100000]

Every method, table and repeat is kept in FOLDER when it is done and not computed again, so that
the whole can be run in pieces; what is there is reported. Needs the public tables in SKYFILL_DATA.
Rivals that are not installed are skipped with a line that says how to get them.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from class_rivals import METHODS, TITLES
from class_tables import TABLES
from report import header, print_table
from rivals import AbsentError
from skyfill.catalog.class_labels import label_texts
from skyfill.classify.training_set import read_labels
from skyfill.evaluate import hide_cells
from skyfill.evaluate.class_comparison import ClassComparison, OutOfFold
from skyfill.evaluate.classification import cross_validate

SCORES = {"macro_f": "macro F1", "weighted_f": "weighted F1", "log_loss": "log loss", "ece": "ECE"}
# Class whose F1 is shown by itself, where a table has it.
RARE = "QSO"


def compare(key, options):
    """Run, or read, every method and repeat of a table."""
    runs, absent = [], set()
    for repeat in range(options.repeats):
        table = TABLES[key](repeat)
        labels = read_labels(label_texts(table.y))
        for name in options.methods:
            if name in absent:
                continue
            if options.saved and not place(key, name, repeat, options).exists():
                continue
            try:
                runs.append(run(key, table, name, repeat, options))
            except AbsentError as reason:
                absent.add(name)
                print(f"{TITLES[name]}: skipped ({reason})\n", flush=True)
    titles = [TITLES[name] for name in options.methods]
    runs.sort(key=lambda run: titles.index(run.method))
    codes = labels.codes
    return table, ClassComparison(
        tuple(labels.classes), codes, tuple(runs), np.flatnonzero(labels.known)
    )


def place(key, name, repeat, options):
    return options.save / f"{key}-{repeat}-{name}.npz"


def run(key, table, name, repeat, options):
    """Cross-validate one method, or read what was kept."""
    path = place(key, name, repeat, options) if options.save else None
    if path and path.exists():
        with np.load(path) as kept:
            return OutOfFold(TITLES[name], repeat, kept["p"], *kept["seconds"].tolist())
    start = time.perf_counter()
    factory = {TITLES[name]: METHODS[name]}
    found = cross_validate(table.X, table.y, factory, folds=table.folds, rng=repeat).runs[0]
    print(f"<!-- {key} {repeat} {name}: {time.perf_counter() - start:.0f} s -->", flush=True)
    if path:
        options.save.mkdir(parents=True, exist_ok=True)
        seconds = [found.fit_seconds, found.score_seconds]
        np.savez_compressed(path, p=found.probabilities, seconds=seconds)
    return replace(found, repeat=repeat)


def report(title, found):
    """Print every score with its standard error, and the paired difference from the first."""
    print(f"\n### {title}\n")
    first = found.methods[0]
    rare = [RARE] if RARE in found.classes else []
    rows = []
    for method in found.methods:
        cells = [method]
        for score in SCORES:
            cells.append(cell(found, score, method, first))
        for name in rare:
            k = found.classes.index(name)
            cells.append(f"{found.by_class(method).f[k]:.3f}")
        rows.append(cells)
    print_table(["classifier", *SCORES.values(), *(f"{name} F1" for name in rare)], rows)


def cell(found, score, method, first):
    """Value ± standard error (difference from the first, 95 % interval)."""
    mean = found.mean(score, method)
    text = f"{mean.value:.3f} ± {mean.error:.3f}"
    if method == first:
        return text
    gap = found.difference(score, method, first)
    return f"{text} ({gap.value:+.3f}: {gap.low:+.3f} to {gap.high:+.3f})"


def speed(options):
    """Train on MACHO with 20 % hidden; classify many rows drawn from it with new gaps."""
    table = TABLES["macho20"](0)
    rng = np.random.default_rng(0)
    full = TABLES["macho5"](0).X
    new = hide_cells(full[rng.integers(len(full), size=options.rows)], 0.2, rng).X
    rows, first = [], None
    for name in [name for name in options.methods if name in ("skyfill", "paper", "missforest")]:
        model = METHODS[name]()
        start = time.perf_counter()
        model.fit(table.X, table.y.astype(str))
        fitted = time.perf_counter()
        model.predict_proba(new[:100])  # compiles, where there is something to compile
        begun = time.perf_counter()
        model.predict_proba(new)
        spent = (fitted - start, time.perf_counter() - begun)
        first = first or spent
        ratios = [f"{a / b:.2g}" for a, b in zip(spent, first, strict=True)]
        rows.append([TITLES[name], *ratios, f"{1e6 * spent[1] / options.rows:.3g}"])
    print(f"\n### Training on {len(table.X)} MACHO rows and classifying {options.rows}\n")
    print_table(["classifier", "training, ratio", "classifying, ratio", "µs per row"], rows)


def words(text):
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tables", type=words, default=list(TABLES))
    parser.add_argument("--methods", type=words, default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--save", type=Path, help="folder for out-of-fold probabilities")
    parser.add_argument("--saved", action="store_true", help="report what is kept, run nothing")
    parser.add_argument("--rows", type=int, default=100_000, help="rows to time; 0 for none")
    options = parser.parse_args()
    header("Classification", ["scikit-learn", "lightgbm", "xgboost", "catboost"])
    for key in options.tables:
        table, found = compare(key, options)
        if not found.runs:
            continue
        report(table.title, found)
        for name, rows in table.rows.items():
            report(f"{table.title}: {name} objects", found.subset(rows))
        if key == "field":
            print(found.class_table())
    if options.rows:
        speed(options)


if __name__ == "__main__":
    main()
