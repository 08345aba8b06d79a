"""Non-detections, limits and errors: filled values and intervals against what is true.

    python benchmarks/nondetections.py [--tables field,banknote,red,white,dc2,noisy,fluxes,chandra]
        [--methods ours,knn,...] [--seeds 5] [--quick] [--save FOLDER [--saved]]

Every method is fitted to the table that it fills. Rivals know no limits; pyGMMis and XDGMM know
errors. ``--quick`` runs one seed; with ``--save`` finished runs are kept and not run again.

The tables of UCI and DC2 are read from SKYFILL_DATA. Rivals that are not installed are skipped with
a line that says how to get them.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from imputation import counted_warnings, words
from limit_rivals import METHODS, TITLES
from limit_tables import TABLES
from report import header, print_table
from rivals import AbsentError

FILLERS = ("mean", "knn", "ridge", "extra", "forest", "mice", "copula")
OURS = ("ours", "ours_limits", "ours_plain")
PROTOCOL = ("ours_limits", "ours_plain", *FILLERS)
METHODS_OF = {
    "field": (*OURS, *FILLERS, "pygmmis", "truth", "answers"),
    "banknote": PROTOCOL,
    "red": PROTOCOL,
    "white": PROTOCOL,
    "dc2": (*OURS, *FILLERS, "pygmmis", "floor"),
    "noisy": ("denoised", "xdgmm", "pygmmis", "measured"),
    "fluxes": ("ours_limits", "logs", "ours_plain"),
    "chandra": ("ours_limits", "logs", "ours_plain"),
}
HEADS = {
    "field": "Simulated training set: 12 magnitudes",
    "banknote": "not-MIWAE protocol, banknote",
    "red": "not-MIWAE protocol, red wine",
    "white": "not-MIWAE protocol, white wine",
    "dc2": "DC2: u, g and y fainter than a limit hidden",
    "noisy": "DC2: errors tripled",
    "fluxes": "Simulated fluxes of 313 galaxies, in dex",
    "chandra": "Fluxes of Chandra, in dex",
}
# Ipsen, Mattei & Frellsen (2021), Table 1.
PRINTED = {
    "banknote": {"not-MIWAE": 0.57, "MIWAE": 1.19, "missForest": 1.28, "MICE": 1.41},
    "red": {"not-MIWAE": 1.07, "MIWAE": 1.62, "missForest": 1.64, "MICE": 1.68},
    "white": {"not-MIWAE": 0.99, "MIWAE": 1.55, "missForest": 1.63, "MICE": 1.41},
}


def run(key, name, seed):
    """Scores of one method on one table: n, bias, RMSE and coverage of each group."""
    table = TABLES[key](seed)
    start = time.perf_counter()
    with counted_warnings() as warned:
        filled = METHODS[name](table, seed)
    seconds = time.perf_counter() - start
    print(f"<!-- {key}, {TITLES[name]}, seed {seed}: {seconds:.0f} s{warned()} -->", flush=True)
    if table.positive is not None:
        below = int((filled.mean <= 0)[table.groups["hidden"]].sum())
        print(f"<!-- {below} filled values are not above zero -->", flush=True)
        filled, table = in_dex(filled, table)
    return {group: score(filled, table, cells) for group, cells in table.groups.items()}


def in_dex(filled, table):
    """Take the logarithms of all values; what is not positive counts as far below all others."""
    least = np.nanmin(table.true[:, table.positive], axis=0).min() / 100
    logs = [
        np.where(table.positive, np.log10(np.maximum(np.where(table.positive, a, 1.0), least)), a)
        for a in (filled.mean, filled.quantiles, table.true)
    ]
    return type(filled)(*logs[:2]), table._replace(true=logs[2])


def score(filled, table, cells):
    away = (filled.mean - table.true)[cells]
    found = [int(cells.sum()), away.mean(), np.sqrt((away**2).mean())]
    return [*map(float, found), inside(filled.quantiles, table, cells)]


def inside(quantiles, table, cells):
    """Share of the truths inside the interval, widened by the errors of what is taken as true."""
    if quantiles is None:
        return None
    low, high = quantiles[:, cells]
    center, half, true = (low + high) / 2, (high - low) / 2, table.true[cells]
    if table.doubt is not None:
        half = np.hypot(half, ndtri(0.95) * table.doubt[cells])
    return float((np.abs(true - center) <= half).mean())


def kept_or_run(key, name, seed, options):
    kept = options.save and options.save / f"{key}-{name}-{seed}.json"
    if kept and kept.exists():
        return json.loads(kept.read_text())
    if options.saved:
        return None
    try:
        found = run(key, name, seed)
    except AbsentError as reason:
        print(f"{TITLES[name]}: skipped ({reason})\n", flush=True)
        return None
    except Exception as error:
        print(f"{TITLES[name]}: failed ({type(error).__name__}: {error})\n", flush=True)
        return None
    if kept:
        kept.write_text(json.dumps(found))
    return found


def report(key, found):
    """Print bias, RMSE and coverage of each group, mean over seeds."""
    found = {name: runs for name, runs in found.items() if runs}
    if not found:
        return
    first = next(iter(found.values()))[0]
    heads = [f"{group} ({first[group][0]:.0f} cells)" for group in first]
    rows = [
        [
            f"{TITLES[name]} ({len(runs)})",
            *(words_of([run[group] for run in runs]) for group in first),
        ]
        for name, runs in found.items()
    ]
    for title, value in PRINTED.get(key, {}).items():
        rows.append([f"{title}, printed in its paper", f"RMSE {value:.2f}"])
    print(f"### {HEADS[key]}\n")
    print_table(["method (seeds): bias, RMSE, in 90 % interval", *heads], rows)
    table = TABLES[key](0)
    if table.doubt is not None:
        rows = [[TITLES[name], *beyond(runs[0], table)] for name, runs in found.items()]
        print(f"\n### {HEADS[key]}: RMSE beyond the errors of the known values\n")
        print_table(["method", *first], rows)


def beyond(run, table):
    """RMSE of each group without the stated errors of what is taken as true."""
    for group, cells in table.groups.items():
        left = run[group][2] ** 2 - (table.doubt[cells] ** 2).mean()
        yield f"{np.sqrt(left):.3f}" if left > 0 else "–"


def words_of(scores):
    _, bias, rmse, coverage = zip(*scores, strict=True)
    held = "–" if coverage[0] is None else f"{np.mean(coverage):.2f}"
    return f"{np.mean(bias):+.2f}, {np.mean(rmse):.3f}, {held}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tables", type=words, default=list(TABLES))
    parser.add_argument("--methods", type=words, default=list(METHODS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one seed")
    parser.add_argument("--save", type=Path, help="folder that keeps finished runs")
    parser.add_argument("--saved", action="store_true", help="report what is kept, run nothing")
    options = parser.parse_args()
    if options.save:
        options.save.mkdir(parents=True, exist_ok=True)
    packages = ["scikit-learn", "miceforest", "lightgbm", "gcimpute", "pygmmis", "astroML"]
    header("Non-detections, limits and errors", packages)
    for key in options.tables:
        found = {}
        for name in [name for name in METHODS_OF[key] if name in options.methods]:
            seeds = range(1 if options.quick else options.seeds)
            runs = [kept_or_run(key, name, seed, options) for seed in seeds]
            found[name] = [run for run in runs if run]
        report(key, found)


if __name__ == "__main__":
    main()
