"""Counterparts: agreement with nway, and speed, on its geometric test and on a simulated field.

    python benchmarks/counterparts_nway.py [--part agreement|speed]

nway runs as the program ``nway.py`` (extra `compare`), on FITS files; without it only skyfill is
timed. The files of the geometric test lie in the folder that SKYFILL_DATA names.
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
from skyfill.datasets import simulate_xray_field
from skyfill.sky import (
    Sources,
    associate,
    choose_one_to_one,
    circles,
    match_positions,
    probabilities,
    summarize,
)
from skyfill.sky.rivals import find_free

GEOMETRIC_AREA_DEG2 = 0.01


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


def command_run(folder):
    """Processor seconds and megabytes of the command, from file to file."""
    words = ["--probability", "--radius", "60", "--area", str(GEOMETRIC_AREA_DEG2), "--error"]
    words += ["base=pos_err", "--error", "opt=0.1", "--name", "opt", "-o", folder / "best.parquet"]
    command = ["match", geometric_file("X"), geometric_file("O"), *words]
    code = (
        "import resource, sys\n"
        "from skyfill.cli import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, command)],
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(map(float, done.stdout.split()[-2:]))


def measure_speed(folder):
    code = (
        "import counterparts_nway as c\n"
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
    whole, most = command_run(folder)
    rows.append(["skyfill match, from file to file", f"{n:.0f}", f"{whole:.2f}", f"{most:.0f}"])
    if has_nway():
        files = [
            (geometric_file("X"), ":pos_err"),
            (geometric_file("O"), "0.1"),
        ]
        told, seconds, peak = run_nway(files, 60, folder / "speed.fits")
        rows.append(["nway 4.8", str(len(told)), f"{seconds:.1f}", f"{peak:.0f}"])
        rows.append(["ratio", "", f"{seconds / cpu:.0f}", ""])
    print_table(["120 x 129,960 at 60 arcsec", "associations", "processor seconds", "MB"], rows)
    measure_large_match()


def measure_large_match():
    """Time a large match with and without probabilities."""
    left, right = make_stars(1_000_000, 700_000, np.random.default_rng(1))
    base, survey = (
        Sources(*place, circles(np.full(len(place[0]), 0.2))) for place in (left, right)
    )
    times = {"plain": [], "probability": [], "one to one": []}
    for _ in range(3):
        began = time.process_time()
        match_positions(*left, *right, 1.5)
        times["plain"].append(time.process_time() - began)
        began = time.process_time()
        found = associate(base, [survey], [700_000 / (18.5 * 3600**2)], [1.5])
        p = probabilities(found, np.array([0.7]))
        summarize(found, p)
        times["probability"].append(time.process_time() - began)
        free = probabilities(found, np.array([0.7]), rivals=find_free(found, p))
        summarize(found, free, choose_one_to_one(found, free))
        times["one to one"].append(time.process_time() - began)
    plain, ours, one = map(min, times.values())
    print_table(
        ["1,000,000 x 700,000 at 1.5 arcsec", "processor seconds"],
        [
            ["plain match", f"{plain:.2f}"],
            ["with probability", f"{ours:.2f} ({ours / plain:.2f} times)"],
            ["with rivals and one to one as well", f"{one:.2f} ({one / plain:.2f} times)"],
        ],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["agreement", "speed"])
    told = parser.parse_args()
    header("Counterparts: agreement and speed", ["nway", "astropy"])
    with tempfile.TemporaryDirectory() as name:
        if told.part != "speed" and has_nway():
            measure_agreement(Path(name))
        if told.part != "agreement":
            measure_speed(Path(name))


if __name__ == "__main__":
    main()
