"""Counterparts with a probability: skyfill against nway and the nearest neighbor.

    python benchmarks/counterparts.py [--part agreement|fields|real|speed] [--seeds 3]

nway runs as the program ``nway.py`` (extra `compare`), on FITS files; without it its lines are left
out. Completeness is the share of the objects with a counterpart for which the right one is
accepted, at the loosest cut where at most 5 % of the accepted are wrong, by the truth.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from astropy.io import fits

from crossmatch import field as make_stars
from report import header, print_table
from skyfill.catalog import Table
from skyfill.classify import CatalogClassifier, MixturePhotometry
from skyfill.datasets import (
    load_chandra,
    load_eros,
    load_macho_variables,
    simulate_crowded_field,
    simulate_xray_field,
)
from skyfill.sky import (
    CounterpartRules,
    PositionError,
    Sources,
    Survey,
    associate,
    circles,
    find_counterparts,
    group_elsewhere,
    match_positions,
    probabilities,
    read_field,
    summarize,
)

FALSE_RATE = 0.05
GEOMETRIC_AREA_DEG2 = 0.01
BANDS = {"optical": ("B", "V", "R", "I"), "infrared": ("K", "m36", "m45"), "sharp": ("V", "I", "K")}
BASE_BANDS = {"xray": ("log_flux", "hardness"), "crowded": ("V", "R")}


def has_nway():
    return shutil.which("nway.py") is not None


def write_for_nway(table, name, area_deg2, path):
    """Nway wants a FITS table with a name, an ID column and the keyword SKYAREA."""
    columns = []
    for column in table.names:
        values = np.nan_to_num(table.numbers(column)[:, 0], nan=-99.0)
        kind = "K" if column == "id" else "D"
        columns.append(
            fits.Column(
                {"id": "ID", "ra": "RA", "dec": "DEC"}.get(column, column), kind, array=values
            )
        )
    hdu = fits.BinTableHDU.from_columns(columns, name=name.upper())
    hdu.header["SKYAREA"] = area_deg2
    hdu.writeto(path, overwrite=True)
    return path


def run_nway(inputs, radius, out, *options):
    """Run nway on (file, error) pairs; give its table, seconds and megabytes."""
    words = [str(word) for pair in inputs for word in pair]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = ["nway.py", *words, "--radius", f"{radius:g}", "--out", str(out), *options]
    done = subprocess.run(command, capture_output=True, cwd=out.parent, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode()[-2000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return fits.getdata(out, 1), seconds, after.ru_maxrss / 1024


def differences(theirs, names, found, p):
    """Largest difference in p_any and in p_i over all associations that both list."""
    best = summarize(found, p)
    ids = np.stack([np.asarray(theirs[f"{name}_ID"], dtype=int) for name in names], axis=1)
    in_any = {
        row[0]: value for row, value in zip(ids.tolist(), theirs["p_any"].tolist(), strict=True)
    }
    in_i = dict(zip(map(tuple, ids.tolist()), theirs["p_i"].tolist(), strict=True))
    share = np.where((found.rows >= 0).any(axis=1), p, 0) / np.maximum(
        best.p_any[found.base], 1e-300
    )
    rows = np.column_stack([found.base, found.rows])
    mine = zip(map(tuple, np.where(rows >= 0, rows + 1, -99).tolist()), share, strict=True)
    apart_i = max(abs(in_i[row] - value) for row, value in mine if row in in_i)
    apart_any = max(abs(in_any[i + 1] - best.p_any[i]) for i in range(found.n_base))
    return apart_any, apart_i


def as_nway(base, surveys, area_deg2, radius, completeness, rest):
    """Associations with the priors of nway: numbers of sources plus one, odds c and not c/(1-c)."""
    density = [(len(survey) + 1) / (area_deg2 * 3600**2) for survey in surveys]
    found = associate(base, surveys, density, [radius] * len(surveys), rest=rest)
    odds = np.asarray(completeness)
    return found, probabilities(found, odds / (1 + odds))


def geometric_file(key):
    """The files of nway's geometric test lie in the folder that SKYFILL_DATA names."""
    return Path(os.environ["SKYFILL_DATA"]) / "nway" / f"randomcat{key}.fits"


def geometric(key):
    table = fits.getdata(geometric_file(key), 1)
    sigma = np.full(len(table), 0.1) if key == "O" else np.asarray(table["pos_err"], float)
    return Sources(np.asarray(table["RA"], float), np.asarray(table["DEC"], float), circles(sigma))


