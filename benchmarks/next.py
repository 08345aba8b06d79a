"""Is `skyfill next` right? Gains it expects against what revealed measurements really tell.

    python benchmarks/next.py [--tables macho,chandra] [--hidden 0.3] [--rows 1500] [--rounds 4]
        [--gaps auto] [--seeds 0,1,2] [--figure next.png]

Cells are hidden at random in all rows. Half of the rows train a `CatalogClassifier`. Some of the
others are new objects: every hidden feature in turn is revealed, and the information that it gives
is compared with what was expected: how far the class probabilities move (the Kullback-Leibler
divergence of those with the value from those before), and by how much the log loss of the true
class falls. Before means: the mean over the possible values; the log loss of the object classified
with its gap is shown too. Then features are revealed one after the other: as advised, at random,
and where the value itself is most uncertain. All of it is repeated with other seeds: other rows,
other hidden cells, other trees. Standard errors allow for the correlation of all values of an
object, in whichever run; those of differences and ratios are paired.

Needs the public tables in SKYFILL_DATA (or the network to fetch them).
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np

from report import header, print_table
from skyfill.classify import CatalogClassifier, Scorer
from skyfill.classify.next_measurement import (
    N_POINTS,
    as_measured,
    classify_possible,
    expected_gains,
    gain,
    possible_rows,
)
from skyfill.datasets import load_chandra, load_macho
from skyfill.evaluate import hide_cells
from skyfill.impute import NetworkImputer
from skyfill.network import Cells, MixtureNetwork
from skyfill.network.mixture.random_keys import keyed
from survey_tables import chandra, macho

TABLES = {"macho": (macho, load_macho, "class"), "chandra": (chandra, load_chandra, "Class")}
# Smallest probability of a class: no loss is infinite.
FLOOR = 1e-12


class Trial(NamedTuple):
    """A fitted scorer and objects that it has not seen, with and without some of their values."""

    scorer: Scorer
    names: tuple[str, ...]
    true: np.ndarray
    hidden: np.ndarray
    classes: np.ndarray
    objects: np.ndarray


class Revealed(NamedTuple):
    """What each hidden value was expected to tell and told, in bits; its object and column."""

    expected: np.ndarray
    moved: np.ndarray
    fall: np.ndarray
    fall_from_gap: np.ndarray
    objects: np.ndarray
    column: np.ndarray


def main():
    options = arguments()
    curves = {}
    for key in options.tables.split(","):
        title, found, lines = TABLES[key][0]().title, [], []
        header(f"{title}: the next measurement", ["scikit-learn"])
        for seed in options.seeds:
            trial = prepared(key, options, seed)
            found.append(reveal(trial))
            lines.append({way: curve(trial, way, options.rounds) for way in WAYS})
        print(f"{100 * options.hidden:g} % of the cells hidden; {len(trial.hidden)} new objects.\n")
        print_gains(trial.names, found, options.seeds)
        curves[title] = {way: np.hstack([line[way] for line in lines]) for way in WAYS}
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
    parser.add_argument("--gaps", default="auto")
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
        imputer=NetworkImputer(16, n_fits=4, gaps=options.gaps, refine=None),
        random_state=seed,
    )
    model.fit(hidden[:half], y[:half])
    codes, rows = np.searchsorted(model.classes_, y), slice(half, half + options.rows)
    return Trial(model.scorer_, table.names, X[rows], hidden[rows], codes[rows], order[rows])


def losses(P, classes):
    """Minus log2 of the probability of the true class."""
    return -np.log2(np.maximum(P[np.arange(len(P)), classes], FLOOR))


def divergence(P, Q):
    """Kullback-Leibler divergence of P from Q, in bits."""
    return (P * np.log2(np.maximum(P, FLOOR) / np.maximum(Q, FLOOR))).sum(axis=1)


def reveal(trial):
    """Reveal each hidden value by itself."""
    network = trial.scorer.network
    network = MixtureNetwork(network.names, network.margins, network.fits)
    lost = np.isnan(trial.hidden) & ~np.isnan(trial.true)
    found = []
    for j in range(len(trial.names)):
        rows = np.flatnonzero(lost[:, j])
        asked, after, y = (
            keyed(Cells(trial.hidden[rows]), 0),
            trial.hidden[rows],
            trial.classes[rows],
        )
        P = classify_possible(
            trial.scorer.probabilities,
            asked,
            possible_rows(as_measured(network, [j]), asked, [j], N_POINTS, 0),
        )
        after[:, j] = trial.true[rows, j]
        before, after = P.mean(axis=0), trial.scorer.probabilities(after)
        with_gap = trial.scorer.probabilities(trial.hidden[rows])
        found.append(
            Revealed(
                gain(P, N_POINTS),
                divergence(after, before),
                losses(before, y) - losses(after, y),
                losses(with_gap, y) - losses(after, y),
                trial.objects[rows],
                np.full(len(rows), j),
            )
        )
    return joined(found)


def joined(parts):
    return Revealed(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def print_gains(names, found, seeds):
    """Print gains of each feature over all seeds, and of all features for each seed."""
    every = joined(found)
    rows = []
    for j, name in enumerate(names):
        rows.append(shown(name, Revealed(*(each[every.column == j] for each in every))))
    rows += [shown(f"all, seed {s}", part) for s, part in zip(seeds, found, strict=True)]
    rows.append(shown("**all**", every))
    print_table(
        [
            "feature",
            "values",
            "expected bits",
            "probabilities moved",
            "fall of log loss",
            "the same, from the gap",
            "moved / expected",
            "fall / expected",
        ],
        rows,
    )


def shown(name, found):
    expected = found.expected.mean()
    cells = [f"{m.mean():.4f} ± {error_of_mean(m, found.objects):.4f}" for m in found[:4]]
    for seen in (found.moved, found.fall):
        ratio = seen.mean() / expected
        # The error of a ratio of means, to first order.
        error = error_of_mean(seen - ratio * found.expected, found.objects) / expected
        cells.append(f"{ratio:.2f} ± {error:.2f}")
    return [name, len(found.expected), *cells]


def error_of_mean(values, objects):
    """Return the standard error of a mean whose values are correlated within objects."""
    sums = np.bincount(objects, values - values.mean())
    return np.sqrt((sums**2).sum()) / len(values)


def advised(trial, X, rng):
    return expected_gains(trial.scorer.probabilities, trial.scorer.network, Cells(X)).bits


def at_random(trial, X, rng):
    return rng.random(X.shape)


def most_uncertain(trial, X, rng):
    """Spread of the value in units of the column's."""
    return trial.scorer.network.posterior(X).sd / np.nanstd(trial.true, axis=0)


WAYS = {"as advised": advised, "at random": at_random, "most uncertain value": most_uncertain}


def curve(trial, way, rounds):
    """Log loss while one hidden value after the other is revealed for every object."""
    rng, X = np.random.default_rng(0), trial.hidden.copy()
    found = [losses(trial.scorer.probabilities(X), trial.classes)]
    for _ in range(rounds):
        score = WAYS[way](trial, X, rng)
        score = np.where(np.isnan(X) & ~np.isnan(trial.true), score, -np.inf)
        best = score.argmax(axis=1)
        rows = np.flatnonzero(np.isfinite(score.max(axis=1)))
        X[rows, best[rows]] = trial.true[rows, best[rows]]
        found.append(losses(trial.scorer.probabilities(X), trial.classes))
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
