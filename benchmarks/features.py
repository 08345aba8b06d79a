"""Speed of light-curve features against feets, light-curve, nifty-ls, astropy; a long stream.

    python benchmarks/features.py [--stars 1000] [--stream 100000]

Rivals run where they are installed, each on as many curves as take some seconds; times per star are
the best of three on one core. feets computes the twelve of the fourteen features that it has.
"""

import argparse
import os
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from report import best_time, header, print_table
from skyfill.catalog import open_writer
from skyfill.lightcurve import (
    About,
    choose_features,
    collect,
    empty_table,
    extract_features,
    open_light_curves,
    stream_features,
)
from skyfill.lightcurve.period import gather_points
from skyfill.lightcurve.periodogram import Grid, choose_grid, find_periods, power_spectrum

POINTS, DAYS = 500, 2700.0
FEETS = ["CAR_sigma", "CAR_tau", "Mean", "Std", "Eta", "Con", "StetsonL", "Rcs", "Color",
         "PeriodLS", "Period_fit", "StetsonK_AC"]  # fmt: skip


def simulate(n, rng, *, points=POINTS, days=DAYS):
    """Pulsating stars in two bands, as a long table."""
    time = np.sort(rng.uniform(0, days, (n, points)), axis=1)
    time = np.stack([time, time + 0.01], axis=1)
    period = 10 ** rng.uniform(-0.5, 2, n)[:, None, None]
    mean = np.array([18.5, 18.0])[None, :, None]
    value = mean + 0.2 * np.sin(2 * np.pi * time / period) + 0.03 * rng.normal(size=time.shape)
    return (
        np.repeat(np.arange(n), 2 * points),
        np.tile(np.repeat(["B", "R"], points), n),
        np.column_stack([time.ravel(), value.ravel(), np.full(time.size, 0.03)]),
    )


def curves_of(n, rng, **how):
    return collect(*simulate(n, rng, **how), About(bands=("B", "R"), id_type=pa.int64()))


def with_threads(n, work):
    os.environ["SKYFILL_THREADS"] = str(n)
    try:
        return best_time(work)
    finally:
        del os.environ["SKYFILL_THREADS"]


def fourteen(n):
    curves = curves_of(n, np.random.default_rng(0))
    extract_features(curves.part(0, 4), "all")
    cores = os.cpu_count() or 1
    rows = []
    seconds = {k: with_threads(k, lambda: extract_features(curves)) for k in sorted({1, cores})}
    for k, total in seconds.items():
        label = f"skyfill, 14 features, {k} core{'s' * (k > 1)}"
        rows.append(
            [label, n, f"{total:.1f}", f"{total / n * 1e3:.1f}", f"{seconds[1] / total:.1f}x"]
        )
    every = curves.part(0, min(n, 200))
    total = with_threads(1, lambda: extract_features(every, "all"))
    rows.append(["skyfill, all features of both bands, 1 core", len(every), f"{total:.1f}",
                 f"{total / len(every) * 1e3:.1f}", ""])  # fmt: skip
    rival = feets_time(curves.part(0, 20))
    if rival is not None:
        slower = rival / (seconds[1] / n)
        rows.append(["feets, 12 features of one band, 1 core", 20, f"{rival * 20:.1f}",
                     f"{rival * 1e3:.0f}", f"1/{slower:.0f}x"])  # fmt: skip
    print_table(["two bands of 500 points", "stars", "s", "ms per star", "speed"], rows)


def feets_time(curves):
    """Seconds per star of feets on one core."""
    try:
        import feets
    except ImportError:
        return None
    space = feets.FeatureSpace(only=FEETS, dask_options={"scheduler": "synchronous"})
    inputs = [_as_feets(curves.star(i)[0].curves, space.required_data) for i in range(len(curves))]
    space.extract(**inputs[0])
    return best_time(lambda: [space.extract(**each) for each in inputs]) / len(inputs)


def _as_feets(curves, required):
    first, second = curves
    known = {
        "time": first.time, "magnitude": first.value, "error": first.error,
        "magnitude2": second.value, "aligned_magnitude": first.value, "aligned_error": first.error,
        "aligned_magnitude2": second.value, "aligned_error2": second.error,
    }  # fmt: skip
    return {key: known[key] for key in required}