def measure_agreement(folder):
    rows = []
    x, r, o = (geometric(key) for key in "XRO")
    files = {k: (geometric_file(k), "0.1" if k == "O" else ":pos_err") for k in "XRO"}
    told, _, _ = run_nway([files["X"], files["O"]], 60, folder / "xo.fits")
    rows.append(
        [
            "geometric test, 2 catalogues",
            *differences(
                told, ("CHANDRA", "OPT"), *as_nway(x, [o], GEOMETRIC_AREA_DEG2, 60.0, [1.0], "sum")
            ),
        ]
    )
    for rest, options in (("ignore", ("--ignore-unrelated-associations",)), ("best", ())):
        told, _, _ = run_nway(
            [files[k] for k in "XRO"],
            12,
            folder / "xro.fits",
            "--prior-completeness",
            "0.9:0.7",
            *options,
        )
        found = as_nway(x, [r, o], GEOMETRIC_AREA_DEG2, 12.0, [0.9, 0.7], rest)
        rows.append(
            [
                f"geometric test, 3 catalogues, rest: {rest}",
                *differences(told, ("CHANDRA", "XMM", "OPT"), *found),
            ]
        )
    field = simulate_xray_field(200, seed=9)
    kept = Table(field.base.arrow.filter(pa.array(field.base.numbers("pos_err")[:, 0] < 4)))
    kept = kept.with_column("id", np.arange(1, len(kept) + 1))
    tables = {"base": kept, **field.surveys}
    inputs = [
        (write_for_nway(t, n, field.area_deg2, folder / f"{n}.fits"), ":pos_err")
        for n, t in tables.items()
    ]
    lists = [
        Sources(*t.numbers("ra", "dec").T, circles(t.numbers("pos_err")[:, 0]))
        for t in tables.values()
    ]
    for rest, options in (("ignore", ("--ignore-unrelated-associations",)), ("best", ())):
        told, _, _ = run_nway(
            inputs, 20, folder / "sim.fits", "--prior-completeness", "0.9:0.6", *options
        )
        found = as_nway(lists[0], lists[1:], field.area_deg2, 20.0, [0.9, 0.6], rest)
        rows.append(
            [
                f"simulated X-ray field, 3 catalogues, rest: {rest}",
                *differences(told, [n.upper() for n in tables], *found),
            ]
        )
    print_table(
        ["test", "largest difference in p_any", "in p_i"],
        [[n, f"{a:.1e}", f"{b:.1e}"] for n, a, b in rows],
    )


def completeness_at(score, right, has, rate=FALSE_RATE):
    order = np.argsort(-score, kind="stable")
    hits = np.cumsum(right[order])
    false = 1 - hits / np.arange(1, len(order) + 1)
    good = np.flatnonzero(false <= rate)
    return hits[good[-1]] / has.sum() if good.size else 0.0


def reliability(p, came_true, n_bins=10):
    """Largest |mean p - share that came true| over bins with equal numbers, and its mean."""
    parts = np.array_split(np.argsort(p), n_bins)
    apart = np.array([abs(p[part].mean() - came_true[part].mean()) for part in parts])
    return apart.max(), np.mean(apart)


def sky_of(field, names):
    surveys = [Survey(name, field.surveys[name], 0.0) for name in names]
    there = read_field(Survey("base", field.base, 0.0), surveys)
    truth = np.stack([field.truth.numbers(f"row_{n}")[:, 0].astype(int) for n in names], axis=1)
    return there, truth


def skyfill_runs(field, kind, names):
    there, truth = sky_of(field, names)
    values = [field.surveys[name].numbers(*BANDS[name]) for name in names]
    nothing, known = np.empty((len(field.base), 0)), field.base.numbers(*BASE_BANDS[kind])
    elsewhere = group_elsewhere(there)
    label = "+".join(names)
    ways = {f"skyfill, {label}, position": None}
    ways[f"skyfill, {label}, mixtures"] = MixturePhotometry(nothing, values, elsewhere)
    ways[f"skyfill, {label}, mixtures with the base's columns"] = MixturePhotometry(
        known, values, elsewhere
    )
    out = {}
    for name, photometry in ways.items():
        found = find_counterparts(there, CounterpartRules(), photometry)
        rows = found.associations.rows[found.best.chosen]
        score = np.where(rows[:, 0] >= 0, found.best.p_survey[:, 0], 0.0)
        out[name] = rows[:, 0], score, found.best.p_any
    return out, truth


