"""One GPU against the cores beside it: features, posteriors, EM, and where the time goes.

    python benchmarks/gpu.py [--stars 1e6] [--rows 4e6] [--em-rows 2e7] [--only PART,...]

Parts: features, posterior, limits, em, ceilings, mixture_ceilings. Needs the extra `gpu` and a
card. Data are made on the card; features and posteriors are timed from and to the memory of the
machine. Files have a script of their own, gpu_files.py.
"""

import argparse
import time
from functools import partial

import cupy
import numpy as np
import pyarrow as pa

from gpu_mixtures import em, limits, mixture_ceilings, posterior
from gpu_timing import Timed, far, seconds
from report import header, print_table
from skyfill import device as devices
from skyfill.catalog import Role
from skyfill.device import using
from skyfill.lightcurve import About, LightCurves, extract_features
from skyfill.lightcurve import on_device as stars_on_device
from skyfill.lightcurve.registry import MACHO14
from skyfill.threads import n_threads

POINTS, DAYS = 500, 2700.0
PIECE = 131_072


def light_curves(n, seed):
    """Pulsating stars in two bands, as in features.py."""
    rng = cupy.random.RandomState(seed)
    t = cupy.sort(rng.uniform(0, DAYS, (n, POINTS)), axis=1)
    t = cupy.stack([t, t + 0.01], axis=1)
    period = 10 ** rng.uniform(-0.5, 2, n)[:, None, None]
    value = cupy.array([18.5, 18.0])[None, :, None] + 0.2 * cupy.sin(2 * np.pi * t / period)
    value += 0.03 * rng.standard_normal(t.shape)
    arrays = [cupy.asnumpy(a).ravel() for a in (t, value, cupy.full(t.shape, 0.03))]
    del t, value, period
    cupy.get_default_memory_pool().free_all_blocks()
    start = np.arange(0, 2 * n * POINTS + 1, POINTS, dtype=np.int64)
    about = About(bands=("B", "R"), id_type=pa.int64())
    return LightCurves(pa.array(np.arange(n)), start, *arrays, about)


def features(n):
    few = light_curves(4096, 1)
    with using("cpu"):
        extract_features(few.part(0, 64))
        start = time.perf_counter()
        expected = extract_features(few)
        cores = len(few) / (time.perf_counter() - start)
    with using("gpu"):
        start = time.perf_counter()
        extract_features(few.part(0, 512))
        first = time.perf_counter() - start
        found = extract_features(few)
        total = 0.0
        for seed, done in enumerate(range(0, n, PIECE)):
            curves = light_curves(min(PIECE, n - done), seed)
            start = time.perf_counter()
            extract_features(curves)
            total += time.perf_counter() - start
    apart = {name: far(found.numbers(name), expected.numbers(name)) for name in MACHO14}
    same = np.mean(np.abs(found.numbers("period") / expected.numbers("period") - 1) < 1e-9)
    rows = [
        ["GPU, from host memory, table included", f"{n:,}", f"{total:.1f}", f"{n / total:,.0f}",
         f"{2e7 / n * total / 60:.1f}"],
        [f"{n_threads()} cores", f"{len(few):,}", f"{len(few) / cores:.1f}", f"{cores:,.0f}",
         f"{2e7 / cores / 60:,.0f}"],
    ]  # fmt: skip
    print("### Light curves: 14 features, two bands of 500 points\n")
    print_table(["where", "stars", "seconds", "stars per second", "minutes for 20 million"], rows)
    worst = max(apart, key=apart.get)
    print(
        f"The same peak in {100 * same:.2f} % of {len(few)} stars; largest relative difference "
        f"{apart[worst]:.1e} ({worst}). First call, with compilation: {first:.0f} s.\n"
    )
    assert len(found.names_with(Role.FEATURE)) == len(MACHO14)


def ceilings():
    """Bytes that the largest loops must move, against what the card can copy."""
    pair = [cupy.ones(1 << 30, np.float32) for _ in range(2)]
    copy = 2 * pair[0].nbytes / seconds(partial(cupy.copyto, *pair)) / 1e12
    del pair
    cupy.get_default_memory_pool().free_all_blocks()
    gpu, n = Timed(devices._gpu()), 32_768
    curves = light_curves(n, 3)
    wanted = [(name, 0) for name in MACHO14]
    stars_on_device.compute_features(gpu, curves, wanted)
    gpu.spent.clear()
    stars_on_device.compute_features(gpu, curves, wanted)
    cells, size = 81_920, 135_001
    grid = 2 * 5 * cells * 8
    least = {"fft": 2 * grid, "power_of": grid + 12 * size, "allocation, zeros": grid,
             "find_peaks": 0, "window_range": 4 * size, "sum_segment": 8 * size,
             "copies to the card": 2 * POINTS * 24}  # fmt: skip
    rows = []
    for name, spent in sorted(gpu.spent.items(), key=lambda item: -item[1])[:12]:
        moved = least.get(name)
        rate = f"{moved * n / spent / 1e12:.2f}" if moved else ""
        share = f"{100 * moved * n / spent / 1e12 / copy:.0f} %" if moved else ""
        least_mb = f"{moved / 1e6:.2f}" if moved else ""
        rows.append([name, f"{spent / n * 1e6:.2f}", least_mb, rate, share])
    total = sum(gpu.spent.values())
    print(f"### Where the time of a star goes ({n / total:,.0f} stars per second, each loop waited "
          f"for; the card copies {copy:.2f} TB/s)\n")  # fmt: skip
    columns = ["loop", "µs per star", "least MB per star", "TB/s", "of a copy"]
    print_table(columns, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stars", type=float, default=1e6)
    parser.add_argument("--rows", type=float, default=4e6)
    parser.add_argument("--em-rows", type=float, default=2e7)
    parser.add_argument("--only", default="features,posterior,limits,em,ceilings,mixture_ceilings")
    asked = parser.parse_args()
    header("One GPU", ["numpy", "numba", "numba-cuda", "cupy-cuda13x"])
    driver = cupy.cuda.runtime.driverGetVersion()
    print(f"{devices._gpu().name}, CUDA {driver // 1000}.{driver % 1000 // 10}.\n")
    parts = {"features": lambda: features(int(asked.stars)),
             "posterior": lambda: posterior(int(asked.rows)),
             "limits": lambda: limits(int(asked.rows / 4)),
             "em": lambda: em(int(asked.em_rows)), "ceilings": ceilings,
             "mixture_ceilings": mixture_ceilings}  # fmt: skip
    for name in asked.only.split(","):
        parts[name]()
        cupy.fft.config.get_plan_cache().clear()
        cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
