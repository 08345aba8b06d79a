"""The tables of Pichara & Protopapas (2013): the printed numbers beside ours.

    python benchmarks/paper_tables.py [--tables gaps,filling,classes,surveys,structure]
        [--methods mixture,paper,skyfill] [--folds 10] [--repeats 2] [--seed 0]

The paper's data were never published as one file. Filling uses the MACHO training set of Pichara et
al. (2012) with the twelve of their fourteen features that it has; classes use the simulated
training set, whose class counts are the paper's and whose gaps are nearly so. "paper" is the
paper's own model: Algorithm 1 with K2, posterior means and a random forest.
"""

import argparse

import numpy as np

from report import header, print_table
from skyfill.datasets import (
    PAPER_FEATURES,
    join_by_truth,
    load_macho,
    simulate_training_set,
)
from skyfill.evaluate import classifiers, compare_imputers, cross_validate, imputers
from skyfill.network import learn_network
from survey_gain import build, rows_of

# Percentages of missing values: the paper's tables 2 and 3.
GAPS = {"J": 54, "H": 54, "K": 58, "m36": 1, "m45": 13, "m58": 68, "m80": 74}
GAPS |= {"U": 49, "B": 0, "V": 0, "I": 14}
# Its table 1: NRMSE on MACHO at four rates.
NRMSE = {"paper": (0.396, 0.437, 0.514, 0.523), "mixture": (0.624, 0.701, 0.764, 0.790)}
RATES = (0.05, 0.10, 0.15, 0.20)
# Its table 5: precision, recall and F of classes, by mixtures and by its network.
CLASSES = {
    "NV": ((0.857, 0.952, 0.902), (0.878, 0.942, 0.909)),
    "QSO": ((0.9, 0.8, 0.847), (0.878, 0.956, 0.915)),
    "BE": ((0.679, 0.5, 0.576), (0.724, 0.553, 0.627)),
    "CEPH": ((0.805, 0.886, 0.844), (0.785, 0.886, 0.832)),
    "RRL": ((0.333, 0.014, 0.028), (0.583, 0.203, 0.301)),
    "EB": ((0.5, 0.25, 0.333), (0.525, 0.31, 0.39)),
    "LPV": ((0.919, 0.938, 0.928), (0.925, 0.947, 0.935)),
}
WEIGHTED = ((0.821, 0.851, 0.826), (0.846, 0.863, 0.848))
# Its table 6: quasars without and with the other surveys.
QUASARS = {"without": (0.857, 0.8, 0.828), "with": (0.843, 0.956, 0.896)}
SKEWED = ("CAR_tau", "Eta_e", "PeriodLS")


def magnitudes(seed):
    """Return the simulated training set: eleven magnitudes, and classes."""
    table = join_by_truth(simulate_training_set(seed=seed))
    X = table.numbers(*GAPS)
    return X, np.array(table.column("class").to_pylist(), dtype=object)


def macho():
    """Return the MACHO features, three of them as logarithms."""
    X = load_macho().numbers(*PAPER_FEATURES)
    columns = [PAPER_FEATURES.index(name) for name in SKEWED]
    X[:, columns] = np.log10(X[:, columns])
    return X


def gaps(options):
    """Tables 2 and 3."""
    X, _ = magnitudes(options.seed)
    ours = 100 * np.isnan(X).mean(axis=0)
    rows = [
        [name, f"{printed} %", f"{own:.0f} %"]
        for (name, printed), own in zip(GAPS.items(), ours, strict=True)
    ]
    print_table(["feature", "printed", "simulated"], rows)


def filling(options):
    """Table 1."""
    methods = imputers(options.methods)
    how = {"rates": list(RATES), "repeats": options.repeats, "rng": options.seed}
    found = compare_imputers(macho(), methods, **how)
    rows = [[f"printed: {name}", *(f"{v:.3f}" for v in values)] for name, values in NRMSE.items()]
    for method in methods:
        means = [found.mean("nrmse", method, rate) for rate in RATES]
        rows.append([method, *(f"{mean.value:.3f} ± {mean.error:.3f}" for mean in means)])
    print_table(["NRMSE", *(f"{100 * rate:.0f} %" for rate in RATES)], rows)


def classes(options):
    """Table 5."""
    X, y = magnitudes(options.seed)
    methods = classifiers(options.methods)
    found = cross_validate(X, y, methods, folds=options.folds, rng=options.seed)
    scores = {method: found.by_class(method) for method in found.methods}
    rows = []
    for name, printed in CLASSES.items():
        k = found.classes.index(name)
        ours = [(s.precision[k], s.recall[k], s.f[k]) for s in scores.values()]
        rows.append([name, *(triple(values) for values in (*printed, *ours))])
    share = np.bincount(found.truth) / len(found.truth)
    ours = [(share @ s.precision, share @ s.recall, share @ s.f) for s in scores.values()]
    rows.append(["weighted mean", *(triple(values) for values in (*WEIGHTED, *ours))])
    print_table(["class", "printed: mixture", "printed: network", *scores], rows)
    print("Precision / recall / F.\n")


def triple(values):
    return " / ".join(f"{value:.3f}" for value in values)


def surveys(options):
    """Table 6."""
    X, y, _, others = build(options.seed)
    methods = classifiers(options.methods)
    rules = {"folds": options.folds, "rng": options.seed}
    rows = [
        [f"printed: {where}", "", *(f"{v:.3f}" for v in values)]
        for where, values in QUASARS.items()
    ]
    light_curves = np.delete(X, others, axis=1)
    for where, table in (("without", light_curves), ("with", X)):
        rows += [row[:5] for row in rows_of(cross_validate(table, y, methods, **rules), where)]
    print_table(["other surveys", "method", "quasars: precision", "recall", "F"], rows)


def structure(options):
    """Figure 5: arcs of five seeds side by side, as printed and as improved."""
    X = macho()
    rng = np.random.default_rng(options.seed)
    X[rng.random(X.shape) < RATES[-1]] = np.nan
    ways = {"as printed": {"orders": "own"}, "k2": {}, "bic": {"score": "bic"}}
    rows = []
    for way, how in ways.items():
        found = [learn_network(X, PAPER_FEATURES, rng=seed, **how).network for seed in range(5)]
        links = [{frozenset(arc) for arc in network.arcs} for network in found]
        apart = [len(a ^ b) for i, a in enumerate(links) for b in links[:i]]
        parents = max(len(family) for network in found for family in network.parents)
        counts = [len(each) for each in links]
        common = len(set.intersection(*links))
        rows.append([way, f"{min(counts)} to {max(counts)}", common, max(apart), parents])
    print_table(
        ["arcs of five seeds", "links", "in all five", "most that differ", "most parents"], rows
    )


TABLES = {
    "gaps": gaps,
    "filling": filling,
    "classes": classes,
    "surveys": surveys,
    "structure": structure,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--methods", default="mixture,paper,skyfill")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.methods = options.methods.split(",")
    header("The paper's tables", ["scikit-learn"])
    for name in options.tables.split(","):
        print(f"### {TABLES[name].__doc__.strip()}\n")
        TABLES[name](options)


if __name__ == "__main__":
    main()
