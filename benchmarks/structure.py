"""Arcs found in spite of gaps: ecoli70, magic-niab and gaussian.test, against pybnesian and pgmpy.

    python benchmarks/structure.py [--draws 3] [--methods "skyfill bic" "skyfill k2"]

Needs the networks in SKYFILL_DATA and the extra `compare`. 5000 rows; cells are
hidden at random. The rivals: pybnesian's hill climbing with its BIC (it accepts NaN and scores each
family on the rows that are seen), and pgmpy's hill climbing with its Gaussian BIC on the rows
without a gap (it refuses NaN). SHD compares equivalence classes (CPDAGs).
"""

import argparse
import time
import warnings
from itertools import combinations

import numpy as np

from report import header, print_table
from skyfill.datasets import load_gaussian_test, load_network
from skyfill.network import learn_network

RATES = (0.0, 0.1, 0.3)


def tables(name, seed):
    """(true parents, 5000 complete rows)."""
    if name == "gaussian.test":
        table = load_gaussian_test()
        truth = {"C": "AB", "D": "B", "F": "ADEG"}
        parents = [[table.names.index(k) for k in truth.get(n, "")] for n in table.names]
        return parents, table.numbers(*table.names)[:5000]
    network = load_network(name)
    X = network.draws(np.full((5000, len(network)), np.nan), 1, np.random.default_rng(seed))[0]
    return network.parents, X


def skeleton(parents):
    return {frozenset((i, j)) for j, family in enumerate(parents) for i in family}


def cpdag(parents):
    """Directed arcs of the equivalence class: colliders, then Meek's rules 1 to 3."""
    links = skeleton(parents)
    near = {j: {i for link in links if j in link for i in link - {j}} for j in range(len(parents))}
    arcs = {
        (i, j)
        for j, family in enumerate(parents)
        for i, k in combinations(family, 2)
        if frozenset((i, k)) not in links
        for i in (i, k)
    }
    while new := {
        (a, b)
        for link in links
        for a, b in (tuple(link), tuple(link)[::-1])
        if (a, b) not in arcs and (b, a) not in arcs and _compelled(a, b, arcs, near)
    }:
        arcs |= new
    return arcs


def _compelled(a, b, arcs, near):
    if any((c, a) in arcs and c not in near[b] for c in near[a]):
        return True
    if any((a, c) in arcs and (c, b) in arcs for c in near[a]):
        return True
    sides = [c for c in near[a] & near[b] if (c, b) in arcs and (a, c) not in arcs]
    return any(d not in near[c] for c, d in combinations(sides, 2))


def compare(truth, found):
    """Precision, recall and F1 of the skeleton, and the structural Hamming distance."""
    true, got = skeleton(truth), skeleton(found)
    hits = len(true & got)
    marks = {}
    for key, parents in (("true", truth), ("got", found)):
        arcs = cpdag(parents)
        marks[key] = {frozenset(arc): arc for arc in arcs}
    wrong = len(true ^ got)
    wrong += sum(marks["true"].get(link) != marks["got"].get(link) for link in true & got)
    return hits / max(len(got), 1), hits / len(true), 2 * hits / (len(true) + len(got)), wrong


def skyfill_with(**options):
    return lambda X: learn_network(X, **options).network.parents


def pybnesian_with(max_indegree):
    """`max_indegree=0` is its default: no limit."""

    def search(X):
        import pandas as pd
        import pybnesian as pb

        frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
        kind = pb.GaussianNetworkType()
        model = pb.hc(frame, bn_type=kind, score="bic", max_indegree=max_indegree, seed=0)
        return _parents(model.arcs(), X.shape[1])

    return search


def pgmpy_search(X):
    import pandas as pd
    from pgmpy.causal_discovery import HillClimbSearch

    rows = X[~np.isnan(X).any(axis=1)]
    if len(rows) < 20:
        return None
    frame = pd.DataFrame(rows, columns=[f"x{j}" for j in range(X.shape[1])])
    search = HillClimbSearch(scoring_method="bic-g", return_type="dag", show_progress=False)
    return _parents(search.fit(frame).causal_graph_.edges(), X.shape[1])


def _parents(arcs, p):
    parents = [[] for _ in range(p)]
    for parent, child in arcs:
        parents[int(child[1:])].append(int(parent[1:]))
    return parents


METHODS = {
    "skyfill bic": skyfill_with(score="bic", max_parents=None),
    "skyfill bic, 3 parents": skyfill_with(score="bic"),
    "skyfill k2": skyfill_with(score="k2"),
    "skyfill k2, as printed": skyfill_with(score="k2", orders="own", n_bins=3),
    "pybnesian hc, bic": pybnesian_with(0),
    "pybnesian hc, bic, 3 parents": pybnesian_with(3),
    "pgmpy hc, bic, complete rows": pgmpy_search,
}


def run(name, n_draws, methods):
    rows = []
    for method, search in methods.items():
        for rate in RATES:
            marks, times = [], []
            for seed in range(n_draws):
                truth, X = tables(name, seed)
                rng = np.random.default_rng(1000 + seed)
                X = np.where(rng.random(X.shape) < rate, np.nan, X)
                start = time.perf_counter()
                found = search(X)
                times.append(time.perf_counter() - start)
                if found is not None:
                    marks.append(compare(truth, found))
            line = ["too few complete rows", "", "", ""]
            if marks:
                mean = np.mean(marks, axis=0)
                line = [f"{mean[0]:.2f}", f"{mean[1]:.2f}", f"**{mean[2]:.3f}**", f"{mean[3]:.1f}"]
            rows.append([method, f"{rate:.0%}", *line, f"{np.median(times):.1f}"])
    print(f"### {name}, mean of {n_draws} draws\n")
    print_table(["method", "hidden", "precision", "recall", "F1", "SHD", "seconds"], rows)


def independent(methods):
    rows = []
    for method, search in methods.items():
        rng = np.random.default_rng(0)
        X = rng.normal(size=(5000, 14))
        X[rng.random(X.shape) < 0.1] = np.nan
        found = search(X)
        rows.append([method, "-" if found is None else sum(len(family) for family in found)])
    print("### 14 independent columns, 10 % hidden: arcs found (truth: 0)\n")
    print_table(["method", "arcs"], rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    options = parser.parse_args()
    chosen = {name: METHODS[name] for name in options.methods}
    warnings.filterwarnings("ignore", module="pgmpy|pybnesian|pandas")
    header("Structure", ["pybnesian", "pgmpy", "numpy"])
    for network_name in ("ecoli70", "magic-niab", "gaussian.test"):
        run(network_name, 1 if network_name == "gaussian.test" else options.draws, chosen)
    independent(chosen)
