"""When shares of the classes that are estimated from a field make probabilities better.

    python benchmarks/shares.py [--trials 28] [--seed 0]

Real tables (Chandra, MACHO with 20 % of the cells hidden, EROS-1, MACHO variables) are split at
random into a training set and a field, so that the field prefers one end of some column (by
nothing, or up to a sharp cut), some of the classes, or both. A forest on gaps, whose probabilities
skyfill corrects for the shares that it estimates, classifies the field. Printed are the log losses
as trained, with estimated and with true shares, by the part of the difference between training set
and field that the estimated shares explain (`explained_by`).
"""

import argparse
from types import SimpleNamespace

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from class_tables import chandra_gaps, macho_cells
from field import positive
from field_cases import eros_to_macho
from report import header, print_table
from skyfill.classify.held_out import keep_held_out
from skyfill.classify.likeness import explained_by, learn_looks
from skyfill.classify.prior import refine_shares, shift_prior

EDGES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0001)
# How strongly the field prefers an end of a column, and classes.
SLOPES, SPREADS = (0.0, 0.5, 1.0, 2.0, 8.0), (0.0, 0.5, 1.0)
LEAST_ROWS, LEAST_OF_CLASS, FLOOR = 150, 10, 1e-3


def tables(seed):
    """Name -> values and classes."""
    chandra, macho = chandra_gaps(seed), macho_cells(0.2, seed)
    stars = eros_to_macho(seed, SimpleNamespace(objects=6000))
    return {
        "Chandra": (chandra.X, chandra.y),
        "MACHO": (macho.X, macho.y),
        "EROS-1": (stars.training.values, stars.labels),
        "MACHO variables": (stars.field.values, stars.truth),
    }


def split(X, y, rng):
    """Rows of a field, which prefers an end of a column and some of the classes."""
    column = X[:, rng.integers(X.shape[1])]
    filled = np.where(np.isnan(column), np.nanmedian(column), column)
    rank = np.lexsort([rng.random(len(X)), filled]).argsort() / len(X)
    codes = np.unique(y, return_inverse=True)[1]
    liked = rng.choice(SPREADS) * rng.normal(size=codes.max() + 1)
    odds = rng.choice([-1, 1]) * rng.choice(SLOPES) * (2 * rank - 1) + liked[codes]
    field = rng.random(len(X)) < 1 / (1 + np.exp(-odds))
    taught = np.bincount(codes[~field], minlength=codes.max() + 1) >= LEAST_OF_CLASS
    return field, taught[codes]


def judge(X, y, rng, seed):
    """What shares explain, and log losses as trained, with estimated and with true shares."""
    field, known = split(X, y, rng)
    train, test = ~field & known, field & known
    if min(train.sum(), test.sum()) < LEAST_ROWS or len(set(y[train])) < 2:
        return None
    classes, labels = np.unique(y[train], return_inverse=True)
    truth = np.searchsorted(classes, y[test])
    forest = RandomForestClassifier(150, min_samples_leaf=2, random_state=seed)
    P = positive(forest.fit(X[train], labels).predict_proba(X[test]), FLOOR)
    seen = cross_val_predict(forest, X[train], labels, cv=5, method="predict_proba")
    held_out = keep_held_out(positive(seen, FLOOR), labels)
    old = np.bincount(labels) / len(labels)
    new = refine_shares(P, old, held_out).shares
    true = np.bincount(truth, minlength=len(old)) / len(truth)
    ways = [P, *(shift_prior(P, old, np.maximum(shares, 1e-6)) for shares in (new, true))]
    losses = [-np.log(each[np.arange(len(truth)), truth]).mean() for each in ways]
    looks = learn_looks(X[train], labels, len(old))
    return [explained_by(new, old, X[test], looks), *losses]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=28)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    header("Estimated shares of the classes, and what they explain", ["scikit-learn"])
    rng, rows = np.random.default_rng(options.seed), []
    for X, y in tables(options.seed).values():
        found = [judge(X, y, rng, options.seed + k) for k in range(options.trials)]
        rows += [row for row in found if row is not None]
    explained, trained, estimated, true = np.array(rows).T
    body = []
    for low, high in zip(EDGES[:-1], EDGES[1:], strict=True):
        here = (explained >= low) & (explained < high)
        if not here.any():
            continue
        gain, best = (trained - estimated)[here], (trained - true)[here]
        line = [gain.mean(), gain.std() / np.sqrt(here.sum()), gain.min(), best.mean()]
        better = f"{(gain > 0).sum()} of {here.sum()}"
        body.append([f"{low:.2f} to {min(high, 1):.2f}", better, *(f"{x:.3f}" for x in line)])
    names = ["explained", "better", "mean gain in log loss", "error", "worst", "with true shares"]
    print_table(names, body)


if __name__ == "__main__":
    main()
