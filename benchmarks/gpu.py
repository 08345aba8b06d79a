"""One GPU against the cores beside it: features, posteriors, EM, and where the time goes.

    python benchmarks/gpu.py [--stars 1e6] [--rows 4e6] [--em-rows 2e7] [--only PART,...]

Parts: features, posterior, em, ceilings. Needs the extra `gpu` and a card. Data are made on the
card; features and posteriors are timed from and to the memory of the machine. Files have a script
of their own, gpu_files.py.
"""

import argparse
import time
from functools import partial

import cupy
import numpy as np
import pyarrow as pa

from gpu_naive import make_naive
from report import header, print_table
from skyfill import device as devices
from skyfill.catalog import Role
from skyfill.device import using
from skyfill.lightcurve import About, LightCurves, extract_features
from skyfill.lightcurve import on_device as stars_on_device
from skyfill.lightcurve.registry import MACHO14
from skyfill.network.mixture import on_device
from skyfill.network.mixture.fit import Plan, fit_mixture
from skyfill.network.mixture.margin import fit_margin
from skyfill.network.mixture.mixture import expect_parts, split
from skyfill.network.mixture.network import MixtureNetwork
from skyfill.threads import map_threads, n_threads

POINTS, DAYS = 500, 2700.0
PIECE = 131_072


