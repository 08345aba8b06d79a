"""1,000,000 positions against 700,000 with scatter, 1.5 arcsec: skyfill, astropy and STILTS.

    python benchmarks/crossmatch.py [--rows 1000000] [--repeats 3]

The programs take turns and the best time of each counts; read the ratios, machines are noisy.
STILTS reads FITS files and writes one, so skyfill is also timed from file to file.
"""

import argparse
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from astropy import units as u
from astropy.coordinates import SkyCoord

from report import header, print_table
from skyfill.catalog import Table, read_table, write_table
from skyfill.sky import match_positions, read_positions

RADIUS_ARCSEC = 1.5
SCATTER_ARCSEC = 0.3
STARS_PER_SQUARE_DEGREE = 54_000
CENTER = (80.0, -69.0)
SIDES = ("left", "right")


def field(n_left, n_right, rng):
    """A square field at the place and density of the LMC; the right catalogue sees part of it."""
    side = np.sqrt(n_left / STARS_PER_SQUARE_DEGREE)
    low, high = np.sin(np.radians(CENTER[1] + np.array([-side, side]) / 2))
    dec = np.degrees(np.arcsin(rng.uniform(low, high, n_left)))
    ra = CENTER[0] + rng.uniform(-side, side, n_left) / 2 / np.cos(np.radians(CENTER[1]))
    seen = rng.permutation(n_left)[:n_right]
    east, north = rng.normal(0, SCATTER_ARCSEC / 3600, (2, n_right))
    return (ra, dec), (ra[seen] + east / np.cos(np.radians(dec[seen])), dec[seen] + north)


def write_inputs(folder, left, right):
    for side, (ra, dec) in {"left": left, "right": right}.items():
        columns = {side: np.arange(len(ra)), "ra": ra, "dec": dec}
        write_table(Table.from_columns(columns), folder / f"{side}.fits")


@dataclass(frozen=True)
class Job:
    """Only `run` is timed: `prepare` gives what it works on, `pairs` reads its answer."""

    run: Callable
    prepare: Callable = lambda: ()
    pairs: Callable = lambda answer: answer


def skyfill_arrays(left, right, keep):
    def run():
        found = match_positions(*left, *right, RADIUS_ARCSEC, keep=keep)
        return found.left, found.right

    return Job(run)


def astropy_arrays(left, right):
    def prepare():  # new objects, because they keep the tree
        return [SkyCoord(*side, unit="deg") for side in (left, right)]

    def run(here, there):
        return here.match_to_catalog_sky(there)

    def pairs(answer):
        inside = np.flatnonzero(answer[1] <= RADIUS_ARCSEC * u.arcsec)
        return inside, answer[0][inside]

    return Job(run, prepare, pairs)


def skyfill_files(folder):
    def run():
        sides = [read_positions(read_table(folder / f"{side}.fits")) for side in SIDES]
        left, right = ((side.ra_deg, side.dec_deg) for side in sides)
        found = match_positions(*left, *right, RADIUS_ARCSEC)
        rows = Table.from_columns({"left": found.left, "right": found.right})
        write_table(rows, folder / "skyfill.fits")

    return Job(run, pairs=lambda _: written_pairs(folder / "skyfill.fits"))


def stilts_files(folder, find):
    words = ["in1=left.fits", "in2=right.fits", "matcher=sky", "values1=ra dec",
             "values2=ra dec", f"params={RADIUS_ARCSEC}", f"find={find}", "join=1and2",
             "ocmd=keepcols 'left right'", f"out={find}.fits", "progress=none"]  # fmt: skip

    def run():
        subprocess.run(["stilts", "-Xmx4G", "tmatch2", *words], cwd=folder, check=True)

    return Job(run, pairs=lambda _: written_pairs(folder / f"{find}.fits"))


def stilts_reading(folder):
    words = ["in=left.fits", "in=right.fits", "omode=checksum"]

    def run():
        subprocess.run(["stilts", "tcat", *words], cwd=folder, check=True, capture_output=True)

    return Job(run, pairs=lambda _: None)


def written_pairs(path):
    table = read_table(path)
    return tuple(table.column(side).to_numpy() for side in SIDES)


def all_jobs(folder, left, right):
    jobs = {
        "skyfill symmetric": skyfill_arrays(left, right, "symmetric"),
        "skyfill best": skyfill_arrays(left, right, "best"),
        "astropy match_to_catalog_sky": astropy_arrays(left, right),
        "skyfill symmetric, FITS to FITS": skyfill_files(folder),
    }
    if shutil.which("stilts"):
        jobs["STILTS find=best, FITS to FITS"] = stilts_files(folder, "best")
        jobs["STILTS find=best1, FITS to FITS"] = stilts_files(folder, "best1")
        jobs["STILTS, start and reading only"] = stilts_reading(folder)
    return jobs


def measure(jobs, repeats):
    """Let the programs take turns; give the best time and the set of pairs of each."""
    times, answers = {name: np.inf for name in jobs}, {}
    for _ in range(repeats):
        for name, job in jobs.items():
            given = job.prepare()
            start = time.perf_counter()
            answers[name] = job.run(*given)
            times[name] = min(times[name], time.perf_counter() - start)
    return times, {name: as_set(job.pairs(answers[name])) for name, job in jobs.items()}


def as_set(pairs):
    if pairs is None:
        return None
    left, right = (rows.astype(np.int64) for rows in pairs)
    return np.unique(left << 32 | right)


def table_row(name, times, pairs):
    one_to_one = "symmetric" in name or "find=best," in name
    ours = pairs["skyfill symmetric" if one_to_one else "skyfill best"]
    ratio = f"{times[name] / times['skyfill symmetric']:.2f}"
    if pairs[name] is None:
        return [name, f"{times[name]:.2f}", ratio, "", ""]
    same = "" if pairs[name] is ours else "yes" if np.array_equal(pairs[name], ours) else "NO"
    return [name, f"{times[name]:.2f}", ratio, len(pairs[name]), same]


def main(n_left, repeats):
    n_right = n_left * 7 // 10
    left, right = field(n_left, n_right, np.random.default_rng(1))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, left, right)
        times, pairs = measure(all_jobs(folder, left, right), repeats)
    header(f"Cross-match, {n_left:,} x {n_right:,}", ["numpy", "scipy", "astropy"])
    columns = ["program", "seconds", "ratio", "pairs", "pairs of skyfill"]
    print_table(columns, [table_row(name, times, pairs) for name in times])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    main(options.rows, options.repeats)
