"""A survey on one machine: rate and memory of impute and classify, rivals, killed and resumed.

    python benchmarks/scale.py [--rows 1e5,1e6] [--trees 100,300] [--folder DIR] [--only PART,...]
                              [--before SRC]

Parts: rows (rates against rows, beside a bare pyarrow read-write of the same columns), trees
(classify against trees), forest (the same trees alone on filled rows in memory, by skyfill and by
scikit-learn), rivals (what others do in a minute, extrapolated), kills (ten SIGKILLs at random
points), before (`--before SRC`: the same model on the same rows by the sources of another version,
in turn; that version trains the model). Every measured job is a process of its own; its time
includes the start of Python and the reading of compiled kernels, which the same job on one row
measures.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from report import header, print_table

P, N_CLASSES, SURVEYS = 25, 8, 5
NAMES = [f"x{j}" for j in range(P)]
WRITE_ROWS = 1 << 16
MINUTE = 60.0


class Cost(NamedTuple):
    """What a process took."""

    seconds: float
    processor: float
    megabytes: float


def simulate(n, seed):
    """Objects of eight classes; the columns of whole surveys are lost together, cells alone."""
    rng = np.random.default_rng(seed)
    fixed = np.random.default_rng(1)
    loads, centers = fixed.normal(size=(6, P)), fixed.normal(scale=2, size=(N_CLASSES, 6))
    kind = rng.integers(0, N_CLASSES, n)
    X = (centers[kind] + rng.normal(size=(n, 6))) @ loads + rng.normal(scale=0.7, size=(n, P))
    X[:, ::5] = np.exp(X[:, ::5] / 5)
    survey = np.arange(P) * SURVEYS // P
    lost = rng.random((n, SURVEYS)) < np.linspace(0, 0.5, SURVEYS)
    X[lost[:, survey]] = np.nan
    X[rng.random(X.shape) < 0.02] = np.nan
    return X, kind


def write_survey(path, n):
    if path.exists():
        return
    writer = None
    for start in range(0, n, WRITE_ROWS):
        X, _ = simulate(min(WRITE_ROWS, n - start), start)
        columns = {"id": np.arange(start, start + len(X))}
        columns |= {name: pa.array(x, from_pandas=True) for name, x in zip(NAMES, X.T, strict=True)}
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def write_models(folder, trees, options):
    """Train one model per number of trees; all have the same imputer."""
    from skyfill.catalog import ColumnInfo, Role, Table
    from skyfill.classify import CatalogClassifier
    from skyfill.impute import NetworkImputer
    from skyfill.model import save_model, train_classifier

    X, kind = simulate(options.training, 7)
    info = {name: ColumnInfo(role=Role.FEATURE) for name in NAMES}
    columns = dict(zip(NAMES, X.T, strict=True)) | {"class": np.array(list("ABCDEFGH"))[kind]}
    table = Table.from_columns(columns, info=info)
    for count in trees:
        path = folder / f"{count}.skyfill"
        if path.exists():
            continue
        how = {"n_fits": options.fits, "refine": None, "random_state": 0}
        imputer = NetworkImputer(options.components, **how)
        small = CatalogClassifier(
            "paper", n_trees=count, calibrate=False, imputer=imputer, random_state=0
        )
        model, _ = train_classifier(table, NAMES, "class", classifier=small)
        save_model(model, path)


def measure(command, sources=None):
    """Run a process; its time, its processor time and the most memory that it held."""
    env = os.environ | ({"PYTHONPATH": str(sources)} if sources else {})
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=env)
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command}: {said[-2000:]}")
    used = usage.ru_utime + usage.ru_stime
    return Cost(time.perf_counter() - start, used, usage.ru_maxrss / 1024)


def skyfill(command, *words):
    start = f"from skyfill.cli.{command} import command; command()"
    return [sys.executable, "-c", start, *map(str, words)]


BARE = """
import sys
import pyarrow.parquet as pq
source = pq.ParquetFile(sys.argv[1], pre_buffer=False)
with pq.ParquetWriter(sys.argv[2], source.schema_arrow) as sink:
    for batch in source.iter_batches(1 << 16):
        sink.write_batch(batch)