def nway_runs(field, folder, name, magnitude):
    """Nway on the first survey: position; and with one magnitude."""
    base = write_for_nway(field.base, "base", field.area_deg2, folder / "base.fits")
    other = write_for_nway(field.surveys[name], name, field.area_deg2, folder / f"{name}.fits")
    inputs = [(base, ":pos_err"), (other, ":pos_err")]
    radius = min(5 * field.base.numbers("pos_err").max(), 75)
    ways = {"position": (), f"with {magnitude}": ("--mag", f"{name.upper()}:{magnitude}", "auto")}
    out = {}
    for way, options in ways.items():
        told, _, _ = run_nway(inputs, radius, folder / "out.fits", *options)
        best = told[told["match_flag"] == 1]
        rows, score, p_any = (
            np.full(len(field.base), -1),
            np.zeros(len(field.base)),
            np.zeros(len(field.base)),
        )
        at = np.asarray(best["BASE_ID"], int) - 1
        rows[at] = np.where(best[f"{name.upper()}_ID"] > 0, best[f"{name.upper()}_ID"] - 1, -1)
        score[at], p_any[at] = best["p_any"] * best["p_i"], best["p_any"]
        out[f"nway, {name}, {way}"] = rows, np.where(rows >= 0, score, 0), p_any
    return out


def nearest_run(field, name):
    left, right = (t.numbers("ra", "dec").T for t in (field.base, field.surveys[name]))
    found = match_positions(*left, *right, 75.0)
    rows, score = np.full(len(field.base), -1), np.zeros(len(field.base))
    sigma = field.base.numbers("pos_err")[found.left, 0]
    rows[found.left], score[found.left] = (
        found.right,
        np.exp(-((found.separation_arcsec / sigma) ** 2)),
    )
    return {f"nearest, {name}": (rows, score, None)}


def measure_fields(folder, n_sources, seeds):
    for kind, sets in (
        ("xray", (("optical",), ("optical", "infrared"))),
        ("crowded", (("sharp",),)),
    ):
        scores = {}
        for seed in range(seeds):
            make = simulate_xray_field if kind == "xray" else simulate_crowded_field
            field = make(n_sources if kind == "xray" else 5 * n_sources, seed=100 + seed)
            first = sets[0][0]
            runs = nearest_run(field, first)
            if has_nway():
                runs |= nway_runs(field, folder, first, "R" if kind == "xray" else "V")
            truth = None
            for names in sets:
                more, truths = skyfill_runs(field, kind, names)
                truth = truths[:, 0]
                runs |= more
                has_any = (truths >= 0).any(axis=1)
            for name, (rows, score, p_any) in runs.items():
                right = (rows == truth) & (truth >= 0)
                there = has_any if "+" in name else truth >= 0
                scores.setdefault(name, []).append((right, score, p_any, truth >= 0, there))
        rows = []
        for name, found in scores.items():
            right, score, _, has, _ = (
                np.concatenate(part) if part[0] is not None else None
                for part in zip(*found, strict=True)
            )
            line = [
                name,
                f"{right.sum() / has.sum():.3f}",
                f"{completeness_at(score, right, has):.3f}",
            ]
            if found[0][2] is not None:
                p_any, there = (
                    np.concatenate(part) for part in list(zip(*found, strict=True))[2::2]
                )
                line += [
                    "{:.3f} ({:.3f})".format(*reliability(score, right)),
                    "{:.3f} ({:.3f})".format(*reliability(p_any, there)),
                ]
            rows.append(line + ["-"] * (5 - len(line)))
        print(f"\n{kind} field, {seeds} x {n_sources} sources\n")
        print_table(
            [
                "method",
                "right counterpart first",
                "completeness at 5 % false",
                "p_i p_any: largest (mean) gap",
                "p_any: largest (mean) gap",
            ],
            rows,
        )


def measure_chandra():
    """P(class) with the counterpart, and mixed with P(class | X-rays alone) by p_any p_i."""
    from sklearn.metrics import f1_score, log_loss
    from sklearn.model_selection import StratifiedKFold

    table = load_chandra()
    names = [n for n in table.names if str(table.info(n).role) == "feature"]
    X, y = table.numbers(*names), np.array(table.column("Class").to_pylist())
    p = np.prod(np.nan_to_num(table.numbers("p_any", "p_i"), nan=1.0), axis=1)
    alone = X.copy()
    xray = [n for n in names if n.startswith(("Fcsc", "var_", "powlaw"))]
    alone[:, [j for j, n in enumerate(names) if n not in xray]] = np.nan
    plain, mixed = (np.zeros((len(y), len(set(y)))) for _ in range(2))
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = CatalogClassifier(random_state=0).fit(X[train], y[train])
        plain[test] = model.predict_proba(X[test])
        without = model.predict_proba(alone[test])
        mixed[test] = p[test, None] * plain[test] + (1 - p[test, None]) * without
    kinds = np.unique(y)
    rows = []
    for part, chosen in (("all", np.ones(len(y), bool)), ("p_any p_i below 0.5", p < 0.5)):
        for name, P in (("as matched", plain), ("mixed by p_any p_i", mixed)):
            f1 = f1_score(y[chosen], kinds[P[chosen].argmax(axis=1)], average="macro")
            rows.append(
                [
                    f"{name}, {part} ({chosen.sum()})",
                    f"{f1:.3f}",
                    f"{log_loss(y[chosen], P[chosen], labels=kinds):.3f}",
                ]
            )
    print_table(["Chandra, 5 folds", "macro F1", "log loss"], rows)


