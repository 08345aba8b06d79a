"""Classes in a field that is fainter than the training set and holds other shares of the classes.

    python benchmarks/field.py [--tables simulated,macho,chandra,eros] [--seeds 0,1,2,3,4]
                               [--objects 20000] [--components 8] [--fits 2] [--features]
                               [--no-rivals]

The simulated training set (1833 objects) teaches; a simulated field of 20,000, of which some 25 are
quasars, judges. Twelve magnitudes, and with --features seven features of light curves that need no
period. Two real tables are split by brightness: the
bright half teaches, the faint half judges (MACHO with 20 % of the cells hidden; Chandra with its
own gaps). Stars of EROS-1 teach, and other stars of MACHO judge, `--objects` of them at most; zero
points come from stars that both have. Each way of giving probabilities is scored: skyfill as
trained; with draws of gaps that the training set does not have; with shares of the classes
estimated from the field, by means of held-out objects (from objects whose gaps are like those of
the training set, or from all) and by EM; with those shares only if they explain how the field
differs (*judged*: what `--prior estimate` does); with the true shares; trained with the field, of
which 10,000 objects take part without labels (`train --field`); and scikit-learn's boosting and
forest and, where it is installed, CatBoost on gaps, as they are and with the same corrections.
"stated" is the purity that the probabilities promise.
"""

import argparse
import sys

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import cross_val_predict

from class_rivals import Coded, catboost
from field_cases import CASES
from report import header, print_table
from rivals import AbsentError
from skyfill.classify import CatalogClassifier
from skyfill.classify.held_out import keep_held_out
from skyfill.classify.likeness import learn_looks
from skyfill.classify.prior import (
    estimate_prior,
    estimate_shares,
    judge_shares,
    rows_behind,
    shift_prior,
)
from skyfill.impute import NetworkImputer

N_BINS = 15
# Objects of the field that take part in training, as `train --field` takes them.
FIELD_ROWS = 10_000
SCORES = ("accuracy", "macro F1", "log loss", "ECE", "purity", "completeness", "stated")
RIVALS = {
    "boosting on gaps": lambda seed: HistGradientBoostingClassifier(random_state=seed),
    "forest on gaps": lambda seed: RandomForestClassifier(300, n_jobs=2, random_state=seed),
    "CatBoost on gaps": lambda seed: Coded(catboost, seed),
}


def scores(P, y, classes, rare):
    """Scores of all objects, and of those of the rare class with a probability above a half."""
    top, said = P.max(axis=1), classes[P.argmax(axis=1)]
    bins = np.minimum((top * N_BINS).astype(int), N_BINS - 1)
    off = [
        abs(top[bins == k].mean() - (said == y)[bins == k].mean()) * (bins == k).mean()
        for k in np.unique(bins)
    ]
    p = P[:, list(classes).index(rare)]
    listed = p > 0.5
    return [
        accuracy_score(y, said),
        f1_score(y, said, average="macro"),
        log_loss(y, np.clip(P, 1e-12, 1), labels=list(classes)),
        sum(off),
        (y[listed] == rare).mean() if listed.any() else np.nan,
        listed[y == rare].mean(),
        p[listed].mean() if listed.any() else np.nan,
    ]


def corrected(name, P, shares, held_out, true, case, known):
    """The ways to correct probabilities for the shares of the field."""
    first = estimate_shares(P, shares, held_out, known)
    codes = np.unique(case.labels, return_inverse=True)[1]
    looks = learn_looks(case.training.values, codes, len(shares))
    judged = judge_shares(first, shares, case.field.values[rows_behind(known)], looks)
    print(f"{name}: shares explain {judged.explained:.2f} of the difference")
    found = {
        "shares of known gaps": first.shares,
        "judged shares": judged.shares,
        "shares of all": estimate_shares(P, shares, held_out).shares,
        "shares by EM": estimate_prior(P, shares),
        "true shares": true,
    }
    ways = {f"{name}, {how}": shift_prior(P, shares, new) for how, new in found.items()}
    return {name: P} | ways, found