"""


def jobs(folder, n, trees):
    """Name -> command, in the order in which they must run."""
    survey, filled, model = folder / f"{n}.parquet", folder / "filled.parquet", f"{trees}.skyfill"
    write_survey(survey, n)
    words = ("-o", folder / "classes.parquet", "--gap-draws", 0)
    return {
        "impute": skyfill("impute", folder / model, survey, "-o", filled),
        "bare": [sys.executable, "-c", BARE, filled, folder / "bare.parquet"],
        "classify": skyfill("classify", folder / model, survey, *words),
    }


def against_rows(folder, sizes, trees):
    start = {name: measure(command) for name, command in jobs(folder, 1, trees).items()}
    rows = []
    for n in sizes:
        costs = {name: measure(command) for name, command in jobs(folder, n, trees).items()}
        bare = costs["bare"]
        for name, cost in costs.items():
            ratios = [
                f"{cost.seconds / bare.seconds:.2f}",
                f"{cost.processor / bare.processor:.2f}",
            ]
            rows.append([f"{n:,}", name, *figures(n, cost, start[name]), *ratios])
    print_table(["rows", "job", *FIGURES, "times bare", "processor times bare"], rows)


FIGURES = [
    "seconds",
    "rows per second",
    "after the start",
    "processor µs per row",
    "after the start",
    "peak MB",
]


def figures(n, cost, start):
    """Time and rate, in all and without what one row takes."""
    whole = [cost, Cost(cost.seconds - start.seconds, cost.processor - start.processor, 0)]
    rates = [f"{n / max(one.seconds, 1e-3):,.0f}" for one in whole]
    each = [f"{1e6 * one.processor / n:.1f}" for one in whole]
    return [f"{cost.seconds:.1f}", *rates, *each, f"{cost.megabytes:.0f}"]


def against_version(folder, n, trees, before, turns=5):
    """The jobs by two versions in turn: least values of each, and the median of the ratios."""
    folder = folder / "before"
    folder.mkdir(exist_ok=True)
    words = ["--only", "models", "--trees", trees, "--folder", folder]
    measure([sys.executable, __file__, *map(str, words)], before)
    after = Path(__file__).resolve().parents[1] / "src"
    rows = []
    for name, command in jobs(folder, n, trees).items():
        pairs = [[measure(command, sources) for sources in (before, after)] for _ in range(turns)]
        for what, (old, new) in zip(Cost._fields, np.array(pairs).transpose(2, 1, 0), strict=True):
            ratios = [f"{new.min() / old.min():.3f}", f"{np.median(new / old):.3f}"]
            rows.append([name, what, f"{old.min():.1f}", f"{new.min():.1f}", *ratios])
    columns = ["before", "after", "ratio", "median ratio"]
    print_table([f"job, {n:,} rows, {turns} turns", "least", *columns], rows)


def against_trees(folder, n, trees):
    rows = []
    for count in trees:
        start = measure(jobs(folder, 1, count)["classify"])
        cost = measure(jobs(folder, n, count)["classify"])
        rows.append([count, f"{n:,}", *figures(n, cost, start)])
    print_table(["trees", "rows", *FIGURES], rows)


def forest_alone(folder, n, trees, training):
    """Rates of the same number of trees on rows without gaps in memory, on all cores."""
    from sklearn.ensemble import RandomForestClassifier

    from skyfill.model import load_model

    scorer = load_model(folder / f"{trees}.skyfill").scorer
    X, kind = simulate(training, 7)
    theirs = RandomForestClassifier(trees, n_jobs=-1, random_state=0)
    theirs.fit(scorer.network.posterior(X).mean, kind)
    new = scorer.network.posterior(simulate(n, 11)[0]).mean
    rows = []
    for name, score in {
        "skyfill": scorer.members[0].forest.predict_proba,
        "scikit-learn": theirs.predict_proba,
    }.items():
        score(new[:1000])
        start = time.perf_counter()
        score(new)
        rows.append([name, trees, f"{n:,}", f"{n / (time.perf_counter() - start):,.0f}"])
    print_table(["forest alone", "trees", "rows", "rows per second"], rows)


def rivals(n_target, trees, training):
    """Others' pipelines on a training set of the same size, doubled until a minute is over."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer, KNNImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from skyfill.impute import ForestImputer

    forest = RandomForestClassifier(trees, n_jobs=2, random_state=0)
    X, kind = simulate(training, 7)
    rows = []
    for name, imputer in {
        "IterativeImputer + forest": IterativeImputer(random_state=0),
        "KNNImputer + forest": make_pipeline(StandardScaler(), KNNImputer()),
        "missForest (skyfill's, 100 trees) + forest": ForestImputer(random_state=0),
    }.items():
        start = time.perf_counter()
        full = imputer.fit_transform(X)
        forest.fit(full, kind)
        fit = time.perf_counter() - start
        n, seconds = 500, 0.0
        while seconds < MINUTE / 3:
            n *= 2
            new, _ = simulate(n, 11)
            start = time.perf_counter()
            forest.predict_proba(imputer.transform(new))
            seconds = time.perf_counter() - start
        hours = n_target / n * seconds / 3600
        rows.append(
            [name, f"{fit:.0f}", n, f"{seconds:.0f}", f"{n / seconds:,.0f}", f"{hours:.1f}"]
        )
    columns = ["who", "fit s", "rows", "seconds", "rows per second", f"hours for {n_target:,} rows"]
    print_table(columns, rows)