def lomb_scargle():
    star = curves_of(1, np.random.default_rng(1)).star(0)[0]
    one = type(star)(star.curves[:1])
    rows = []
    for size in (1 << 11, 1 << 14, 1 << 17):
        # light-curve's fast method takes 2^k frequencies; ours takes any number.
        grid = Grid(1 / (5 * DAYS), 5, size)
        cells = [size]
        for points in (gather_points(one), gather_points(star)):
            for work in (power_spectrum, find_periods):
                cells.append(f"{best_time(partial(work, points, grid), 20) * 1e3:.2f}")
        cells += [_light_curve_time(one.curves[0], grid), _nifty_time(one.curves[0], grid),
                  _astropy_time(one.curves[0], grid)]  # fmt: skip
        rows.append(cells)
    print_table(
        ["frequencies", "skyfill, power", "and peaks", "two bands, power", "and peaks",
         "light-curve, peak", "nifty-ls, power", "astropy fast, power"],
        rows,
    )  # fmt: skip
    print("ms, one core, 500 points per band; light-curve without errors and without a free mean.")
    points = gather_points(star)
    print(f"The grid of such a star has {choose_grid(points.time, points.start).size}.")


def _light_curve_time(curve, grid):
    try:
        import light_curve
    except ImportError:
        return "-"
    nyquist = 0.5 * (len(curve) - 1) / np.ptp(curve.time)
    # A little below the power of two, to which light-curve rounds up.
    limit = 0.95 * grid.step * grid.size
    search = light_curve.Periodogram(
        peaks=1, resolution=5, max_freq_factor=limit / nyquist, nyquist="average", fast=True
    )
    found = search.freq_power(curve.time, curve.value)[0].size
    milliseconds = best_time(lambda: search(curve.time, curve.value, sorted=True), 20) * 1e3
    return f"{milliseconds:.2f} ({found})"


def _nifty_time(curve, grid):
    try:
        import nifty_ls
    except ImportError:
        return "-"
    limit = grid.step * grid.size
    data = (curve.time, curve.value, curve.error)
    how = {"fmin": grid.step, "fmax": limit, "Nf": grid.size, "nthreads": 1}
    return f"{best_time(lambda: nifty_ls.lombscargle(*data, **how), 10) * 1e3:.2f}"


def _astropy_time(curve, grid):
    from astropy.timeseries import LombScargle

    model = LombScargle(curve.time, curve.value, curve.error)
    frequency = grid.frequency
    work = lambda: model.power(frequency, method="fast", assume_regular_frequency=True)  # noqa: E731
    return f"{best_time(work, 2) * 1e3:.0f}"


def stream(n):
    """A Parquet file of many short light curves, read, computed and written in pieces."""
    rng = np.random.default_rng(2)
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "curves.parquet", Path(folder) / "features.parquet"
        n_rows = _write_curves(path, n, rng)
        opened = open_light_curves(path)
        chosen = choose_features("macho14")
        seen, marks = [0], []
        start = time.perf_counter()

        def advance(count):
            seen[0] += count
            if seen[0] * 10 // n > len(marks):
                marks.append(memory())

        schema = empty_table(opened.layout.about, chosen).arrow.schema
        with open_writer(out, schema) as writer:
            for table in stream_features(opened.parts, chosen, advance=advance):
                for batch in table.arrow.to_batches():
                    writer.write(batch)
        seconds = time.perf_counter() - start
        size = path.stat().st_size / 1e6
    tenths = ", ".join(f"{mark:.0f}" for mark in marks)
    print(f"{seen[0]} stars, {n_rows} measurements ({size:.0f} MB), 14 features: {seconds:.0f} s "
          f"on {os.cpu_count()} cores; MB of memory after each tenth: {tenths}")  # fmt: skip


def _write_curves(path, n, rng, at_once=2000):
    kind = [("id", pa.int64()), ("band", pa.string()), ("mjd", pa.float64()), ("mag", pa.float64()),
            ("err", pa.float64())]  # fmt: skip
    n_rows = 0
    with open_writer(path, pa.schema(kind)) as writer:
        for first in range(0, n, at_once):
            ids, bands, numbers = simulate(min(at_once, n - first), rng, points=60, days=300.0)
            columns = [pa.array(ids + first), pa.array(bands), *map(pa.array, numbers.T.copy())]
            writer.write(pa.RecordBatch.from_arrays(columns, schema=pa.schema(kind)))
            n_rows += len(ids)
    return n_rows


def memory():
    """Resident megabytes, by Linux's account."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stars", type=int, default=1000)
    parser.add_argument("--stream", type=int, default=100_000)
    options = parser.parse_args()
    header(
        "Light-curve features", ["numba", "scipy", "feets", "light-curve", "nifty-ls", "astropy"]
    )
    fourteen(options.stars)
    lomb_scargle()
    stream(options.stream)
