"""Feed damaged and forged model files to the loader: a model or a `ModelError`, in time and memory.

One in ten files has bytes changed; the others are forged: their meaning is changed (integers,
shapes, orders, NaN, names, types), and the identifier is made to fit again, as somebody with bad
intentions would. What loads is then shown, fills a small table with quantiles and draws, classifies
it and names the next measurement; every value must be a number, every probability a probability.
Compiled kernels check their indices (NUMBA_BOUNDSCHECK), in a cache of their own. Prints a Markdown
table. Work is done in processes of their own, with an alarm that also ends compiled code and a
limit to memory.
"""

import argparse
import collections
import faulthandler
import io
import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from pathlib import Path

import numpy as np

from fuzz_readers import damage
from report import header, print_table

SECONDS_PER_FILE = 20
MEMORY_BYTES = 8 << 30
ODD_NUMBERS = [0, -1, 1, 2, 3, 1e308, -1e308, 5e-324, 1e-300, 2**31, 2**62, -(2**63), 0.5, 1e9]
ODD_VALUES = [None, True, [], {}, "", "x" * 10_000, -1, 10**30, 1e400, [[[]]], ["V"], {"V": 1}]


def sample_table(n, seed):
    from skyfill.catalog import ColumnInfo, Role, Table

    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    X = rng.normal(size=(n, 4)) + kind[:, None]
    X[:, 3] = np.where(rng.random(n) < 0.3, 0.0, np.exp(X[:, 3]))
    X[rng.random(X.shape) < 0.2] = np.nan
    names = ["V", "I", "J", "con"]
    info = {name: ColumnInfo(unit="mag", role=Role.FEATURE) for name in names}
    columns = dict(zip(names, X.T, strict=True)) | {"kind": np.array(["a", "b", "c"])[kind]}
    info["V"] = ColumnInfo("mag", "phot.mag", role=Role.FEATURE)
    columns["e_V"] = rng.uniform(0.2, 0.4, n)
    info["e_V"] = ColumnInfo("mag", role=Role.ERROR, of="V")
    table = Table.from_columns(columns, info=info)
    lost = np.isnan(X[:, 0]) & (rng.random(n) < 0.5)
    return table.with_reasons("V", ["undetected" if gap else None for gap in lost]), names


def write_originals(folder):
    from skyfill.classify import CatalogClassifier
    from skyfill.impute import NetworkImputer
    from skyfill.model import save_model, train, train_classifier

    table, names = sample_table(400, 0)
    plain = {"limits": "off", "errors": "off"}
    plans = {
        "full": {"gaps": "informative", **plain},
        "own": {"arcs": "own", "margins": False, **plain},
        "limits": {"errors": "on"},
    }
    paths = []
    for name, plan in plans.items():
        model, _ = train(table, names, n_components=2, n_fits=2, **plan)
        paths.append(folder / f"{name}.skyfill")
        save_model(model, paths[-1])
    small = CatalogClassifier(n_trees=6, imputer=NetworkImputer(2, n_fits=1, refine=None))
    model, _ = train_classifier(table, names, "kind", classifier=small, **plain)
    paths.append(folder / "classifier.skyfill")
    save_model(model, paths[-1])
    model, _ = train_classifier(table, names, "kind", classifier=small, errors="on")
    paths.append(folder / "limited.skyfill")
    save_model(model, paths[-1])
    return paths


def forge(path, rng):
    """Change facts and arrays, one to three times, and make the identifier fit."""
    import safetensors.numpy as st

    from skyfill.model import ARRAYS, FACTS
    from skyfill.model.rebuilding import rebuild

    with zipfile.ZipFile(path) as archive:
        facts = json.loads(archive.read(FACTS))
        arrays = st.load(archive.read(ARRAYS))
    arrays = {name: np.array(array) for name, array in arrays.items()}
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.3:
            change_facts(facts, rng)
        else:
            change_array(arrays, rng)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            facts["identifier"] = rebuild(facts, arrays).identifier
    except Exception:
        facts["identifier"] = "0" * 16
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr(FACTS, json.dumps(facts, default=str))
        archive.writestr(ARRAYS, st.save({k: np.ascontiguousarray(a) for k, a in arrays.items()}))
    return sink.getvalue()


def change_facts(facts, rng):
    """Replace, drop or repeat something at a random place of the JSON."""
    place, key = facts, rng.choice(list(facts))
    while rng.random() < 0.7 and isinstance(place[key], dict | list) and place[key]:
        place = place[key]
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
    change = rng.random()
    if change < 0.2:
        del place[key]
    elif change < 0.4 and isinstance(place, list):
        place.append(place[key])
    else:
        place[key] = rng.choice([*ODD_VALUES, *ODD_NUMBERS])