def kills(folder, n, trees, count):
    """Kill `skyfill impute` at random points and resume it; compare with one that ran through."""
    survey, model = folder / f"{n}.parquet", folder / f"{trees}.skyfill"
    write_survey(survey, n)
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    places = [folder / "whole", folder / "killed"]
    for place in places:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
    command = skyfill("impute", model, survey, "-o", "out.parquet", "--resume")
    whole = live(command, places[0], None)
    rng, survived = random.Random(), []
    for _ in range(count):
        live(command, places[1], rng.uniform(0, 2 * whole / count))
        done = (places[1] / "out.parquet").exists()
        parts = (places[1] / "out.parquet.skyfill-parts" / "parts").glob("part-*")
        survived.append("all" if done else len(list(parts)))
    live(command, places[1], None)
    one, two = ((place / "out.parquet").read_bytes() for place in places)
    print(
        f"{count} kills, parts of {-(-n // WRITE_ROWS)} that were done after each: {survived}; "
        f"output {'identical' if one == two else 'DIFFERENT'} ({len(one):,} bytes)\n"
    )


def live(command, place, seconds):
    """Let a run work for some seconds after its start-up, or to its end; how long it worked."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=place, **quiet)
    while process.poll() is None and not has_begun(process.pid):
        time.sleep(0.01)
    start = time.perf_counter()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return time.perf_counter() - start


def has_begun(pid):
    """Tell whether a process holds the lock of its job (from Linux's list of open files)."""
    try:
        return any("skyfill-parts" in os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False


def numbers(text):
    return [int(float(word)) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=numbers, default=[100_000, 1_000_000])
    parser.add_argument("--trees", type=numbers, default=[100, 300])
    parser.add_argument("--training", type=int, default=6000)
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--fits", type=int, default=3)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--before", type=Path, help="src/ of another version")
    parser.add_argument("--only", default="rows,trees,forest,rivals,kills")
    options = parser.parse_args()
    header("One machine", ["pyarrow", "scikit-learn", "numba"])
    print(f"Mixtures of {options.components} components, {options.fits} fits; {P} features.\n")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        most, parts = max(options.trees), options.only.split(",")
        write_models(folder, options.trees if "trees" in parts else [most], options)
        if "rows" in parts:
            against_rows(folder, options.rows, most)
        if options.before:
            against_version(folder, max(options.rows), most, options.before)
        if "trees" in parts:
            against_trees(folder, min(options.rows), options.trees)
        if "forest" in parts:
            forest_alone(folder, 200_000, most, options.training)
        if "rivals" in parts:
            rivals(20_000_000, most, options.training)
        if "kills" in parts:
            kills(folder, max(options.rows), most, options.kills)


if __name__ == "__main__":
    main()
