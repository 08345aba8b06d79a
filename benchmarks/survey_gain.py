"""The paper's last table: what other surveys add to light curves, on the simulated training set.

    python benchmarks/survey_gain.py [--folds 10] [--methods paper,skyfill] [--seed 0]

The fourteen light-curve features alone, and with SAGE, 2MASS and UBVI magnitudes. A feature that
cannot be computed and a magnitude that was not measured are gaps; everything is learned inside the
folds. The paper has, for quasars, F 0.828 without and 0.896 with the other surveys.
"""

import argparse

import numpy as np

from report import header, print_table
from skyfill.catalog import Role
from skyfill.datasets import join_by_truth, simulate_training_set
from skyfill.evaluate import classifiers, cross_validate, without_surveys
from skyfill.lightcurve import extract_features, from_table


def build(seed):
    """Numbers, labels, names of the columns, and which of them are magnitudes of other surveys."""
    field = simulate_training_set(seed=seed, light_curves=True)
    table = join_by_truth(field)
    features = extract_features(from_table(field.light_curves))
    place = {name: i for i, name in enumerate(features.column("id").to_pylist())}
    rows = [place[name] for name in table.column("id").to_pylist()]
    of_curves = features.names_with(Role.FEATURE)
    own = ("V_macho", "R_macho")  # means of the light curves: these are features already
    others = tuple(name for name in table.names_with(Role.FEATURE) if name not in own)
    X = np.hstack([features.numbers(*of_curves)[rows], table.numbers(*others)])
    y = np.array(table.column("class").to_pylist(), dtype=object)
    return X, y, (*of_curves, *others), list(range(len(of_curves), X.shape[1]))


def rows_of(found, label):
    """Quasars and the means over classes, for every method."""
    rows = []
    for method in found.methods:
        scores = found.by_class(method)
        quasar = found.classes.index("QSO")
        parts = [getattr(scores, name)[quasar] for name in ("precision", "recall", "f")]
        means = [found.mean(score, method).value for score in ("weighted_f", "macro_f", "log_loss")]
        rows.append([label, method, *(f"{value:.3f}" for value in (*parts, *means))])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--methods", default="paper,skyfill")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    X, y, names, others = build(options.seed)
    header("What other surveys add to light curves", ["scikit-learn"])
    gaps = np.isnan(X).mean(axis=0)
    print(f"{len(X)} objects; gaps: light-curve features {gaps[: others[0]].mean():.1%}, "
          f"other surveys {gaps[others].mean():.1%}\n")  # fmt: skip
    methods = classifiers(options.methods.split(","))
    rules = {"folds": options.folds, "rng": options.seed}
    found = cross_validate(X, y, methods, **rules)
    parts = without_surveys(X, y, methods, columns=others, found=found, **rules)
    rows = rows_of(parts["all"], "all")
    heads = ["objects", "method", "quasars: precision", "recall", "F"]
    print_table([*heads, "weighted F", "macro F", "log loss"], rows)
    for name in methods:
        for score in ("weighted_f", "macro_f", "log_loss"):
            gap = parts["all"].difference(score, name, f"{name} without")
            print(f"{name}: {score} {gap.value:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})")


if __name__ == "__main__":
    main()
