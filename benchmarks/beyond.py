"""Objects unlike the training set: filled values and intervals beyond what was learned from.

    python benchmarks/beyond.py [--tables stars,dc2,simulated,macho,chandra] [--seeds 3]

The bright part of each table teaches, with a tenth of its cells hidden; in the faint part a fifth
is hidden and found again, and for comparison in the bright part too. Nothing is said of limits.
Errors are in standard deviations of a column in the bright part. "before" is skyfill with maps of
ranks and without widening; the intervals of ridge regression are as wide as its errors in the
training rows. For gaps of faint objects in the training table itself see `nondetections.py`
(skyfill, neither).
"""

import argparse
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
from scipy.special import ndtri
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from class_tables import chandra_gaps, macho_cells
from imputation import words
from limit_tables import dc2_known, field
from report import header, print_table
from skyfill.impute import NetworkImputer
from skyfill.network.mixture import learn

LEVELS = (0.05, 0.95)


def stars(seed):
    """Four magnitudes that follow one color; the field is up to 3 mag fainter."""
    rng = np.random.default_rng(seed)

    def made(low, high):
        V, color = rng.uniform(low, high, 2000), rng.normal(0.8, 0.3, 2000)
        noise = rng.normal(0, 1, (2000, 3)) * [0.05, 0.05, 0.1]
        return np.column_stack([V, V[:, None] - np.outer(color, [1, 2, 2.5]) + noise])

    return made(14, 18), made(18, 21)


def split(X, faintness, share=0.5):
    """Rows of a table up to a quantile of some brightness, and the others."""
    faint = faintness > np.nanquantile(faintness, share)
    return X[~faint], X[faint]


def dc2(seed):
    """Complete galaxies of DC2, by the i band."""
    X = dc2_known(seed)[0]
    X = X[~np.isnan(X).any(axis=1)]
    return split(X, X[:, 3])


def simulated(seed):
    """True magnitudes of the simulated training set, by V."""
    X = field(seed).true
    return split(X, X[:, 0], 0.6)


def table(make, column, sign, seed):
    """A survey table by one of its columns."""
    made = make(seed)
    return split(made.X, sign * made.X[:, made.names.index(column)])


TABLES = {
    "stars": stars,
    "dc2": dc2,
    "simulated": simulated,
    "macho": partial(table, partial(macho_cells, 0.0), "Mean", 1),
    "chandra": partial(table, chandra_gaps, "Fcsc_m", -1),
}


def hide(X, rate, rng):
    """Cells to hide; no row loses all that it has."""
    hidden = (rng.random(X.shape) < rate) & ~np.isnan(X)
    hidden[(hidden | np.isnan(X)).all(axis=1)] = False
    return hidden


def ours(A, seed):
    """The default."""
    imputer = NetworkImputer(random_state=seed).fit(A)
    return lambda X: (imputer.transform(X), imputer.quantiles(X, LEVELS))


def unwidened(A, seed):
    """The default, but sure of itself everywhere."""
    imputer = NetworkImputer(random_state=seed).fit(A)
    imputer.network_ = replace(imputer.network_, support=None)
    return lambda X: (imputer.transform(X), imputer.quantiles(X, LEVELS))


def before(A, seed):
    """Maps of ranks, not widened."""
    with patch.object(learn, "choose_plain_maps", lambda *_: "ranks"):
        return unwidened(A, seed)


def iterative(A, seed, estimator=None):
    """Regression after regression; intervals by the errors of hidden training cells."""
    how = {"max_iter": 10, "random_state": seed}
    imputer = IterativeImputer(estimator, **how).fit(A)
    hidden = hide(A, 0.2, np.random.default_rng(seed))
    away = np.where(hidden, imputer.transform(np.where(hidden, np.nan, A)) - A, np.nan)
    half = ndtri(LEVELS[1]) * np.sqrt(np.nanmean(away**2, axis=0))

    def fill(X):
        mean = imputer.transform(X)
        return mean, np.stack([mean - half, mean + half])

    return fill


METHODS = {
    "skyfill": ours,
    "skyfill, not widened": unwidened,
    "skyfill, before": before,
    "IterativeImputer (BayesianRidge)": iterative,
    "IterativeImputer (50 extra trees)": lambda A, seed: iterative(
        A, seed, ExtraTreesRegressor(50, n_jobs=2, random_state=seed)
    ),
}


def score(fill, X, unit, rng):
    """Bias, RMSE and coverage of hidden cells."""
    hidden = hide(X, 0.2, rng)
    mean, (low, high) = fill(np.where(hidden, np.nan, X))
    away = ((mean - X) / unit)[hidden]
    inside = ((low <= X) & (high >= X))[hidden].mean()
    return [away.mean(), np.sqrt((away**2).mean()), inside]


def main():
    """Print a table of each data set."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tables", type=words, default=list(TABLES))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    header("Beyond the training set", ["scikit-learn"])
    for name in options.tables:
        rows = []
        for title, fit in METHODS.items():
            found = []
            for seed in range(options.seeds):
                rng = np.random.default_rng(seed)
                bright, faint = TABLES[name](seed)
                unit = np.nanstd(bright, axis=0)
                fill = fit(np.where(hide(bright, 0.1, rng), np.nan, bright), seed)
                found.append([*score(fill, bright, unit, rng), *score(fill, faint, unit, rng)])
            b0, r0, c0, b1, r1, c1 = np.mean(found, axis=0)
            rows.append([title, f"{b0:+.2f}, {r0:.3f}, {c0:.2f}", f"{b1:+.2f}, {r1:.3f}, {c1:.2f}"])
        print(f"### {name}\n")
        print_table(["bias, RMSE, in 90 % interval", "bright part", "faint part"], rows)


if __name__ == "__main__":
    main()