def change_array(arrays, rng):
    """Change single cells, the shape, the type or the name of an array."""
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    kinds = ["cell", "cell", "near", "near", "near", "order", "scale", "shape", "type", "drop"]
    change = rng.choice([*kinds, "swap", "nan"])
    if change == "cell" and array.size:
        with np.errstate(all="ignore"):
            array.flat[rng.randrange(array.size)] = cast(rng.choice(ODD_NUMBERS), array.dtype)
    elif change == "near" and array.size:  # plausible, and just outside
        cell = rng.randrange(array.size)
        around = float(array.flat[cell]) + rng.choice([-1.0, 1.0])
        value = rng.choice([around, -1.0, *map(float, array.shape)])
        with np.errstate(all="ignore"):
            array.flat[cell] = cast(value, array.dtype)
    elif change == "order" and array.ndim and len(array) > 1:
        order = list(range(len(array)))
        rng.shuffle(order)
        arrays[name] = array[rng.choice([order, order[:1] * len(order), sorted(order)[::-1]])]
    elif change == "scale" and array.dtype.kind == "f":
        with np.errstate(all="ignore"):
            array *= rng.choice([-1.0, 0.0, 1e-200, 1e150, 1e30])
    elif change == "nan" and array.dtype.kind == "f" and array.size:
        array.flat[rng.randrange(array.size)] = rng.choice([np.nan, np.inf, -np.inf])
    elif change == "shape":
        options = [array.ravel(), array[:0], array[None], array[:1], np.concatenate([array] * 2)]
        arrays[name] = rng.choice(options)
    elif change == "type":
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays[name] = array.astype(rng.choice(["f4", "f8", "i4", "i8", "u1", "bool"]))
    elif change == "drop":
        del arrays[name]
    elif change == "swap":
        arrays[rng.choice(sorted(arrays))] = array


def cast(value, dtype):
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return dtype.type(min(max(int(value), limits.min), limits.max))
    return dtype.type(value)


def bombs():
    """Files that declare or unpack to far more than they are."""
    from skyfill.model import ARRAYS, FACTS

    zeros = b"\0" * (64 << 20)
    out = []
    for kind in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w", kind) as archive:
            archive.writestr(FACTS, b"{" + b" " * (32 << 20) + b"}")
            archive.writestr(ARRAYS, zeros)
        out.append(sink.getvalue())
    deep = b"[" * 3_000_000
    header_bytes = json.dumps({"a": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 8]}})
    for facts, arrays in (
        (deep, b""),
        (b'{"format": 1' + b"0" * 100_000 + b"}", b""),
        (b"{}", (2**62).to_bytes(8, "little")),
        (b"{}", len(header_bytes).to_bytes(8, "little") + header_bytes.encode() + b"\0" * 8),
    ):
        sink = io.BytesIO()
        with zipfile.ZipFile(sink, "w") as archive:
            archive.writestr(FACTS, facts)
            archive.writestr(ARRAYS, arrays)
        out.append(sink.getvalue())
    return out


def try_one(path, table):
    """Load, show, fill, classify, find the next measurement; give what happened."""
    from click.testing import CliRunner

    from skyfill.cli import main
    from skyfill.errors import ModelError, SkyfillError
    from skyfill.model import load_model

    try:
        model = load_model(path)
    except ModelError:
        return "refused"
    shown = CliRunner().invoke(main, ["show", str(path)])
    if shown.exception is not None and not isinstance(shown.exception, SystemExit):
        raise shown.exception
    try:
        check_filled(model, table)
        if model.scorer is not None:
            check_classes(model, table)
            check_next(model, table)
    except SkyfillError:
        return "loaded, then refused"
    return "used"


def check_filled(model, table):
    from skyfill.model import Filling, fill_table

    filled = fill_table(model, table, Filling(quantiles=(0.16, 0.5, 0.84), n_draws=2))
    for name in model.names:
        require(np.isfinite(filled.numbers(name)), f"{name} is no number")
        lost = ~np.isfinite(table.numbers(name)[:, 0]) if name in table.names else slice(None)
        parts = [f"{name}_{part}" for part in ("sd", "q16", "q50", "q84", "draw1", "draw2")]
        values = filled.numbers(*parts)[lost]
        require(np.isfinite(values), f"{name}: spread, quantiles or draws are no numbers")
        require(values[:, 0] >= 0, f"{name}: a negative spread")
        require(np.diff(values[:, 1:4]) >= 0, f"{name}: quantiles that fall")


def check_classes(model, table):
    from skyfill.model import Scoring, classify_table

    done = classify_table(model, table, Scoring(n_draws=2, marginalize=2))
    check_probabilities(done.numbers(*(f"sf_p_{name}" for name in model.scorer.classes)))
    facts = done.numbers("sf_entropy", "sf_gap_share", "sf_outlier_score")
    require(np.isfinite(facts) & (facts >= 0), "entropy, gap share or outlier score are no numbers")
    require([name in model.scorer.classes for name in done.column("sf_class").to_pylist()], "class")


