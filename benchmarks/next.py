"""Is `skyfill next` right? Gains it expects against what revealed measurements really tell.

    python benchmarks/next.py [--tables macho,chandra] [--hidden 0.3] [--rows 1500] [--rounds 4]
        [--seeds 0,1,2] [--figure next.png]

Cells are hidden at random in all rows. Half of the rows train a `CatalogClassifier`. Some of the
others are new objects: what is left of their values fits the sharpness of the means over draws, as
in `skyfill next`; then every hidden feature in turn is revealed, and the fall of the entropy and of
the log loss of the class is compared with what was expected. Then features are revealed one after
the other: as advised, at random, and where the value itself is most uncertain. All of it is
repeated with other seeds: other rows, other hidden cells, other trees.

Needs the public tables in SKYFILL_DATA (or the network to fetch them).
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np

from report import header, print_table
from skyfill.classify import CatalogClassifier, Scorer
from skyfill.classify.gap_draws import entropy_bits
from skyfill.classify.next_measurement import expected_gains, marginal_probabilities, sharpened
from skyfill.classify.sharpness import fit_sharpness
from skyfill.datasets import load_chandra, load_macho
from skyfill.evaluate import hide_cells
from skyfill.impute import NetworkImputer
from survey_tables import chandra, macho

TABLES = {"macho": (macho, load_macho, "class"), "chandra": (chandra, load_chandra, "Class")}


class Trial(NamedTuple):
    """A fitted scorer and objects that it has not seen, with and without some of their values."""

    scorer: Scorer
    names: tuple[str, ...]
    true: np.ndarray
    hidden: np.ndarray
    classes: np.ndarray
    sharpness: float = 1.0


def main():
    options = arguments()
    curves = {}
    for key in options.tables.split(","):
        title, trials = TABLES[key][0]().title, [prepared(key, options, s) for s in options.seeds]
        header(f"{title}: the next measurement", ["scikit-learn"])
        print(f"{100 * options.hidden:g} % of the cells hidden; new objects and sharpness:")
        print(", ".join(f"{len(t.hidden)} with {t.sharpness:.2f}" for t in trials) + "\n")
        print_gains(trials, [single_gains(trial) for trial in trials], options.seeds)
        curves[title] = {
            way: np.hstack([curve(trial, way, options.rounds) for trial in trials]) for way in WAYS
        }
        print_table(
            ["log loss (bits) after", *map(str, range(options.rounds + 1))],
            [*curve_rows(curves[title])],
        )
    if options.figure:
        draw(curves, options.figure)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="macho")
    parser.add_argument("--hidden", type=float, default=0.3)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seeds", type=numbers, default=[0, 1, 2])
    parser.add_argument("--figure", type=Path)
    return parser.parse_args()


def numbers(text):
    return [int(word) for word in text.split(",")]


def prepared(key, options, seed):
    """Hide cells, train on one half, keep some of the other half."""
    build, load, label = TABLES[key]
    table = build()
    y = np.array(load().column(label).to_pylist())
    order = np.random.default_rng(seed).permutation(len(table.X))
    X, y = table.X[order], y[order]
    hidden = hide_cells(X, options.hidden, seed + 1).X
    half = len(X) // 2
    model = CatalogClassifier(
        n_trees=200,
        n_rounds=80,
        n_folds=3,
        imputer=NetworkImputer(16, n_fits=4),
        random_state=seed,
    )
    model.fit(hidden[:half], y[:half])
    codes, rows = np.searchsorted(model.classes_, y), slice(half, half + options.rows)
    trial = Trial(model.scorer_, table.names, X[rows], hidden[rows], codes[rows])
    classify, network = trial.scorer.probabilities, trial.scorer.network
    power = fit_sharpness(classify, network, trial.hidden)
    return trial._replace(sharpness=power)


def probabilities(trial, X):
    classify, network = trial.scorer.probabilities, trial.scorer.network
    return sharpened(marginal_probabilities(classify, network, X), trial.sharpness)


def expected(trial, X):
    classify, network = trial.scorer.probabilities, trial.scorer.network
    return expected_gains(classify, network, X, sharpness=trial.sharpness).bits


def losses(P, classes):
    """Minus log2 of the probability of the true class."""
    return -np.log2(np.maximum(P[np.arange(len(P)), classes], 1e-12))


def single_gains(trial):
    """Expected gains of each feature, falls of entropy and of log loss: arrays (3, objects)."""
    gains = expected(trial, trial.hidden)
    lost = np.isnan(trial.hidden) & ~np.isnan(trial.true)
    found = []
    for j in range(len(trial.names)):
        rows = np.flatnonzero(lost[:, j])
        before, after = trial.hidden[rows], trial.hidden[rows].copy()
        after[:, j] = trial.true[rows, j]
        p = [probabilities(trial, X) for X in (before, after)]
        fall = entropy_bits(p[0]) - entropy_bits(p[1])
        told = [losses(P, trial.classes[rows]) for P in p]
        found.append(np.stack([gains[rows, j], fall, told[0] - told[1]]))
    return found


def print_gains(trials, found, seeds):
    """Print gains of each feature over all seeds, and of all features for each seed."""
    by_feature = [np.concatenate(parts, axis=1) for parts in zip(*found, strict=True)]
    rows = [shown(name, part) for name, part in zip(trials[0].names, by_feature, strict=True)]
    for seed, parts in zip(seeds, found, strict=True):
        rows.append(shown(f"all, seed {seed}", np.concatenate(parts, axis=1)))
    rows.append(shown("**all**", np.concatenate(by_feature, axis=1)))
    print_table(
        ["feature", "objects", "expected bits", "fall of entropy", "fall of log loss"], rows
    )


def shown(name, values):
    errors = values.std(axis=1) / np.sqrt(values.shape[1])
    cells = [f"{m:.3f} ± {e:.3f}" for m, e in zip(values.mean(axis=1), errors, strict=True)]
    return [name, values.shape[1], *cells]


def advised(trial, X, rng):
    return expected(trial, X)


def at_random(trial, X, rng):
    return rng.random(X.shape)


def most_uncertain(trial, X, rng):
    """Spread of the value in units of the column's."""
    return trial.scorer.network.posterior(X).sd / np.nanstd(trial.true, axis=0)


