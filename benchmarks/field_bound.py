"""What magnitudes can reveal about the classes of a field at all: a near-Bayes bound.

    python benchmarks/field_bound.py [--constant 200000] [--each 20000] [--seeds 0,1,2,3,4]
                                     [--objects 20000] [--rounds 200] [--features]

Learns from labelled objects of other simulated fields: as faint and with the same gaps as the
fields of field.py that are judged, but with many objects of each rare class. The columns are those
that skyfill's classifier gets (values with gaps, limits, errors), and their differences. Scaled to
the true shares of each judged field, these probabilities are about the best that anyone can
state. "best weights" is the macro F1 when the classes are weighted before the most probable is
taken, with weights chosen on the judged fields themselves: no rule that decides by these
probabilities does much better. "list at 0.8" is the completeness of the longest list of quasars
with a purity of 0.8, again found with the truth at hand.
"""

import argparse

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

from field import SCORES, scores
from field_cases import FIELD_SEED, field_tables, published, reader
from report import header, print_table
from skyfill.classify.prior import shift_prior
from skyfill.datasets import simulate_training_set

RARE = ("QSO", "BE", "CEPH", "RRL", "EB", "LPV")
# Seeds of fields that nothing else uses.
TEACHING_SEED = 7000
WEIGHTS, ROUNDS_OF_WEIGHTS = 2.0 ** np.arange(-4, 4.5, 0.5), 2
LEAST_PURITY = 0.8


def teaching_set(options, read):
    """Constant objects and as many as wanted of each rare class, all as in the field."""
    wanted = {"NV": options.constant} | dict.fromkeys(RARE, options.each)
    tables = field_tables(
        sum(wanted.values()), seed=TEACHING_SEED, fractions=wanted, features=options.features
    )
    return with_differences(*read(tables))


def columns(read, tables, filled):
    """Columns of a field of which the teaching set has some value, and the classes."""
    X, y = with_differences(*read(tables))
    return X[:, filled], y


def with_differences(cells, y):
    """Values, limits, errors, and differences of values: trees see no sum of columns."""
    X = cells.values
    pairs = [X[:, i] - X[:, j] for i in range(X.shape[1]) for j in range(i)]
    beside = [each for each in (cells.lower, cells.upper, cells.errors) if each is not None]
    return np.column_stack([X, *beside, *pairs]).astype(np.float32), y


def best_weights(fields, classes):
    """Climb the mean macro F1 of all fields by the weights of the classes, one at a time."""
    weights, best = np.ones(len(classes)), 0.0
    coded = [(P, np.searchsorted(classes, y)) for P, y in fields]
    for c in [*range(len(classes))] * ROUNDS_OF_WEIGHTS:
        tried = [np.where(np.arange(len(classes)) == c, factor, weights) for factor in WEIGHTS]
        found = [np.mean([macro_f1(P * each, y) for P, y in coded]) for each in tried]
        weights, best = tried[int(np.argmax(found))], max(found)
    return best


def macro_f1(P, y):
    """Mean F1 of the classes, as scikit-learn has it but in a tenth of the time."""
    n = P.shape[1]
    pairs = np.bincount(n * y + P.argmax(axis=1), minlength=n * n).reshape(n, n)
    return np.mean(2 * np.diag(pairs) / np.maximum(pairs.sum(axis=0) + pairs.sum(axis=1), 1))


def longest_list(p, is_rare):
    """Completeness of the longest list of the most probable with a purity of 0.8."""
    right = is_rare[np.argsort(-p, kind="stable")].cumsum()
    pure = right >= LEAST_PURITY * np.arange(1, len(p) + 1)
    return right[pure].max(initial=0) / is_rare.sum()


def judge(models, shares, options, read):
    """Name of a method -> its probabilities of each judged field, and the classes there."""
    classes, found = next(iter(models.values())).classes_, {}
    for seed in options.seeds:
        tables = field_tables(options.objects, seed=seed + FIELD_SEED, features=options.features)
        X, y = read(tables)
        given = {name: model.predict_proba(X) for name, model in models.items()}
        given["mean of both"] = sum(given.values()) / len(given)
        true = np.maximum([(y == name).mean() for name in classes], 1e-6)
        for name, P in given.items():
            shifted = shift_prior(np.maximum(P, 1e-7), shares, true)
            found.setdefault(name, []).append((shifted, y))
    return found, classes


def row(name, fields, classes):
    """Mean scores over the fields."""
    mean = np.nanmean([scores(P, y, classes, "QSO") for P, y in fields], axis=0)
    at = list(classes).index("QSO")
    longest = np.mean([longest_list(P[:, at], y == "QSO") for P, y in fields])
    return [name, *(f"{x:.3f}" for x in (*mean, best_weights(fields, classes), longest))]


def learners(options):
    """A booster and a forest that many labelled objects can teach all that they hold."""
    boosting = HistGradientBoostingClassifier(
        learning_rate=0.1, max_iter=options.rounds, max_leaf_nodes=63, min_samples_leaf=50,
        l2_regularization=1.0, max_features=0.5, early_stopping=True, validation_fraction=0.05,
        random_state=0,
    )  # fmt: skip
    forest = RandomForestClassifier(
        80, min_samples_leaf=3, max_samples=0.3, n_jobs=2, random_state=0
    )
    return {"boosting": boosting, "forest": forest}


def whole_numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--constant", type=int, default=200_000)
    parser.add_argument("--each", type=int, default=20_000)
    parser.add_argument("--seeds", type=whole_numbers, default=[0, 1, 2, 3, 4])
    parser.add_argument("--objects", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--features", action="store_true")
    options = parser.parse_args()
    header("A bound for classes in the field", ["scikit-learn"])
    training = published(simulate_training_set(light_curves=options.features))
    read = reader(training, options.features)
    X, y = teaching_set(options, read)
    filled = ~np.isnan(X).all(axis=0)
    models = {name: model.fit(X[:, filled], y) for name, model in learners(options).items()}
    shares = np.unique(y, return_counts=True)[1] / len(y)
    found, classes = judge(models, shares, options, lambda each: columns(read, each, filled))
    print(f"{len(y):,} labelled objects teach, fields of {options.objects:,} judge.\n")
    body = [row(name, fields, classes) for name, fields in found.items()]
    print_table(["probabilities", *SCORES, "best weights", "list at 0.8"], body)


if __name__ == "__main__":
    main()
