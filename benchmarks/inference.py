"""Posterior mean and sd of 1,000,000 x 25 cells with gaps, against scikit-learn's IterativeImputer.

    python benchmarks/inference.py [--rows 1000000]

Times are the best of three in one process; read the ratios, machines are noisy.
"""

import argparse
import multiprocessing

import numpy as np

from report import best_time, header, print_table
from skyfill.network import GaussianNetwork

P = 25


def random_network(p, rng):
    parents = [rng.choice(j, min(j, 3), replace=False).tolist() for j in range(p)]
    weights = [rng.normal(0, 0.6, len(family)) for family in parents]
    return GaussianNetwork(None, parents, rng.normal(0, 1, p), weights, rng.uniform(0.2, 1, p))


def complete_table(network, n, rng):
    return network.draws(np.full((n, len(network)), np.nan), 1, rng)[0]


def hide_blocks(X, rng, n_patterns=20):
    """Lose whole surveys of columns: each row has one of `n_patterns` patterns."""
    p = X.shape[1]
    survey = np.arange(p) * max(5, int(np.ceil(np.log2(n_patterns)))) // p
    codes = rng.permutation(2 ** (survey.max() + 1) - 1)[:n_patterns]
    masks = (codes[:, None] >> survey) & 1 == 1
    return np.where(masks[rng.integers(len(masks), size=len(X))], np.nan, X)


def hide_cells(X, rng, rate=0.1):
    return np.where(rng.random(X.shape) < rate, np.nan, X)


def multiply_and_copy(X, B):
    return X @ B, X.copy()


def iterative_imputer_time(X, n_fit=20_000, n_new=50_000):
    """Seconds per row of transform, run as its authors mean it (BayesianRidge, defaults)."""
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    imputer = IterativeImputer(random_state=0).fit(X[:n_fit])
    new = X[n_fit : n_fit + n_new]
    return best_time(lambda: imputer.transform(new), 2) / len(new), imputer.transform(new)


def extra_memory(kind, n):
    """Peak memory of `posterior` beyond its input and output, in MB (in a process of its own)."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_extra_memory, (kind, n))


def _extra_memory(kind, n):
    rng = np.random.default_rng(0)
    network = random_network(P, rng)
    X = rng.normal(size=(n, P))
    hide = {"blocks": _lose_blocks_in_place, "cells": _lose_cells_in_place}[kind]
    hide(X, rng)
    network.posterior(X[:20_000])  # compiled code is not working memory
    before = _memory("VmRSS")
    result = network.posterior(X)
    return (_memory("VmHWM") - before - result.mean.nbytes - result.sd.nbytes) / 1e6


def _lose_blocks_in_place(X, rng):
    for start in range(0, len(X), 10_000):
        X[start : start + 10_000] = hide_blocks(X[start : start + 10_000], np.random.default_rng(1))


def _lose_cells_in_place(X, rng):
    for start in range(0, len(X), 10_000):
        X[start : start + 10_000] = hide_cells(X[start : start + 10_000], rng)


def _memory(key):
    """Bytes of a line of Linux's account of this process (VmRSS now, VmHWM at its peak)."""
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(key))
    return int(line.split()[1]) * 1024


def main_table(n):
    rng = np.random.default_rng(0)
    network = random_network(P, rng)
    full = complete_table(network, n, rng)
    B = rng.normal(size=(P, P))
    plain = best_time(lambda: multiply_and_copy(full, B))
    rows = []
    for label, kind, hide in [
        ("20 block patterns", "blocks", hide_blocks),
        ("10 % of cells, own pattern per row", "cells", hide_cells),
    ]:
        X = hide(full, rng)
        network.posterior(X[:10_000])
        ours = best_time(lambda X=X: network.posterior(X))
        rival, filled = iterative_imputer_time(X)
        lost = np.isnan(X[20_000:70_000])
        errors = [
            np.sqrt(np.mean((guess - full[20_000:70_000])[lost] ** 2))
            for guess in (network.posterior(X[20_000:70_000]).mean, filled)
        ]
        rows.append(
            [
                label,
                f"{ours / n * 1e6:.2f}",
                f"{rival * 1e6:.1f}",
                f"{rival * n / ours:.0f}x",
                f"{ours / plain:.2f}x",
                f"{extra_memory(kind, n):.0f}",
                f"{errors[0]:.3f} / {errors[1]:.3f}",
            ]
        )
    print_table(
        [
            "gaps",
            "skyfill, us per row (mean and sd)",
            "IterativeImputer, us per row (mean only)",
            "faster by",
            "time of X @ B + copy",
            "MB beyond input and output",
            "RMSE skyfill / IterativeImputer",
        ],
        rows,
    )


def growth(n):
    rng = np.random.default_rng(0)
    rows = []
    base = None

    def measure(what, n, p, hide):
        nonlocal base
        network = random_network(p, rng)
        X = hide(rng.normal(size=(n, p)), rng)
        network.posterior(X[:1000])
        per_row = best_time(lambda: network.posterior(X)) / n * 1e6
        base = base or per_row
        rows.append([what, n, p, f"{per_row:.2f}", f"{per_row / base:.1f}x"])

    for size in (n // 100, n // 10, n):
        measure("20 patterns", size, P, hide_blocks)
    for p in (10, 50, 100):
        measure("20 patterns", n // 10, p, hide_blocks)
    for count in (1, 200, 2000):
        measure(f"{count} patterns", n // 10, P, lambda X, r, c=count: hide_blocks(X, r, c))
    for p in (10, P, 50, 100):
        measure("own pattern per row, 10 %", n // 10, p, hide_cells)
    measure("own pattern per row, 50 %", n // 10, P, lambda X, r: hide_cells(X, r, 0.5))
    print_table(["gaps", "rows", "columns", "us per row", "ratio"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    n_rows = parser.parse_args().rows
    header("Inference", ["numpy", "numba", "scikit-learn"])
    main_table(n_rows)
    growth(n_rows)