def check_next(model, table):
    from skyfill.classify.next_measurement import expected_gains
    from skyfill.model import cells_of, scorer_of

    cells, _, absent = cells_of(model, table)
    scorer = scorer_of(model).without([model.names.index(name) for name in absent])
    gains = expected_gains(
        scorer.probabilities, scorer.network, cells, blocks=None, n_points=2, n_draws=2, rng=0
    )
    lost = np.isnan(cells.values)
    require(np.isfinite(gains.bits[lost]) & (gains.bits[lost] > -1e-6), "bits are no numbers")
    require(np.isfinite(gains.entropy) & (gains.entropy >= 0), "entropy is no number")


def check_probabilities(P):
    require(np.isfinite(P) & (P >= 0) & (P <= 1 + 1e-9), "no probabilities")
    require(abs(P.sum(axis=1) - 1) < 1e-6, "probabilities that do not add up to 1")


def require(held, what):
    if not np.all(held):
        raise ArithmeticError(what)


def work(folder, seed, count, results, with_bombs):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    faulthandler.enable()
    warnings.simplefilter("error")
    rng = random.Random(seed)
    originals = sorted(folder.glob("*.skyfill"))
    table, _ = sample_table(30, 1)
    path = folder / f"{seed}.fuzzed"
    path.write_bytes(originals[0].read_bytes())
    try_one(path, table)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for k in range(count):
        origin = rng.choice(originals)
        kind = "forged" if rng.random() < 0.9 else "damaged"
        data = forge(origin, rng) if kind == "forged" else damage(origin.read_bytes(), rng)
        run(path, data, (kind, f"{seed}-{k}"), table, results)
    for k, data in enumerate(bombs() if with_bombs else []):
        run(path, data, ("bomb", f"bomb-{k}"), table, results)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    results.put(("memory", "", (peak - before) / 1024, ""))


def run(path, data, name, table, results):
    path.write_bytes(data)
    path.with_suffix(".last").write_bytes(data)
    faulthandler.dump_traceback_later(SECONDS_PER_FILE, exit=True, file=sys.__stderr__)
    start = time.perf_counter()
    try:
        fate, detail = try_one(path, table), ""
    except BaseException as error:
        fate = f"{type(error).__name__}"
        lines = traceback.extract_tb(error.__traceback__)
        mine = ([x for x in lines if "skyfill" in x.filename] or list(lines))[-1]
        detail = f"{Path(mine.filename).name}:{mine.name}: {str(error)[:90]}"
        keep = path.parent / "found"
        keep.mkdir(exist_ok=True)
        (keep / f"{name[1]}.skyfill").write_bytes(data)
    faulthandler.cancel_dump_traceback_later()
    results.put((name[0], fate, time.perf_counter() - start, detail))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder for the files that made trouble")
    options = parser.parse_args()
    header("Fuzzing the model loader", ["numpy", "safetensors"])
    folder = options.keep or Path(tempfile.mkdtemp())
    folder.mkdir(exist_ok=True)
    write_originals(folder)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    share = options.files // options.processes
    seeds = [options.seed + i for i in range(options.processes)]
    jobs = [
        context.Process(target=work, args=(folder, seed, share, results, seed == options.seed))
        for seed in seeds
    ]
    for job in jobs:
        job.start()
    fates, details, slowest, memory = collections.Counter(), collections.Counter(), 0.0, 0.0
    while any(job.is_alive() for job in jobs) or not results.empty():
        try:
            kind, fate, figure, detail = results.get(timeout=1)
        except Exception:
            continue
        if kind == "memory":
            memory = max(memory, figure)
            continue
        fates[kind, fate] += 1
        slowest = max(slowest, figure)
        if detail:
            details[fate, detail] += 1
    died = sum(job.exitcode != 0 for job in jobs)
    kinds, all_fates = ("damaged", "forged", "bomb"), sorted({fate for _, fate in fates})
    print_table(["outcome", *kinds], [[f, *(fates[k, f] for k in kinds)] for f in all_fates])
    print(
        f"{sum(fates.values())} files; slowest {slowest:.2f} s; memory grew by {memory:.0f} MB; "
        f"processes that died: {died}\n"
    )
    if details:
        print_table(["error", "where", "files"], [[*key, n] for key, n in details.most_common(40)])
    allowed = {"refused", "used", "loaded, then refused"}
    sys.exit(bool(died or {fate for _, fate in fates} - allowed))


if __name__ == "__main__":
    os.environ.setdefault("SKYFILL_THREADS", "1")
    os.environ.setdefault("NUMBA_BOUNDSCHECK", "1")
    cache = str(Path(tempfile.gettempdir()) / "skyfill-bounds-checked")
    os.environ.setdefault("NUMBA_CACHE_DIR", cache)
    main()
