"""Mixtures on one GPU against the cores beside it: posteriors, limits, EM, and where time goes.

Called by gpu.py.
"""

import time
from functools import partial

import cupy
import numpy as np

from gpu_naive import make_naive
from gpu_timing import Timed, far, seconds
from report import print_table
from skyfill import device as devices
from skyfill.device import using
from skyfill.network.cells import Cells
from skyfill.network.mixture import on_device
from skyfill.network.mixture.fit import Plan, fit_mixture
from skyfill.network.mixture.maps import fit_margin
from skyfill.network.mixture.mixture import expect_parts, split
from skyfill.network.mixture.network import MixtureNetwork
from skyfill.threads import map_threads, n_threads

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
# A draw may take another component where its number lies at the edge of two: not quite all agree.
SAME = 0.9999


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


def work_there(there, given):
    there._fill(given, there._weigh(given), denoise=False)


def posterior(n):
    print("### Posterior mean and sd of every gap, 30 % of the cells lost, a pattern per row\n")
    gpu, rows = devices._gpu(), []
    for p, components, fits in ((12, 24, 8), (25, 24, 1)):
        network = learn(p, components, fits)
        X = simulate(1 << 20, p, 9)
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
            found = there.look(Cells(few))
            error = max(np.abs(found["mean"] - expected.mean).max(),
                        np.abs(found["sd"] - expected.sd).max())  # fmt: skip
            Z = there._weigh(there._load(Cells(cupy.asnumpy(X)))).cells[0]
            simple = len(X) / seconds(make_naive(network, Z, dtype))
            card = len(X) / seconds(partial(work_there, there, there._load(Cells(cupy.asnumpy(X)))))
            whole = len(host) / seconds(partial(there.look, Cells(host)), 2)
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


def plain(Z):
    """Scores on the card as a table without limits and errors."""
    return (Z, *(cupy.empty((0, Z.shape[1])) for _ in range(3)))


def with_limits(X, seed):
    """Lower limits of half of the gaps, some of them soft; errors of a third of the values."""
    rng = np.random.default_rng(seed)
    gap = np.isnan(X)
    lower = np.where(gap & (rng.random(X.shape) < 0.5), rng.normal(size=X.shape), np.nan)
    errors = np.where(~gap & (rng.random(X.shape) < 0.33), rng.uniform(0.02, 0.3, X.shape), np.nan)
    return Cells(X, lower, None, errors)


def means_of(network, cells):
    return network.look(cells).posterior.mean


def quantiles_of(network, cells):
    return network.quantiles(cells, LEVELS)


def draws_of(network, cells):
    return network.draws(cells, 8, 0)


def limits(n):
    print("### Limits of half of the gaps, errors of a third of the values\n")
    rows = []
    for p, components, fits in ((12, 24, 8), (12, 24, 1), (25, 24, 1)):
        network = learn(p, components, fits)
        cells = with_limits(cupy.asnumpy(simulate(n, p, 10)), 11)
        few = cells.take(slice(0, 20_000))
        scores = network.score_cells(cells)
        jobs = {"posterior": partial(means_of, network),
                "quantiles, 5 levels": partial(quantiles_of, network),
                "8 draws": partial(draws_of, network)}  # fmt: skip
        for name, job in jobs.items():
            with using("cpu"):
                job(few.take(slice(0, 2000)))
                start = time.perf_counter()
                expected = job(few)
                cores = len(few) / (time.perf_counter() - start)
            with using("gpu"):
                error = np.quantile(np.abs(job(few) - expected), SAME)
                card = n / seconds(partial(job, cells), 2)
            rows.append([f"{p} × {sum(network.n_components)}", name, f"{card:,.0f}",
                         f"{cores:,.0f}", f"{card / cores:.0f}", f"{error:.0e}"])  # fmt: skip
        rows.append([f"{p} × {components}", "EM step", *limited_step(scores, network.fits[0])])
    columns = ["columns × components", "job", "GPU", f"{n_threads()} cores", "times the cores",
               "largest difference"]  # fmt: skip
    print_table(columns, rows)
    print("Rows per second; from host arrays, but EM from device memory. The difference is the "
          f"largest of all but {100 * (1 - SAME):.2f} % of the cells.\n")  # fmt: skip