def measure_eros():
    eros, macho = load_eros(), load_macho_variables()
    survey = Survey("macho", macho, 3.0, error=PositionError())
    base = Survey("base", eros, 0.0, error=PositionError())
    there = read_field(base, [survey], remove_offset=True)
    found = find_counterparts(there, CounterpartRules())
    rows = found.associations.rows[found.best.chosen, 0]
    accepted = (rows >= 0) & (found.best.p_any >= 0.5)
    left, right = (
        (there.base.ra_deg, there.base.dec_deg),
        (there.surveys[0].ra_deg, there.surveys[0].dec_deg),
    )
    plain = match_positions(*left, *right, 3.0)
    same = np.count_nonzero(rows[plain.left] == plain.right)
    doubtful = np.flatnonzero(accepted & (found.best.p_any * found.best.p_i < 0.9))
    sigma = float(np.sqrt(there.base.variance[0] + there.surveys[0].variance[0]))
    print_table(
        ["EROS-1 x MACHO", "pairs"],
        [
            ["nearest, one to one, 3 arcsec", str(len(plain))],
            ["the same with probability", str(same)],
            [
                f"accepted (p_any at least 0.5; error of both together {sigma:.2f} arcsec)",
                str(accepted.sum()),
            ],
            ["doubtful among them (p_any p_i below 0.9)", str(len(doubtful))],
        ],
    )
    print("rows of the doubtful:", ", ".join(map(str, (doubtful + 1).tolist())))


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def geometric_run():
    """Associations of nway's geometric test from its files, as one process measures it."""
    x, o = geometric("X"), geometric("O")
    started, cpu = time.perf_counter(), time.process_time()
    found = associate(x, [o], [len(o) / (GEOMETRIC_AREA_DEG2 * 3600**2)], [60.0])
    p = probabilities(found, np.array([0.5]))
    summarize(found, p)
    return len(found), time.perf_counter() - started, time.process_time() - cpu


def measure_speed(folder):
    code = (
        "import counterparts as c\n"
        "before = c.peak_mb()\n"
        "runs = [c.geometric_run() for _ in range(4)]\n"
        "n, wall, cpu = min(runs, key=lambda r: r[2])\n"
        "print(n, wall, cpu, c.peak_mb(), before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "SKYFILL_THREADS": "1"},
    )
    n, wall, cpu, peak, before = map(float, done.stdout.split())
    rows = [["skyfill", f"{n:.0f}", f"{cpu:.2f}", f"{peak:.0f} ({before:.0f} of it the imports)"]]
    if has_nway():
        files = [
            (geometric_file("X"), ":pos_err"),
            (geometric_file("O"), "0.1"),
        ]
        told, seconds, peak = run_nway(files, 60, folder / "speed.fits")
        rows.append(["nway 4.8", str(len(told)), f"{seconds:.1f}", f"{peak:.0f}"])
        rows.append(["ratio", "", f"{seconds / cpu:.0f}", ""])
    print_table(["120 x 129,960 at 60 arcsec", "associations", "processor seconds", "MB"], rows)
    left, right = make_stars(1_000_000, 700_000, np.random.default_rng(1))
    base, survey = (
        Sources(*place, circles(np.full(len(place[0]), 0.2))) for place in (left, right)
    )
    times = {"plain": [], "probability": []}
    for _ in range(3):
        began = time.process_time()
        match_positions(*left, *right, 1.5)
        times["plain"].append(time.process_time() - began)
        began = time.process_time()
        found = associate(base, [survey], [700_000 / (18.5 * 3600**2)], [1.5])
        summarize(found, probabilities(found, np.array([0.7])))
        times["probability"].append(time.process_time() - began)
    plain, ours = min(times["plain"]), min(times["probability"])
    print_table(
        ["1,000,000 x 700,000 at 1.5 arcsec", "processor seconds"],
        [
            ["plain match", f"{plain:.2f}"],
            ["with probability", f"{ours:.2f}"],
            ["ratio", f"{ours / plain:.2f}"],
        ],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["agreement", "fields", "real", "speed"])
    parser.add_argument("--sources", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    told = parser.parse_args()
    header("Counterparts with a probability", ["nway", "astropy", "scikit-learn"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if told.part in (None, "agreement") and has_nway():
            measure_agreement(folder)
        if told.part in (None, "fields"):
            measure_fields(folder, told.sources, told.seeds)
        if told.part in (None, "real"):
            measure_chandra()
            measure_eros()
        if told.part in (None, "speed"):
            measure_speed(folder)


if __name__ == "__main__":
    main()