WAYS = {"as advised": advised, "at random": at_random, "most uncertain value": most_uncertain}


def curve(trial, way, rounds):
    """Log loss while one hidden value after the other is revealed for every object."""
    rng, X = np.random.default_rng(0), trial.hidden.copy()
    found = [losses(probabilities(trial, X), trial.classes)]
    for _ in range(rounds):
        score = WAYS[way](trial, X, rng)
        score = np.where(np.isnan(X) & ~np.isnan(trial.true), score, -np.inf)
        best = score.argmax(axis=1)
        rows = np.flatnonzero(np.isfinite(score.max(axis=1)))
        X[rows, best[rows]] = trial.true[rows, best[rows]]
        found.append(losses(probabilities(trial, X), trial.classes))
    return np.array(found)


def curve_rows(ways):
    """Mean losses of every way; differences from the advice with paired standard errors."""
    first, *others = ways
    for way, found in ways.items():
        yield [way, *(f"{loss:.3f}" for loss in found.mean(axis=1))]
    for way in others:
        gap = ways[way] - ways[first]
        errors = gap.std(axis=1) / np.sqrt(gap.shape[1])
        cells = (f"{m:+.3f} ± {e:.3f}" for m, e in zip(gap.mean(axis=1), errors, strict=True))
        yield [f"{way} minus {first}", *cells]


def draw(curves, path):
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(curves), squeeze=False, layout="constrained")
    for ax, (title, ways) in zip(axes[0], curves.items(), strict=True):
        for way, values in ways.items():
            ax.plot(values.mean(axis=1), marker="o", label=way)
        ax.set(xlabel="measurements taken", ylabel="log loss (bits)", title=title.split(",")[0])
        ax.title.set_size("medium")
        ax.legend(frameon=False)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
