"""Classes in a field that is fainter than the training set and holds other shares of the classes.

    python benchmarks/field.py [--tables simulated,macho,chandra,eros] [--seeds 0,1,2,3,4]
                               [--objects 20000] [--components 8] [--fits 2]

The simulated training set (1833 objects) teaches; a simulated field of 20,000, of which some 25 are
quasars, judges. Twelve magnitudes, no light curves. Two real tables are split by brightness: the
bright half teaches, the faint half judges (MACHO with 20 % of the cells hidden; Chandra with its
own gaps). Stars of EROS-1 teach, and other stars of MACHO judge, `--objects` of them at most; zero
points come from stars that both have. Each way of giving probabilities is scored: skyfill as
trained; with draws of gaps that the training set does not have; with shares of the classes
estimated from the field, by profiles of held-out objects (from objects whose gaps are like those
of the training set, or from all) and by EM; with the true shares; and scikit-learn's boosting and
forest on gaps, as they are and with the same corrections. "stated" is the purity that the
probabilities promise.
"""

import argparse
import sys
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import accuracy_score, f1_score, log_loss
from sklearn.model_selection import cross_val_predict

from class_tables import chandra_gaps, macho_cells
from report import header, print_table
from skyfill.classify import CatalogClassifier
from skyfill.classify.prior import estimate_prior, estimate_shares, find_profiles, shift_prior
from skyfill.datasets import (
    join_by_truth,
    load_eros,
    load_macho_variables,
    simulate_field,
    simulate_training_set,
)
from skyfill.impute import NetworkImputer
from skyfill.model import cells_of
from skyfill.model.training import untrained
from skyfill.network import Cells
from skyfill.sky import MatchRules, join

BANDS = ("V_macho", "R_macho", "U", "B", "I", "J", "H", "K", "m36", "m45", "m58", "m80")
N_BINS = 15
# The seeds of fields differ from those of training sets.
FIELD_SEED = 100
SCORES = ("accuracy", "macro F1", "log loss", "ECE", "purity", "completeness", "stated")


class Case(NamedTuple):
    """Labelled cells that teach, others that judge, and the class whose list is judged."""

    training: Cells
    labels: np.ndarray
    field: Cells
    truth: np.ndarray
    rare: str


def simulated(seed, options):
    """The simulated training set and field, with their limits."""
    training = join_by_truth(simulate_training_set(seed=seed))
    field = join_by_truth(simulate_field(options.objects, seed=seed + FIELD_SEED))
    bare = untrained(training, list(BANDS))
    cells = [cells_of(bare, table)[0] for table in (training, field)]
    y = [np.array(table.column("class").to_pylist()) for table in (training, field)]
    return Case(cells[0], y[0], cells[1], y[1], "QSO")


def split(table, column, sign, rare):
    """The bright half of a table, and its faint half; objects without the column are faint."""
    brightness = sign * table.X[:, table.names.index(column)]
    bright = brightness > np.nanmedian(brightness)
    # A class that has no bright object cannot be learned.
    known = np.isin(table.y, np.unique(table.y[bright]))
    faint = ~bright & known
    return Case(
        Cells(table.X[bright]), table.y[bright], Cells(table.X[faint]), table.y[faint], rare
    )


def eros_to_macho(seed, options):
    """Magnitudes, period and relative amplitudes, as EROS-1 and as MACHO measured them."""
    eros, macho = load_eros(), load_macho_variables()
    both = join(eros, {"macho": macho}, 3.0, rules=MatchRules(remove_offset=True, n_controls=0))
    theirs = macho_stars(both, "_macho")
    offsets = np.nanmedian(eros_stars(both) - theirs, axis=0)
    matched = set(both.column("starid_macho").to_pylist())
    other = [name not in matched for name in macho.column("starid").to_pylist()]
    new = np.random.default_rng(seed).permutation(np.flatnonzero(other))[: options.objects]
    X, y = macho_stars(macho, "") + offsets, np.array(macho.column("class").to_pylist())
    ours = np.array(eros.column("class").to_pylist())
    return Case(Cells(eros_stars(eros)), ours, Cells(X[new]), y[new], "EB")


def eros_stars(table):
    """B and R, log period, and log of the relative scatter of the flux in B and R."""
    B, R, period, *scatter = table.numbers(
        "magnitude_b", "magnitude_r", "period_divided", "sigma_flux_b", "sigma_flux_r"
    ).T
    relative = [logs(flux) + 0.4 * m for flux, m in zip(scatter, (B, R), strict=True)]
    return np.column_stack([B, R, logs(period), *relative])


def macho_stars(table, suffix):
    """V and R, log period, and log amplitudes in V and R."""
    names = ("magave_kv", "magave_kr", "period_r", "amp_b", "amp_r")
    V, R, *others = table.numbers(*(name + suffix for name in names)).T
    return np.column_stack([V, R, *map(logs, others)])


def logs(values):
    """Logarithms; gaps where there is none."""
    return np.log10(np.where(values > 0, values, np.nan))


CASES = {
    "eros": eros_to_macho,
    "simulated": simulated,
    "macho": lambda seed, options: split(macho_cells(0.2, seed), "Mean", -1, "QSO"),
    "chandra": lambda seed, options: split(chandra_gaps(seed), "Fcsc_m", 1, "AGN"),
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


def corrected(name, P, shares, profiles, true, known):
    """The ways to correct probabilities for the shares of the field."""
    found = {
        "shares of known gaps": estimate_shares(P, shares, profiles, known).shares,
        "shares by profiles": estimate_shares(P, shares, profiles).shares,
        "shares by EM": estimate_prior(P, shares),
        "true shares": true,
    }
    ways = {f"{name}, {how}": shift_prior(P, shares, new) for how, new in found.items()}
    return {name: P} | ways, found


def ways(case, seed, options):
    """Name -> probabilities of the field's objects; and the classes."""
    imputer = NetworkImputer(options.components, n_fits=options.fits, random_state=seed)
    model = CatalogClassifier(imputer=imputer, random_state=seed)
    beside = {name: getattr(case.training, name) for name in ("lower", "upper", "errors")}
    scorer = model.fit(case.training.values, case.labels, **beside).scorer_
    classes = np.array(scorer.classes)
    true = np.maximum([(case.truth == name).mean() for name in classes], 1e-6)
    P, known = scorer.probabilities(case.field, n_draws=0), scorer.known(case.field)
    found, shares = corrected("skyfill", P, scorer.shares, scorer.profiles, true, known)
    drawn = scorer.probabilities(case.field)
    found["skyfill, draws"] = drawn
    found["skyfill, draws, shares of known gaps"] = shift_prior(
        drawn, scorer.shares, shares["shares of known gaps"]
    )
    X, new = case.training.values, case.field.values
    codes = np.searchsorted(classes, case.labels)
    for name, rival in (
        ("boosting on gaps", HistGradientBoostingClassifier(random_state=seed)),
        ("forest on gaps", RandomForestClassifier(300, n_jobs=2, random_state=seed)),
    ):
        held_out = cross_val_predict(rival, X, case.labels, cv=5, method="predict_proba")
        P = np.maximum(rival.fit(X, case.labels).predict_proba(new), 1e-6)
        P /= P.sum(axis=1, keepdims=True)
        shares = np.bincount(codes) / len(codes)
        found |= corrected(name, P, shares, find_profiles(held_out, codes), true, known)[0]
    return found, classes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default="simulated")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--components", type=int, default=8)
    parser.add_argument("--fits", type=int, default=2)
    options = parser.parse_args()
    header("Classes in the field", ["scikit-learn", "numba"])
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