def limited_step(scores, mixture):
    """Rates of an EM step on the card and on the cores, their ratio, and how far they differ."""
    gpu, few = devices._gpu(), scores.take(slice(0, 50_000))
    parts = split(few)
    expect_parts(parts[:4], mixture, map_threads)
    start = time.perf_counter()
    expected = expect_parts(parts, mixture, map_threads)
    cores = len(few) / (time.perf_counter() - start)
    found = on_device.expect_on_device(gpu, on_device.load_scores(gpu, few), mixture)
    error = max(far(getattr(found, name).sum(axis=0), getattr(expected, name).sum(axis=0))
                for name in ("weight", "total", "cross", "gaps"))  # fmt: skip
    there = on_device.load_scores(gpu, scores)
    card = len(scores) / seconds(lambda: on_device.expect_on_device(gpu, there, mixture), 2)
    return f"{card:,.0f}", f"{cores:,.0f}", f"{card / cores:.0f}", f"{error:.0e}"


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
    found = on_device.expect_on_device(gpu, plain(pieces[0][:500_000]), mixture)
    error = max(far(getattr(found, name).sum(axis=0), getattr(expected, name).sum(axis=0))
                for name in ("weight", "total", "cross", "gaps"))  # fmt: skip
    Z = cupy.concatenate(pieces)
    del pieces
    card = seconds(lambda: on_device.expect_on_device(gpu, plain(Z), mixture), 2)
    rows = [["GPU", f"{n:,}", f"{card:.2f}", f"{cores / card:.0f}"],
            [f"{n_threads()} cores", f"{len(few):,}, scaled", f"{cores:.1f}", "1"]]  # fmt: skip
    print_table(["where", "rows", "seconds per step", "times the cores"], rows)
    print(f"Largest relative difference of the sums: {error:.0e}.\n")


def mixture_ceilings():
    """Operations and bytes of the loops of a posterior, against what the card can do."""
    n, p = 1 << 20, 12
    a = cupy.ones((8192, 8192))
    peak = 2 * 8192**3 / seconds(lambda: a @ a) / 1e12
    network, gpu = learn(p, 24, 8), Timed(devices._gpu())
    c = sum(network.n_components)
    margins = (network.margins, network._knots, network._moments)
    there = on_device.load_mixture(gpu, network.fits, *margins)
    given = there._load(Cells(cupy.asnumpy(simulate(n, p, 9))))
    for _ in range(8):  # until the card runs at its full clock
        work_there(there, given)
    weighed = there._weigh(given)
    matter = float((weighed.resp > on_device.NEGLIGIBLE).sum()) / n
    gpu.spent.clear()
    start = time.perf_counter()
    work_there(there, given)
    whole = time.perf_counter() - start
    lost = np.isnan(cupy.asnumpy(given[0])).sum(axis=1)
    seen = p - lost
    # Multiplications with additions: the square of what is seen, right sides, the factor.
    solve = (seen * (seen + 1) / 2 + lost * seen + lost * (lost + 1) * (lost + 5) / 6).mean()
    invert = (lost * (lost + 1) * (lost + 2) / 3).mean()
    # Operations, and bytes that must come from or go to memory, per row.
    least = {"weigh": (2 * c * solve, 8 * c + 24 * p), "share": (4 * c, 8 * c),
             "respond": (3 * c, 16 * c),
             "complete": (2 * matter * (solve + invert), matter * (16 * lost.mean() + 8)),
             "fill_gap": (matter * lost.mean() * 18, matter * (16 * lost.mean() + 8)),
             "score_cell": (40 * p, 16 * p), "sort_columns": (0, 16 * p)}  # fmt: skip
    rows = []
    for name, spent in sorted(gpu.spent.items(), key=lambda item: -item[1])[:8]:
        operations, moved = least.get(name, (0, 0))
        rate, speed = operations * n / spent / 1e12, moved * n / spent / 1e12
        rows.append([name, f"{spent / n * 1e9:.1f}", f"{operations:,.0f}", f"{rate:.2f}",
                     f"{100 * rate / peak:.0f} %", f"{moved:,.0f}", f"{speed:.2f}"])  # fmt: skip
    print(f"### Where the time of a row goes: 12 × {c}, double precision ({n / whole / 1e6:.1f} "
          f"million rows per second, each loop waited for; {matter:.0f} components matter; the "
          f"card multiplies matrices at {peak:.0f} TFLOP/s)\n")  # fmt: skip
    print_table(["loop", "ns per row", "operations", "TFLOP/s", "of a product", "least bytes",
                 "TB/s"], rows)  # fmt: skip
