"""Classes in a field that is fainter than the training set and holds other shares of the classes.

    python benchmarks/field.py [--seeds 0,1,2,3,4] [--objects 20000] [--components 8] [--fits 2]

The simulated training set (1833 objects) teaches; a simulated field of 20,000, of which some 25 are
quasars, judges. Twelve magnitudes, no light curves. Each way of giving probabilities is scored:
skyfill as trained; with shares of the classes estimated from the field, by profiles of held-out
objects (from objects whose gaps are like those of the training set, or from all) and by EM; with
the true shares; and scikit-learn's boosting and forest on gaps, as they are and with the same
corrections. "stated" is the purity that the probabilities promise.
"""

import argparse
import sys

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import cross_val_predict

from report import header, print_table
from skyfill.classify import CatalogClassifier
from skyfill.classify.prior import estimate_prior, estimate_shares, find_profiles, shift_prior
from skyfill.datasets import join_by_truth, simulate_field, simulate_training_set
from skyfill.impute import NetworkImputer
from skyfill.model import cells_of, train_classifier

BANDS = ("V_macho", "R_macho", "U", "B", "I", "J", "H", "K", "m36", "m45", "m58", "m80")
RARE = "QSO"
N_BINS = 15
# The seeds of fields differ from those of training sets.
FIELD_SEED = 100
SCORES = ("accuracy", "macro F1", "log loss", "ECE", "purity", "completeness", "stated")


def scores(P, y, classes):
    """Scores of all objects, and of the quasars with a probability above a half."""
    top, said = P.max(axis=1), classes[P.argmax(axis=1)]
    bins = np.minimum((top * N_BINS).astype(int), N_BINS - 1)
    off = [
        abs(top[bins == k].mean() - (said == y)[bins == k].mean()) * (bins == k).mean()
        for k in np.unique(bins)
    ]
    p = P[:, list(classes).index(RARE)]
    listed = p > 0.5
    return [
        accuracy_score(y, said),
        f1_score(y, said, average="macro"),
        log_loss(y, np.clip(P, 1e-12, 1), labels=list(classes)),
        sum(off),
        (y[listed] == RARE).mean() if listed.any() else np.nan,
        listed[y == RARE].mean(),
        p[listed].mean() if listed.any() else np.nan,
    ]


def corrected(name, P, shares, profiles, true, known):
    """The ways to correct probabilities for the shares of the field."""
    return {
        name: P,
        f"{name}, shares of known gaps": shift_prior(
            P, shares, estimate_shares(P, shares, profiles, known).shares
        ),
        f"{name}, shares by profiles": shift_prior(
            P, shares, estimate_shares(P, shares, profiles).shares
        ),
        f"{name}, shares by EM": shift_prior(P, shares, estimate_prior(P, shares)),
        f"{name}, true shares": shift_prior(P, shares, true),
    }


def ways(seed, options):
    """Name -> probabilities of the field's objects; and their classes."""
    training = join_by_truth(simulate_training_set(seed=seed))
    field = join_by_truth(simulate_field(options.objects, seed=seed + FIELD_SEED))
    imputer = NetworkImputer(options.components, n_fits=options.fits, random_state=seed)
    small = CatalogClassifier(imputer=imputer, random_state=seed)
    model, _ = train_classifier(training, list(BANDS), "class", classifier=small)
    scorer, y = model.scorer, np.array(field.column("class").to_pylist())
    classes = np.array(scorer.classes)
    true = np.maximum([(y == name).mean() for name in classes], 1e-6)
    cells = cells_of(model, field)[0]
    P, known = scorer.probabilities(cells, n_draws=0), scorer.known(cells)
    found = corrected("skyfill", P, scorer.shares, scorer.profiles, true, known)
    shares = estimate_shares(P, scorer.shares, scorer.profiles, known).shares
    drawn = scorer.probabilities(cells)
    found["skyfill, draws of new gaps, shares of known gaps"] = shift_prior(
        drawn, scorer.shares, shares
    )
    X, new = training.numbers(*BANDS), field.numbers(*BANDS)
    labels = np.array(training.column("class").to_pylist())
    codes = np.searchsorted(classes, labels)
    for name, rival in (
        ("boosting on gaps", HistGradientBoostingClassifier(random_state=seed)),
        ("forest on gaps", RandomForestClassifier(300, n_jobs=2, random_state=seed)),
    ):
        held_out = cross_val_predict(rival, X, labels, cv=5, method="predict_proba")
        P = np.maximum(rival.fit(X, labels).predict_proba(new), 1e-6)
        P /= P.sum(axis=1, keepdims=True)
        shares = np.bincount(codes) / len(codes)
        found |= corrected(name, P, shares, find_profiles(held_out, codes), true, known)
    return found, y, classes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--fits", type=int, default=2)
    options = parser.parse_args()
    header("Classes in the field", ["scikit-learn", "numba"])
    rows = {}
    for seed in map(int, options.seeds.split(",")):
        found, y, classes = ways(seed, options)
        for name, P in found.items():
            rows.setdefault(name, []).append(scores(P, y, classes))
        print(f"\nMean over seeds to {seed}; {options.objects:,} objects.\n")
        means = {name: np.nanmean(each, axis=0) for name, each in rows.items()}
        body = [[name, *(f"{x:.3f}" for x in mean)] for name, mean in means.items()]
        print_table(["way", *SCORES], body)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