def fitted(cells, labels, seed, options, **how):
    """Fit skyfill's classifier with the options of the run."""
    few = {"n_fits": options.fits, "refine": None, "random_state": seed}
    imputer = NetworkImputer(options.components, **few)
    model = CatalogClassifier(imputer=imputer, random_state=seed, **how)
    beside = {name: getattr(cells, name) for name in ("lower", "upper", "errors")}
    return model.fit(cells.values, labels, **beside)


def field_ways(case, seed, options):
    """The ways of a classifier that objects of the field, without labels, helped to train."""
    rows = np.unique(np.linspace(0, len(case.truth) - 1, FIELD_ROWS).astype(int))
    both = case.training.joined(case.field.take(rows))
    labels = np.concatenate([case.labels, np.full(len(rows), None)]).astype(object)
    scorer = fitted(both, labels, seed, options, prior="field").scorer_
    named = zip(scorer.classes, scorer.prior, strict=True)
    print("shares:", ", ".join(f"{name} {share:.5f}" for name, share in named))
    return {
        "skyfill, trained with the field": scorer.probabilities(case.field, n_draws=0),
        "skyfill, trained with the field, draws": scorer.probabilities(case.field),
    }


def ways(case, seed, options):
    """Name -> probabilities of the field's objects; and the classes."""
    scorer = fitted(case.training, case.labels, seed, options).scorer_
    classes = np.array(scorer.classes)
    true = np.maximum([(case.truth == name).mean() for name in classes], 1e-6)
    P, known = scorer.probabilities(case.field, n_draws=0), scorer.known(case.field)
    found, shares = corrected("skyfill", P, scorer.shares, scorer.held_out, true, case, known)
    drawn = scorer.probabilities(case.field)
    found["skyfill, draws"] = drawn
    found["skyfill, draws, shares of known gaps"] = shift_prior(
        drawn, scorer.shares, shares["shares of known gaps"]
    )
    found["skyfill, draws, judged shares"] = shift_prior(
        drawn, scorer.shares, shares["judged shares"]
    )
    found |= field_ways(case, seed, options)
    for name, make in () if options.no_rivals else RIVALS.items():
        try:
            P, held_out = rival_probabilities(make(seed), case)
        except AbsentError as reason:
            print(f"{name}: skipped ({reason})")
            continue
        codes = np.searchsorted(classes, case.labels)
        shares = np.bincount(codes) / len(codes)
        seen = keep_held_out(held_out, codes)
        found |= corrected(name, P, shares, seen, true, case, known)[0]
    return found, classes


def rival_probabilities(rival, case):
    """Probabilities of a rival for the field's objects, and for held-out training objects."""
    X, new = case.training.values, case.field.values
    P = rival.fit(X, case.labels).predict_proba(new)
    held_out = cross_val_predict(rival, X, case.labels, cv=5, method="predict_proba")
    return positive(P), positive(held_out)


def positive(P, floor=1e-6):
    """Rivals give probabilities of exactly 0; no class is impossible."""
    inside = np.maximum(P, floor)
    return inside / inside.sum(axis=1, keepdims=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default="simulated")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--features", action="store_true")
    parser.add_argument("--no-rivals", action="store_true")
    options = parser.parse_args()
    header("Classes in the field", ["scikit-learn", "numba", "catboost"])
    for table in options.tables.split(","):
        rows = {}
        for seed in map(int, options.seeds.split(",")):
            case = CASES[table](seed, options)
            found, classes = ways(case, seed, options)
            for name, P in found.items():
                rows.setdefault(name, []).append(scores(P, case.truth, classes, case.rare))
            print(f"\n{table}: {len(case.truth):,} objects; mean over seeds to {seed}.\n")
            means = {name: np.nanmean(each, axis=0) for name, each in rows.items()}
            body = [[name, *(f"{x:.3f}" for x in mean)] for name, mean in means.items()]
            print_table(["way", *SCORES], body)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
