"""Learning: Algorithm 1 on the MACHO table, the number of bins, and K2's speed against pgmpy.

    python benchmarks/learning.py [--rows 100000]

Needs the MACHO table in SKYFILL_DATA (or the network to fetch it) and the extra `compare`.
"""

import argparse
import time
import warnings

import numpy as np

from inference import complete_table, hide_cells, random_network
from report import best_time, header, print_table
from skyfill.datasets import PAPER_FEATURES, load_macho
from skyfill.network import k2_search, learn_network
from skyfill.network.single.k2 import cut, quantile_edges

LOGARITHMS = ("CAR_tau", "Eta_e", "PeriodLS")


def macho_features():
    """The paper's features in the table: 12 of its 14; logarithms of three that are skewed."""
    table = load_macho()
    X = table.numbers(*PAPER_FEATURES)
    for name in LOGARITHMS:
        j = PAPER_FEATURES.index(name)
        X[:, j] = np.log10(X[:, j])
    return X


def algorithm_1():
    """The trace of Algorithm 1 with 20 % of the cells hidden, and the error of filled values."""
    X = macho_features()
    hidden = hide_cells(X, np.random.default_rng(0), 0.2)
    lost = np.isnan(hidden)
    scale = X.std(axis=0)
    rows = []
    for score in ("k2", "bic"):
        start = time.perf_counter()
        learned = learn_network(hidden, PAPER_FEATURES, score=score, n_completions=5)
        seconds = time.perf_counter() - start
        error = (learned.network.posterior(hidden).mean - X) / scale
        nrmse = np.mean([np.sqrt(np.mean(error[lost[:, j], j] ** 2)) for j in range(len(scale))])
        for t, step in enumerate(learned.trace, 1):
            last = t == len(learned.trace)
            rows.append(
                [
                    score,
                    t,
                    f"{step.score:.0f}",
                    f"{step.loglik:.0f}",
                    step.n_arcs,
                    f"{learned.converged}" if last else "",
                    f"{nrmse:.3f}" if last else "",
                    f"{seconds:.1f}" if last else "",
                ]
            )
    print("### Algorithm 1 (k2) and structural EM (bic) on MACHO, 12 features, 20 % hidden\n")
    print_table(
        ["score", "round", "log score", "log-likelihood", "arcs", "settled", "NRMSE", "seconds"],
        rows,
    )


def bins():
    """Held-out log-likelihood per row, below that of the true network, by number of bins."""
    rows = []
    for n in (300, 2000, 10_000, 50_000):
        losses = {b: [] for b in (2, 3, 4, 5, 8)}
        for seed in range(4):
            rng = np.random.default_rng(seed)
            network = random_network(15, rng)
            X = hide_cells(complete_table(network, n, rng), rng, 0.2)
            new = complete_table(network, 5000, rng)
            for b, found in losses.items():
                learned = learn_network(X, n_bins=b, n_completions=3).network
                found.append(network.loglik(new).mean() - learned.loglik(new).mean())
        rows.append([n, *(f"{np.mean(found):.3f}" for found in losses.values())])
    print(
        "### Bins of K2: held-out loss in nats per row (random networks of 15 nodes, 20 % hidden)\n"
    )
    print_table(["rows", "2 bins", "3", "4", "5", "8"], rows)


def k2_speed(n):
    """K2 along one order, and pgmpy's hill climbing with its K2 score, on the same codes."""
    import pandas as pd
    from pgmpy.causal_discovery import HillClimbSearch

    rng = np.random.default_rng(0)
    X = complete_table(random_network(25, rng), n, rng)
    codes = cut(X, quantile_edges(X, 3)).columns.T
    order = list(range(25))
    k2_search(codes[:100], order)
    ours = best_time(lambda: k2_search(codes, order))
    frame = pd.DataFrame(codes.astype(int)).astype("category")
    frame.columns = [f"x{j}" for j in order]
    search = HillClimbSearch(
        scoring_method="k2", max_indegree=3, return_type="dag", show_progress=False
    )
    rival = best_time(lambda: search.fit(frame), 1)
    print(f"### K2 on a complete table of {n} x 25, 3 bins, at most 3 parents\n")
    print_table(
        ["search", "arcs", "ratio of times"],
        [
            ["skyfill k2_search, one order", sum(map(len, k2_search(codes, order))), "1"],
            ["pgmpy HillClimbSearch, k2", len(search.causal_graph_.edges()), f"{rival / ours:.0f}"],
        ],
    )
    print(f"skyfill {ours:.2f} s, pgmpy {rival:.0f} s\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    n_rows = parser.parse_args().rows
    warnings.filterwarnings("ignore")
    header("Learning", ["pgmpy", "numpy", "numba"])
    algorithm_1()
    bins()
    k2_speed(n_rows)