def seconds(work, repeats=3):
    """Least time of some runs, after one that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        work()
        cupy.cuda.Device().synchronize()
        times.append(time.perf_counter() - start)
    return min(times)


class Timed:
    """A device that waits for every loop, to see how long it takes."""

    def __init__(self, inner):
        self.inner, self.spent = inner, {}

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def _measure(self, name, work, *args, **how):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        found = work(*args, **how)
        cupy.cuda.Device().synchronize()
        self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - start
        return found

    def run(self, body, n, *args, **how):
        return self._measure(body.py_func.__name__, self.inner.run, body, n, *args, **how)

    def fft(self, rows):
        return self._measure("fft", self.inner.fft, rows)

    def array(self, *args):
        return self._measure("copies to the card", self.inner.array, *args)

    def host(self, *args):
        return self._measure("copies back", self.inner.host, *args)

    def empty(self, *args, **how):
        return self._measure("allocation, zeros", self.inner.empty, *args, **how)


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


def far(a, b):
    """Largest relative difference; infinite where one is a gap and the other is not."""
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return np.inf
    return float(np.nanmax(np.abs(a - b) / np.maximum(np.abs(b), 1e-12)))


def simulate(n, p, seed, rate=0.3):
    """Rows of eight classes on the card, cells lost at random."""
    rng, fixed = cupy.random.RandomState(seed), np.random.default_rng(1)
    loads = cupy.asarray(fixed.normal(size=(6, p)))
    centers = cupy.asarray(fixed.normal(scale=2, size=(8, 6)))
    X = (centers[rng.randint(0, 8, n)] + rng.standard_normal((n, 6))) @ loads
    X = X / cupy.sqrt((loads**2).sum(axis=0) * 5) + 0.2 * rng.standard_normal((n, p))
    X[rng.uniform(size=X.shape) < rate] = cupy.nan
    return X


def learn(p, components, fits):
    X = cupy.asnumpy(simulate(20_000, p, 7))
    margins = tuple(fit_margin(x[~np.isnan(x)]) for x in X.T)
    names = tuple(f"x{j}" for j in range(p))
    Z = MixtureNetwork(names, margins, ()).scores(X)
    plan = Plan(components, 10.0)
    with using("gpu"):
        found = [fit_mixture(Z, plan, np.random.default_rng(s), max_iter=8) for s in range(fits)]
    return MixtureNetwork(names, margins, tuple(climb.params for climb in found))


def work_there(there, X):
    there._fill(X, there._weigh(X))


def posterior(n):
    print("### Posterior mean and sd of every gap, 30 % of the cells lost, a pattern per row\n")
    gpu, rows = devices._gpu(), []
    for p, components, fits in ((12, 24, 8), (25, 24, 1)):
        network = learn(p, components, fits)
        X = simulate(1 << 19, p, 9)
        host = cupy.asnumpy(simulate(n, p, 10))
        with using("cpu"):
            few = host[:60_000]
            network.look(few[:2000])
            start = time.perf_counter()
            expected = network.look(few).posterior
            cores = len(few) / (time.perf_counter() - start)
        for dtype in (np.float64, np.float32):
            margins = (network.margins, network._knots, network._moments)
            there = on_device.load_mixture(gpu, network.fits, *margins, dtype=dtype)
            found = there.look(few)
            error = max(np.abs(found["mean"] - expected.mean).max(),
                        np.abs(found["sd"] - expected.sd).max())  # fmt: skip
            Z = there._weigh(X).Z
            simple = len(X) / seconds(make_naive(network, Z, dtype))
            card = len(X) / seconds(partial(work_there, there, X))
            whole = len(host) / seconds(partial(there.look, host), 2)
            rows.append([f"{p} × {sum(network.n_components)}", np.dtype(dtype).name,
                         *(f"{rate / 1e6:.2f}" for rate in (whole, card, simple)),
                         f"{card / simple:.1f}", f"{cores / 1e6:.3f}", f"{error:.0e}"])  # fmt: skip
            del Z
            cupy.get_default_memory_pool().free_all_blocks()
    print_table(["columns × components", "precision", "from host arrays", "from device memory",
                 "naive kernel", "ahead of it", f"{n_threads()} cores", "largest difference"],
                rows)  # fmt: skip
    print("Millions of rows per second. From host and device memory: margins and quadrature "
          "included; the naive kernel has normal scores in and out.\n")  # fmt: skip


def em(n):
    print("### EM, 25 columns, 24 components, 20 % of the cells lost\n")
    network = learn(25, 24, 1)
    mixture, gpu = network.fits[0], devices._gpu()
    pieces = [simulate(min(1 << 20, n - done), 25, 20 + i, 0.2)
              for i, done in enumerate(range(0, n, 1 << 20))]  # fmt: skip
    few = cupy.asnumpy(pieces[0][:500_000])
    parts = split(few)
    expect_parts(parts[:8], mixture, map_threads)
    start = time.perf_counter()
    expected = expect_parts(parts, mixture, map_threads)
    cores = n / len(few) * (time.perf_counter() - start)
    found = on_device.expect_on_device(gpu, pieces[0][:500_000], mixture)
    error = max(far(getattr(found, name).sum(axis=0), getattr(expected, name).sum(axis=0))
                for name in ("weight", "total", "cross", "gaps"))  # fmt: skip
    Z = cupy.concatenate(pieces)
    del pieces
    card = seconds(lambda: on_device.expect_on_device(gpu, Z, mixture), 2)
    rows = [["GPU", f"{n:,}", f"{card:.2f}", f"{cores / card:.0f}"],
            [f"{n_threads()} cores", f"{len(few):,}, scaled", f"{cores:.1f}", "1"]]  # fmt: skip
    print_table(["where", "rows", "seconds per step", "times the cores"], rows)
    print(f"Largest relative difference of the sums: {error:.0e}.\n")


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
    parser.add_argument("--only", default="features,posterior,em,ceilings")
    asked = parser.parse_args()
    header("One GPU", ["numpy", "numba", "numba-cuda", "cupy-cuda13x"])
    driver = cupy.cuda.runtime.driverGetVersion()
    print(f"{devices._gpu().name}, CUDA {driver // 1000}.{driver % 1000 // 10}.\n")
    parts = {"features": lambda: features(int(asked.stars)),
             "posterior": lambda: posterior(int(asked.rows)),
             "em": lambda: em(int(asked.em_rows)), "ceilings": ceilings}  # fmt: skip
    for name in asked.only.split(","):
        parts[name]()
        cupy.fft.config.get_plan_cache().clear()
        cupy.get_default_memory_pool().free_all_blocks()


if __name__ == "__main__":
    main()
