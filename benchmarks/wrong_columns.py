"""Columns with another zero point, or swapped: noticed or not, and false alarms.

    python benchmarks/wrong_columns.py [--fits 2]

One half of a table teaches. Honest are the other half, its classes one by one (20 objects or more),
and the bright half of a table for a model of the faint half, and the reverse. Then columns of the
other half are spoiled one at a time. A warning is right if it names the spoiled column first.
Apart from these: all objects of the most common class, for a model that has seen none of it.
"""

import argparse

import numpy as np

from report import header, print_table
from skyfill.catalog import Role
from skyfill.datasets import join_by_truth, load_dataset, simulate_field, simulate_training_set
from skyfill.network import Cells, learn_mixture
from skyfill.network.mixture.agreement import find_disagreements

# By what a table is split into a bright and a faint half, and its magnitudes.
BRIGHTNESS = {"macho": "Mean", "chandra": "W1mag", "eros": "magnitude_b", "sage-spec": "[3.6]"}
MAGNITUDES = {
    "macho": ["Mean"],
    "chandra": ["Gmag", "BPmag", "RPmag", "Jmag", "Hmag", "Kmag", "W1mag", "W2mag", "W3mag"],
    "eros": ["magnitude_b", "magnitude_r"],
    "sage-spec": ["J2mag", "H2mag", "Ks2mag", "[3.6]", "[4.5]", "[5.8]", "[8.0]", "[24]"],
}
COMPONENTS, FEWEST = 16, 20


def found(network, X):
    """Names of the columns that are warned of, the worst first."""
    rows = Cells(X[~np.isnan(X).all(axis=1)])
    return [network.names[each.column] for each in find_disagreements(network, rows)]


def spoiled(X, names, magnitudes):
    """Tables with one wrong column each: what is wrong, the columns, the table."""
    for name in magnitudes:
        for off in (1.0, 0.3):
            wrong = X.copy()
            wrong[:, names.index(name)] += off
            yield f"{off:g} mag", {name}, wrong
    for pair in zip(magnitudes, magnitudes[1:], strict=False):
        one, other = map(names.index, pair)
        wrong = X.copy()
        wrong[:, [one, other]] = X[:, [other, one]]
        yield "swapped", set(pair), wrong


def count(network, cases):
    """Cases, warnings and right warnings of each kind."""
    counts = {}
    for kind, columns, X in cases:
        blamed = found(network, X)
        right = bool(blamed) and blamed[0] in columns
        counts[kind] = np.add(counts.get(kind, (0, 0, 0)), (1, bool(blamed), right))
    return {kind: f"{n} / {warned} / {right}" for kind, (n, warned, right) in counts.items()}


def survey(name, learn):
    table = load_dataset(name)
    names = table.names_with(Role.FEATURE)
    X, rng = np.asarray(table.numbers(*names)), np.random.default_rng(0)
    kinds = np.array(table.column(table.names_with(Role.LABEL)[0]).to_pylist())
    half, bright = rng.random(len(X)) < 0.5, X[:, names.index(BRIGHTNESS[name])]
    network, rest = learn(X[half], names), X[~half]
    honest = [("honest", (), rest)]
    for kind in np.unique(kinds):
        mine = rest[kinds[~half] == kind]
        honest += [("honest", (), mine)] if len(mine) >= FEWEST else []
    counts = count(network, [*honest, *spoiled(rest, names, MAGNITUDES[name])])
    low, high = bright <= np.nanmedian(bright), bright > np.nanmedian(bright)
    for other, mine in ((low, high), (high, low)):
        halves = count(learn(X[~mine], names), [("halves", (), X[~other & mine])])
        counts["halves"] = f"{counts.get('halves', '')} {halves['halves']}".strip()
    common = max(np.unique(kinds), key=lambda kind: (kinds == kind).sum())
    new = learn(X[kinds != common], names)
    counts["new class"] = ", ".join(found(new, X[kinds == common])) or "none"
    return counts


def field(learn):
    """Give the counts of the simulated training set, used on its field."""
    table, field = join_by_truth(simulate_training_set(seed=0)), join_by_truth(simulate_field(5000))
    names = tuple(n for n in table.names_with(Role.FEATURE) if n in field.names)
    X, network = np.asarray(field.numbers(*names)), learn(np.asarray(table.numbers(*names)), names)
    V = X[:, names.index("V")]
    edges = zip((0, 17, 19, 20), (17, 19, 20, 99), strict=True)
    parts = [("honest", (), X[(low < V) & (high >= V)]) for low, high in edges]
    bands = [name for name in names if name != "Color"]
    return count(network, [("honest", (), X), *parts, *spoiled(X, names, bands)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fits", type=int, default=2)
    fits = parser.parse_args().fits

    def learn(X, names):
        return learn_mixture(X, names, n_components=COMPONENTS, n_fits=fits).network

    header("Wrong columns", [])
    kinds = ("honest", "halves", "1 mag", "0.3 mag", "swapped", "new class")
    studies = {name: survey(name, learn) for name in BRIGHTNESS}
    studies["simulated field"] = field(learn)
    rows = [[name, *(counts.get(kind, "") for kind in kinds)] for name, counts in studies.items()]
    print("Tables / with a warning / of these, the first names a spoiled column.\n")
    print_table(["table", *kinds], rows)


if __name__ == "__main__":
    main()
